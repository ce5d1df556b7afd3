/** RepoSyncs: one namespace, the rights that users give their account, and who has an object that two sources declare. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ROLE_BINDINGS, SECRETS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { REPO_SYNCS, ROOT_SYNCS } from '../../packages/gitops/src/kinds/kinds.ts';
import { createRepository, type GitRepository, serveRepository } from '../testkit/git-repository.ts';
import {
  condition,
  configMapYaml,
  createNamespace,
  type GitOpsCluster,
  startGitOpsCluster,
} from '../testkit/gitops-cluster.ts';

let at: GitOpsCluster;
const cleanUp: (() => unknown)[] = [];
before(async () => {
  at = await startGitOpsCluster();
});
after(async () => {
  await at.stop();
  for (const act of cleanUp) await act();
  assert.deepEqual(at.cluster.errors, []);
});
async function served(
  files: Readonly<Record<string, string | null>>,
  options: { username?: string; password?: string } = {},
): Promise<{ repository: GitRepository; url: string; commit: string }> {
  const repository = await createRepository();
  const commit = await repository.commit(files);
  const server = await serveRepository(repository, options);
  cleanUp.push(() => server.stop(), repository.remove);
  return { repository, url: server.url, commit };
}
const mayEdit = (namespace: string, account: string) =>
  at.client.create(ROLE_BINDINGS, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: account, namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' },
    subjects: [{ kind: 'ServiceAccount', name: account, namespace: 'config-management-system' }],
  });

// S-913: A RepoSync manages objects of its namespace alone, with the rights that users give its account. Of one object
//   that two syncs declare one has it: the other reports KNV1060, holds nothing else up, and has it once the first is
//   gone; a RootSync goes before a RepoSync.
test('nothing is written without the rights that users give; with them and a token it is', async () => {
  await createNamespace(at.client, 'tenant');
  const { url, commit } = await served(
    { 'a.yaml': configMapYaml('a', { k: '1' }) },
    { username: 'robot', password: 'a-secret-token' },
  );
  await at.client.create(SECRETS, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'login', namespace: 'tenant' },
    stringData: { username: 'robot', token: 'a-secret-token' },
  });
  await at.repoSync('tenant', 'repo-sync', url, { git: { auth: 'token', secretRef: { name: 'login' } } });
  const refused = await at.failing(['tenant', 'repo-sync'], ['2013']);
  assert.match(
    refused.status?.sync?.errors?.[0]?.errorMessage ?? '',
    /system:serviceaccount:config-management-system:ns-reconciler-tenant/,
  );
  assert.equal(await at.configMap('a', 'tenant'), undefined);
  await mayEdit('tenant', 'ns-reconciler-tenant');
  await at.synced(['tenant', 'repo-sync'], commit);
  const { annotations } = (await at.configMap('a', 'tenant'))!.metadata;
  assert.deepEqual(
    [annotations?.['configsync.gke.io/manager'], annotations?.['config.k8s.io/owning-inventory']],
    ['tenant', 'tenant_repo-sync'],
  );
});

// S-913
test('objects of the cluster and of other namespaces are KNV1058, files of the host KNV1061', async () => {
  await createNamespace(at.client, 'bounded');
  await mayEdit('bounded', 'ns-reconciler-bounded-mine-4');
  const { repository, url } = await served({
    'a.yaml': configMapYaml('a', {}),
    'b.yaml': configMapYaml('b', {}, { namespace: 'default' }),
    'c.yaml': '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"more"}}',
  });
  await at.repoSync('bounded', 'mine', url);
  await at.failing(['bounded', 'mine'], ['1058', '1058']);
  assert.ok(await at.configMap('a', 'bounded'));
  await at.repoSync('bounded', 'of-file', repository.url);
  const stalled = await at.until(
    ['bounded', 'of-file'],
    'Stalled',
    (one) => condition(one, 'Stalled')?.status === 'True',
  );
  assert.match(condition(stalled, 'Stalled')?.message ?? '', /file:\/\/ repositories are for RootSyncs/);
});

// S-913
test('two RepoSyncs declare one object: the second reports KNV1060, and has it when the first lets go', async () => {
  await createNamespace(at.client, 'shared');
  for (const account of ['ns-reconciler-shared-first-5', 'ns-reconciler-shared-second-6'])
    await mayEdit('shared', account);
  const first = await served({ 'a.yaml': configMapYaml('a', { of: 'first' }) });
  const second = await served({ 'a.yaml': configMapYaml('a', { of: 'second' }), 'b.yaml': configMapYaml('b', {}) });
  await at.repoSync('shared', 'first', first.url);
  await at.synced(['shared', 'first'], first.commit);
  await at.repoSync('shared', 'second', second.url);
  const conflict = await at.failing(['shared', 'second'], ['1060']);
  assert.match(conflict.status?.sync?.errors?.[0]?.errorMessage ?? '', /"shared_second".*"shared_first"/);
  assert.deepEqual((await at.configMap('a', 'shared'))?.data, { of: 'first' });
  assert.ok(await at.configMap('b', 'shared'), 'one conflict held up another object');
  assert.deepEqual(
    (await at.inventory(['shared', 'second']))?.map(({ name }) => name),
    ['b'],
  );
  await at.client.delete(REPO_SYNCS, { namespace: 'shared', name: 'first' });
  await at.synced(['shared', 'second'], second.commit);
  assert.deepEqual((await at.configMap('a', 'shared'))?.data, { of: 'second' });
});

// S-913
test('a RootSync takes over from a RepoSync, which reports it and does not fight; against a RootSync it gives way', async () => {
  await createNamespace(at.client, 'contested');
  await mayEdit('contested', 'ns-reconciler-contested');
  const repo = await served({ 'a.yaml': configMapYaml('a', { of: 'repo' }) });
  await at.repoSync('contested', 'repo-sync', repo.url);
  await at.synced(['contested', 'repo-sync'], repo.commit);
  const root = await served({ 'a.yaml': configMapYaml('a', { of: 'root' }, { namespace: 'contested' }) });
  await at.rootSync('contester', root.url);
  await at.synced('contester', root.commit);
  await at.failing(['contested', 'repo-sync'], ['1060']);
  const other = await served({ 'a.yaml': configMapYaml('a', { of: 'other root' }, { namespace: 'contested' }) });
  await at.rootSync('latecomer', other.url);
  await at.failing('latecomer', ['1060']);
  assert.deepEqual((await at.configMap('a', 'contested'))?.data, { of: 'root' });
  // What the latecomer never had it does not take away either.
  const without = await other.repository.commit({
    'a.yaml': null,
    'b.yaml': configMapYaml('b', {}, { namespace: 'contested' }),
  });
  await at.synced('latecomer', without);
  assert.ok(await at.configMap('a', 'contested'));
  await at.client.delete(ROOT_SYNCS, { namespace: 'config-management-system', name: 'contester' });
  await at.synced(['contested', 'repo-sync'], repo.commit);
  assert.deepEqual((await at.configMap('a', 'contested'))?.data, { of: 'repo' });
});
