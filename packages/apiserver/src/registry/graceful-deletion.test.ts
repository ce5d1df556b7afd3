import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UnstructuredObject } from '../../../apimachinery/src/meta/object.ts';
import type { ResourceInfo } from '../../../apimachinery/src/types/resource.ts';
import { builtinResource } from '../kinds/builtin/builtin-resources.ts';
import { type DeleteOptions, deletionEffect, finishedDeleting } from './graceful-deletion.ts';

const info = (resource: string): ResourceInfo =>
  builtinResource({ group: '', version: 'v1', resource }) ?? assert.fail(resource);
const NOW = Date.UTC(2030, 0, 1);

interface Case {
  readonly name: string;
  readonly resource: string;
  readonly object?: Partial<UnstructuredObject>;
  readonly metadata?: object;
  readonly options?: DeleteOptions;
  /** Effect type, then what the marked object's metadata holds. */
  readonly expected: string;
  readonly marked?: object;
}

const running = { spec: { nodeName: 'n', terminationGracePeriodSeconds: 30 }, status: { phase: 'Running' } };
const stamped = (grace: number): object => ({
  deletionTimestamp: new Date(NOW + grace * 1000).toISOString().replace('.000', ''),
  deletionGracePeriodSeconds: grace,
});

const CASES: readonly Case[] = [
  { name: 'nothing holds it', resource: 'secrets', expected: 'remove' },
  {
    name: 'a grace period means nothing to other kinds',
    resource: 'secrets',
    options: { gracePeriodSeconds: 30 },
    expected: 'remove',
  },
  {
    name: 'a finalizer holds it',
    resource: 'secrets',
    metadata: { finalizers: ['x/y'] },
    expected: 'mark',
    marked: stamped(0),
  },
  {
    name: 'a generation moves when it is marked',
    resource: 'secrets',
    metadata: { finalizers: ['x/y'], generation: 4 },
    expected: 'mark',
    marked: { generation: 5 },
  },
  {
    name: 'marked before and nothing new',
    resource: 'secrets',
    metadata: { finalizers: ['x/y'], ...stamped(0) },
    expected: 'already-terminating',
  },
  {
    name: 'marked before, now orphaning',
    resource: 'secrets',
    metadata: { finalizers: ['x/y'], ...stamped(0) },
    options: { propagationPolicy: 'Orphan' },
    expected: 'mark',
    marked: { finalizers: ['x/y', 'orphan'] },
  },
  {
    name: 'Background takes the collector finalizers away',
    resource: 'secrets',
    metadata: { finalizers: ['foregroundDeletion'] },
    options: { propagationPolicy: 'Background' },
    expected: 'remove',
  },
  {
    name: 'without a policy the collector finalizers stay',
    resource: 'secrets',
    metadata: { finalizers: ['foregroundDeletion'] },
    expected: 'mark',
    marked: { finalizers: ['foregroundDeletion'] },
  },
  {
    name: 'an old kind leaves its dependents behind when nobody says otherwise',
    resource: 'replicationcontrollers',
    expected: 'mark',
    marked: { finalizers: ['orphan'] },
  },
  {
    name: 'an old kind takes them along when asked to',
    resource: 'replicationcontrollers',
    options: { propagationPolicy: 'Background' },
    expected: 'remove',
  },
  {
    name: 'an old kind takes them along when asked to in the old way',
    resource: 'replicationcontrollers',
    options: { orphanDependents: false },
    expected: 'remove',
  },
  {
    name: 'an old kind that waits for its dependents goes on waiting',
    resource: 'replicationcontrollers',
    metadata: { finalizers: ['foregroundDeletion'] },
    expected: 'mark',
    marked: { finalizers: ['foregroundDeletion'] },
  },
  {
    name: 'events do not take part in collection',
    resource: 'events',
    options: { propagationPolicy: 'Foreground' },
    expected: 'remove',
  },
  {
    name: 'a running pod waits as its spec says',
    resource: 'pods',
    object: running,
    expected: 'mark',
    marked: stamped(30),
  },
  {
    name: 'a running pod waits as asked',
    resource: 'pods',
    object: running,
    options: { gracePeriodSeconds: 5 },
    expected: 'mark',
    marked: stamped(5),
  },
  {
    name: 'a negative grace is one second',
    resource: 'pods',
    object: running,
    options: { gracePeriodSeconds: -1 },
    expected: 'mark',
    marked: stamped(1),
  },
  {
    name: 'a running pod goes when forced',
    resource: 'pods',
    object: running,
    options: { gracePeriodSeconds: 0 },
    expected: 'remove',
  },
  {
    name: 'a pod that ended goes',
    resource: 'pods',
    object: { ...running, status: { phase: 'Failed' } },
    expected: 'remove',
  },
  { name: 'a pod without a node goes', resource: 'pods', object: { spec: {} }, expected: 'remove' },
  {
    name: 'a second delete cannot wait longer',
    resource: 'pods',
    object: running,
    metadata: stamped(30),
    options: { gracePeriodSeconds: 60 },
    expected: 'already-terminating',
  },
  {
    name: 'a second delete may wait shorter',
    resource: 'pods',
    object: running,
    metadata: stamped(30),
    options: { gracePeriodSeconds: 3 },
    expected: 'mark',
    marked: stamped(3),
  },
  {
    name: 'a shorter wait is counted from the first delete',
    resource: 'pods',
    object: running,
    metadata: {
      deletionTimestamp: new Date(NOW + 20_000).toISOString().replace('.000', ''),
      deletionGracePeriodSeconds: 30,
    },
    options: { gracePeriodSeconds: 15 },
    expected: 'mark',
    marked: {
      deletionTimestamp: new Date(NOW + 5000).toISOString().replace('.000', ''),
      deletionGracePeriodSeconds: 15,
    },
  },
  {
    name: 'a policy says nothing while a grace period runs',
    resource: 'pods',
    object: running,
    metadata: { ...stamped(30), finalizers: ['x/y'] },
    options: { propagationPolicy: 'Orphan' },
    expected: 'already-terminating',
  },
  {
    name: 'a policy is heard with a shorter wait',
    resource: 'pods',
    object: running,
    metadata: { ...stamped(30), finalizers: ['x/y'] },
    options: { propagationPolicy: 'Foreground', gracePeriodSeconds: 0 },
    expected: 'mark',
    marked: { ...stamped(0), finalizers: ['x/y', 'foregroundDeletion'] },
  },
  {
    name: 'a pod that ended while its grace period runs waits for whoever ends it',
    resource: 'pods',
    object: { ...running, status: { phase: 'Succeeded' } },
    metadata: stamped(30),
    expected: 'already-terminating',
  },
  {
    name: 'a pod whose grace period has run goes when forced',
    resource: 'pods',
    object: running,
    metadata: stamped(30),
    options: { gracePeriodSeconds: 0 },
    expected: 'remove',
  },
  {
    name: 'a namespace is held by its spec',
    resource: 'namespaces',
    object: { spec: { finalizers: ['kubernetes'] } },
    expected: 'mark',
    marked: { deletionTimestamp: new Date(NOW).toISOString().replace('.000', '') },
  },
  {
    name: 'a Pod whose grace period is over, and which finalizers hold, hears no policy any more',
    resource: 'pods',
    metadata: { ...stamped(0), finalizers: ['a.io/b'] },
    options: { propagationPolicy: 'Foreground', gracePeriodSeconds: 0 },
    expected: 'already-terminating',
  },
  {
    name: 'an emptied namespace goes',
    resource: 'namespaces',
    object: { spec: { finalizers: [] } },
    expected: 'remove',
  },
];

for (const { name, resource, object = {}, metadata = {}, options = {}, expected, marked } of CASES) {
  test(`deletionEffect(): ${name}`, () => {
    const subject: UnstructuredObject = Object.freeze({
      apiVersion: 'v1',
      kind: 'K',
      metadata: Object.freeze({ name: 'n', ...metadata }),
      ...object,
    });
    const effect = deletionEffect(info(resource), subject, { options, now: NOW });
    assert.equal(effect.type, expected);
    if (effect.type === 'mark') {
      assert.deepEqual({ ...effect.object.metadata, ...marked }, effect.object.metadata);
      if (resource === 'namespaces') assert.deepEqual(effect.object['status'], { phase: 'Terminating' });
    }
  });
}

// Compat Deleting, P0, yes: pending finalizers: marked once, MODIFIED
test('finishedDeleting() is true only when nothing is left to wait for', () => {
  const object = (metadata: object, spec: object = {}): UnstructuredObject => ({
    apiVersion: 'v1',
    kind: 'K',
    metadata,
    spec,
  });
  assert.equal(finishedDeleting(info('secrets'), object({})), false);
  assert.equal(finishedDeleting(info('secrets'), object(stamped(0))), true);
  assert.equal(finishedDeleting(info('pods'), object(stamped(30))), false);
  assert.equal(finishedDeleting(info('secrets'), object({ ...stamped(0), finalizers: ['x/y'] })), false);
  assert.equal(finishedDeleting(info('namespaces'), object(stamped(0), { finalizers: ['kubernetes'] })), false);
});
