/** What a commit takes away and is kept all the same: scenarios of upstream's lifecycle_directives_test.go. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { KubeObject } from '../../packages/apimachinery/src/meta/object.ts';
import { CLUSTER_ROLES, NAMESPACES, ROLES } from '../../packages/apimachinery/src/types/resource-types.ts';
import { createRepository, type GitRepository } from '../testkit/git-repository.ts';
import { configMapYaml, type GitOpsCluster, startGitOpsCluster } from '../testkit/gitops-cluster.ts';

const DELETION = 'client.lifecycle.config.k8s.io/deletion';
const DETACH = { [DELETION]: 'detach' };
const RULES = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get'] }];
const RBAC = 'rbac.authorization.k8s.io/v1';
let at: GitOpsCluster;
let repository: GitRepository;
before(async () => {
  at = await startGitOpsCluster();
  repository = await createRepository();
  // In a namespace of its own: one that is used is implied, and stays managed.
  await repository.commit({ 'stays.yaml': configMapYaml('stays', {}, { namespace: 'anchor' }) });
  await at.rootSync('root-sync', repository.url);
});
after(async () => {
  await at.stop();
  repository.remove();
  assert.deepEqual(at.cluster.errors, []);
});
const push = async (files: Readonly<Record<string, object | null>>): Promise<void> => {
  const texts = Object.entries(files).map(([name, one]) => [name, one && JSON.stringify(one)]);
  await at.synced('root-sync', await repository.commit(Object.fromEntries(texts)));
};
const namespaceOf = (name: string, annotations: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, annotations },
});
const isManaged = ({ metadata: { annotations = {}, labels = {} } }: KubeObject): boolean =>
  annotations['configmanagement.gke.io/managed'] === 'enabled' && 'applyset.kubernetes.io/part-of' in labels;
/** Nothing of a sync is left on it but what a user declared. */
const isLetGo = ({ metadata: { annotations = {}, labels = {}, deletionTimestamp } }: KubeObject): boolean =>
  deletionTimestamp === undefined &&
  Object.keys(annotations).every((key) => !/gke\.io\/|owning-inventory/.test(key)) &&
  Object.keys(labels).every((key) => !/gke\.io\/|part-of|managed-by/.test(key));

// S-964: What is declared with `deletion: detach`, special namespaces and implied ones are let go where they would be
//   deleted, and taken up again when they are declared again.
test('TestPreventDeletionNamespace: a detached namespace is let go, a role in it is deleted', async () => {
  const role = {
    apiVersion: RBAC,
    kind: 'Role',
    metadata: { name: 'shipping-admin', namespace: 'shipping' },
    rules: RULES,
  };
  await push({ 'ns.yaml': namespaceOf('shipping', DETACH), 'role.yaml': role });
  assert.ok(isManaged((await at.find(NAMESPACES, 'shipping'))!));
  await push({ 'ns.yaml': null, 'role.yaml': null });
  const left = (await at.find(NAMESPACES, 'shipping'))!;
  assert.ok(isLetGo(left), JSON.stringify(left.metadata));
  assert.equal(left.metadata.annotations?.[DELETION], 'detach');
  assert.equal(await at.find(ROLES, 'shipping-admin', 'shipping'), undefined);
  // Declared again without the directive it is pruned as any other.
  await push({ 'ns.yaml': namespaceOf('shipping') });
  await push({ 'ns.yaml': null });
  await at.gone(NAMESPACES, 'shipping');
});

// S-964
for (const [name, kind, type, namespace] of [
  ['TestPreventDeletionRole', 'Role', ROLES, 'default'],
  ['TestPreventDeletionClusterRole', 'ClusterRole', CLUSTER_ROLES, ''],
] as const)
  test(`${name}: it is let go, and taken up again without the directive`, async () => {
    const of = (annotations: object) => ({
      apiVersion: RBAC,
      kind,
      metadata: { name: 'test-admin', ...(namespace && { namespace }), annotations },
      rules: RULES,
    });
    const live = async (): Promise<KubeObject> => (await at.find(type, 'test-admin', namespace))!;
    await push({ 'role.yaml': of(DETACH) });
    assert.ok(isManaged(await live()));
    await push({ 'role.yaml': null });
    assert.ok(isLetGo(await live()), JSON.stringify((await live()).metadata));
    assert.equal((await live()).metadata.annotations?.[DELETION], 'detach');
    await push({ 'role.yaml': of({}) });
    assert.ok(isManaged(await live()));
    assert.equal((await live()).metadata.annotations?.[DELETION], undefined);
    await push({ 'role.yaml': null });
    await at.gone(type, 'test-admin', namespace);
  });

// S-964
test('TestPreventDeletionSpecialNamespaces: they are detached by themselves, and never deleted', async () => {
  const special = ['default', 'kube-system', 'kube-public', 'kube-node-lease', 'gatekeeper-system'];
  const files = (declared: boolean) =>
    Object.fromEntries(
      [...special, 'bookstore'].map((name) => [`ns-${name}.yaml`, declared ? namespaceOf(name) : null]),
    );
  await push({ ...files(true), 'kept.yaml': namespaceOf('kept') });
  for (const name of special) {
    const live = (await at.find(NAMESPACES, name))!;
    assert.ok(isManaged(live) && live.metadata.annotations?.[DELETION] === 'detach', name);
  }
  assert.equal((await at.find(NAMESPACES, 'bookstore'))?.metadata.annotations?.[DELETION], undefined);
  await push(files(false));
  for (const name of special) {
    const live = (await at.find(NAMESPACES, name))!;
    assert.ok(isLetGo(live) && live.metadata.annotations?.[DELETION] === 'detach', JSON.stringify(live.metadata));
  }
  await at.gone(NAMESPACES, 'bookstore');
});

// S-964
test('TestAdoptImplicitNamespace: who declares a namespace that another RootSync implied says so, and has it once that lets go', async () => {
  await push({
    'implied.yaml': { ...JSON.parse(configMapYaml('cm', {})), metadata: { name: 'cm', namespace: 'implied' } },
  });
  const implied = (await at.find(NAMESPACES, 'implied'))!;
  assert.ok(isManaged(implied) && implied.metadata.annotations?.[DELETION] === 'detach');
  const other = await createRepository();
  const commit = await other.commit({ 'ns.yaml': JSON.stringify(namespaceOf('implied', { of: 'other' })) });
  await at.rootSync('other', other.url);
  await at.failing('other', ['1060']);
  await push({ 'implied.yaml': null });
  await at.synced('other', commit);
  const adopted = (await at.find(NAMESPACES, 'implied'))!;
  assert.equal(adopted.metadata.annotations?.['configsync.gke.io/manager'], ':root_other');
  assert.equal(adopted.metadata.annotations?.['of'], 'other');
  other.remove();
});
