/** What is worked out in steps is what is worked out in one go, for maps and lists that take many steps. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { UnstructuredObject } from '../meta/object.ts';
import { finish, Pace, type Steps } from '../meta/steps.ts';
import type { Schema } from '../schema/schema.ts';
import { applyObject } from './apply-object.ts';
import { compareObjects, compareSteps } from './compare.ts';
import { applyConflictError } from './conflict.ts';
import { equalSets, fromFieldsV1, fromFieldsV1Steps, toFieldsV1, toFieldsV1Steps } from './field-set.ts';
import { mergeObjects, mergeSteps } from './merge.ts';
import { toFieldSet, toFieldSetSteps } from './to-field-set.ts';
import { trackUpdate, trackUpdateSteps } from './track-update.ts';

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

/** The result, and how often the work stopped. */
function counted<T>(work: Steps<T>): { value: T; stops: number } {
  for (let stops = 0; ; stops++) {
    const step = work.next();
    if (step.done) return { value: step.value, stops };
  }
}

// S-232
test('sets of fields, comparisons and their FieldsV1 are the same in steps', () => {
  let stops = 0;
  fc.assert(
    fc.property(spec, spec, (a, b) => {
      const [before, after] = [object(a), object(b)];
      const direct = compareObjects(schema, before, after);
      const stepped = counted(compareSteps(schema, before, after));
      stops += stepped.stops;
      for (const part of ['added', 'modified', 'removed'] as const) {
        const want = JSON.stringify(toFieldsV1(direct[part]));
        assert.equal(JSON.stringify(toFieldsV1(stepped.value[part])), want, part);
        assert.equal(JSON.stringify(finish(toFieldsV1Steps(direct[part]))), want, part);
      }
      const spoken = JSON.stringify(toFieldsV1(toFieldSet(schema, after)));
      assert.equal(JSON.stringify(toFieldsV1(finish(toFieldSetSteps(schema, after)))), spoken);
    }),
    { numRuns: 60 },
  );
  assert.ok(stops > 100, `${stops} stops`);
});

test('a configuration is merged into what there is alike in steps, and shares nothing with it', () => {
  let stops = 0;
  fc.assert(
    fc.property(spec, spec, fc.boolean(), (a, b, isNull) => {
      const [live, config] = [object(a), object({ ...b, ...(isNull && { map: null, open: null }) })];
      const direct = mergeObjects(schema, live, config);
      const stepped = counted(mergeSteps(schema, live, config, new Pace()));
      stops += stepped.stops;
      // Members in the same order, too.
      assert.equal(JSON.stringify(stepped.value), JSON.stringify(direct));
      const { spec: merged } = stepped.value as { spec: Record<string, unknown> };
      for (const name of Object.keys(merged)) {
        if (typeof merged[name] !== 'object' || merged[name] === null) continue;
        assert.notEqual(merged[name], (live as typeof stepped.value as { spec: Record<string, unknown> }).spec[name]);
      }
    }),
    { numRuns: 60 },
  );
  assert.ok(stops > 50, `${stops} stops`);
});

test('FieldsV1 of many elements of every sort are in order and frozen', () => {
  const element = fc.oneof(
    fc.string().map((name) => `f:${name}`),
    fc.integer().map((value) => `v:${value}`),
    fc.string().map((value) => `v:${JSON.stringify(value)}`),
    fc.nat().map((index) => `i:${index}`),
    fc.string().map((name) => `k:${JSON.stringify({ name })}`),
  );
  // More than are sorted in one step, of one sort and mixed, in no order.
  const many = fc
    .integer({ min: 5_001, max: 16_000 })
    .chain((size) =>
      fc
        .constantFrom(['f:'], ['f:', 'i:', 'v:'])
        .map((sorts) =>
          Array.from({ length: size }, (_, at) => `${sorts[at % sorts.length]}${(at * 7919) % size}`).filter(
            (one, at, all) => at === 0 || one !== all[at - 1],
          ),
        ),
    );
  fc.assert(
    fc.property(fc.oneof(many, fc.uniqueArray(element, { minLength: 510, maxLength: 1000 })), (elements) => {
      const set = { members: new Set(elements), children: new Map() };
      const made = finish(toFieldsV1Steps(set));
      assert.equal(JSON.stringify(made), JSON.stringify(toFieldsV1(set)));
      assert.ok(Object.isFrozen(made));
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

// S-232
test('managedFields of creates and updates are the same in steps', () => {
  const base = { schema, apiVersion: 'v1', now: '2026-01-01T00:00:00Z' };
  fc.assert(
    fc.property(spec, spec, fc.constantFrom('one', 'two'), (a, b, manager) => {
      const created = { ...base, live: undefined, updated: object(a), manager: 'one' };
      const managedFields = trackUpdate(created);
      assert.deepEqual(counted(trackUpdateSteps(created)).value, managedFields);
      const live = object(a, { managedFields });
      const update = { ...base, live, updated: object(b), manager, now: '2026-01-02T00:00:00Z' };
      assert.deepEqual(counted(trackUpdateSteps(update)).value, trackUpdate(update));
    }),
    { numRuns: 40 },
  );
});

test('very many owned fields are read in steps, and malformed ones refused', () => {
  const keyed = Object.fromEntries(
    Array.from({ length: 3000 }, (_, i) => [`k:{"name":"n${i}"}`, i % 2 === 0 ? {} : { '.': {}, 'f:value': {} }]),
  );
  const fields = { 'f:spec': { 'f:keyed': keyed } };
  const work = fromFieldsV1Steps(fields, new Pace());
  let stops = 0;
  let step = work.next();
  for (; !step.done; step = work.next()) stops++;
  assert.ok(stops > 4, `${stops} stops`);
  assert.ok(equalSets(step.value!, fromFieldsV1(fields)!));
  const wrong = { 'f:spec': { 'f:keyed': { ...keyed, 'x:': {} } } };
  assert.equal(finish(fromFieldsV1Steps(wrong, new Pace())), undefined);
});
