/** Apply and its sets of fields where maps and lists are very long. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { UnstructuredObject } from '../meta/object.ts';
import type { Schema } from '../schema/schema.ts';
import { applyObject } from './apply-object.ts';
import { applyConflictError } from './conflict.ts';
import { equalSets, fromFieldsV1, toFieldsV1 } from './field-set.ts';
import { mergeObjects } from './merge.ts';
import { trackUpdate } from './track-update.ts';

const text = { type: 'string' } as const;
const schema: Schema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        map: { type: 'object', additionalProperties: text },
        set: { type: 'array', 'x-kubernetes-list-type': 'set', items: text },
        keyed: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name'],
          items: { type: 'object', properties: { name: text, value: text, more: { type: 'object' } } },
        },
        atomic: { type: 'array', items: text },
        open: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        whole: { type: 'object', 'x-kubernetes-map-type': 'atomic', 'x-kubernetes-preserve-unknown-fields': true },
      },
    },
  },
};

/** Numbers below `size` without every `skip`th, in an order of their own. */
const row = fc.record({ size: fc.nat({ max: 1300 }), skip: fc.integer({ min: 2, max: 9 }), salt: fc.nat({ max: 2 }) });
type Row = typeof row extends fc.Arbitrary<infer T> ? T : never;

function numbers({ size, skip, salt }: Row): number[] {
  const all = Array.from({ length: size }, (_, at) => at).filter((at) => at % skip !== 0);
  return salt === 1 ? all.reverse() : all;
}

const rows = { map: row, set: row, keyed: row, atomic: row, open: row, whole: row };
const spec = fc.record(rows, { requiredKeys: [] }).map((rows) => {
  const out: Record<string, unknown> = {};
  const { map, set, keyed, atomic, open, whole } = rows;
  if (map) out['map'] = Object.fromEntries(numbers(map).map((at) => [`k${at}`, `${map.salt}`]));
  if (set) out['set'] = numbers(set).map((at) => `s${at}`);
  if (keyed) {
    // One without its key, one twice: a live list may break its own rule.
    out['keyed'] = numbers(keyed).map((at) =>
      at === 5 ? {} : { name: `n${at === 7 ? 8 : at}`, value: `${keyed.salt}`, more: at % 3 === 0 ? {} : { at } },
    );
  }
  if (atomic) out['atomic'] = numbers(atomic).map(String);
  if (open)
    out['open'] = Object.fromEntries(numbers(open).map((at) => [`o${at}`, at % 2 ? { at, salt: open.salt } : null]));
  if (whole) out['whole'] = Object.fromEntries(numbers(whole).map((at) => [`w${at}`, { at, salt: whole.salt }]));
  return out;
});

const object = (value: object, more: object = {}): UnstructuredObject =>
  ({ apiVersion: 'v1', kind: 'Thing', metadata: { name: 'a', ...more }, spec: value }) as UnstructuredObject;

test('a configuration is merged into what there is, and shares nothing with it', () => {
  fc.assert(
    fc.property(spec, spec, fc.boolean(), (a, b, isNull) => {
      const [live, config] = [object(a), object({ ...b, ...(isNull && { map: null, open: null }) })];
      const { spec: merged } = mergeObjects(schema, live, config) as { spec: Record<string, unknown> };
      for (const name of Object.keys(merged)) {
        if (typeof merged[name] !== 'object' || merged[name] === null) continue;
        assert.notEqual(merged[name], (live as unknown as { spec: Record<string, unknown> }).spec[name]);
      }
    }),
    { numRuns: 60 },
  );
});

test('FieldsV1 of many elements of every sort are frozen, and read again as they were', () => {
  const element = fc.oneof(
    fc.string().map((name) => `f:${name}`),
    fc.integer().map((value) => `v:${value}`),
    fc.string().map((value) => `v:${JSON.stringify(value)}`),
    fc.nat().map((index) => `i:${index}`),
    fc.string().map((name) => `k:${JSON.stringify({ name })}`),
  );
  fc.assert(
    fc.property(fc.uniqueArray(element, { minLength: 510, maxLength: 1000 }), (elements) => {
      const set = { members: new Set(elements), children: new Map() };
      const made = toFieldsV1(set);
      assert.ok(Object.isFrozen(made));
      assert.ok(equalSets(fromFieldsV1(made)!, set));
    }),
    { numRuns: 20 },
  );
});

test('an apply with more conflicts than a call takes arguments is refused with the first thousand', () => {
  const many = (value: string): object => ({
    map: Object.fromEntries(Array.from({ length: 150_000 }, (_, at) => [`k${at}`, value])),
  });
  const base = { schema, apiVersion: 'v1', now: '2026-01-01T00:00:00Z' };
  const owner = { ...base, live: undefined, updated: object(many('1')), manager: 'one' };
  const live = object(many('1'), { managedFields: trackUpdate(owner) });
  const { conflicts } = applyObject({ ...base, live, config: object(many('2')), manager: 'two', force: false });
  assert.equal(conflicts.length, 150_000);
  const { status } = applyConflictError(conflicts);
  assert.equal(status.details?.causes?.length, 1000);
  assert.match(status.message!, /^Apply failed with 150000 conflicts: conflicts with "one" using v1:\n/);
  assert.match(status.message!, /\nand 149000 more$/);
});

test('malformed fields among very many are refused', () => {
  const keyed = Object.fromEntries(
    Array.from({ length: 3000 }, (_, i) => [`k:{"name":"n${i}"}`, i % 2 === 0 ? {} : { '.': {}, 'f:value': {} }]),
  );
  assert.ok(fromFieldsV1({ 'f:spec': { 'f:keyed': keyed } }));
  assert.equal(fromFieldsV1({ 'f:spec': { 'f:keyed': { ...keyed, 'x:': {} } } }), undefined);
});
