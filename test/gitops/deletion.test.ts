/**
 * How syncs are deleted, by each row of the table in docs/gitops.md: what is left, what the conditions say meanwhile, and
 * that each way ends.
 */
// test:full: a matrix of faults.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  CLUSTER_ROLE_BINDINGS,
  CONFIG_MAPS,
  EVENTS,
  NAMESPACES,
  ROLE_BINDINGS,
  SERVICE_ACCOUNTS,
} from '../../packages/apimachinery/src/types/resource-types.ts';
import { isNotFound } from '../../packages/client/src/api-failure.ts';
import { discover } from '../../packages/client/src/discovery/discover.ts';
import {
  CONFIG_SYNC_NAMESPACE,
  REPO_SYNCS,
  RESOURCE_GROUPS,
  ROOT_SYNCS,
} from '../../packages/gitops/src/kinds/kinds.ts';
import { syncsToWaitFor } from '../../packages/gitops/src/sync/ordered-syncs.ts';
import { VIRTUAL_MACHINES } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { createRepository, type GitRepository, type GitServer, serveRepository } from '../testkit/git-repository.ts';
import {
  condition,
  configMapYaml,
  createNamespace,
  type GitOpsCluster,
  type SyncName,
  startGitOpsCluster,
} from '../testkit/gitops-cluster.ts';

const POLICY = 'configsync.gke.io/deletion-propagation-policy';
const DEPENDS_ON = 'config.kubernetes.io/depends-on';
let at: GitOpsCluster;
before(async () => {
  at = await startGitOpsCluster({ components: 'gitops,namespace-controller,garbage-collector-controller,protection' });
});
after(async () => {
  await at.stop();
  assert.deepEqual(at.cluster.errors, []);
});

type Policy = 'Foreground' | 'Orphan' | undefined;
interface Row {
  readonly at: SyncName;
  readonly namespace: string;
  readonly commit: string;
}
let rows = 0;

const protectedMachine = (namespace: string) => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name: 'precious', namespace, labels: { 'kubevirt.io/vm-delete-protection': 'True' } },
  spec: { runStrategy: 'Halted', template: { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } } },
});

/** A synced sync of two objects, the second of which depends on the first, in a namespace of its own. */
async function start(
  kind: 'RootSync' | 'RepoSync',
  policy: Policy,
  spec: object = {},
  { hasMachine = false }: { readonly hasMachine?: boolean } = {},
): Promise<Row & { readonly own: GitRepository; readonly server: GitServer }> {
  const namespace = `row-${rows++}`;
  await createNamespace(at.client, namespace);
  const own = await createRepository();
  const needs = { annotations: { [DEPENDS_ON]: `/namespaces/${namespace}/ConfigMap/a` } };
  const made = await own.commit({
    'a.yaml': configMapYaml('a', { k: '1' }, { namespace }),
    'b.yaml': configMapYaml('b', { k: '1' }, { namespace, ...needs }),
    ...(hasMachine && { 'vm.yaml': JSON.stringify(protectedMachine(namespace)) }),
  });
  const ownServer = await serveRepository(own);
  const more = { ...(policy && { annotations: { [POLICY]: policy } }), spec };
  const name: SyncName = kind === 'RootSync' ? namespace : [namespace, 'repo-sync'];
  if (kind === 'RootSync') await at.rootSync(namespace, ownServer.url, more);
  else {
    await at.client.create(ROLE_BINDINGS, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: 'syncs', namespace },
      roleRef: {
        apiGroup: 'rbac.authorization.k8s.io',
        kind: 'ClusterRole',
        name: hasMachine ? 'cluster-admin' : 'edit',
      },
      subjects: [{ kind: 'ServiceAccount', name: `ns-reconciler-${namespace}`, namespace: CONFIG_SYNC_NAMESPACE }],
    });
    await at.repoSync(namespace, 'repo-sync', ownServer.url, more);
  }
  await at.synced(name, made);
  return { at: name, namespace, commit: made, own, server: ownServer };
}
const end = async (row: { readonly own: GitRepository; readonly server: GitServer }): Promise<void> => {
  await row.server.stop();
  row.own.remove();
};
const remove = ({ at: name }: Row): Promise<void> =>
  typeof name === 'string'
    ? at.client.delete(ROOT_SYNCS, { namespace: CONFIG_SYNC_NAMESPACE, name })
    : at.client.delete(REPO_SYNCS, { namespace: name[0], name: name[1] });
const annotate = ({ at: name }: Row, policy: string) => {
  const body = { metadata: { annotations: { [POLICY]: policy } } };
  return typeof name === 'string'
    ? at.client.patch(ROOT_SYNCS, { namespace: CONFIG_SYNC_NAMESPACE, name }, { type: 'merge', body })
    : at.client.patch(REPO_SYNCS, { namespace: name[0], name: name[1] }, { type: 'merge', body });
};
const isGone = async ({ at: name }: Row): Promise<void> => {
  await eventually(`${String(name)} is gone`, async () =>
    (await at.sync(name)) === undefined ? true : undefined,
  ).catch(async (error: Error) => {
    throw new Error(`${error.message}: ${JSON.stringify(await at.sync(name))}`);
  });
};
/** Nothing of the sync itself is left. */
async function nothingOfItsOwn({ at: name, namespace }: Row): Promise<void> {
  assert.equal(await at.inventory(name), undefined);
  const account = typeof name === 'string' ? `root-reconciler-${name}` : `ns-reconciler-${namespace}`;
  assert.equal(await at.find(SERVICE_ACCOUNTS, account, CONFIG_SYNC_NAMESPACE), undefined);
  const shared = await at.find(CLUSTER_ROLE_BINDINGS, 'configsync.gke.io:root-reconciler');
  assert.ok(!shared?.subjects?.some((one) => one.name === account));
}
const patchMap = (namespace: string, name: string, body: object) =>
  at.client.patch(CONFIG_MAPS, { namespace, name }, { type: 'merge', body });
const left = async (namespace: string): Promise<string[]> =>
  (await at.client.list(CONFIG_MAPS, { namespace })).items
    .map(({ metadata }) => metadata.name!)
    .filter((name) => name.length === 1)
    .sort();

for (const kind of ['RootSync', 'RepoSync'] as const) {
  // S-910: Deletion of a sync: with Foreground its objects go, dependents first, with Orphan they stay without its
  //   metadata; then inventory, account and bindings. Neither source nor a valid spec nor the inventory is needed, and
  //   a cycle of dependencies is no hindrance.
  test(`${kind}, Foreground: its objects go, dependents first, and everything of its own`, async (t) => {
    const row = await start(kind, 'Foreground');
    t.after(() => end(row));
    await patchMap(row.namespace, 'b', { metadata: { finalizers: ['example.org/hold'] } });
    await remove(row);
    const finalizing = await at.until(
      row.at,
      'finalizing',
      (one) => condition(one, 'ReconcilerFinalizing')?.status === 'True',
    );
    assert.equal(condition(finalizing, 'ReconcilerFinalizing')?.reason, 'ResourcesDeleting');
    await eventually('b is going', async () => (await at.configMap('b', row.namespace))?.metadata.deletionTimestamp);
    assert.equal((await at.configMap('a', row.namespace))?.metadata.deletionTimestamp, undefined);
    await patchMap(row.namespace, 'b', { metadata: { finalizers: null } });
    await isGone(row);
    assert.deepEqual(await left(row.namespace), []);
    await nothingOfItsOwn(row);
  });

  // S-910
  for (const policy of ['Orphan', undefined] as const)
    test(`${kind}, ${policy ?? 'no policy'}: its objects stay without its metadata, and another sync of that name takes them up`, async (t) => {
      const row = await start(kind, policy);
      t.after(() => end(row));
      await remove(row);
      await isGone(row);
      await nothingOfItsOwn(row);
      for (const name of ['a', 'b']) {
        const { labels = {}, annotations = {} } = (await at.configMap(name, row.namespace))!.metadata;
        assert.deepEqual([labels, Object.keys(annotations).filter((key) => key !== DEPENDS_ON)], [{}, []], name);
      }
      if (typeof row.at === 'string') await at.rootSync(row.at, row.server.url);
      else await at.repoSync(row.namespace, 'repo-sync', row.server.url);
      await at.synced(row.at, row.commit);
    });

  // S-910
  test(`${kind}, its source is gone, its spec no longer valid and the process killed: it ends all the same`, async (t) => {
    const row = await start(kind, 'Foreground');
    await end(row);
    t.after(() => {});
    const type = kind === 'RootSync' ? ROOT_SYNCS : REPO_SYNCS;
    const key =
      typeof row.at === 'string'
        ? { namespace: CONFIG_SYNC_NAMESPACE, name: row.at }
        : { namespace: row.namespace, name: 'repo-sync' };
    await at.client.patch(type, key, { type: 'merge', body: { spec: { git: { repo: 'nonsense' } } } });
    await at.until(row.at, 'Stalled', (one) => condition(one, 'Stalled')?.status === 'True');
    await at.cluster.restart(() => remove(row));
    await isGone(row);
    assert.deepEqual(await left(row.namespace), []);
    await nothingOfItsOwn(row);
  });

  // S-910
  test(`${kind}, Foreground, without its inventory: what its labels name is deleted`, async (t) => {
    const row = await start(kind, 'Foreground');
    t.after(() => end(row));
    await at.cluster.restart(async () => {
      const key =
        typeof row.at === 'string'
          ? { namespace: CONFIG_SYNC_NAMESPACE, name: row.at }
          : { namespace: row.namespace, name: 'repo-sync' };
      await at.client.delete(RESOURCE_GROUPS, key);
      await remove(row);
    });
    await isGone(row);
    assert.deepEqual(await left(row.namespace), []);
  });

  // S-910
  test(`${kind}, Foreground, objects that depend on each other: they go at once`, async (t) => {
    const row = await start(kind, 'Foreground');
    t.after(() => end(row));
    await patchMap(row.namespace, 'a', {
      metadata: { annotations: { [DEPENDS_ON]: `/namespaces/${row.namespace}/ConfigMap/b` } },
    });
    await remove(row);
    await isGone(row);
    assert.deepEqual(await left(row.namespace), []);
  });

  // S-911: No deletion of a sync waits without a word: an object that does not go is named in condition
  //   ReconcilerFinalizerFailure with the command that decides; a RepoSync in a terminating namespace ends, also
  //   without any rights; a RootSync and the namespace that it declares end in either order.
  test(`${kind}, Foreground, an object that does not go: the condition names it and the command that decides`, async (t) => {
    const row = await start(kind, 'Foreground', { override: { reconcileTimeout: '1s' } });
    t.after(() => end(row));
    await patchMap(row.namespace, 'b', { metadata: { finalizers: ['example.org/hold'] } });
    await remove(row);
    const failing = await at.until(
      row.at,
      'failing',
      (one) => condition(one, 'ReconcilerFinalizerFailure')?.status === 'True',
    );
    const found = condition(failing, 'ReconcilerFinalizerFailure');
    assert.equal(found?.reason, 'DestroyFailure');
    assert.match(
      found?.message ?? '',
      new RegExp(`ConfigMap ${row.namespace}/b.*kubectl annotate ${kind.toLowerCase()} .*${POLICY}=Orphan`),
    );
    assert.match(found?.errors?.map(({ errorMessage }) => errorMessage).join() ?? '', /reconcile timeout/);
    assert.ok(await at.configMap('a', row.namespace), 'what the object depends on is gone');
    await annotate(row, 'Orphan');
    await isGone(row);
    assert.equal(
      (await at.configMap('a', row.namespace))?.metadata.annotations?.['configmanagement.gke.io/managed'],
      undefined,
    );
    await patchMap(row.namespace, 'b', { metadata: { finalizers: null } });
  });
}

for (const policy of ['Foreground', 'Orphan'] as const) {
  // S-911
  test(`RepoSync, ${policy}, its namespace is deleted: both end`, async (t) => {
    const row = await start('RepoSync', policy);
    t.after(() => end(row));
    await at.client.delete(NAMESPACES, { namespace: '', name: row.namespace });
    await at.gone(NAMESPACES, row.namespace);
    assert.equal(await at.find(SERVICE_ACCOUNTS, `ns-reconciler-${row.namespace}`, CONFIG_SYNC_NAMESPACE), undefined);
  });

  // S-911
  test(`RepoSync, ${policy}, its rights are gone and its namespace is deleted: both end`, async (t) => {
    const row = await start('RepoSync', policy);
    t.after(() => end(row));
    await patchMap(row.namespace, 'a', { metadata: { finalizers: ['example.org/hold'] } });
    await at.client.delete(ROLE_BINDINGS, { namespace: row.namespace, name: 'syncs' });
    await remove(row);
    await at.client.delete(NAMESPACES, { namespace: '', name: row.namespace });
    await isGone(row);
    await patchMap(row.namespace, 'a', { metadata: { finalizers: null } });
    await at.gone(NAMESPACES, row.namespace);
  });
}

// S-911
test('RepoSync, its rights are gone: Foreground says so; Orphan ends after its time, with an event', async (t) => {
  const row = await start('RepoSync', 'Foreground', { override: { reconcileTimeout: '1s' } });
  t.after(() => end(row));
  await at.client.delete(ROLE_BINDINGS, { namespace: row.namespace, name: 'syncs' });
  await remove(row);
  const failing = await at.until(
    row.at,
    'failing',
    (one) => condition(one, 'ReconcilerFinalizerFailure')?.status === 'True',
  );
  assert.ok(condition(failing, 'ReconcilerFinalizerFailure')?.errors?.some(({ code }) => code === '2013'));
  assert.deepEqual(await left(row.namespace), ['a', 'b']);
  await annotate(row, 'Orphan');
  await isGone(row);
  const event = await eventually('an event', async () =>
    (await at.client.list(EVENTS, { namespace: row.namespace })).items.find(
      ({ reason }) => reason === 'FinalizerReleased',
    ),
  );
  assert.match(event.message ?? '', /metadata of this sync is left on: ConfigMap .*\/a/);
});

// S-911
test('RootSync that declares the namespace: deleted together, and the namespace first', async (t) => {
  for (const isFirst of [false, true]) {
    const own = await createRepository();
    t.after(own.remove);
    const namespace = `whole-${isFirst}`;
    const made = await own.commit({
      'ns.yaml': JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }),
      'a.yaml': configMapYaml('a', {}, { namespace }),
    });
    await at.rootSync(namespace, own.url, { annotations: { [POLICY]: 'Foreground' } });
    await at.synced(namespace, made);
    await at.cluster.restart(async () => {
      if (isFirst) await at.client.delete(NAMESPACES, { namespace: '', name: namespace });
      await at.client.delete(ROOT_SYNCS, { namespace: CONFIG_SYNC_NAMESPACE, name: namespace });
    });
    await isGone({ at: namespace, namespace, commit: made });
    await at.gone(NAMESPACES, namespace);
  }
});

// S-910
test('RootSync that declares a RepoSync: all goes, level by level', async (t) => {
  const inner = await createRepository();
  t.after(inner.remove);
  await inner.commit({ 'a.yaml': configMapYaml('a', {}) });
  const innerServer = await serveRepository(inner);
  t.after(() => innerServer.stop());
  const outer = await createRepository();
  t.after(outer.remove);
  const namespace = 'levels';
  const made = await outer.commit({
    'ns.yaml': JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }),
    'binding.yaml': JSON.stringify({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: 'syncs', namespace },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' },
      subjects: [{ kind: 'ServiceAccount', name: `ns-reconciler-${namespace}`, namespace: CONFIG_SYNC_NAMESPACE }],
    }),
    'sync.yaml': JSON.stringify({
      apiVersion: 'configsync.gke.io/v1beta1',
      kind: 'RepoSync',
      metadata: {
        name: 'repo-sync',
        namespace,
        annotations: {
          [POLICY]: 'Foreground',
          [DEPENDS_ON]: `rbac.authorization.k8s.io/namespaces/${namespace}/RoleBinding/syncs`,
        },
      },
      spec: { git: { repo: innerServer.url, branch: 'main', auth: 'none', period: '100ms' } },
    }),
  });
  await at.rootSync('outer', outer.url, { annotations: { [POLICY]: 'Foreground' } });
  await at.synced('outer', made);
  await at.synced([namespace, 'repo-sync'], await inner.git('rev-parse', 'main'));
  await at.client.delete(ROOT_SYNCS, { namespace: CONFIG_SYNC_NAMESPACE, name: 'outer' });
  await isGone({ at: 'outer', namespace, commit: made });
  await at.gone(NAMESPACES, namespace);
});

// S-912: A protected machine that Git no longer declares, or whose sync is deleted, is kept with its namespace and
//   reported, and goes once it is unprotected.
test('a protected machine is kept, with its namespace, when it is pruned and when its sync is deleted; and goes once it is unprotected', async (t) => {
  const own = await createRepository();
  t.after(own.remove);
  const namespace = 'vault';
  const machine = protectedMachine(namespace);
  const first = await own.commit({
    'ns.yaml': JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }),
    'stays.yaml': configMapYaml('beside-vault', {}),
    'vm.yaml': JSON.stringify(machine),
  });
  await at.rootSync('vault', own.url, { annotations: { [POLICY]: 'Foreground' } });
  await at.synced('vault', first);
  await own.commit({ 'vm.yaml': null, 'ns.yaml': null });
  const failing = await at.failing('vault', ['2009', '2009']);
  const texts = failing.status?.sync?.errors?.map(({ errorMessage }) => errorMessage).join('\n') ?? '';
  assert.match(texts, /failed to delete VirtualMachine\.kubevirt\.io, vault\/precious: .*vm-delete-protection/i);
  assert.match(texts, /skipped delete of Namespace, \/vault: dependent delete actuation failed/);
  assert.ok((await at.inventory('vault'))?.some(({ name }) => name === 'precious'));
  await at.client.delete(ROOT_SYNCS, { namespace: CONFIG_SYNC_NAMESPACE, name: 'vault' });
  const finalizing = await at.until(
    'vault',
    'failing',
    (one) => condition(one, 'ReconcilerFinalizerFailure')?.status === 'True',
  );
  assert.match(condition(finalizing, 'ReconcilerFinalizerFailure')?.message ?? '', /VirtualMachine vault\/precious/);
  assert.equal((await at.find(VIRTUAL_MACHINES, 'precious', namespace))?.metadata.deletionTimestamp, undefined);
  assert.equal((await at.find(NAMESPACES, namespace))?.metadata.deletionTimestamp, undefined);
  await at.client.patch(
    VIRTUAL_MACHINES,
    { namespace, name: 'precious' },
    { type: 'merge', body: { metadata: { labels: { 'kubevirt.io/vm-delete-protection': null }, finalizers: null } } },
  );
  await at.gone(VIRTUAL_MACHINES, 'precious', namespace);
  await isGone({ at: 'vault', namespace, commit: first });
  await at.gone(NAMESPACES, namespace);
});

/** What a cell of the matrix ends in; the words are those of docs/gitops.md. */
type Outcome =
  | 'objects gone'
  | 'objects stay'
  /** With the namespace, whatever the policy says. */
  | 'namespace gone'
  /** The condition names what is left and the command, until that or what holds it up is dealt with; then as `after`. */
  | { readonly blockedBy: RegExp; readonly resolve: (row: Row) => Promise<unknown>; readonly after: 'gone' | 'stay' }
  /** After its time, with an event that names what still carries metadata. */
  | 'released with an event';

interface Situation {
  readonly name: string;
  /** `reconcileTimeout` is 1 s: a case that waits for it on purpose. */
  readonly isShort?: boolean;
  readonly hasMachine?: boolean;
  /** A RootSync is cluster-admin by a binding that all share: this one has roles of its own. */
  readonly needsRoles?: boolean;
  prepare?(row: Row & { readonly own: GitRepository; readonly server: GitServer }): Promise<unknown>;
  /** Deletes the sync, and whatever else. */
  act(row: Row): Promise<unknown>;
  readonly ends: Readonly<Record<'Foreground' | 'Orphan', Outcome>>;
}

const removeNamespace = (row: Row): Promise<void> =>
  at.client.delete(NAMESPACES, { namespace: '', name: row.namespace });
const orphan = (row: Row) => annotate(row, 'Orphan');
const machineKey = ({ namespace }: Row) => ({ namespace, name: 'precious' });
const unprotect = (row: Row) =>
  at.client.patch(VIRTUAL_MACHINES, machineKey(row), {
    type: 'merge',
    body: { metadata: { labels: { 'kubevirt.io/vm-delete-protection': null }, finalizers: null } },
  });
/** Whatever gives the account of a sync rights in the namespace of its objects. */
async function removeRights({ namespace }: Row): Promise<void> {
  for (const { metadata } of (await at.client.list(ROLE_BINDINGS, { namespace })).items)
    if (metadata.name !== 'configsync.gke.io:ns-reconciler')
      await at.client.delete(ROLE_BINDINGS, { namespace, name: metadata.name! });
}

async function giveRoles(row: Row): Promise<void> {
  const roleRefs = [{ kind: 'ClusterRole', name: 'edit', namespace: row.namespace }];
  const { metadata } = await at.client.patch(
    ROOT_SYNCS,
    { namespace: CONFIG_SYNC_NAMESPACE, name: row.namespace },
    { type: 'merge', body: { spec: { override: { roleRefs } } } },
  );
  await at.until(
    row.at,
    'has its roles',
    ({ status }) => status?.observedGeneration === metadata.generation && status?.lastSyncedCommit === row.commit,
  );
}

const GONE = { Foreground: 'objects gone', Orphan: 'objects stay' } as const;
const SITUATIONS: readonly Situation[] = [
  { name: 'sync first, then the namespace', act: remove, ends: GONE },
  {
    name: 'namespace first',
    act: async (row) => {
      await removeNamespace(row);
      if (typeof row.at === 'string') await remove(row);
    },
    ends: { Foreground: 'namespace gone', Orphan: 'namespace gone' },
  },
  {
    name: 'sync and namespace at once',
    act: (row) => Promise.all([remove(row).catch(notFoundIsFine), removeNamespace(row)]),
    ends: { Foreground: 'namespace gone', Orphan: 'namespace gone' },
  },
  {
    name: 'permissions gone',
    isShort: true,
    needsRoles: true,
    prepare: removeRights,
    act: remove,
    ends: {
      Foreground: { blockedBy: /ConfigMap row-\d+\/a.*kubectl annotate/, resolve: orphan, after: 'stay' },
      Orphan: 'released with an event',
    },
  },
  { name: 'source gone', prepare: end, act: (row) => at.cluster.restart(() => remove(row)), ends: GONE },
  { name: 'reconciler killed', act: (row) => remove(row).then(() => at.cluster.restart()), ends: GONE },
  {
    name: 'dependency cycle',
    prepare: ({ namespace }) =>
      patchMap(namespace, 'a', { metadata: { annotations: { [DEPENDS_ON]: `/namespaces/${namespace}/ConfigMap/b` } } }),
    act: remove,
    ends: GONE,
  },
  {
    name: 'finalizer on a managed object',
    isShort: true,
    prepare: ({ namespace }) => patchMap(namespace, 'b', { metadata: { finalizers: ['example.org/hold'] } }),
    act: remove,
    ends: {
      Foreground: {
        blockedBy: /ConfigMap row-\d+\/b.*kubectl annotate/,
        resolve: ({ namespace }) => patchMap(namespace, 'b', { metadata: { finalizers: null } }),
        after: 'gone',
      },
      Orphan: 'objects stay',
    },
  },
  {
    name: 'protected VM',
    isShort: true,
    hasMachine: true,
    act: remove,
    ends: {
      Foreground: { blockedBy: /VirtualMachine row-\d+\/precious/, resolve: unprotect, after: 'gone' },
      Orphan: 'objects stay',
    },
  },
];

// S-955: The deletion of a sync ends in what the table of docs/gitops.md names, for RootSync and RepoSync,
//   Foreground and Orphan, whatever is deleted first and whatever is missing or holds an object.
for (const kind of ['RootSync', 'RepoSync'] as const)
  for (const policy of ['Foreground', 'Orphan'] as const)
    for (const situation of SITUATIONS)
      test(`matrix: ${kind}, ${policy}, ${situation.name}`, { timeout: 600_000 }, async (t) => {
        const override = {
          ...(situation.isShort && { reconcileTimeout: '1s' }),
          // A namespace that somebody deletes is not made again.
          ...(kind === 'RootSync' && { namespaceStrategy: 'explicit' }),
        };
        const row = await start(kind, policy, { override }, situation);
        if (situation.needsRoles && kind === 'RootSync') await giveRoles(row);
        t.after(() => end(row));
        await situation.prepare?.(row);
        await situation.act(row);
        await endsIn(situation.ends[policy], row, situation);
        assert.equal(await at.sync(row.at), undefined);
        await nothingOfItsOwn(row);
        // Nothing of it holds up the namespace either.
        await patchMap(row.namespace, 'b', { metadata: { finalizers: null } }).catch(notFoundIsFine);
        await unprotect(row).catch(notFoundIsFine);
        await removeNamespace(row).catch(notFoundIsFine);
        await at.gone(NAMESPACES, row.namespace);
      });

const notFoundIsFine = (error: unknown): void => {
  if (!isNotFound(error)) throw error;
};

async function endsIn(outcome: Outcome, row: Row, { hasMachine }: Situation): Promise<void> {
  const isThere = async (isExpected: boolean): Promise<void> => {
    assert.deepEqual(await left(row.namespace), isExpected ? ['a', 'b'] : []);
    if (!hasMachine) return;
    const machine = await at.find(VIRTUAL_MACHINES, 'precious', row.namespace);
    assert.equal(machine !== undefined && machine.metadata.deletionTimestamp === undefined, isExpected);
  };
  if (outcome === 'namespace gone') {
    await isGone(row);
    await at.gone(NAMESPACES, row.namespace);
    return;
  }
  if (typeof outcome === 'object') {
    const failing = await at.until(
      row.at,
      'blocked',
      (one) => condition(one, 'ReconcilerFinalizerFailure')?.status === 'True',
    );
    assert.match(condition(failing, 'ReconcilerFinalizerFailure')?.message ?? '', outcome.blockedBy);
    await outcome.resolve(row);
    await isGone(row);
    await isThere(outcome.after === 'stay');
    return;
  }
  await isGone(row);
  await isThere(outcome !== 'objects gone');
  if (outcome === 'objects gone') return;
  const managers = await Promise.all(
    ['a', 'b'].map(
      async (name) => (await at.configMap(name, row.namespace))?.metadata.annotations?.['configsync.gke.io/manager'],
    ),
  );
  const carries = outcome === 'released with an event';
  assert.deepEqual(
    managers.map((manager) => manager !== undefined),
    [carries, carries],
  );
  if (carries)
    await eventually('an event', async () =>
      (
        await at.client.list(EVENTS, { namespace: typeof row.at === 'string' ? CONFIG_SYNC_NAMESPACE : row.at[0] })
      ).items.find(
        ({ reason, message, involvedObject }) =>
          reason === 'FinalizerReleased' &&
          message?.includes(`ConfigMap ${row.namespace}/a`) &&
          involvedObject?.kind === (typeof row.at === 'string' ? 'RootSync' : 'RepoSync'),
      ),
    );
}

// S-954: A namespace that is deleted leaves the RepoSyncs in it, and RootSyncs that are being deleted and have objects
//   in it, the time to delete in order, 35 seconds at most, and says in its conditions what it waits for.
test('a namespace that is deleted waits for the order of a RepoSync in it, and of a RootSync that goes and has objects in it', async (t) => {
  for (const kind of ['RepoSync', 'RootSync'] as const) {
    const row = await start(
      kind,
      'Foreground',
      kind === 'RootSync' ? { override: { namespaceStrategy: 'explicit' } } : {},
    );
    t.after(() => end(row));
    await patchMap(row.namespace, 'b', { metadata: { finalizers: ['example.org/hold'] } });
    if (kind === 'RootSync') await remove(row);
    await removeNamespace(row);
    await eventually('b is going', async () => (await at.configMap('b', row.namespace))?.metadata.deletionTimestamp);
    const going = await eventually('the namespace says what it waits for', async () =>
      (await at.find(NAMESPACES, row.namespace))?.status?.conditions?.find(
        ({ type, status }) => type === 'NamespaceContentRemaining' && status === 'True',
      ),
    );
    assert.match(going.message ?? '', new RegExp(`${kind.toLowerCase()}s.configsync.gke.io has 1 resource instances`));
    assert.ok(await at.configMap('a', row.namespace), 'what b depends on is gone before b');
    await patchMap(row.namespace, 'b', { metadata: { finalizers: null } });
    await at.gone(NAMESPACES, row.namespace);
    await isGone(row);
  }
});

// S-1657: A namespace that is deleted waits for no RootSync whose objects in it are gone, though its inventory names them
//   still: who deletes a RootSync that declares the namespace waits for neither's time to run out.
test('a namespace that is deleted waits for a RootSync as long as any object of it is there, and no longer', async (t) => {
  const row = await start('RootSync', 'Foreground');
  t.after(() => end(row));
  const { signal } = new AbortController();
  const waited = async () =>
    syncsToWaitFor(at.client, row.namespace, { discovery: await discover(at.client, signal), deletedForMs: 0, signal });
  await at.cluster.restart(async () => {
    assert.equal(await waited(), undefined, 'it is not being deleted');
    await remove(row);
    for (const name of ['a', 'b']) {
      assert.deepEqual([...((await waited())?.remaining ?? [])], [['rootsyncs.configsync.gke.io', 1]]);
      await at.client.delete(CONFIG_MAPS, { namespace: row.namespace, name });
    }
    assert.deepEqual((await at.inventory(row.at))?.filter(({ namespace }) => namespace === row.namespace).length, 2);
    assert.equal(await waited(), undefined, 'all of its objects are gone');
  });
  await isGone(row);
});

// S-954
test('a namespace whose RepoSync cannot end in order goes on after its time', async (t) => {
  const row = await start('RepoSync', 'Foreground');
  t.after(() => end(row));
  await patchMap(row.namespace, 'b', { metadata: { finalizers: ['example.org/hold'] } });
  await removeNamespace(row);
  await isGone(row);
  await eventually('a is gone', async () =>
    (await at.configMap('a', row.namespace)) === undefined ? true : undefined,
  );
  await patchMap(row.namespace, 'b', { metadata: { finalizers: null } });
  await at.gone(NAMESPACES, row.namespace);
});
