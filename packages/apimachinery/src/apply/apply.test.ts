import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ManagedFieldsEntry, UnstructuredObject } from '../meta/object.ts';
import type { ApiError } from '../meta/status.ts';
import type { Schema } from '../schema/schema.ts';
import { type ApplyOptions, applyObject } from './apply-object.ts';
import { compareObjects } from './compare.ts';
import { applyConflictError } from './conflict.ts';
import {
  difference,
  EMPTY_SET,
  equalSets,
  fromFieldsV1,
  intersection,
  isEmptySet,
  pathsOf,
  pathText,
  toFieldsV1,
  union,
} from './field-set.ts';
import { mergeObjects } from './merge.ts';
import { toFieldSet } from './to-field-set.ts';
import { trackUpdate } from './track-update.ts';

const text: Schema = { type: 'string' };
const texts: Schema = { type: 'object', additionalProperties: text };
const schema: Schema = {
  type: 'object',
  properties: {
    apiVersion: text,
    kind: text,
    spec: {
      type: 'object',
      properties: {
        replicas: { type: 'integer' },
        labels: texts,
        atomicMap: { ...texts, 'x-kubernetes-map-type': 'atomic' },
        args: { type: 'array', items: text },
        set: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
        open: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        containers: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name'],
          items: {
            type: 'object',
            properties: {
              name: text,
              image: text,
              ports: {
                type: 'array',
                'x-kubernetes-list-type': 'map',
                'x-kubernetes-list-map-keys': ['port', 'protocol'],
                items: {
                  type: 'object',
                  properties: { port: { type: 'integer' }, protocol: { ...text, default: 'TCP' }, name: text },
                },
              },
            },
          },
        },
      },
    },
    status: { type: 'object', properties: { ready: { type: 'integer' } } },
  },
};

const API = 'example.com/v1';
const object = (spec: unknown, metadata: object = {}): UnstructuredObject => ({
  apiVersion: API,
  kind: 'Thing',
  metadata: { name: 'a', ...metadata },
  spec,
});
const T0 = '2024-01-01T00:00:00Z';
const T1 = '2024-01-01T00:00:01Z';
const T2 = '2024-01-01T00:00:02Z';

/** A tiny server: keeps one object and records who wrote it. */
class Board {
  live: UnstructuredObject | undefined;
  apply(manager: string, spec: unknown, options: Partial<ApplyOptions> = {}): UnstructuredObject {
    const base = { schema, live: this.live, config: object(spec), manager, force: false, apiVersion: API, now: T0 };
    const result = applyObject({ ...base, ...options });
    if (result.conflicts.length > 0) throw applyConflictError(result.conflicts);
    this.#store(result.object, result.managedFields);
    return this.live!;
  }
  update(
    manager: string,
    change: (live: UnstructuredObject) => UnstructuredObject,
    now = T0,
    subresource?: string,
  ): void {
    const copy = structuredClone(this.live);
    const updated = change(copy ?? object({}));
    this.#store(updated, trackUpdate({ schema, live: this.live, updated, manager, apiVersion: API, now, subresource }));
  }
  #store(next: UnstructuredObject, managedFields: ManagedFieldsEntry[] | undefined): void {
    const { managedFields: _, ...metadata } = next.metadata;
    this.live = { ...next, metadata: { uid: 'u', ...metadata, ...(managedFields && { managedFields }) } };
  }
  owner(manager: string): unknown {
    return this.live?.metadata.managedFields?.find((e) => e.manager === manager)?.fieldsV1;
  }
  get spec(): unknown {
    return this.live?.['spec'];
  }
}

// Compat Server-side apply, P0, yes: FieldsV1, and what is never tracked
test('fieldsV1 of an applied configuration', () => {
  const board = new Board();
  board.apply('one', {
    replicas: 1,
    labels: { a: 'b' },
    atomicMap: { x: 'y' },
    args: ['1'],
    set: ['s'],
    open: { deep: { list: [1], leaf: true }, hollow: {} },
    containers: [{ name: 'c', image: 'i', ports: [{ port: 80 }] }],
  });
  assert.deepEqual(board.live?.metadata.managedFields, [
    {
      manager: 'one',
      operation: 'Apply',
      apiVersion: API,
      time: T0,
      fieldsType: 'FieldsV1',
      fieldsV1: {
        'f:spec': {
          'f:args': {},
          'f:atomicMap': {},
          'f:containers': {
            'k:{"name":"c"}': {
              '.': {},
              'f:image': {},
              'f:name': {},
              'f:ports': { 'k:{"port":80,"protocol":"TCP"}': { '.': {}, 'f:port': {} } },
            },
          },
          'f:labels': { 'f:a': {} },
          'f:open': { 'f:deep': { '.': {}, 'f:leaf': {}, 'f:list': {} }, 'f:hollow': {} },
          'f:replicas': {},
          'f:set': { 'v:"s"': {} },
        },
      },
    },
  ]);
});

test('fieldsV1 of a create that is no apply', () => {
  const board = new Board();
  board.update('kubectl-create', () => object({ replicas: 1, labels: { a: 'b' } }, { labels: { l: '1' } }));
  assert.deepEqual(board.owner('kubectl-create'), {
    'f:metadata': { 'f:labels': { '.': {}, 'f:l': {} } },
    'f:spec': { '.': {}, 'f:labels': { '.': {}, 'f:a': {} }, 'f:replicas': {} },
  });
});

test('an unchanged apply changes nothing, not even the time', () => {
  const board = new Board();
  const before = board.apply('one', { replicas: 1 });
  const after = board.apply('one', { replicas: 1 }, { now: T1 });
  assert.deepEqual(after, before);
});

// S-013
test('a field that is no longer mentioned goes, unless somebody else owns it', () => {
  const board = new Board();
  board.apply('one', {
    replicas: 1,
    labels: { a: '1', b: '2' },
    containers: [{ name: 'x', image: '1' }, { name: 'y' }],
  });
  board.apply('two', { labels: { b: '2' }, containers: [{ name: 'x' }] });
  board.apply('one', { replicas: 1 }, { now: T1 });
  assert.deepEqual(board.spec, { replicas: 1, labels: { b: '2' }, containers: [{ name: 'x' }] });
  board.apply('two', {});
  assert.deepEqual(board.spec, { replicas: 1 });
  assert.deepEqual(board.owner('two'), { 'f:spec': {} }, 'an empty spec is still spoken of');
});

// Compat Server-side apply, P1, yes: a map or list that an apply empties is null, and still owned by who applied it;
//   what nobody owns stays
test('a map or list that an apply empties is null, though the configuration speaks of it', () => {
  const board = new Board();
  board.apply('one', { labels: { a: '1' }, set: ['s'], replicas: 1 });
  board.apply('one', { labels: {}, set: [], replicas: 1 }, { now: T1 });
  assert.deepEqual(board.spec, { labels: null, replicas: 1 });
  assert.deepEqual(board.owner('one'), { 'f:spec': { 'f:labels': {}, 'f:replicas': {} } });
  board.apply('one', { labels: {}, set: [], replicas: 1 }, { now: T1 });
  assert.deepEqual(board.spec, { labels: {}, set: [], replicas: 1 }, 'nothing was taken away this time');
});

test('fields of updaters stay when an applier drops them', () => {
  const board = new Board();
  board.apply('one', { replicas: 1, labels: { a: '1' } });
  board.update('controller', (live) => ({ ...live, spec: { replicas: 1, labels: { a: '1', b: '2' } } }));
  board.apply('one', {});
  assert.deepEqual(board.spec, { labels: { b: '2' } });
});

// S-013: Server-side apply merges, finds conflicts and keeps managedFields.
// Compat What is easily got wrong, P0, yes: 6 and 7, managedFields and strategic merge
test('equal values are shared, different ones conflict', () => {
  const board = new Board();
  board.apply('one', { replicas: 1, labels: { a: '1' } });
  board.apply('two', { replicas: 1 });
  assert.throws(
    () => board.apply('two', { replicas: 2 }),
    (e: ApiError) => {
      assert.equal(e.code, 409);
      assert.equal(e.message, 'Apply failed with 1 conflict: conflict with "one": .spec.replicas');
      assert.deepEqual(e.status.details, {
        causes: [{ reason: 'FieldManagerConflict', message: 'conflict with "one"', field: '.spec.replicas' }],
      });
      return true;
    },
  );
  board.apply('two', { replicas: 2 }, { force: true });
  assert.deepEqual(board.spec, { replicas: 2, labels: { a: '1' } });
  assert.deepEqual(board.owner('one'), { 'f:spec': { 'f:labels': { 'f:a': {} } } });
});

// Compat Server-side apply, P0, yes: conflicts: 409, causes, texts
test('conflicts with updaters name version and subresource, not the time', () => {
  const board = new Board();
  board.update('scaler', () => object({ replicas: 3, containers: [{ name: 'x', image: '1' }] }), T1, 'scale');
  assert.throws(
    () => board.apply('one', { replicas: 1, containers: [{ name: 'x', image: '2' }] }),
    (e: ApiError) =>
      e.message ===
      `Apply failed with 2 conflicts: conflicts with "scaler" with subresource "scale" using ${API}:\n- .spec.replicas\n- .spec.containers[name="x"].image`,
  );
});

test('updates take fields over and lose them', () => {
  const board = new Board();
  board.apply('one', { replicas: 1, labels: { a: '1' }, set: ['x', 'y'] });
  board.update('kubectl-edit', (live) => ({ ...live, spec: { replicas: 5, labels: { a: '1' }, set: ['y', 'z'] } }), T1);
  assert.deepEqual(board.owner('one'), { 'f:spec': { 'f:labels': { 'f:a': {} }, 'f:set': { 'v:"y"': {} } } });
  assert.deepEqual(board.owner('kubectl-edit'), { 'f:spec': { 'f:replicas': {}, 'f:set': { 'v:"z"': {} } } });
  board.update('kubectl-edit', (live) => ({ ...live, spec: { replicas: 5, labels: { a: '2' }, set: ['y', 'z'] } }), T2);
  assert.deepEqual(board.owner('kubectl-edit'), {
    'f:spec': { 'f:labels': { 'f:a': {} }, 'f:replicas': {}, 'f:set': { 'v:"z"': {} } },
  });
  const before = board.live;
  board.update('kubectl-edit', (live) => live, '2030-01-01T00:00:00Z');
  assert.deepEqual(board.live, before);
});

// Compat Server-side apply, P0, yes: managedFields: identity, order, time, at most ten updaters
test('entries are sorted, the oldest updates share a bucket', () => {
  const board = new Board();
  board.apply('applier', { labels: { z: '0' } }, { now: T2 });
  for (let i = 0; i < 12; i++) {
    const now = `2024-01-02T00:00:${String(i).padStart(2, '0')}Z`;
    board.update(
      `u${i}`,
      (live) => ({
        ...live,
        spec: {
          ...(live['spec'] as object),
          labels: { ...(live['spec'] as { labels: object }).labels, [`l${i}`]: '' },
        },
      }),
      now,
    );
  }
  const entries = board.live!.metadata.managedFields!;
  assert.deepEqual(
    entries.map((e) => e.manager),
    ['applier', 'ancient-changes', ...Array.from({ length: 9 }, (_, i) => `u${i + 3}`)],
  );
  assert.deepEqual(entries[1]!.fieldsV1, { 'f:spec': { 'f:labels': { 'f:l0': {}, 'f:l1': {}, 'f:l2': {} } } });
  assert.equal(entries[1]!.time, '2024-01-02T00:00:02Z');
});

test('resetting and keeping managedFields', () => {
  const board = new Board();
  board.apply('one', { replicas: 1 });
  const strip = (managedFields?: ManagedFieldsEntry[]) => (live: UnstructuredObject) => {
    const { managedFields: _, ...metadata } = live.metadata;
    return { ...live, metadata: { ...metadata, ...(managedFields && { managedFields }) } };
  };
  board.update('x', strip());
  assert.ok(board.owner('one'));
  board.update('x', strip([]));
  assert.equal(board.live!.metadata.managedFields, undefined);
  board.update('x', (live) => ({ ...live, spec: { replicas: 2 } }));
  assert.equal(board.live!.metadata.managedFields, undefined, 'updates of an untracked object stay untracked');
  assert.throws(() => board.apply('one', { replicas: 1 }), /conflict with "before-first-apply"/);
  board.apply('one', { replicas: 2, labels: { a: '1' } });
  assert.deepEqual(board.owner('before-first-apply'), { 'f:spec': { '.': {}, 'f:replicas': {} } });
});

test('ignored paths are nobody’s', () => {
  const config = { ...object({ replicas: 1 }), status: { ready: 1 } };
  const base = { schema, live: undefined, manager: 'm', apiVersion: API, now: T0 };
  const applied = applyObject({ ...base, config, force: false, ignore: [['status']] });
  assert.deepEqual(applied.managedFields?.[0]?.fieldsV1, { 'f:spec': { 'f:replicas': {} } });
  const tracked = trackUpdate({ ...base, updated: config, ignore: [['spec']], subresource: 'status' });
  assert.deepEqual(tracked?.[0], {
    manager: 'm',
    operation: 'Update',
    apiVersion: API,
    time: T0,
    fieldsType: 'FieldsV1',
    fieldsV1: { 'f:status': { '.': {}, 'f:ready': {} } },
    subresource: 'status',
  });
});

test('faulty configurations are refused', () => {
  const board = new Board();
  assert.throws(
    () => board.apply('one', {}, { config: object({}, { managedFields: [] }) }),
    /metadata\.managedFields must be nil/,
  );
});

// Compat Server-side apply, P0, yes: topology: sets, maps, atomic lists, keys with defaults
test('a live list that breaks its own rule loses nothing', () => {
  const board = new Board();
  board.live = object({ containers: [{ name: 'x', image: '1' }, { name: 'x', image: '2' }, { image: 'keyless' }] });
  board.apply('one', { replicas: 1 });
  assert.deepEqual((board.spec as { containers: unknown }).containers, [
    { name: 'x', image: '1' },
    { name: 'x', image: '2' },
    { image: 'keyless' },
  ]);
});

test('entries of versions no longer served are dropped', () => {
  const board = new Board();
  board.apply('old', { replicas: 1 }, { apiVersion: 'example.com/v1alpha1' });
  board.apply('new', { replicas: 2 }, { isServed: (v) => v === API });
  assert.equal(board.owner('old'), undefined);
});

// Compat Server-side apply, P0, yes: ownership follows a list that became atomic
test('a list that became atomic is owned as a whole', () => {
  const board = new Board();
  board.apply('one', { containers: [{ name: 'x', image: '1' }] });
  const spec = schema.properties!['spec']!;
  const containers = { ...spec.properties!['containers']!, 'x-kubernetes-list-type': 'atomic' as const };
  const changed: Schema = {
    ...schema,
    properties: { ...schema.properties, spec: { ...spec, properties: { ...spec.properties, containers } } },
  };
  assert.throws(
    () => board.apply('two', { containers: [{ name: 'y' }] }, { schema: changed }),
    /conflict with "one": \.spec\.containers$/,
  );
});

// S-013
// Compat Server-side apply, P1, yes: kubectl takes over from client-side apply
test('kubectl takes over from client-side apply without conflicts', () => {
  const last = { ...object({ replicas: 1, labels: { a: '1' } }), metadata: { name: 'a' } };
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify(last) };
  const start = (): Board => {
    const board = new Board();
    board.update('kubectl-client-side-apply', () => ({
      ...structuredClone(last),
      metadata: { name: 'a', annotations },
    }));
    return board;
  };
  const board = start();
  board.apply('kubectl', { replicas: 2, labels: { a: '1' } });
  assert.deepEqual(board.spec, { replicas: 2, labels: { a: '1' } });
  const refreshed = board.live!.metadata.annotations!['kubectl.kubernetes.io/last-applied-configuration']!;
  assert.equal((JSON.parse(refreshed) as { spec: { replicas: number } }).spec.replicas, 2);
  assert.throws(() => start().apply('another', { replicas: 2 }), /Apply failed with 1 conflict/);
  const scaled = start();
  scaled.update('hpa', (live) => ({ ...live, spec: { replicas: 9, labels: { a: '1' } } }));
  assert.throws(() => scaled.apply('kubectl', { replicas: 2 }), /conflict with "hpa"/);
});

test('the annotation of client-side apply is written as Go writes it, and left out where there is no room', () => {
  const key = 'kubectl.kubernetes.io/last-applied-configuration';
  const annotationsAfter = (before: Record<string, string>, metadata: object = {}) => {
    const board = new Board();
    board.update('someone', () => ({ ...object({}), metadata: { name: 'a', annotations: before } }));
    const config = object({ replicas: 1 });
    board.apply(
      'kubectl',
      {},
      { config: { ...config, metadata: { namespace: 'n', name: 'a', ...metadata } }, force: true },
    );
    return board.live!.metadata.annotations ?? {};
  };
  const tail = '"spec":{"replicas":1}}\n';
  const head = annotationsAfter({ [key]: '{}' })[key]!;
  assert.ok(head.endsWith(`"metadata":{"name":"a","namespace":"n"},${tail}`), head);
  const escaped = annotationsAfter({ [key]: '{}' }, { annotations: { z: '1', b: '>', [key]: 'old' } })[key]!;
  assert.match(escaped, /"metadata":\{"annotations":\{"b":"\\u003e","z":"1"\},"name":"a","namespace":"n"\}/);
  assert.match(annotationsAfter({}, { annotations: { [key]: 'mine' } })[key]!, /"annotations":\{\}/);
  assert.deepEqual(annotationsAfter({ b: '1' }), { b: '1' });
  const full = 'x'.repeat(256 * 1024 - 100);
  assert.deepEqual(Object.keys(annotationsAfter({ full, [key]: '{}' })), ['full']);
});

test('finalizers and owner references of custom kinds merge by item', () => {
  const board = new Board();
  const config = (finalizers: string[]): Partial<ApplyOptions> => ({ config: object({}, { finalizers }) });
  board.apply('one', {}, config(['a/x']));
  board.apply('two', {}, config(['b/y']));
  assert.deepEqual(board.live!.metadata.finalizers, ['a/x', 'b/y']);
  board.apply('one', {}, config([]));
  assert.deepEqual(board.live!.metadata.finalizers, ['b/y']);
});

test('the order of merged lists', () => {
  const names = (list: string[]): unknown => ({ spec: { containers: list.map((name) => ({ name })) } });
  const cases: [string[], string[], string[]][] = [
    [['a', 'b'], ['c'], ['a', 'b', 'c']],
    [
      ['a', 'b', 'c'],
      ['c', 'a'],
      ['b', 'c', 'a'],
    ],
    [
      ['a', 's', 'b'],
      ['a', 'n', 'b'],
      ['a', 's', 'n', 'b'],
    ],
    [
      ['s', 'a'],
      ['a', 'n'],
      ['s', 'a', 'n'],
    ],
  ];
  for (const [live, config, want] of cases) {
    assert.deepEqual(mergeObjects(schema, names(live), names(config)), names(want), JSON.stringify([live, config]));
  }
});

const spec = fc.record(
  {
    replicas: fc.nat({ max: 3 }),
    labels: fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('1', '2')),
    // An empty keyed list is nobody's, upstream as here, so it would outlive its appliers.
    set: fc.uniqueArray(fc.constantFrom('x', 'y', 'z'), { minLength: 1, maxLength: 3 }),
    args: fc.array(fc.constantFrom('1', '2'), { maxLength: 2 }),
    containers: fc.uniqueArray(
      fc.record({ name: fc.constantFrom('a', 'b', 'c'), image: fc.constantFrom('1', '2') }, { requiredKeys: ['name'] }),
      { selector: (c) => c.name, minLength: 1, maxLength: 3 },
    ),
  },
  { requiredKeys: [] },
);

test('properties of sets, comparison and apply', () => {
  fc.assert(
    fc.property(spec, spec, (a, b) => {
      const [x, y] = [toFieldSet(schema, { spec: a }), toFieldSet(schema, { spec: b })];
      assert.ok(equalSets(fromFieldsV1(toFieldsV1(x))!, x));
      assert.ok(equalSets(union(difference(x, y), intersection(x, y)), x));
      assert.ok(isEmptySet(intersection(difference(x, y), y)));
      const same = compareObjects(schema, { spec: a }, structuredClone({ spec: a }));
      assert.ok(isEmptySet(same.added) && isEmptySet(same.modified) && isEmptySet(same.removed));

      const board = new Board();
      board.apply('one', a);
      board.apply('two', b, { force: true });
      // What the last applier said holds, whoever owned it before.
      const said = compareObjects(schema, { spec: b }, { spec: board.spec });
      assert.ok(
        isEmptySet(said.modified) && isEmptySet(said.removed),
        [...pathsOf(said.modified)].map(pathText).join(),
      );
      // Applying again changes nothing.
      const before = structuredClone(board.live);
      board.apply('two', b, { now: T2 });
      assert.deepEqual(board.live, before);
      // What nobody speaks of any more is gone.
      board.apply('two', {}, { force: true });
      board.apply('one', {}, { force: true });
      // A map that was emptied just now is gone, one that was empty before stays.
      assert.deepEqual(board.spec ?? {}, {});
    }),
    { numRuns: 150 },
  );
});

test('what a create gives is what an update of an empty object would give', () => {
  const loose = fc.oneof(
    spec,
    fc.record({ open: fc.jsonValue({ maxDepth: 3 }), atomicMap: fc.object({ maxDepth: 1 }) }),
  );
  fc.assert(
    fc.property(loose, loose, (a, b) => {
      for (const value of [a, b, a]) {
        const updated = object(value);
        const [entry] =
          trackUpdate({ schema, live: undefined, updated, manager: 'one', apiVersion: API, now: T0 }) ?? [];
        const { added, modified } = compareObjects(schema, {}, updated);
        const all = union(added, modified);
        const owned = entry === undefined ? undefined : fromFieldsV1(entry.fieldsV1);
        const identity = fromFieldsV1({ 'f:apiVersion': {}, 'f:kind': {}, 'f:metadata': { '.': {}, 'f:name': {} } })!;
        assert.deepEqual(toFieldsV1(owned ?? EMPTY_SET), toFieldsV1(difference(all, identity)), JSON.stringify(value));
      }
    }),
    { numRuns: 200 },
  );
});

test('entries that say the same share one frozen value', () => {
  const fields = (value: unknown): unknown =>
    trackUpdate({ schema, live: undefined, updated: object(value), manager: 'one', apiVersion: API, now: T0 })?.[0]
      ?.fieldsV1;
  assert.equal(fields({ replicas: 1, labels: { a: '1' } }), fields({ labels: { a: '2' }, replicas: 2 }));
  assert.notEqual(fields({ labels: { a: '1' } }), fields({ labels: { b: '1' } }));
  assert.ok(Object.isFrozen((fields({ replicas: 1 }) as Record<string, unknown>)['f:spec']));
});
