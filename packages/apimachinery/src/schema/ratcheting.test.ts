import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Schema } from './schema.ts';
import { validateSchema } from './validate.ts';

const short: Schema = { type: 'string', maxLength: 1 };
const object = (properties: Record<string, Schema>, more: Partial<Schema> = {}): Schema => ({
  type: 'object',
  properties,
  ...more,
});
const list = (items: Schema, more: Partial<Schema> = {}): Schema => ({ type: 'array', items, ...more });
const keyed: Partial<Schema> = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['k'] };

const fields = (schema: Schema, old: unknown, value: unknown): string[] =>
  validateSchema(schema, value, { custom: true, old }).map(({ field }) => field);

const ITEM = object({ k: { type: 'string' }, v: short });
const CASES: readonly (readonly [string, Schema, unknown, unknown, readonly string[]])[] = [
  ['an unchanged value', object({ a: short, b: short }), { a: 'long' }, { a: 'long', b: 'x' }, []],
  ['a changed value', object({ a: short }), { a: 'long' }, { a: 'other' }, ['a']],
  ['a value that was not there', object({ a: short }), {}, { a: 'long' }, ['a']],
  ['an item of a plain list that changed', object({ l: list(short) }), { l: ['long'] }, { l: ['long', 'x'] }, ['l[0]']],
  ['a plain list as a whole', object({ l: list(short), a: short }), { l: ['long'] }, { l: ['long'], a: 'x' }, []],
  [
    'an item with keys that moved',
    object({ l: list(ITEM, keyed) }),
    { l: [{ k: 'a', v: 'long' }] },
    {
      l: [
        { k: 'b', v: 'x' },
        { k: 'a', v: 'long' },
      ],
    },
    [],
  ],
  [
    'a list with keys whose items changed places',
    object({ o: object({ l: list(ITEM, { ...keyed, maxItems: 1 }) }), c: short }),
    { o: { l: [{ k: 'a' }, { k: 'b', v: 'long' }] } },
    { o: { l: [{ k: 'b', v: 'long' }, { k: 'a' }] }, c: 'x' },
    [],
  ],
  [
    'a list with keys that lost an item',
    object({ l: list(ITEM, { ...keyed, maxItems: 1 }) }),
    { l: [{ k: 'a' }, { k: 'b' }, { k: 'c' }] },
    { l: [{ k: 'c' }, { k: 'a' }] },
    ['l'],
  ],
  [
    'an item with keys that changed',
    object({ l: list(ITEM, keyed) }),
    { l: [{ k: 'a', v: 'long' }] },
    { l: [{ k: 'a', v: 'longer' }] },
    ['l[0].v'],
  ],
  [
    'a member of an atomic map that changed',
    object({ m: { type: 'object', additionalProperties: short, 'x-kubernetes-map-type': 'atomic' } }),
    { m: { a: 'long' } },
    { m: { a: 'long', b: 'x' } },
    ['m.a'],
  ],
  ['a missing member of a changed object', object({ a: short }, { required: ['b'] }), { a: 'x' }, { a: 'y' }, ['b']],
  [
    'a missing member of an unchanged object',
    object({ o: object({ a: short }, { required: ['b'] }), c: short }),
    { o: { a: 'x' } },
    { o: { a: 'x' }, c: 'y' },
    [],
  ],
  [
    'a set that repeated before',
    object({ s: list({ type: 'string' }, { 'x-kubernetes-list-type': 'set' }) }),
    { s: ['a', 'a'] },
    { s: ['a', 'a', 'b'] },
    [],
  ],
  [
    'a set that repeats now',
    object({ s: list({ type: 'string' }, { 'x-kubernetes-list-type': 'set' }) }),
    { s: ['a'] },
    { s: ['a', 'a'] },
    ['s[1]'],
  ],
];
for (const [what, schema, old, value, expected] of CASES) {
  test(`validateSchema() with an old value validates ${what}`, () => {
    assert.deepEqual(fields(schema, old, value), expected);
  });
}

test('validateSchema() with an old value looks through a long list with keys once', () => {
  const schema = object({ l: list(ITEM, keyed) });
  const items = (v: string) => Array.from({ length: 20_000 }, (_, i) => ({ k: `k${i}`, v: i === 0 ? v : 'long' }));
  assert.deepEqual(fields(schema, { l: items('long') }, { l: items('other').reverse() }), ['l[19999].v']);
});
