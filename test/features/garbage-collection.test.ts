import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ResourceType } from '../../packages/apimachinery/src/meta/gvk.ts';
import type { KubeObject, OwnerReference } from '../../packages/apimachinery/src/meta/object.ts';
import {
  CONFIG_MAPS,
  CUSTOM_RESOURCE_DEFINITIONS,
  EVENTS,
  NAMESPACES,
  SECRETS,
} from '../../packages/apimachinery/src/types/resource-types.ts';
import { isNotFound } from '../../packages/client/src/api-failure.ts';
import type { Client, DeleteCallOptions } from '../../packages/client/src/client.ts';
import { createGarbageCollectorController } from '../../packages/kube-controllers/src/controllers/garbage-collector-controller.ts';
import { eventually } from '../testkit/eventually.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';
import { type RunningControllers, runControllers } from '../testkit/run-controllers.ts';

let server: InProcessServer;
let client: Client;
let controllers: RunningControllers;

/** Requests of the controller under way at once, at most. */
let most = 0;

before(async () => {
  const plain = await startServer();
  let under = 0;
  const handler: typeof plain.handler = async (request) => {
    const isWatch = request.query.includes('watch');
    if (!isWatch) most = Math.max(most, ++under);
    try {
      return await plain.handler(request);
    } finally {
      if (!isWatch) under--;
    }
  };
  server = { ...plain, handler };
  controllers = runControllers(server, (environment) => [createGarbageCollectorController(environment)]);
  client = controllers.client;
});
after(() => controllers.stop());

const refTo = ({ apiVersion, kind, metadata }: KubeObject, more: Partial<OwnerReference> = {}): OwnerReference => ({
  apiVersion,
  kind,
  name: metadata.name ?? '',
  uid: metadata.uid ?? '',
  ...more,
});
const make = (
  name: string,
  owners: OwnerReference[] = [],
  more: { namespace?: string; finalizers?: string[] } = {},
) => {
  const { namespace = 'default', finalizers } = more;
  const metadata = { name, namespace, ownerReferences: owners, ...(finalizers && { finalizers }) };
  return client.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata });
};
const key = (name: string, namespace = 'default') => ({ namespace, name });
const read = async (name: string, type: ResourceType<KubeObject> = CONFIG_MAPS, namespace = 'default') => {
  try {
    return await client.get(type, key(name, namespace));
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
};
const remove = (name: string, propagationPolicy: NonNullable<DeleteCallOptions['propagationPolicy']>) =>
  client.delete(CONFIG_MAPS, key(name), { propagationPolicy });
const gone = (name: string) => eventually(async () => (await read(name)) === undefined);

// S-015: Garbage collection by owner references: background, foreground, orphan, cycles.
test('background: dependents go after their owner, level by level', async () => {
  const owner = await make('bg-owner');
  const child = await make('bg-child', [refTo(owner)]);
  await make('bg-grandchild', [refTo(child)]);
  const unrelated = await make('bg-unrelated');
  await remove('bg-owner', 'Background');
  await gone('bg-child');
  await gone('bg-grandchild');
  assert.equal((await read('bg-unrelated'))?.metadata.uid, unrelated.metadata.uid);
});

// S-329
test('orphan: the dependents of a large family forget their owner, some of them at a time', async () => {
  const owner = await make('patriarch');
  for (let i = 0; i < 200; i++) await make(`heir-${i}`, [refTo(owner)]);
  most = 0;
  await remove('patriarch', 'Orphan');
  await gone('patriarch');
  assert.ok(most <= 60, `${most} requests at once`);
  for (const name of ['heir-0', 'heir-199']) assert.equal((await read(name))?.metadata.ownerReferences, undefined);
});

test('a dependent of an owner that never was, or is another by now, is collected', async () => {
  const owner = await make('real-owner');
  await make('of-nobody', [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'nobody', uid: 'no-such-uid' }]);
  await make('of-another', [refTo(owner, { uid: 'an-older-uid' })]);
  await gone('of-nobody');
  await gone('of-another');
  assert.ok(await read('real-owner'));
});

// S-329
test('of thousands of owners each is looked for, and others have their turns meanwhile', async () => {
  const nobody = (i: number): OwnerReference => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    name: `n-${i}`,
    uid: `u-${i}`,
  });
  await make(
    'of-many',
    Array.from({ length: 3000 }, (_, i) => nobody(i)),
  );
  let turns = 0;
  for (; (await read('of-many')) !== undefined; turns++) await new Promise((next) => setImmediate(next));
  assert.ok(turns > 20, `${turns} turns`);
});

test('an object with an owner left keeps it and loses the reference to the other', async () => {
  const [left, right] = [await make('two-left'), await make('two-right')];
  await make('two-child', [refTo(left), refTo(right)]);
  await remove('two-left', 'Background');
  await eventually(async () => (await read('two-child'))?.metadata.ownerReferences?.length === 1);
  assert.equal((await read('two-child'))?.metadata.ownerReferences?.[0]?.uid, right.metadata.uid);
});

// S-015
// Compat Bootstrap objects, controllers, events, leases, P0, yes: garbage collector, custom kinds included
test('foreground: the owner stays until the dependents that block it are gone', async () => {
  const owner = await make('fg-owner');
  await make('fg-blocking', [refTo(owner, { blockOwnerDeletion: true })], { finalizers: ['test.dev/hold'] });
  await make('fg-free', [refTo(owner)]);
  await remove('fg-owner', 'Foreground');
  await eventually(async () => (await read('fg-blocking'))?.metadata.deletionTimestamp !== undefined);
  // A dependent that does not block is not waited for, and does not wait either.
  await gone('fg-free');
  const waiting = await read('fg-owner');
  assert.deepEqual(waiting?.metadata.finalizers, ['foregroundDeletion']);
  await client.patch(CONFIG_MAPS, key('fg-blocking'), { type: 'merge', body: { metadata: { finalizers: null } } });
  await gone('fg-blocking');
  await gone('fg-owner');
});

// S-485: What lies in another namespace holds no deletion in the foreground.
test('foreground: what lies in another namespace holds no owner', async () => {
  await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'stranded' } });
  const owner = await make('fg-far-owner');
  const held = { namespace: 'stranded', finalizers: ['test.dev/hold'] };
  await make('fg-far-child', [refTo(owner, { blockOwnerDeletion: true })], held);
  await make('fg-near-child', [refTo(owner, { blockOwnerDeletion: true })]);
  await remove('fg-far-owner', 'Foreground');
  await gone('fg-far-owner');
  await gone('fg-near-child');
});

test('foreground goes down the tree: the leaves go first', async () => {
  const owner = await make('tree-owner');
  const child = await make('tree-child', [refTo(owner, { blockOwnerDeletion: true })]);
  await make('tree-leaf', [refTo(child, { blockOwnerDeletion: true })], { finalizers: ['test.dev/hold'] });
  await remove('tree-owner', 'Foreground');
  await eventually(async () => (await read('tree-leaf'))?.metadata.deletionTimestamp !== undefined);
  assert.ok(await read('tree-child'));
  assert.ok(await read('tree-owner'));
  await client.patch(CONFIG_MAPS, key('tree-leaf'), { type: 'merge', body: { metadata: { finalizers: null } } });
  await gone('tree-owner');
});

// S-015
test('orphan: dependents stay and forget their owner', async () => {
  const owner = await make('orphan-owner');
  await make('orphan-child', [refTo(owner)]);
  await remove('orphan-owner', 'Orphan');
  await gone('orphan-owner');
  const child = await read('orphan-child');
  assert.deepEqual(child?.metadata.ownerReferences ?? [], []);
  assert.equal(child?.metadata.deletionTimestamp, undefined);
});

// S-015
test('objects that own each other go when one is deleted', async () => {
  const first = await make('circle-a');
  const second = await make('circle-b', [refTo(first, { blockOwnerDeletion: true })]);
  const body = { metadata: { ownerReferences: [refTo(second, { blockOwnerDeletion: true })] } };
  await client.patch(CONFIG_MAPS, key('circle-a'), { type: 'merge', body });
  await remove('circle-a', 'Foreground');
  await gone('circle-a');
  await gone('circle-b');
});

test('an owner in another namespace does not count, and an event tells', async () => {
  await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'elsewhere' } });
  const owner = await make('far-owner', [], { namespace: 'elsewhere' });
  await make('far-child', [refTo(owner)]);
  await gone('far-child');
  assert.ok(await read('far-owner', CONFIG_MAPS, 'elsewhere'));
  await eventually(async () => {
    const { items } = await client.list(EVENTS, { namespace: 'default' });
    return items.some((one) => one.reason === 'OwnerRefInvalidNamespace' && one.involvedObject.name === 'far-child');
  });
});

test('finalizers that a dependent carries say how it goes', async () => {
  const owner = await make('policy-owner');
  const child = await make('policy-child', [refTo(owner)], { finalizers: ['orphan'] });
  await make('policy-grandchild', [refTo(child)]);
  await remove('policy-owner', 'Background');
  await gone('policy-child');
  assert.deepEqual((await read('policy-grandchild'))?.metadata.ownerReferences ?? [], []);
});

test('a cluster-scoped object with a namespaced owner is never collected, and an event tells', async () => {
  const owner = await make('small-owner');
  const metadata = { name: 'large-child', ownerReferences: [refTo(owner), refTo(owner, { name: 'x', uid: 'nobody' })] };
  await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata });
  await eventually(async () => {
    const { items } = await client.list(EVENTS, { namespace: 'default' });
    return items.some((one) => one.reason === 'OwnerRefInvalidNamespace' && one.involvedObject.name === 'large-child');
  });
  await remove('small-owner', 'Background');
  // What is collected later shows that the one above was passed by.
  await make('after-it', [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'nobody', uid: 'no-such-uid' }]);
  await gone('after-it');
  const child = await client.get(NAMESPACES, { namespace: '', name: 'large-child' });
  assert.equal(child.metadata.deletionTimestamp, undefined);
  assert.equal(child.metadata.ownerReferences?.length, 2);
});

// S-205
test('an owner of a kind that nobody serves is not taken for gone; it is once the kind is served without it', async () => {
  const owner = { apiVersion: 'late.test.dev/v1', kind: 'Lamp', name: 'lamp', uid: 'lamp-uid' };
  await make('of-a-lamp', [owner]);
  await make('marker', [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'nobody', uid: 'no-such-uid' }]);
  await gone('marker');
  assert.ok(await read('of-a-lamp'));
  await client.create(CUSTOM_RESOURCE_DEFINITIONS, {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'lamps.late.test.dev' },
    spec: {
      group: 'late.test.dev',
      scope: 'Namespaced' as const,
      names: { plural: 'lamps', singular: 'lamp', kind: 'Lamp', listKind: 'LampList' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
    },
  });
  await gone('of-a-lamp');
});

test('custom resources take part as owners as soon as their definition is served', async () => {
  const crd = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'boxes.test.dev' },
    spec: {
      group: 'test.dev',
      scope: 'Namespaced' as const,
      names: { plural: 'boxes', singular: 'box', kind: 'Box', listKind: 'BoxList' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
    },
  };
  await client.create(CUSTOM_RESOURCE_DEFINITIONS, crd);
  await eventually(async () => server.catalog.serves('test.dev', 'v1'));
  const BOXES: ResourceType<KubeObject> = {
    group: 'test.dev',
    version: 'v1',
    resource: 'boxes',
    kind: 'Box',
    namespaced: true,
  };
  const box = await client.create(BOXES, {
    apiVersion: 'test.dev/v1',
    kind: 'Box',
    metadata: { name: 'box', namespace: 'default' },
  });
  const metadata = { name: 'in-the-box', namespace: 'default', ownerReferences: [refTo(box)] };
  await client.create(SECRETS, { apiVersion: 'v1', kind: 'Secret', metadata });
  await client.delete(BOXES, key('box'), { propagationPolicy: 'Background' });
  await eventually(async () => (await read('in-the-box', SECRETS)) === undefined);
});
