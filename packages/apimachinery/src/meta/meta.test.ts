import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cloneJson } from './deep-clone.ts';
import { deepEqual } from './deep-equal.ts';
import { checkLabelValue, checkName, checkQualifiedName, checkSubdomain } from './name-rules.ts';
import { conditionOf, hasEnded, isConditionTrue, isDeleting } from './object-state.ts';
import { ApiError, internalError } from './status.ts';
import { validateObjectMeta } from './validate-object-meta.ts';

const json = (): fc.Arbitrary<unknown> =>
  fc.jsonValue({ maxDepth: 4 }).map((v) => JSON.parse(JSON.stringify(v)) as unknown);

test('cloneJson() gives an equal value that shares nothing', () => {
  fc.assert(
    fc.property(json(), (value) => {
      const copy = cloneJson(value);
      assert.equal(JSON.stringify(copy), JSON.stringify(value));
      assert.ok(deepEqual(copy, value));
      if (typeof value === 'object' && value !== null) assert.notEqual(copy, value);
    }),
    { numRuns: 200 },
  );
});

// S-114
test('a member named __proto__ stays a member', () => {
  const value = JSON.parse('{"__proto__":{"polluted":true},"a":1}') as Record<string, unknown>;
  const copy = cloneJson(value);
  assert.equal(Object.getPrototypeOf(copy), Object.prototype);
  assert.deepEqual(Object.keys(copy), ['__proto__', 'a']);
  assert.ok(deepEqual(copy, value));
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
});

test('deepEqual() follows JSON equality', () => {
  const cases: [unknown, unknown, boolean][] = [
    [{ a: 1, b: 2 }, { b: 2, a: 1 }, true],
    [{ a: undefined }, {}, true],
    [{}, { a: undefined }, true],
    [{ a: undefined }, { b: 1 }, false],
    [{ a: null }, {}, false],
    [[1, 2], [2, 1], false],
    [[], {}, false],
    [{ toString: 1 }, {}, false],
    [{}, { constructor: 1 }, false],
    [null, {}, false],
  ];
  for (const [a, b, want] of cases) assert.equal(deepEqual(a, b), want, JSON.stringify([a, b]));
  fc.assert(
    fc.property(json(), json(), (a, b) => {
      assert.equal(deepEqual(a, b), deepEqual(b, a));
    }),
  );
});

test('name rules', () => {
  const good: [string, Parameters<typeof checkName>[1]][] = [
    ['a', 'subdomain'],
    ['a.b-c.9', 'subdomain'],
    ['my-ns', 'label'],
    ['system:controller:x', 'path-segment'],
    ['x'.repeat(253), 'subdomain'],
  ];
  for (const [name, rule] of good) assert.deepEqual(checkName(name, rule), [], name);
  const bad: [string, Parameters<typeof checkName>[1], RegExp][] = [
    ['', 'subdomain', /must consist of lower case alphanumeric/],
    ['A', 'subdomain', /regex used for validation is/],
    ['a..b', 'subdomain', /RFC 1123 subdomain/],
    ['-a', 'label', /RFC 1123 label/],
    ['a.b', 'label', /must not contain dots/],
    ['x'.repeat(64), 'label', /must be no more than 63 characters/],
    ['x'.repeat(254), 'subdomain', /must be no more than 253 characters/],
    ['..', 'path-segment', /may not be '\.\.'/],
    ['a/b', 'path-segment', /may not contain '\/'/],
  ];
  for (const [name, rule, message] of bad) assert.match(checkName(name, rule).join('; '), message, name);
  assert.deepEqual(checkName('abc-', 'subdomain', { prefix: true }), []);
  assert.notDeepEqual(checkName('abc-', 'subdomain'), []);
  // The newer rules call bytes what they are.
  assert.deepEqual(checkQualifiedName(`${'x'.repeat(254)}/a`), ['prefix part must be no more than 253 bytes']);
});

test('qualified names and label values', () => {
  for (const key of ['a', 'a/b', 'kubevirt.io/x_y.z', 'A-b']) assert.deepEqual(checkQualifiedName(key), [], key);
  for (const key of ['', '/b', 'a/', 'a/b/c', '_a', 'A.io/x', `x/${'y'.repeat(64)}`]) {
    assert.notDeepEqual(checkQualifiedName(key), [], key);
  }
  for (const value of ['', 'a', 'A_b.c-9', 'x'.repeat(63)]) assert.deepEqual(checkLabelValue(value), [], value);
  for (const value of ['-a', 'a b', 'x'.repeat(64), 'a/b']) assert.notDeepEqual(checkLabelValue(value), [], value);
});

test('name checks take linear time', () => {
  assert.notDeepEqual(checkSubdomain(`${'a-'.repeat(100_000)}!`), []);
  assert.notDeepEqual(checkQualifiedName(`${'a.'.repeat(100_000)}!`), []);
});

// Compat Writing, P1, yes: owner references, labels, annotations, finalizers are checked
test('validateObjectMeta() names each wrong field', () => {
  const options = { namespaced: true, names: 'subdomain' } as const;
  assert.deepEqual(validateObjectMeta({ name: 'a', namespace: 'b', labels: { x: 'y' } }, options), []);
  const errors = validateObjectMeta(
    {
      namespace: 'B',
      labels: { 'a b': '-' },
      annotations: { 'UPPER/ok': 'x', 'no/no/no': 'y'.repeat(256 * 1024) },
      finalizers: ['orphan', 'foregroundDeletion', 'bad finalizer'],
      ownerReferences: [
        { apiVersion: 'v1', kind: 'Event', name: '', uid: 'u', controller: true },
        { apiVersion: '', kind: 'Pod', name: 'p', uid: 'u', controller: true },
      ],
    },
    options,
  );
  const fields = errors.map((e) => `${e.type} ${e.field}`);
  for (const want of [
    'FieldValueRequired metadata.name',
    'FieldValueInvalid metadata.namespace',
    'FieldValueInvalid metadata.labels',
    'FieldValueInvalid metadata.annotations',
    'FieldValueTooLong metadata.annotations',
    'FieldValueInvalid metadata.finalizers',
    'FieldValueInvalid metadata.ownerReferences',
    'FieldValueInvalid metadata.ownerReferences.name',
    'FieldValueInvalid metadata.ownerReferences.apiVersion',
  ]) {
    assert.ok(fields.includes(want), `${want} in ${fields.join(', ')}`);
  }
  assert.ok(errors.some((e) => e.detail?.startsWith('Only one reference can have Controller set to true.')));
  assert.ok(
    validateObjectMeta({ name: 'a', namespace: 'b' }, { ...options, namespaced: false }).some(
      (e) => e.type === 'FieldValueForbidden',
    ),
  );
});

test('the state of an object is read off its conditions, its phase and its metadata', () => {
  const conditions = [
    { type: 'Ready', status: 'True' },
    { type: 'Paused', status: 'False', reason: 'Asked' },
  ];
  assert.equal(conditionOf({ status: { conditions } }, 'Paused')?.reason, 'Asked');
  assert.deepEqual(
    ['Ready', 'Paused', 'Failed'].map((type) => isConditionTrue({ status: { conditions } }, type)),
    [true, false, false],
  );
  assert.deepEqual(
    [undefined, {}, { status: {} }].map((object) => isConditionTrue(object, 'Ready')),
    [false, false, false],
  );
  assert.deepEqual(
    ['Succeeded', 'Failed', 'Running', undefined].map((phase) => hasEnded({ status: { phase } })),
    [true, true, false, false],
  );
  assert.equal(hasEnded(undefined), false);
  assert.equal(isDeleting({ metadata: { deletionTimestamp: '2030-01-01T00:00:00Z' } }), true);
  assert.equal(isDeleting({ metadata: {} }), false);
});

// S-1689: A request that is refused because the disk of the state is full is refused so (507) by who passes it on too: stop, restart.
test('internalError() leaves what a full disk refuses as it is', () => {
  const full = new ApiError({ code: 507, reason: 'InsufficientStorage', message: 'full' });
  assert.equal(internalError('stop: full', full), full);
  assert.equal(internalError('stop: x', new Error('x')).message, 'Internal error occurred: stop: x');
});
