/** Sources that are laid out by directories, and objects that are meant for some clusters and namespaces alone. */
// test:full: every case of it, for a minute or more.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ResourceType } from '../../packages/apimachinery/src/meta/gvk.ts';
import type { KubeObject } from '../../packages/apimachinery/src/meta/object.ts';
import { NAMESPACES } from '../../packages/apimachinery/src/types/resource-types.ts';
import { eventually } from '../testkit/eventually.ts';
import { createRepository, type GitRepository } from '../testkit/git-repository.ts';
import {
  condition,
  configMapYaml,
  createNamespace,
  type GitOpsCluster,
  startGitOpsCluster,
} from '../testkit/gitops-cluster.ts';

let at: GitOpsCluster;
const repositories: GitRepository[] = [];
before(async () => {
  at = await startGitOpsCluster({ clusterName: 'east' });
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
const config = (kind: string, name: string, spec: object): string =>
  JSON.stringify({ apiVersion: 'configmanagement.gke.io/v1', kind, metadata: { name }, spec });
const namespaceYaml = (name: string, metadata: object = {}): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, ...metadata } });
const noConfigMap = (name: string, namespace: string) =>
  eventually(`${namespace}/${name} gone`, async () => ((await at.configMap(name, namespace)) ? undefined : true));

// S-931: In format hierarchy the directories are namespaces, which inherit what lies above them; what lies wrongly has
//   upstream's code and holds up itself and pruning; without a Repo nothing is done.
test('format hierarchy: namespaces come from directories, inherit, and are pruned with them', async () => {
  const [repository, first] = await repositoryOf({
    'fleet/system/repo.yaml': config('Repo', 'repo', { version: '1.0.0' }),
    'fleet/namespaces/all.yaml': configMapYaml('all', { k: '1' }),
    'fleet/namespaces/shop/ns.yaml': namespaceYaml('shop'),
    'fleet/namespaces/team/dev/ns.yaml': namespaceYaml('dev'),
    'fleet/namespaces/team/dev/own.yaml': configMapYaml('own', {}),
    'fleet/clusterregistry/east.yaml': JSON.stringify({
      apiVersion: 'clusterregistry.k8s.io/v1alpha1',
      kind: 'Cluster',
      metadata: { name: 'east', labels: { site: 'lab' } },
    }),
    'fleet/clusterregistry/lab.yaml': config('ClusterSelector', 'lab', { selector: { matchLabels: { site: 'lab' } } }),
    'fleet/namespaces/shop/lab.yaml': configMapYaml(
      'lab',
      {},
      { annotations: { 'configmanagement.gke.io/cluster-selector': 'lab' } },
    ),
    'fleet/namespaces/shop/west.yaml': configMapYaml(
      'west',
      {},
      { annotations: { 'configsync.gke.io/cluster-name-selector': 'west' } },
    ),
    'beside/x.yaml': configMapYaml('beside', {}),
  });
  await at.rootSync('tree', repository.url, { git: { dir: 'fleet' }, spec: { sourceFormat: 'hierarchy' } });
  await at.synced('tree', first);
  for (const [name, namespace] of [
    ['all', 'shop'],
    ['all', 'dev'],
    ['own', 'dev'],
    ['lab', 'shop'],
  ] as const)
    assert.ok(await at.configMap(name, namespace), `${namespace}/${name}`);
  for (const [name, namespace] of [
    ['west', 'shop'],
    ['own', 'shop'],
    ['beside', 'default'],
  ] as const)
    assert.equal(await at.configMap(name, namespace), undefined, `${namespace}/${name}`);
  const dev = await at.find(NAMESPACES, 'dev');
  assert.equal(dev?.metadata.labels?.['team.tree.hnc.x-k8s.io/depth'], '1');
  assert.equal(dev?.metadata.annotations?.['configmanagement.gke.io/cluster-name'], 'east');
  assert.equal(dev?.metadata.annotations?.['configmanagement.gke.io/source-path'], 'fleet/namespaces/team/dev/ns.yaml');

  const noRepo = await repository.commit({
    'fleet/system/repo.yaml': null,
    'fleet/namespaces/team/dev/own.yaml': null,
  });
  const failing = await at.failing('tree', ['1017']);
  assert.equal(failing.status?.source?.commit, noRepo);
  assert.ok(await at.configMap('own', 'dev'));
  const third = await repository.commit({
    'fleet/system/repo.yaml': config('Repo', 'repo', { version: '1.0.0' }),
    'fleet/namespaces/all.yaml': null,
    'fleet/namespaces/team/some.yaml': configMapYaml('some', {}),
    'fleet/namespaces/shop/ns.yaml': namespaceYaml('shop', {
      annotations: { 'configsync.gke.io/cluster-name-selector': 'west' },
    }),
  });
  await at.synced('tree', third);
  assert.ok(await at.configMap('some', 'dev'));
  assert.equal(await at.configMap('own', 'dev'), undefined);
  assert.equal(await at.configMap('all', 'dev'), undefined);
  await at.gone(NAMESPACES as ResourceType<KubeObject>, 'shop');

  await createNamespace(at.client, 'of-repo');
  await at.repoSync('of-repo', 'tree', repository.url, { spec: { sourceFormat: 'hierarchy' } });
  const stalled = await at.until(['of-repo', 'tree'], 'stalled', (one) => condition(one, 'Stalled')?.status === 'True');
  assert.match(condition(stalled, 'Stalled')?.message ?? '', /KNV1061.*unstructured/);
});

// S-933: A NamespaceSelector copies objects into the namespaces that it means; of mode dynamic it follows those of the
//   cluster, and makes none.
test('a NamespaceSelector of mode dynamic follows the namespaces of the cluster, and makes none', async () => {
  const label = (name: string, team: string | null) =>
    at.client.patch(NAMESPACES, { namespace: '', name }, { type: 'merge', body: { metadata: { labels: { team } } } });
  await createNamespace(at.client, 'blue-1');
  await label('blue-1', 'blue');
  await createNamespace(at.client, 'blue-2');
  const selected = { annotations: { 'configmanagement.gke.io/namespace-selector': 'blue' } };
  const [repository, first] = await repositoryOf({
    'selector.yaml': config('NamespaceSelector', 'blue', {
      mode: 'dynamic',
      selector: { matchLabels: { team: 'blue' } },
    }),
    'policy.yaml': configMapYaml('policy', { k: '1' }, selected),
    'always.yaml': configMapYaml('always', {}, { namespace: 'blue-2' }),
  });
  await at.rootSync('dynamic', repository.url);
  await at.synced('dynamic', first);
  assert.ok(await at.configMap('policy', 'blue-1'));
  assert.equal(await at.configMap('policy', 'blue-2'), undefined);
  await label('blue-2', 'blue');
  await eventually('policy in blue-2', () => at.configMap('policy', 'blue-2'));
  await label('blue-1', null);
  await noConfigMap('policy', 'blue-1');
  await label('blue-1', 'blue');
  await eventually('policy in blue-1 again', () => at.configMap('policy', 'blue-1'));
  await at.client.delete(NAMESPACES, { namespace: '', name: 'blue-1' });
  await at.gone(NAMESPACES as ResourceType<KubeObject>, 'blue-1');
  await eventually('the inventory without blue-1', async () =>
    (await at.inventory('dynamic'))?.every(({ namespace }) => namespace !== 'blue-1') ? true : undefined,
  );
  const second = await repository.commit({ 'policy.yaml': configMapYaml('policy', { k: '2' }, selected) });
  await at.synced('dynamic', second);
  assert.equal(await at.find(NAMESPACES, 'blue-1'), undefined);
  assert.deepEqual((await at.configMap('policy', 'blue-2'))?.data, { k: '2' });
  await repository.commit({ 'selector.yaml': config('NamespaceSelector', 'blue', { selector: {} }) });
  await at.failing('dynamic', ['1014']);
  assert.ok(await at.configMap('policy', 'blue-2'));
});
