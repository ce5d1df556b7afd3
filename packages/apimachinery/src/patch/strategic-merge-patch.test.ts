import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ApiError } from '../meta/status.ts';
import type { Schema } from '../schema/schema.ts';
import { applyStrategicMergePatch } from './strategic-merge-patch.ts';

const text: Schema = { type: 'string' };
const item: Schema = {
  type: 'object',
  properties: {
    name: text,
    image: text,
    args: { type: 'array', items: text },
    env: {
      type: 'array',
      'x-kubernetes-patch-strategy': 'merge',
      'x-kubernetes-patch-merge-key': 'name',
      items: { type: 'object', properties: { name: text, value: text } },
    },
  },
};
const schema: Schema = {
  type: 'object',
  'x-coracle-name': 'io.example.Whole',
  properties: {
    labels: { type: 'object', additionalProperties: text },
    finalizers: { type: 'array', items: text, 'x-kubernetes-patch-strategy': 'merge' },
    containers: {
      type: 'array',
      items: item,
      'x-kubernetes-patch-strategy': 'merge',
      'x-kubernetes-patch-merge-key': 'name',
    },
    tolerations: { type: 'array', items: { type: 'object', properties: { key: text } } },
    strategy: {
      type: 'object',
      'x-kubernetes-patch-strategy': 'retainKeys',
      properties: { type: text, rollingUpdate: { type: 'object', properties: { max: text } } },
    },
    selector: {
      type: 'object',
      'x-kubernetes-patch-strategy': 'replace',
      properties: { matchLabels: { type: 'object', additionalProperties: text } },
    },
  },
};
const named = (...names: string[]): { name: string }[] => names.map((name) => ({ name }));
const order = (...names: string[]): Record<string, unknown> => ({ '$setElementOrder/containers': named(...names) });

// S-012
// Compat Patch, P0, yes: strategic merge with its directives
test('strategic merge', () => {
  const cases: [string, unknown, unknown, unknown][] = [
    [
      'maps merge, null deletes',
      { labels: { a: '1', b: '2' } },
      { labels: { b: null, c: '3' } },
      { labels: { a: '1', c: '3' } },
    ],
    ['null for an absent field', {}, { labels: null }, {}],
    ['nulls in new parts vanish', {}, { labels: { a: null, b: '1' } }, { labels: { b: '1' } }],
    [
      'lists without a strategy are replaced',
      { tolerations: [{ key: 'a' }] },
      { tolerations: [{ key: 'b' }] },
      { tolerations: [{ key: 'b' }] },
    ],
    [
      'primitive lists are unions',
      { finalizers: ['a', 'b'] },
      { finalizers: ['b', 'c'] },
      { finalizers: ['a', 'b', 'c'] },
    ],
    [
      'items merge by key',
      {
        containers: [
          { name: 'a', image: '1' },
          { name: 'b', image: '1' },
        ],
      },
      { containers: [{ name: 'b', image: '2' }] },
      {
        containers: [
          { name: 'a', image: '1' },
          { name: 'b', image: '2' },
        ],
      },
    ],
    [
      'an item the server never saw goes in front, as upstream does it',
      { containers: named('a', 'b') },
      { containers: named('c') },
      { containers: named('c', 'a', 'b') },
    ],
    [
      'nested keyed lists',
      { containers: [{ name: 'a', env: [{ name: 'X', value: '1' }] }] },
      { containers: [{ name: 'a', env: [{ name: 'Y', value: '2' }] }] },
      {
        containers: [
          {
            name: 'a',
            env: [
              { name: 'Y', value: '2' },
              { name: 'X', value: '1' },
            ],
          },
        ],
      },
    ],
    [
      'a field inside an item is removed',
      { containers: [{ name: 'a', image: '1' }] },
      { containers: [{ name: 'a', image: null }] },
      { containers: [{ name: 'a' }] },
    ],
    [
      'atomic list inside an item',
      { containers: [{ name: 'a', args: ['1'] }] },
      { containers: [{ name: 'a', args: ['2', '3'] }] },
      { containers: [{ name: 'a', args: ['2', '3'] }] },
    ],
    [
      'strategy replace on a map',
      { selector: { matchLabels: { a: '1' } } },
      { selector: { matchLabels: { b: '2' } } },
      { selector: { matchLabels: { b: '2' } } },
    ],
    [
      '$patch: delete of an item',
      { containers: named('a', 'b') },
      { containers: [{ $patch: 'delete', name: 'a' }] },
      { containers: named('b') },
    ],
    [
      '$patch: replace of a list',
      { containers: named('a', 'b') },
      { containers: [{ $patch: 'replace' }, { name: 'c' }] },
      { containers: named('c') },
    ],
    [
      'a lone $patch: replace empties the list',
      { containers: named('a') },
      { containers: [{ $patch: 'replace' }] },
      { containers: [] },
    ],
    [
      '$patch: replace of a map',
      { labels: { a: '1' } },
      { labels: { $patch: 'replace', b: '2' } },
      { labels: { b: '2' } },
    ],
    ['$patch: delete of a map', { labels: { a: '1' } }, { labels: { $patch: 'delete' } }, { labels: {} }],
    [
      '$patch: replace of a map, taken as it is',
      { labels: { a: '1' } },
      { labels: { $patch: 'replace', b: '2', c: null } },
      { labels: { b: '2', c: null } },
    ],
    [
      'a list without a strategy is taken as it is',
      { tolerations: [{ key: 'a' }] },
      { tolerations: [{ key: null, $patch: 'replace' }] },
      { tolerations: [{ key: null, $patch: 'replace' }] },
    ],
    [
      '$deleteFromPrimitiveList of something else',
      { finalizers: ['a'] },
      { '$deleteFromPrimitiveList/finalizers': 'a' },
      { finalizers: ['a'] },
    ],
    ['$deleteFromPrimitiveList: null', { finalizers: ['a'] }, { '$deleteFromPrimitiveList/finalizers': null }, {}],
    [
      'in new parts only $patch is a directive',
      {},
      {
        strategy: { $retainKeys: ['type'], type: 'Recreate' },
        selector: { $patch: 'replace', matchLabels: {} },
        containers: [
          { $patch: 'delete', name: 'x' },
          { name: 'a', '$setElementOrder/env': [] },
        ],
      },
      {
        strategy: { $retainKeys: ['type'], type: 'Recreate' },
        containers: [{ name: 'a', '$setElementOrder/env': [] }],
      },
    ],
    [
      '$deleteFromPrimitiveList',
      { finalizers: ['a', 'b', 'c'] },
      { '$deleteFromPrimitiveList/finalizers': ['b'] },
      { finalizers: ['a', 'c'] },
    ],
    ['$deleteFromPrimitiveList of an absent list', {}, { '$deleteFromPrimitiveList/finalizers': ['b'] }, {}],
    [
      '$retainKeys',
      { strategy: { type: 'RollingUpdate', rollingUpdate: { max: '1' } } },
      { strategy: { $retainKeys: ['type'], type: 'Recreate' } },
      { strategy: { type: 'Recreate' } },
    ],
    [
      '$setElementOrder alone reorders',
      { containers: named('a', 'b', 'c') },
      order('c', 'a', 'b'),
      { containers: named('c', 'a', 'b') },
    ],
    [
      '$setElementOrder with a new item',
      { containers: named('a', 'b') },
      { ...order('c', 'b', 'a'), containers: named('c') },
      { containers: named('c', 'b', 'a') },
    ],
    [
      '$setElementOrder with a deletion',
      { containers: named('a', 'b', 'c') },
      { ...order('c', 'a'), containers: [{ $patch: 'delete', name: 'b' }] },
      { containers: named('c', 'a') },
    ],
    [
      'server-only items keep their neighbours',
      { containers: named('x', 'a', 'y', 'b', 'z') },
      order('b', 'a'),
      { containers: named('x', 'y', 'b', 'a', 'z') },
    ],
    [
      'server-only items and new ones',
      { containers: named('a', 'server', 'b') },
      { ...order('a', 'new', 'b'), containers: named('new') },
      { containers: named('a', 'new', 'server', 'b') },
    ],
    [
      'order of primitives',
      { finalizers: ['a', 'b'] },
      { '$setElementOrder/finalizers': ['c', 'b', 'a'], finalizers: ['c'] },
      { finalizers: ['c', 'b', 'a'] },
    ],
    [
      'order of an absent list',
      {},
      { ...order('b', 'a'), containers: named('b', 'a') },
      { containers: named('b', 'a') },
    ],
    ['another type replaces', { labels: 'x' }, { labels: { a: '1' } }, { labels: { a: '1' } }],
    ['an unknown member is taken as it is', {}, { other: { a: [2] } }, { other: { a: [2] } }],
  ];
  for (const [name, document, patch, want] of cases) {
    const before = JSON.stringify([document, patch]);
    assert.deepEqual(applyStrategicMergePatch(schema, document, patch), want, name);
    assert.equal(JSON.stringify([document, patch]), before, `${name}: arguments are left alone`);
  }
});

// S-267
// Compat Patch, P1, yes: refusals of strategic merges: 400 malformed directives, 422 lists of lists, 500 what
//   contradicts the type
test('patches that contradict themselves are refused', () => {
  const cases: [unknown, unknown, number, RegExp][] = [
    [{}, [], 400, /must be an object/],
    [{ labels: {} }, { labels: { $patch: 'spin' } }, 500, /^unknown patch type: "spin"$/],
    [{ labels: {} }, { labels: { $patch: 3, a: null } }, 500, /^unknown patch type: 3$/],
    [{ labels: {} }, { labels: { $patch: 'merge' } }, 500, /^unknown patch type: "merge"$/],
    [
      { strategy: { type: 'a' } },
      { strategy: { $retainKeys: ['x'], type: 'b' } },
      400,
      /^invalid patch format of retainKeys$/,
    ],
    [{ strategy: {} }, { strategy: { $retainKeys: 'x' } }, 400, /^invalid patch format of retainKeys$/],
    [
      { containers: named('a') },
      { containers: [{ image: 'x' }] },
      500,
      /^map: {"image":"x"} does not contain declared merge key: name$/,
    ],
    [
      { containers: named('a') },
      { containers: [{ $patch: 'delete' }] },
      500,
      /does not contain declared merge key: name$/,
    ],
    [{ containers: named('a') }, { containers: [{ $patch: 'merge' }] }, 500, /^merging lists cannot yet be specified/],
    [
      { containers: named('a') },
      { containers: ['x'] },
      500,
      /^list element types are not identical: \[\[{"name":"a"}\],\["x"\]\]$/,
    ],
    [
      { finalizers: [['a']] },
      { finalizers: ['a'] },
      422,
      /^the server rejected our request due to an error in our request$/,
    ],
    [
      { containers: named('a') },
      { ...order('a'), containers: named('b') },
      500,
      /^The order in patch list \[{"name":"b"}\] doesn't match \$setElementOrder list \[{"name":"a"}\]$/,
    ],
    [{ containers: named('a') }, { '$setElementOrder/containers': 'x' }, 500, /^expected array, but received string$/],
    [{}, { ...order('a'), containers: null }, 500, /^expected array, but received null$/],
    [
      {},
      { '$setElementOrder/nothing': [] },
      500,
      /^unable to find api field in struct Whole for the json field "nothing"$/,
    ],
    [
      { labels: { a: [] } },
      { labels: { a: [] } },
      500,
      /^merging an object in json but data type is not struct, instead is: map$/,
    ],
  ];
  for (const [document, patch, code, message] of cases) {
    assert.throws(
      () => applyStrategicMergePatch(schema, document, patch),
      (e: ApiError) => e.code === code && message.test(e.message),
      JSON.stringify(patch),
    );
  }
});

const names = fc.uniqueArray(fc.constantFrom<string[]>('a', 'b', 'c', 'd', 'e', 'f'), { maxLength: 6 });

// Compat Patch, P0, yes: order of merged lists
test('a merged list holds every item once, patched ones in the order asked for', () => {
  fc.assert(
    fc.property(names, names, (before, wanted) => {
      fc.pre(before.length + wanted.length > 0);
      const result = applyStrategicMergePatch(
        schema,
        { containers: named(...before) },
        { ...order(...wanted), containers: named(...wanted) },
      ) as { containers?: { name: string }[] };
      const out = (result.containers ?? []).map((c) => c.name);
      assert.deepEqual([...out].sort(), [...new Set([...before, ...wanted])].sort());
      assert.deepEqual(
        out.filter((n) => wanted.includes(n)),
        wanted,
      );
      assert.deepEqual(
        out.filter((n) => !wanted.includes(n)),
        before.filter((n) => !wanted.includes(n)),
      );
    }),
  );
});

test('twice is once, nothing changes nothing, and an object is its own result', () => {
  const word = fc.constantFrom('1', '2');
  const object = fc.record(
    {
      labels: fc.dictionary(fc.constantFrom('a', 'b', 'c'), word),
      finalizers: fc.uniqueArray(fc.constantFrom('x', 'y', 'z'), { minLength: 1 }),
      containers: fc.uniqueArray(
        fc.record(
          { name: fc.constantFrom('a', 'b', 'c'), image: word, args: fc.array(word, { maxLength: 2 }) },
          { requiredKeys: ['name'] },
        ),
        { selector: ({ name }) => name, minLength: 1 },
      ),
      tolerations: fc.array(fc.record({ key: word }), { maxLength: 2 }),
      strategy: fc.record({ type: word }),
      selector: fc.record({ matchLabels: fc.dictionary(word, word) }),
    },
    { requiredKeys: [] },
  );
  // fast-check also makes objects without a prototype, which is none of JSON's business.
  const plain = object.map((made) => JSON.parse(JSON.stringify(made)) as Record<string, unknown>);
  fc.assert(
    fc.property(plain, plain, (a, b) => {
      const once = applyStrategicMergePatch(schema, a, b);
      assert.deepEqual(applyStrategicMergePatch(schema, once, b), once);
      assert.deepEqual(applyStrategicMergePatch(schema, a, {}), a);
      assert.deepEqual(applyStrategicMergePatch(schema, a, a), a);
      assert.deepEqual(applyStrategicMergePatch(schema, {}, b), b);
    }),
    { numRuns: 300 },
  );
});
