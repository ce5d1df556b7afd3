/** The end of a sync, level by level: scenarios of upstream's reconciler_finalizer_test.go and of deletions in namespace_repo_test.go. */
// test:full: every case of it, for a minute or more.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { NAMESPACES, ROLE_BINDINGS, SERVICE_ACCOUNTS } from '../../packages/apimachinery/src/types/resource-types.ts';
import {
  CONFIG_SYNC_NAMESPACE,
  REPO_SYNCS,
  RESOURCE_GROUPS,
  ROOT_SYNCS,
} from '../../packages/gitops/src/kinds/kinds.ts';
import {
  condition,
  configMapYaml,
  type GitOpsCluster,
  type SyncName,
  startGitOpsCluster,
} from '../testkit/gitops-cluster.ts';
import { createSources, editBinding, type Source } from '../testkit/gitops-sources.ts';

const POLICY = 'configsync.gke.io/deletion-propagation-policy';
const DEPENDS_ON = 'config.kubernetes.io/depends-on';
const sources = createSources();
let at: GitOpsCluster;
before(async () => {
  at = await startGitOpsCluster();
});
after(async () => {
  await at.stop();
  await sources.removeAll();
  assert.deepEqual(at.cluster.errors, []);
});
const namespaceYaml = (name: string, annotations: object = {}): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, annotations } });
const remove = async (name: string): Promise<void> => {
  await at.client.delete(ROOT_SYNCS, { namespace: CONFIG_SYNC_NAMESPACE, name });
};
/** Nothing of the sync itself is left. */
const isGone = async (name: string): Promise<void> => {
  await at.gone(ROOT_SYNCS, name, CONFIG_SYNC_NAMESPACE);
  assert.equal(await at.find(RESOURCE_GROUPS, name, CONFIG_SYNC_NAMESPACE), undefined);
  assert.equal(await at.find(SERVICE_ACCOUNTS, `root-reconciler-${name}`, CONFIG_SYNC_NAMESPACE), undefined);
};
/** A RootSync of a namespace with a RepoSync in it, which has one object. */
async function levels(
  name: string,
  inner: { readonly policy: string; readonly namespace?: object },
): Promise<{ readonly outer: Source; readonly repoSync: SyncName }> {
  const own = await sources.served({ 'a.yaml': configMapYaml('of-inner', {}) });
  const account = `ns-reconciler-${name}`;
  const outer = await sources.of({
    'ns.yaml': namespaceYaml(name, inner.namespace),
    'binding.yaml': JSON.stringify(editBinding(name, account)),
    'sync.yaml': JSON.stringify({
      apiVersion: 'configsync.gke.io/v1beta1',
      kind: 'RepoSync',
      metadata: {
        name: 'repo-sync',
        namespace: name,
        annotations: {
          [POLICY]: inner.policy,
          [DEPENDS_ON]: `rbac.authorization.k8s.io/namespaces/${name}/RoleBinding/${account}`,
        },
      },
      spec: { git: { repo: own.url, branch: 'main', auth: 'none', period: '100ms' } },
    }),
  });
  await at.rootSync(name, outer.url, { annotations: { [POLICY]: 'Foreground' } });
  await at.synced(name, outer.commit);
  await at.synced([name, 'repo-sync'], own.commit);
  return { outer, repoSync: [name, 'repo-sync'] };
}

// S-977: A sync ends with what it declares, level by level, also where that is a sync with a policy of its own, or what
//   is not valid or does not go.
test('TestReconcilerFinalizer_Orphan: objects stay without its metadata, and a sync that is made again takes them up', async () => {
  const { url, commit } = await sources.of({ 'a.yaml': configMapYaml('orphaned', { k: '1' }) });
  const make = () => at.rootSync('orphan', url, { annotations: { [POLICY]: 'Orphan' } });
  await make();
  await at.synced('orphan', commit);
  const { uid } = (await at.configMap('orphaned'))!.metadata;
  await remove('orphan');
  await isGone('orphan');
  const { annotations, labels, uid: after_ } = (await at.configMap('orphaned'))!.metadata;
  assert.deepEqual([annotations ?? {}, labels ?? {}, after_], [{}, {}, uid]);
  await make();
  await at.synced('orphan', commit);
  assert.equal((await at.configMap('orphaned'))?.metadata.uid, uid);
});

// S-977
test('TestReconcilerFinalizer_Foreground: objects go with it, those of its namespaces too', async () => {
  const { url, commit } = await sources.of({
    'ns.yaml': namespaceYaml('foreground'),
    'a.yaml': configMapYaml('a', {}, { namespace: 'foreground' }),
    'b.yaml': configMapYaml('of-foreground', {}),
  });
  await at.rootSync('foreground', url, { annotations: { [POLICY]: 'Foreground' } });
  await at.synced('foreground', commit);
  await remove('foreground');
  await isGone('foreground');
  assert.equal(await at.find(NAMESPACES, 'foreground'), undefined);
  assert.equal(await at.configMap('of-foreground'), undefined);
});

// S-977
test('TestReconcilerFinalizer_MultiLevelForeground: a RepoSync that a RootSync has goes with its objects, before its rights do', async () => {
  await levels('deep', { policy: 'Foreground' });
  await remove('deep');
  await isGone('deep');
  assert.equal(await at.find(NAMESPACES, 'deep'), undefined);
});

// S-977
test('TestReconcilerFinalizer_MultiLevelMixed: the RepoSync lets its objects go, its namespace is detached: both stay', async () => {
  await levels('mixed', {
    policy: 'Orphan',
    namespace: { 'client.lifecycle.config.k8s.io/deletion': 'detach' },
  });
  await remove('mixed');
  await isGone('mixed');
  assert.equal(await at.find(REPO_SYNCS, 'repo-sync', 'mixed'), undefined);
  assert.equal(await at.find(ROLE_BINDINGS, 'ns-reconciler-mixed', 'mixed'), undefined);
  assert.equal((await at.configMap('of-inner', 'mixed'))?.metadata.annotations, undefined);
  const left = await at.find(NAMESPACES, 'mixed');
  assert.equal(left?.metadata.deletionTimestamp, undefined);
  assert.equal(left?.metadata.annotations?.['configsync.gke.io/manager'], undefined);
});

// S-977
test('TestReconcileFinalizerReconcileTimeout: what does not go in time is named; it is tried again until it has gone', async () => {
  const { url, commit } = await sources.of({
    'ns.yaml': namespaceYaml('held'),
    'a.yaml': configMapYaml('of-held', {}),
  });
  await at.rootSync('held', url, {
    annotations: { [POLICY]: 'Foreground' },
    spec: { override: { reconcileTimeout: '1s' } },
  });
  await at.synced('held', commit);
  const hold = (finalizers: string[] | null) =>
    at.client.patch(NAMESPACES, { namespace: '', name: 'held' }, { type: 'merge', body: { metadata: { finalizers } } });
  await hold(['example.org/fake']);
  await remove('held');
  const failing = await at.until(
    'held',
    'failing',
    (one) => condition(one, 'ReconcilerFinalizerFailure')?.status === 'True',
  );
  const failure = condition(failing, 'ReconcilerFinalizerFailure');
  assert.equal(failure?.reason, 'DestroyFailure');
  assert.equal(failure?.errors?.length, 1);
  assert.match(failure?.errors?.[0]?.errorMessage ?? '', /failed to wait for Namespace, \/held: reconcile timeout/);
  assert.equal(condition(failing, 'ReconcilerFinalizing')?.status, 'True');
  assert.equal(await at.configMap('of-held'), undefined, 'one object held up another');
  await hold(null);
  await isGone('held');
  assert.equal(await at.find(NAMESPACES, 'held'), undefined);
});

// S-977
test('TestReconcilerManagerTeardownInvalidRSyncs: a sync that was never valid leaves nothing', async () => {
  await at.rootSync('invalid', 'ext::sh -c x', { annotations: { [POLICY]: 'Foreground' } });
  await at.until('invalid', 'stalled', (one) => condition(one, 'Stalled')?.status === 'True');
  await remove('invalid');
  await isGone('invalid');
});

// S-977
test('TestDeleteRepoSync, its rights deleted with it: with policy Orphan it ends', async () => {
  const { outer } = await levels('rights', { policy: 'Orphan' });
  // The binding and the sync are pruned by one commit, the sync first.
  await at.synced('rights', await outer.repository.commit({ 'binding.yaml': null, 'sync.yaml': null }));
  assert.equal(await at.find(REPO_SYNCS, 'repo-sync', 'rights'), undefined);
  assert.equal((await at.configMap('of-inner', 'rights'))?.metadata.annotations, undefined);
});
