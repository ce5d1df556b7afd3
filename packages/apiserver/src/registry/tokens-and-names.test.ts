import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { generateName } from '../../../apimachinery/src/meta/generate-name.ts';
import { ApiError } from '../../../apimachinery/src/meta/status.ts';
import { decodeContinue, encodeContinue } from './list.ts';
import { type ListOptions, NO_LIST_OPTIONS, validateListOptions } from './list-options.ts';
import { parseResourceVersion } from './resource-version.ts';

test('a continue token survives its round trip', () => {
  // A step upwards is no key (storage/continue.go), and no name either.
  const segment = fc.stringMatching(/^[a-z0-9.:-]{0,20}$/).filter((text) => text !== '..');
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2 ** 50 }), segment, segment, (revision, namespace, name) => {
      const token = { revision, after: `${namespace}/${name}` };
      assert.deepEqual(decodeContinue(encodeContinue(token)), token);
    }),
  );
  assert.equal(decodeContinue(encodeContinue({ revision: -1, after: 'a/b' })).revision, -1);
});

test('what is no token is 400, whatever it is', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      assert.throws(
        () => decodeContinue(text),
        (error) => error instanceof ApiError && error.code === 400,
      );
    }),
  );
});

// Compat Writing, P0, yes: generateName: 58 characters, five without vowels, tried again
test('generateName() cuts the base to 58 characters and appends five of its alphabet', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z]{0,80}$/), (base) => {
      const name = generateName(base);
      assert.equal(name.slice(0, -5), base.slice(0, 58));
      assert.match(name.slice(-5), /^[bcdfghjklmnpqrstvwxz2456789]{5}$/);
    }),
  );
});

test('parseResourceVersion() takes decimal numbers only', () => {
  assert.deepEqual(['', '0', '17', '9007199254740991'].map(parseResourceVersion), [0, 0, 17, 9007199254740991]);
  for (const text of ['x', '-1', '1.5', '1e3', '99999999999999999', ' 1']) {
    assert.throws(() => parseResourceVersion(text), /invalid resource version/);
  }
});

// Compat Reading, P0, yes: resourceVersion and resourceVersionMatch in every combination
test('validateListOptions() accepts what makes sense and no more', () => {
  const cases: [Partial<ListOptions>, boolean, boolean][] = [
    [{}, true, true],
    [{ resourceVersion: '5' }, true, true],
    [{ resourceVersion: '5', resourceVersionMatch: 'Exact' }, true, false],
    [{ resourceVersion: '0', resourceVersionMatch: 'Exact' }, false, false],
    [{ resourceVersion: '0', resourceVersionMatch: 'NotOlderThan' }, true, false],
    [{ resourceVersionMatch: 'NotOlderThan' }, false, false],
    [{ resourceVersion: '5', resourceVersionMatch: 'Newest' }, false, false],
    [{ resourceVersion: '5', resourceVersionMatch: 'Exact', continue: 'x' }, false, false],
    [{ sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' }, false, true],
    [{ sendInitialEvents: false, resourceVersionMatch: 'NotOlderThan' }, false, true],
    [{ sendInitialEvents: true }, false, false],
    [{ sendInitialEvents: true, resourceVersionMatch: 'Exact' }, false, false],
  ];
  const accepts = (options: Partial<ListOptions>, watch: boolean): boolean => {
    try {
      validateListOptions({ ...NO_LIST_OPTIONS, ...options }, { watch });
      return true;
    } catch (error) {
      assert.ok(error instanceof ApiError && error.code === 422);
      return false;
    }
  };
  for (const [options, list, watch] of cases) {
    assert.equal(accepts(options, false), list, `list ${JSON.stringify(options)}`);
    assert.equal(accepts(options, true), watch, `watch ${JSON.stringify(options)}`);
  }
});
