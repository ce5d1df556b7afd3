/** RootSyncs from commit to objects: what is applied, pruned, refused, and what their status says. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  CLUSTER_ROLE_BINDINGS,
  NAMESPACES,
  SERVICE_ACCOUNTS,
} from '../../packages/apimachinery/src/types/resource-types.ts';
import { CONFIG_SYNC_NAMESPACE, ROOT_SYNCS } from '../../packages/gitops/src/kinds/kinds.ts';
import { createRepository, type GitRepository } from '../testkit/git-repository.ts';
import { condition, configMapYaml, type GitOpsCluster, startGitOpsCluster } from '../testkit/gitops-cluster.ts';

let at: GitOpsCluster;
const repositories: GitRepository[] = [];
before(async () => {
  at = await startGitOpsCluster();
});
after(async () => {
  await at.stop();
  for (const repository of repositories) repository.remove();
  assert.deepEqual(at.cluster.errors, []);
});
const repositoryOf = async (files: Readonly<Record<string, string | null>>): Promise<[GitRepository, string]> => {
  const repository = await createRepository();
  repositories.push(repository);
  return [repository, await repository.commit(files)];
};

// S-903: A RootSync applies a commit by server-side apply under upstream's field manager, labels and annotations, with
//   the inventory and the conditions that upstream's clients read; the next commit changes and prunes.
test('a commit is applied, with upstream’s metadata, inventory and status; the next one changes and prunes', async () => {
  const [repository, first] = await repositoryOf({
    'ns.yaml': 'apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n',
    'app/a.yaml': configMapYaml('a', { k: '1' }, { namespace: 'shop' }),
    'app/b.yaml': configMapYaml('b', { k: '1' }, { namespace: 'shop' }),
    'README.md': 'no manifest',
  });
  await at.rootSync('root-sync', repository.url);
  const synced = await at.synced('root-sync', first);
  const { status } = synced;
  assert.equal(status?.reconciler, 'root-reconciler');
  assert.equal(status?.observedGeneration, synced.metadata.generation);
  assert.deepEqual(status?.source?.gitStatus, { repo: repository.url, revision: 'HEAD', branch: 'main', dir: '/' });
  assert.deepEqual([status?.source?.commit, status?.rendering?.commit, status?.sync?.commit], [first, first, first]);
  assert.equal(status?.rendering?.message, 'Rendering skipped');
  for (const [type, reason, message] of [
    ['Reconciling', '', ''],
    ['Stalled', '', ''],
    ['Syncing', 'Sync', 'Sync Completed'],
  ] as const) {
    const found = condition(synced, type);
    assert.deepEqual([found?.status, found?.reason, found?.message], ['False', reason, message], type);
  }
  assert.deepEqual(synced.metadata.finalizers, [
    'configsync.gke.io/reconciler-manager',
    'configsync.gke.io/reconciler',
  ]);

  const a = await at.configMap('a', 'shop');
  const { labels, annotations, managedFields } = a!.metadata;
  assert.deepEqual(labels, {
    'app.kubernetes.io/managed-by': 'configmanagement.gke.io',
    'applyset.kubernetes.io/part-of': synced.metadata.labels?.['applyset.kubernetes.io/id'],
    'configsync.gke.io/declared-version': 'v1',
  });
  assert.match(labels?.['applyset.kubernetes.io/part-of'] ?? '', /^applyset-[\w-]{43}-v1$/);
  assert.deepEqual(annotations, {
    'config.k8s.io/owning-inventory': 'config-management-system_root-sync',
    'configmanagement.gke.io/managed': 'enabled',
    'configmanagement.gke.io/source-path': 'app/a.yaml',
    'configmanagement.gke.io/token': first,
    'configsync.gke.io/git-context': JSON.stringify({ repo: repository.url, branch: 'main', rev: 'HEAD' }),
    'configsync.gke.io/manager': ':root',
    'configsync.gke.io/resource-id': '_configmap_shop_a',
  });
  assert.deepEqual(
    managedFields?.map(({ manager, operation }) => [manager, operation]),
    [['configsync.gke.io', 'Apply']],
  );
  assert.deepEqual(
    (await at.inventory('root-sync'))?.map(({ kind, name }) => [kind, name]),
    [
      ['Namespace', 'shop'],
      ['ConfigMap', 'a'],
      ['ConfigMap', 'b'],
    ],
  );

  const second = await repository.commit({
    'app/a.yaml': configMapYaml('a', { k: '2' }, { namespace: 'shop' }),
    'app/b.yaml': null,
  });
  await at.synced('root-sync', second);
  assert.deepEqual((await at.configMap('a', 'shop'))?.data, { k: '2' });
  assert.equal(await at.configMap('b', 'shop'), undefined);
  assert.deepEqual(
    (await at.inventory('root-sync'))?.map(({ name }) => name),
    ['shop', 'a'],
  );
});

// S-904: The objects of a sync are written under an account of its own: of a RootSync with cluster-admin or the roles
//   it names.
test('the account of a RootSync is cluster-admin, or has the roles that are named', async () => {
  const [repository, commit] = await repositoryOf({ 'a.yaml': configMapYaml('of-admin', {}) });
  await at.rootSync('admin', repository.url);
  await at.synced('admin', commit);
  assert.ok(await at.find(SERVICE_ACCOUNTS, 'root-reconciler-admin', CONFIG_SYNC_NAMESPACE));
  const shared = await at.find(CLUSTER_ROLE_BINDINGS, 'configsync.gke.io:root-reconciler');
  assert.ok(shared?.subjects?.some(({ name }) => name === 'root-reconciler-admin'));
  await at.client.patch(
    ROOT_SYNCS,
    { namespace: CONFIG_SYNC_NAMESPACE, name: 'admin' },
    {
      type: 'merge',
      body: { spec: { override: { roleRefs: [{ kind: 'ClusterRole', name: 'view' }] } } },
    },
  );
  await repository.commit({ 'a.yaml': configMapYaml('of-admin', { now: 'not allowed' }) });
  await at.failing('admin', ['2013']);
  const after = await at.find(CLUSTER_ROLE_BINDINGS, 'configsync.gke.io:root-reconciler');
  assert.ok(!after?.subjects?.some(({ name }) => name === 'root-reconciler-admin'));
  assert.deepEqual((await at.configMap('of-admin'))?.data, undefined);
});

// S-905: An object or a file that is not valid, or is refused, holds up itself and what depends on it, and nothing
//   else; what is there of it stays. The error has upstream's code, and names file and object.
test('one bad object, and one bad file, hold up themselves alone, and nothing of theirs is pruned', async () => {
  const [repository, first] = await repositoryOf({
    'a.yaml': configMapYaml('good', { k: '1' }),
    'b.yaml': configMapYaml('held', { k: '1' }),
    'c.yaml': configMapYaml('in-file', { k: '1' }),
  });
  await at.rootSync('bad-object', repository.url);
  await at.synced('bad-object', first);
  await repository.commit({
    'a.yaml': configMapYaml('good', { k: '2' }),
    'b.yaml': configMapYaml('held', { k: '2' }, { uid: 'x' }),
    'c.yaml': 'apiVersion: v1\nkind: [',
    'd.yaml': 'apiVersion: example.org/v1\nkind: Unknown\nmetadata:\n  name: x\n',
    'e.yaml': '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"refused"},"type":"kubernetes.io/tls","data":{}}',
  });
  const failing = await at.failing('bad-object', ['1006', '1021', '1045', '2009']);
  assert.deepEqual((await at.configMap('good'))?.data, { k: '2' });
  assert.deepEqual(
    [(await at.configMap('held'))?.data, (await at.configMap('in-file'))?.data],
    [{ k: '1' }, { k: '1' }],
  );
  assert.equal(failing.status?.lastSyncedCommit, first);
  assert.deepEqual(condition(failing, 'Syncing')?.errorSourceRefs, ['status.source.errors', 'status.sync.errors']);
  const [of1045] = failing.status?.source?.errors?.filter(({ code }) => code === '1045') ?? [];
  assert.match(
    of1045?.errorMessage ?? '',
    /^KNV1045: .*metadata\.uid.*\n\nFor more information, see https:\/\/g\.co\/cloud\/acm-errors#knv1045$/s,
  );
  assert.deepEqual(of1045?.errorResources, [
    { sourcePath: 'b.yaml', name: 'held', namespace: 'default', gvk: { group: '', version: 'v1', kind: 'ConfigMap' } },
  ]);
  const fixed = await repository.commit({ 'b.yaml': null, 'c.yaml': null, 'd.yaml': null, 'e.yaml': null });
  await at.synced('bad-object', fixed);
  assert.deepEqual([await at.configMap('held'), await at.configMap('in-file')], [undefined, undefined]);
});

// S-906: A source that cannot be had, that declares nothing any more, or that would remove all namespaces changes
//   nothing, also after a restart.
test('a source that cannot be had, and one that declares nothing, change nothing', async () => {
  const [repository, first] = await repositoryOf({
    'app/a.yaml': configMapYaml('kept-1', {}),
    'app/b.yaml': configMapYaml('kept-2', {}),
  });
  await at.rootSync('emptied', repository.url, { git: { dir: 'app' } });
  await at.synced('emptied', first);
  await repository.git('mv', 'app', 'moved');
  await repository.commit({});
  await at.failing('emptied', ['2004']);
  assert.equal(condition(await at.sync('emptied'), 'Syncing')?.reason, 'Source');
  await repository.git('mv', 'moved', 'app');
  await repository.commit({ 'app/a.yaml': null, 'app/b.yaml': null, 'app/README.md': 'x' });
  await at.failing('emptied', ['2006']);
  assert.ok((await at.configMap('kept-1')) && (await at.configMap('kept-2')));
  assert.equal((await at.inventory('emptied'))?.length, 2);
});

// S-906
test('all namespaces are not removed by one commit', async () => {
  const ns = (name: string) => `apiVersion: v1\nkind: Namespace\nmetadata:\n  name: ${name}\n`;
  const [repository, first] = await repositoryOf({
    'a.yaml': ns('safe-a'),
    'b.yaml': ns('safe-b'),
    'c.yaml': configMapYaml('beside', {}),
  });
  await at.rootSync('safeguard', repository.url);
  await at.synced('safeguard', first);
  await repository.commit({ 'a.yaml': null, 'b.yaml': null });
  await at.failing('safeguard', ['2006']);
  assert.ok(await at.find(NAMESPACES, 'safe-a'));
  const one = await repository.commit({ 'a.yaml': ns('safe-a') });
  await at.synced('safeguard', one);
  const none = await repository.commit({ 'a.yaml': null });
  await at.synced('safeguard', none);
  await at.gone(NAMESPACES, 'safe-a');
});

// S-903
test('a namespace that is used and not declared is made and let go; explicit waits for it', async () => {
  const [repository, first] = await repositoryOf({
    'a.yaml': configMapYaml('a', {}, { namespace: 'implied' }),
    'b.yaml': configMapYaml('stays', {}),
  });
  await at.rootSync('implicit', repository.url);
  await at.synced('implicit', first);
  const made = await at.find(NAMESPACES, 'implied');
  assert.equal(made?.metadata.annotations?.['client.lifecycle.config.k8s.io/deletion'], 'detach');
  const second = await repository.commit({ 'a.yaml': null });
  await at.synced('implicit', second);
  const left = await at.find(NAMESPACES, 'implied');
  assert.equal(left?.metadata.annotations?.['configmanagement.gke.io/managed'], undefined);
  assert.equal(left?.metadata.deletionTimestamp, undefined);

  const [other] = await repositoryOf({ 'a.yaml': configMapYaml('a', {}, { namespace: 'awaited' }) });
  await at.rootSync('explicit', other.url, { spec: { override: { namespaceStrategy: 'explicit' } } });
  const failing = await at.failing('explicit', ['2009']);
  assert.match(failing.status?.sync?.errors?.[0]?.errorMessage ?? '', /namespaces "awaited" not found/);
  await at.client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'awaited' } });
  await at.synced('explicit', await other.git('rev-parse', 'main'));
});

const REFUSED: readonly [
  what: string,
  more: { git?: object; spec?: object; annotations?: Record<string, string> },
  text: RegExp,
][] = [
  ['token without a secret', { git: { auth: 'token' } }, /needs spec\.git\.secretRef/],
  ['a secret without need', { git: { secretRef: { name: 'x' } } }, /takes no spec\.git\.secretRef/],
  ['a GitHub App', { git: { auth: 'githubapp', secretRef: { name: 'x' } } }, /githubapp is not supported: .*use token/],
  ['the metadata server', { git: { auth: 'gcenode' } }, /gcenode is not supported: .*use token, ssh or cookiefile/],
  [
    'a service account of Google Cloud',
    { git: { auth: 'gcpserviceaccount', gcpServiceAccountEmail: 'x@y.iam.gserviceaccount.com' } },
    /gcpserviceaccount is not supported: .*use token, ssh or cookiefile/,
  ],
  ['cookies of a file', { git: { auth: 'cookiefile', secretRef: { name: 'x' } } }, /cookiefile goes with http/],
  ['a repository of another protocol', { git: { repo: 'ext::sh -c x' } }, /not valid|not fetched/],
  ['a directory that leads out', { git: { dir: '../x' } }, /leads out/],
  ['a negative timeout', { spec: { override: { reconcileTimeout: '-1s' } } }, /reconcileTimeout/],
  ['another format', { spec: { sourceFormat: 'Unstructured' } }, /sourceFormat/],
  [
    'an unknown policy',
    { annotations: { 'configsync.gke.io/deletion-propagation-policy': 'Cascade' } },
    /Foreground or Orphan/,
  ],
];
// S-907: A spec that cannot be meant is KNV1061 and condition Stalled with reason Validation, until it is put right.
// S-963
test('specs that cannot be meant are KNV1061 and Stalled, until they are put right', async () => {
  const [repository, commit] = await repositoryOf({ 'a.yaml': configMapYaml('after-all', {}) });
  for (const [at_, [what, more, text]] of REFUSED.entries()) {
    const name = `refused-${at_}`;
    await at.rootSync(name, repository.url, more);
    const stalled = await at.until(name, what, (one) => condition(one, 'Stalled')?.status === 'True');
    const found = condition(stalled, 'Stalled');
    assert.equal(found?.reason, 'Validation', what);
    assert.match(found?.message ?? '', text, what);
    assert.equal(found?.errors?.[0]?.code, '1061');
    assert.deepEqual(found?.errorSummary?.totalCount, 1);
    assert.deepEqual(stalled.metadata.finalizers ?? [], []);
  }
  await at.client.patch(
    ROOT_SYNCS,
    { namespace: CONFIG_SYNC_NAMESPACE, name: 'refused-1' },
    { type: 'merge', body: { spec: { git: { secretRef: null } } } },
  );
  await at.synced('refused-1', commit);
  assert.equal(condition(await at.sync('refused-1'), 'Stalled')?.status, 'False');
});
