import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { forbidden } from '../../packages/apimachinery/src/meta/status.ts';
import {
  CONFIG_MAPS,
  NAMESPACES,
  PODS,
  SECRETS,
  SERVICE_ACCOUNTS,
} from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Namespace } from '../../packages/apimachinery/src/types/types.ts';
import type { AdmissionPlugin } from '../../packages/apiserver/src/admission/plugin.ts';
import { isNotFound } from '../../packages/client/src/api-failure.ts';
import type { Client } from '../../packages/client/src/client.ts';
import { createNamespaceController } from '../../packages/kube-controllers/src/controllers/namespace-controller.ts';
import { createRootCaController } from '../../packages/kube-controllers/src/controllers/root-ca-controller.ts';
import { createServiceAccountController } from '../../packages/kube-controllers/src/controllers/service-account-controller.ts';
import { eventually } from '../testkit/eventually.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';
import { type RunningControllers, runControllers } from '../testkit/run-controllers.ts';

let server: InProcessServer;
let client: Client;
let controllers: RunningControllers;

/** Refuses to delete Pods and Secrets of one namespace, as a webhook may. */
const guard: AdmissionPlugin = {
  name: 'Guard',
  matches: (operation, { resource }) => operation === 'DELETE' && (resource === 'pods' || resource === 'secrets'),
  validate({ namespace, name, oldObject, info }) {
    if (namespace !== 'guarded' || oldObject?.metadata.labels?.['free'] === 'yes') return;
    throw forbidden({ group: '', resource: info.resource }, name, 'guarded');
  },
};

before(async () => {
  server = await startServer({ admission: [guard] });
  controllers = runControllers(server, (environment) => [
    createNamespaceController(environment),
    createServiceAccountController(environment),
    createRootCaController({ ...environment, rootCa: 'PEM' }),
  ]);
  client = controllers.client;
});
after(() => controllers.stop());

const key = (name: string) => ({ namespace: '', name });
const make = (name: string) => client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
const read = async (name: string): Promise<Namespace | undefined> => {
  try {
    return await client.get(NAMESPACES, key(name));
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
};
const exists = async (namespace: string): Promise<boolean> => {
  const accounts = await client.list(SERVICE_ACCOUNTS, { namespace });
  const configMaps = await client.list(CONFIG_MAPS, { namespace });
  return accounts.items.length === 1 && configMaps.items.length === 1;
};
const fill = async (namespace: string): Promise<void> => {
  await client.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c', namespace } });
  await client.create(SECRETS, { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', namespace } });
  await client.create(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  });
};

// S-016: Namespaces have their full life cycle, and say in their conditions what holds them up.
// Compat Bootstrap objects, controllers, events, leases, P0, yes: service account and CA of each namespace
test('a new namespace gets its service account and its CA, a deleted one goes with all its content', async () => {
  await make('short-lived');
  await eventually(() => exists('short-lived'));
  await fill('short-lived');
  await client.delete(NAMESPACES, key('short-lived'));
  await eventually(async () => (await read('short-lived')) === undefined);
  for (const type of [CONFIG_MAPS, SECRETS, PODS, SERVICE_ACCOUNTS]) {
    const { items } = await client.list<never>(type as never, { namespace: 'short-lived' });
    assert.deepEqual(items, []);
  }
});

const conditionsOf = async (name: string): Promise<string[]> =>
  ((await read(name))?.status?.conditions ?? []).map(
    ({ type, status, reason, message }) => `${type}=${status} ${reason}: ${message}`,
  );
const ALL_WELL = [
  'NamespaceDeletionDiscoveryFailure=False ResourcesDiscovered: All resources successfully discovered',
  'NamespaceDeletionGroupVersionParsingFailure=False ParsedGroupVersions: All legacy kube types successfully parsed',
  'NamespaceDeletionContentFailure=False ContentDeleted: All content successfully deleted, may be waiting on finalization',
  'NamespaceContentRemaining=False ContentRemoved: All content successfully removed',
  'NamespaceFinalizersRemaining=False ContentHasNoFinalizers: All content-preserving finalizers finished',
];

test('a namespace that another finalizer keeps says that its content is gone', async () => {
  const metadata = { name: 'kept', finalizers: ['test.dev/hold'] };
  await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata });
  await fill('kept');
  await client.delete(NAMESPACES, key('kept'));
  await eventually(async () => ((await read('kept'))?.spec?.finalizers ?? []).length === 0);
  assert.deepEqual(await conditionsOf('kept'), ALL_WELL);
  assert.deepEqual((await client.list(SECRETS, { namespace: 'kept' })).items, []);
  await client.patch(NAMESPACES, key('kept'), { type: 'merge', body: { metadata: { finalizers: null } } });
  await eventually(async () => (await read('kept')) === undefined);
});

// S-016
test('what holds a namespace up is reported in its conditions, and it goes when that is gone', async () => {
  await make('stuck');
  const metadata = { name: 'held', namespace: 'stuck', finalizers: ['test.dev/hold'] };
  await client.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata });
  await client.delete(NAMESPACES, key('stuck'));
  const condition = async (type: string) => (await read('stuck'))?.status?.conditions?.find((one) => one.type === type);
  await eventually(async () => (await condition('NamespaceFinalizersRemaining'))?.status === 'True');
  const remaining = await condition('NamespaceContentRemaining');
  assert.deepEqual(
    [remaining?.status, remaining?.reason, remaining?.message],
    ['True', 'SomeResourcesRemain', 'Some resources are remaining: configmaps. has 1 resource instances'],
  );
  const finalizers = await condition('NamespaceFinalizersRemaining');
  assert.equal(
    finalizers?.message,
    'Some content in the namespace has finalizers remaining: test.dev/hold in 1 resource instances',
  );
  assert.equal((await condition('NamespaceDeletionContentFailure'))?.status, 'False');
  await client.patch(
    CONFIG_MAPS,
    { namespace: 'stuck', name: 'held' },
    { type: 'merge', body: { metadata: { finalizers: null } } },
  );
  await eventually(async () => (await read('stuck')) === undefined);
});

// Compat Bootstrap objects, controllers, events, leases, P0, yes: namespace controller: order, conditions, speed
test('pods go first: what they use stays as long as they do', async () => {
  await make('ordered');
  await fill('ordered');
  const pod = { namespace: 'ordered', name: 'p' };
  await client.patch(PODS, pod, { type: 'merge', body: { metadata: { finalizers: ['test.dev/hold'] } } });
  await client.delete(NAMESPACES, key('ordered'));
  await eventually(async () => (await client.get(PODS, pod)).metadata.deletionTimestamp !== undefined);
  await eventually(async () => ((await read('ordered'))?.status?.conditions ?? []).length > 0);
  // As upstream: while Pods are waited for, nothing is said of what is left.
  assert.deepEqual(await conditionsOf('ordered'), ALL_WELL);
  assert.equal((await client.get(SECRETS, { namespace: 'ordered', name: 's' })).metadata.deletionTimestamp, undefined);
  await client.patch(PODS, pod, { type: 'merge', body: { metadata: { finalizers: null } } });
  await eventually(async () => (await read('ordered')) === undefined);
});

test('what may not be deleted is reported, and everything else goes: refused Pods hold nothing else back', async () => {
  await make('guarded');
  await eventually(() => exists('guarded'));
  await fill('guarded');
  await client.delete(NAMESPACES, key('guarded'));
  await eventually(async () => (await conditionsOf('guarded')).some((one) => one.includes('ContentDeletionFailed')));
  await eventually(async () => (await client.list(CONFIG_MAPS, { namespace: 'guarded' })).items.length === 0);
  const failure = (await conditionsOf('guarded')).find((one) => one.includes('ContentDeletionFailed'));
  assert.equal(
    failure,
    'NamespaceDeletionContentFailure=True ContentDeletionFailed: Failed to delete all resource types, 2 remaining: ' +
      'pods is forbidden: guarded, secrets is forbidden: guarded',
  );
  const body = { metadata: { labels: { free: 'yes' } } };
  await client.patch(PODS, { namespace: 'guarded', name: 'p' }, { type: 'merge', body });
  await client.patch(SECRETS, { namespace: 'guarded', name: 's' }, { type: 'merge', body });
  await eventually(async () => (await read('guarded')) === undefined);
});

test('a hundred namespaces with content go together', async () => {
  const names = Array.from({ length: 100 }, (_, i) => `many-${i}`);
  for (const name of names) {
    await make(name);
    await fill(name);
  }
  await Promise.all(names.map((name) => client.delete(NAMESPACES, key(name))));
  await eventually(async () => {
    const { items } = await client.list(NAMESPACES);
    return !items.some((one) => one.metadata.name?.startsWith('many-'));
  });
});
