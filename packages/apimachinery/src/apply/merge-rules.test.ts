/** What structured-merge-diff does with nulls, items that a live list names twice, and keys that are left out. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UnstructuredObject } from '../meta/object.ts';
import type { JsonObject } from '../meta/own-property.ts';
import type { Schema } from '../schema/schema.ts';
import { builtinSchema } from '../types/builtin-types.ts';
import { applyObject } from './apply-object.ts';
import { compareObjects } from './compare.ts';
import { toFieldsV1 } from './field-set.ts';
import { mergeObjects } from './merge.ts';
import { toFieldSet } from './to-field-set.ts';
import { trackUpdate } from './track-update.ts';

const text: Schema = { type: 'string' };
const ports: Schema = {
  type: 'array',
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['name', 'zone'],
  items: { type: 'object', properties: { name: text, zone: text, host: text } },
};
const spec: Record<string, Schema> = {
  ports,
  labels: { type: 'object', additionalProperties: text },
  set: { type: 'array', 'x-kubernetes-list-type': 'set', items: text },
  args: { type: 'array', items: text },
  host: text,
  open: { 'x-kubernetes-preserve-unknown-fields': true },
  maps: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'object' } },
};
const schema: Schema = { type: 'object', properties: { spec: { type: 'object', properties: spec } } };
const at = (name: string): Schema => spec[name]!;

// S-266: Server-side apply merges, owns and refuses as structured-merge-diff v6 does, nulls, duplicates, order and
//   times among it.
// Compat Server-side apply, P1, yes: nulls, partial keys, duplicates, order of elements, times of appliers as
//   structured-merge-diff v6 has them
test('null says nothing of the members and items that are there, and replaces all else', () => {
  const cases: [string, unknown, unknown][] = [
    ['labels', { a: '1' }, { a: '1' }],
    ['labels', {}, null],
    ['ports', [{ name: 'a' }], [{ name: 'a' }]],
    ['set', ['a'], ['a']],
    ['args', ['a'], null],
    ['host', 'a', null],
    ['open', { a: 1 }, { a: 1 }],
    ['open', [1], null],
  ];
  for (const [name, live, want] of cases) {
    assert.deepEqual(mergeObjects(at(name), live, null), want, `${name} ${JSON.stringify(live)}`);
  }
});

test('an item that the live list names twice is replaced, not merged with', () => {
  const twice = [{ name: 'a', host: '1' }, { name: 'b' }, { name: 'a', host: '2' }];
  assert.deepEqual(mergeObjects(ports, twice, [{ name: 'a', zone: 'x' }]), [
    { name: 'a', host: '1' },
    { name: 'b' },
    { name: 'a', host: '2' },
    { name: 'a', zone: 'x' },
  ]);
  assert.deepEqual(mergeObjects(ports, twice, [{ name: 'a', host: '3' }]), [{ name: 'a', host: '3' }, { name: 'b' }]);
  assert.deepEqual(mergeObjects(at('set'), ['a', 'b', 'a'], ['b']), ['a', 'b', 'a']);
});

// S-266
test('items are distinguished by the keys they have', () => {
  const list = [{ name: 'a' }, { name: 'a', zone: 'x' }, { zone: 'x' }];
  assert.deepEqual(Object.keys(toFieldsV1(toFieldSet(ports, list))), [
    'k:{"name":"a"}',
    'k:{"name":"a","zone":"x"}',
    'k:{"zone":"x"}',
  ]);
});

// S-266
test('elements are in the order of their values', () => {
  const port = { ...ports, 'x-kubernetes-list-map-keys': ['port'] };
  const keyed = (...values: unknown[]): string[] =>
    Object.keys(
      toFieldsV1(
        toFieldSet(
          port,
          values.map((value) => ({ port: value })),
        ),
      ),
    );
  assert.deepEqual(keyed(443, 80, 'a!', 'a', null, true), [
    'k:{"port":80}',
    'k:{"port":443}',
    'k:{"port":"a"}',
    'k:{"port":"a!"}',
    'k:{"port":true}',
    'k:{"port":null}',
  ]);
  assert.deepEqual(keyed('a b', 'a', 'b'), ['k:{"port":"a"}', 'k:{"port":"a b"}', 'k:{"port":"b"}']);
  const set = (...values: unknown[]): string[] => Object.keys(toFieldsV1(toFieldSet(at('set'), values)));
  assert.deepEqual(set('b', 'a b', 'a'), ['v:"a"', 'v:"a b"', 'v:"b"']);
  assert.deepEqual(set(10, 9, -1, 1.5), ['v:-1', 'v:1.5', 'v:9', 'v:10']);
});

// S-266
test('what a list names twice is owned as it is', () => {
  const twice = [
    { name: 'a', host: '1' },
    { name: 'a', host: '2' },
  ];
  const whole = { 'k:{"name":"a"}': {} };
  const item = { 'k:{"name":"a"}': { '.': {}, 'f:host': {}, 'f:name': {} } };
  assert.deepEqual(toFieldsV1(toFieldSet(ports, twice)), whole);
  const cases: [before: unknown, after: unknown, added: object, removed: object][] = [
    [[], twice, whole, {}],
    [twice, [], {}, whole],
    [twice.slice(0, 1), twice, whole, { 'k:{"name":"a"}': { '.': {}, 'f:host': {}, 'f:name': {} } }],
    [twice, twice.slice(0, 1), item, whole],
  ];
  for (const [before, after, added, removed] of cases) {
    const found = compareObjects(ports, before, after);
    const reported = [toFieldsV1(found.added), toFieldsV1(found.removed), toFieldsV1(found.modified)];
    assert.deepEqual(reported, [added, removed, {}], JSON.stringify([before, after]));
  }
  const [a, b] = twice as [object, object];
  assert.deepEqual(toFieldsV1(compareObjects(ports, twice, [b, a]).modified), whole);
});

const T0 = '2026-01-01T00:00:00Z';
const T1 = '2026-01-02T00:00:00Z';
const object = (said: object, metadata: object = {}): UnstructuredObject => ({
  apiVersion: 'v1',
  kind: 'K',
  metadata: { name: 'x', ...metadata },
  spec: said,
});
const apply = (
  live: UnstructuredObject | undefined,
  said: object,
  manager: string,
  now: string,
): UnstructuredObject => {
  const options = { schema, live, config: object(said), manager, force: false, apiVersion: 'v1', now };
  const { object: merged, managedFields, conflicts } = applyObject(options);
  assert.deepEqual(conflicts, []);
  return { ...merged, metadata: { ...merged.metadata, ...(managedFields && { managedFields }) } };
};
const times = (of: UnstructuredObject): unknown[] => of.metadata.managedFields!.map((m) => [m.manager, m.time]);

// S-266
test('the time of an applier is that of its last change of the object', () => {
  const first = apply(undefined, { host: 'a', labels: { a: '1' } }, 'one', T0);
  assert.deepEqual(times(first), [['one', T0]]);
  // Who only joins has none, and who owns less than before keeps its own.
  const joined = apply(first, { host: 'a' }, 'two', T1);
  assert.deepEqual(times(joined), [
    ['two', undefined],
    ['one', T0],
  ]);
  const less = apply(joined, { labels: { a: '1' } }, 'one', T1);
  assert.deepEqual(times(less), [
    ['two', undefined],
    ['one', T0],
  ]);
});

// S-266
test('a map that turns into a leaf is owned by who turned it', () => {
  const live = object({ open: { a: { b: '1' } } });
  const updated = object({ open: { a: 'text' } });
  const [entry] = trackUpdate({
    schema,
    live: { ...live, metadata: { ...live.metadata, managedFields: ownedBy('one', live) } },
    updated,
    manager: 'two',
    apiVersion: 'v1',
    now: T1,
  })!.filter(({ manager }) => manager === 'two');
  assert.deepEqual(entry!.fieldsV1, { 'f:spec': { 'f:open': { 'f:a': {} } } });
});

test('an object whose sets hold maps is tracked by nobody, and nothing is applied to it', () => {
  const created = object({ maps: [{ a: 1 }] });
  const base = { schema, live: undefined, manager: 'one', apiVersion: 'v1', now: T0 };
  assert.equal(trackUpdate({ ...base, updated: created }), undefined);
  const what = "spec.maps: element 0: associative list without keys has an element that's a map type";
  const whose = '/x; v1, Kind=K';
  assert.throws(() => apply(created, { host: 'a' }, 'two', T1), {
    message: `failed to create manager for existing fields: failed to convert new object (${whose}) to smd typed: .${what}`,
  });
  const owned = object({ maps: [{ a: 1 }] }, { managedFields: ownedBy('one', object({ host: 'a' })) });
  assert.throws(() => apply(owned, { host: 'a' }, 'two', T1), {
    message: `failed to create typed live object (${whose}): .${what}`,
  });
});

function ownedBy(manager: string, updated: UnstructuredObject) {
  return trackUpdate({ schema, live: undefined, updated, manager, apiVersion: 'v1', now: T0 })!;
}

// S-357: Who creates an object owns what Go would write of it; who applies a status owns metadata only where that is
//   written.
test('structs that Go always writes come with what they are in; a list that it writes as null is none that is new', () => {
  const written = (kind: string, before: UnstructuredObject | undefined, spec: object): unknown => {
    const entries = trackUpdate({
      schema: builtinSchema(`io.k8s.api.core.v1.${kind}`),
      live: before,
      updated: { apiVersion: 'v1', kind, metadata: { name: 'p' }, spec },
      manager: before === undefined ? 'creator' : 'updater',
      apiVersion: 'v1',
      now: '2026-01-01T00:00:00Z',
    });
    return (entries!.at(-1)!.fieldsV1 as JsonObject)['f:spec'];
  };
  const container = (name: string, resources: object = {}): JsonObject => ({ name, resources });
  const owned = { '.': {}, 'f:name': {}, 'f:resources': {} };
  const pod: JsonObject = { containers: [container('a')] };
  assert.deepEqual(written('Pod', undefined, pod), { 'f:containers': { 'k:{"name":"a"}': owned } });
  const creator = {
    manager: 'creator',
    operation: 'Update',
    apiVersion: 'v1',
    fieldsType: 'FieldsV1',
    fieldsV1: { 'f:spec': { 'f:containers': { 'k:{"name":"a"}': owned } } },
  };
  const live = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', managedFields: [creator] }, spec: pod };
  const limits = { limits: { cpu: '1' } };
  const owningLimits = { 'f:limits': { '.': {}, 'f:cpu': {} } };
  assert.deepEqual(
    written('Pod', live as UnstructuredObject, {
      containers: [container('a', limits), container('b', limits)],
      resources: limits,
    }),
    {
      'f:containers': {
        'k:{"name":"a"}': { 'f:resources': owningLimits },
        'k:{"name":"b"}': { ...owned, 'f:resources': { '.': {}, ...owningLimits } },
      },
      'f:resources': { '.': {}, ...owningLimits },
    },
  );
  assert.deepEqual(written('ReplicationController', undefined, { template: { metadata: {}, spec: pod } }), {
    'f:template': {
      '.': {},
      'f:metadata': {},
      'f:spec': { '.': {}, 'f:containers': { '.': {}, 'k:{"name":"a"}': owned } },
    },
  });
});
