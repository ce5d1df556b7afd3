import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { deepEqual } from '../meta/deep-equal.ts';
import type { ApiError } from '../meta/status.ts';
import { createMergePatch } from './create-merge-patch.ts';
import { applyJsonPatch, unknownMembers } from './json-patch.ts';
import { applyMergePatch } from './merge-patch.ts';

const freeze = <T>(value: T): T => {
  if (typeof value === 'object' && value !== null) {
    Object.values(value).forEach(freeze);
    Object.freeze(value);
  }
  return value;
};
const json = (): fc.Arbitrary<unknown> =>
  fc.jsonValue({ maxDepth: 4 }).map((v) => JSON.parse(JSON.stringify(v)) as unknown);

// S-012
test('JSON patch: the examples of RFC 6902, appendix A, and then some', () => {
  const cases: [unknown, unknown[] | null, unknown][] = [
    [{ foo: 'bar' }, [{ op: 'add', path: '/baz', value: 'qux' }], { baz: 'qux', foo: 'bar' }],
    [{ foo: ['bar', 'baz'] }, [{ op: 'add', path: '/foo/1', value: 'qux' }], { foo: ['bar', 'qux', 'baz'] }],
    [{ baz: 'qux', foo: 'bar' }, [{ op: 'remove', path: '/baz' }], { foo: 'bar' }],
    [{ foo: ['bar', 'qux', 'baz'] }, [{ op: 'remove', path: '/foo/1' }], { foo: ['bar', 'baz'] }],
    [{ baz: 'qux', foo: 'bar' }, [{ op: 'replace', path: '/baz', value: 'boo' }], { baz: 'boo', foo: 'bar' }],
    [
      { foo: { bar: 'baz', waldo: 'fred' }, qux: { corge: 'grault' } },
      [{ op: 'move', from: '/foo/waldo', path: '/qux/thud' }],
      { foo: { bar: 'baz' }, qux: { corge: 'grault', thud: 'fred' } },
    ],
    [
      { foo: ['all', 'grass', 'cows', 'eat'] },
      [{ op: 'move', from: '/foo/1', path: '/foo/3' }],
      { foo: ['all', 'cows', 'eat', 'grass'] },
    ],
    [
      { baz: 'qux', foo: ['a', 2, 'c'] },
      [
        { op: 'test', path: '/baz', value: 'qux' },
        { op: 'test', path: '/foo/1', value: 2 },
      ],
      { baz: 'qux', foo: ['a', 2, 'c'] },
    ],
    [{ foo: 'bar' }, [{ op: 'add', path: '/child', value: { g: {} } }], { foo: 'bar', child: { g: {} } }],
    [{ foo: 'bar' }, [{ op: 'add', path: '/baz', value: 'qux', xyz: 123 }], { foo: 'bar', baz: 'qux' }],
    [{ '/': 9, '~1': 10 }, [{ op: 'test', path: '/~01', value: 10 }], { '/': 9, '~1': 10 }],
    [{ foo: ['bar'] }, [{ op: 'add', path: '/foo/-', value: ['abc', 'def'] }], { foo: ['bar', ['abc', 'def']] }],
    [{ a: { b: 1 } }, [{ op: 'copy', from: '/a', path: '/c' }], { a: { b: 1 }, c: { b: 1 } }],
    [{ a: 1 }, [{ op: 'replace', path: '', value: [1] }], [1]],
    [{ a: 1 }, [{ op: 'test', path: '', value: { a: 1 } }], { a: 1 }],
    [{ a: [1, 2] }, [{ op: 'remove', path: '/a/-1' }], { a: [1] }],
    [{ a: [1, 2] }, [{ op: 'add', path: '/a/-1', value: 3 }], { a: [1, 2, 3] }],
    [{}, [{ op: 'test', path: '/a', value: null }], {}],
    [{ a: 1 }, [{ op: 'move', from: '/a', path: '/a' }], { a: 1 }],
    [{ '': 1 }, [{ op: 'replace', path: '/', value: 2 }], { '': 2 }],
    // What evanphx/json-patch v4 lets pass.
    [{ a: 1 }, [{ op: 'replace', path: '/b', value: 2 }], { a: 1, b: 2 }],
    [{ a: 1 }, [{ op: 'copy', from: '/b', path: '/c' }], { a: 1, c: null }],
    [{ a: 1 }, [{ op: 'add', path: '/b' }], { a: 1, b: null }],
    [{ a: 1 }, [{ op: 'test', path: '/b' }], { a: 1 }],
    [{ a: 1 }, [{ op: 'remove', path: 'what stands here/a' }], {}],
    [{ a: [1, 2, 3] }, [{ op: 'replace', path: '/a/+01', value: 0 }], { a: [1, 0, 3] }],
    [{ a: [1, 2] }, [{ op: 'test', path: '/a/-2', value: 1 }], { a: [1, 2] }],
    [{ a: 1 }, null, { a: 1 }],
  ];
  for (const [document, patch, want] of cases) {
    assert.deepEqual(applyJsonPatch(freeze(document), freeze(patch)), want, JSON.stringify(patch));
  }
});

// S-267: Patches are refused with upstream's codes and words, but for why an operation of a JSON patch does not apply.
// Compat HTTP, P1, yes: copies of a JSON patch beyond 3 MiB: 422
// Compat Patch, P0, yes: JSON patch as evanphx/json-patch v4 reads RFC 6902, with upstream's codes
test('JSON patch: failing operations are 422, undecodable patches 400, excess 413', () => {
  const applied: [unknown, unknown, string][] = [
    [
      { baz: 'qux' },
      { op: 'test', path: '/baz', value: 'bar' },
      '"test" of "/baz" does not apply: the value is another',
    ],
    [{}, { op: 'test', path: '', value: 1 }, '"test" of "" does not apply: the value is another'],
    [{}, { op: 'test', path: '/a/b', value: null }, '"test" of "/a/b" does not apply: there is no such place'],
    [{ a: [] }, { op: 'test', path: '/a/0' }, '"test" of "/a/0" does not apply: "0" is not an index of a list of 0'],
    [{ a: 1 }, { op: 'add', path: '', value: 1 }, '"add" of "" does not apply: there is no such place'],
    [{}, { op: 'add', path: '/b/c', value: 1 }, '"add" of "/b/c" does not apply: there is no such place'],
    [
      { a: [] },
      { op: 'add', path: '/a/1', value: 1 },
      '"add" of "/a/1" does not apply: "1" is not an index of a list of 1',
    ],
    [
      { a: [] },
      { op: 'add', path: '/a/x', value: 1 },
      '"add" of "/a/x" does not apply: "x" is not an index of a list of 1',
    ],
    [{}, { op: 'remove', path: '/a' }, '"remove" of "/a" does not apply: there is no "a"'],
    [
      { a: [1] },
      { op: 'remove', path: '/a/-2' },
      '"remove" of "/a/-2" does not apply: "-2" is not an index of a list of 1',
    ],
    [{ a: 1 }, { op: 'remove', path: 'a' }, '"remove" of "a" does not apply: there is no such place'],
    [
      { a: [1] },
      { op: 'replace', path: '/a/1', value: 1 },
      '"replace" of "/a/1" does not apply: "1" is not an index of a list of 1',
    ],
    [
      {},
      { op: 'replace', path: '', value: 1 },
      '"replace" of "" does not apply: the value must be an object or a list',
    ],
    [
      { a: { b: 1 } },
      { op: 'move', from: '/a', path: '/a/b' },
      '"move" of "/a/b" does not apply: there is no such place',
    ],
    [{}, { op: 'move', from: '/a', path: '/b' }, '"move" of "/b" does not apply: there is no "a"'],
    [
      { a: [] },
      { op: 'copy', from: '/a/0', path: '/b' },
      '"copy" of "/b" does not apply: "0" is not an index of a list of 0',
    ],
    [{}, { op: 'copy', path: '/a' }, '"copy" of "/a" does not apply: it has no from'],
    [{}, { op: 'add' }, '"add" of nothing does not apply: it has no path'],
    [{}, { op: 'spin', path: '/b' }, '"spin" of "/b" does not apply: no such operation'],
    [{}, { op: 'constructor', path: '/b' }, '"constructor" of "/b" does not apply: no such operation'],
    [{}, null, 'nothing of nothing does not apply: no such operation'],
  ];
  for (const [document, operation, why] of applied) {
    assert.throws(
      () => applyJsonPatch(document, [operation]),
      (e: ApiError) => {
        assert.equal(e.code, 422);
        assert.equal(e.message, 'the server rejected our request due to an error in our request');
        assert.equal((e.cause as Error).message, why);
        return true;
      },
      JSON.stringify(operation),
    );
  }
  const undecodable: [unknown, string][] = [
    [{ op: 'add' }, 'expected array, got object'],
    [[1], 'expected object, got number'],
    [[{ op: 1 }], 'op: expected string, got number'],
    [[{ op: 'add', path: {} }], 'path: expected string, got object'],
  ];
  for (const [patch, message] of undecodable) {
    assert.throws(
      () => applyJsonPatch({}, patch),
      (e: ApiError) => e.code === 400 && e.message === `error decoding patch: ${message}`,
      JSON.stringify(patch),
    );
  }
  assert.throws(
    () => applyJsonPatch({}, Array(10_001).fill({ op: 'test', path: '', value: {} })),
    (e: ApiError) => e.code === 413 && /maximum operations/.test(e.message),
  );
  assert.throws(
    () => applyJsonPatch({ a: 'x'.repeat(1_000_000) }, Array(5).fill({ op: 'copy', from: '/a', path: '/b' })),
    (e: ApiError) => e.code === 422 && /copies add \d+ bytes/.test((e.cause as Error).message),
  );
});

// S-267
// Compat Patch, P1, yes: field validation of patches: members of an operation without a meaning, a kind that is not the
//   resource's
test('JSON patch: members without a meaning are named', () => {
  assert.deepEqual(
    unknownMembers([
      { op: 'add', path: '/a', foo: 1 },
      { Op: 'x', value: { any: 1 } },
    ]),
    ['unknown field "[0].foo"', 'unknown field "[1].Op"'],
  );
});

// S-114
test('JSON patch cannot touch prototypes', () => {
  const out = applyJsonPatch({ a: {} }, [
    { op: 'add', path: '/__proto__', value: { polluted: true } },
    { op: 'add', path: '/a/constructor', value: 1 },
  ]) as Record<string, unknown>;
  assert.deepEqual(Object.keys(out), ['a', '__proto__']);
  assert.equal(Object.getPrototypeOf(out), Object.prototype);
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
  assert.throws(() => applyJsonPatch({}, [{ op: 'add', path: '/__proto__/x', value: 1 }]), /rejected/);
});

// Compat Patch, P0, yes: merge patch (RFC 7386)
test('merge patch: the table of RFC 7386, appendix A', () => {
  const cases: [unknown, unknown, unknown][] = [
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    // Lists lose the nulls of their objects, unless they stand where a map was.
    [{ a: 1 }, { a: [null, { b: null, c: [{ d: null }] }] }, { a: [null, { c: [{}] }] }],
    [{}, { a: [{ b: null }] }, { a: [{}] }],
    [{ a: {} }, { a: [{ b: null }] }, { a: [{ b: null }] }],
    [
      ['a', 'b'],
      ['c', 'd'],
      ['c', 'd'],
    ],
    [{ a: 'b' }, ['c'], ['c']],
    [{ a: 'foo' }, null, null],
    [{ a: 'foo' }, 'bar', 'bar'],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: 'b', c: null }, { a: 'b' }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ];
  for (const [document, patch, want] of cases) {
    assert.deepEqual(applyMergePatch(freeze(document), freeze(patch)), want, JSON.stringify(patch));
  }
  const hostile = applyMergePatch({}, JSON.parse('{"__proto__":{"x":1}}')) as object;
  assert.deepEqual(Object.keys(hostile), ['__proto__']);
});

const stripNulls = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(stripNulls);
  if (typeof value !== 'object' || value === null) return value;
  const out = Object.create(null) as Record<string, unknown>;
  for (const [key, member] of Object.entries(value)) if (member !== null) out[key] = stripNulls(member);
  return JSON.parse(JSON.stringify(out)) as unknown;
};

test('createMergePatch() and applyMergePatch() are inverse', () => {
  assert.equal(createMergePatch({ a: { b: [1] } }, { a: { b: [1] } }), undefined);
  assert.deepEqual(createMergePatch({ a: 1, b: { c: 1, d: 2 } }, { b: { c: 1, d: 3 }, e: [] }), {
    a: null,
    b: { d: 3 },
    e: [],
  });
  fc.assert(
    fc.property(fc.dictionary(fc.string(), json()), fc.dictionary(fc.string(), json()), (a, b) => {
      const [from, to] = [stripNulls(a), stripNulls(b)];
      const patch = createMergePatch(freeze(from), freeze(to));
      const result = patch === undefined ? from : applyMergePatch(from, patch);
      assert.ok(deepEqual(result, to), JSON.stringify({ from, to, patch, result }));
      assert.equal(patch === undefined, deepEqual(from, to));
    }),
    { numRuns: 300 },
  );
});

test('merge patch: twice is once, nothing changes nothing, an object is its own result', () => {
  fc.assert(
    fc.property(json(), fc.dictionary(fc.string(), json()), (before, patch) => {
      const [target, change] = [freeze(before), freeze(patch)];
      const once = applyMergePatch(target, change);
      assert.ok(deepEqual(applyMergePatch(freeze(once), change), once));
      const object = freeze(stripNulls(patch));
      assert.ok(deepEqual(applyMergePatch(object, {}), object));
      assert.ok(deepEqual(applyMergePatch(object, object), object));
    }),
    { numRuns: 200 },
  );
});

test('JSON patch: what is added is there, what is undone is as before, a failure changes nothing', () => {
  const pointer = (key: string): string => `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
  const key = fc.string({ minLength: 1 });
  fc.assert(
    fc.property(fc.dictionary(key, json()), key, json(), (before, name, value) => {
      const target = freeze(before);
      const path = pointer(name);
      const known = Object.hasOwn(target, name);
      const added = applyJsonPatch(target, [
        { op: 'add', path, value },
        { op: 'test', path, value },
      ]);
      const undo = known ? { op: 'replace', path, value: target[name] } : { op: 'remove', path };
      assert.ok(deepEqual(applyJsonPatch(added, [undo]), target));
      const kept = JSON.stringify(target);
      assert.throws(() =>
        applyJsonPatch(target, [
          { op: 'add', path, value },
          { op: 'remove', path: '/no/such/place' },
        ]),
      );
      assert.equal(JSON.stringify(target), kept);
      // Moving there and back is nothing.
      if (known && !Object.hasOwn(target, `${name}x`)) {
        const there = { op: 'move', from: path, path: `${path}x` };
        const back = { op: 'move', from: `${path}x`, path };
        assert.ok(deepEqual(applyJsonPatch(target, [there, back]), target));
      }
    }),
    { numRuns: 300 },
  );
});

test('a path as long as a body is missing, and is not echoed whole', () => {
  const path = '/a'.repeat(500_000);
  assert.throws(
    () => applyJsonPatch({}, [{ op: 'add', path, value: 1 }]),
    (error: Error) => /there is no such place/.test(String(error.cause)) && String(error.cause).length < 20_000,
  );
});
