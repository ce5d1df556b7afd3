/** `client.lifecycle.config.k8s.io/mutation: ignore`: scenarios of upstream's ignore_mutation_test.go. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { KubeObject } from '../../packages/apimachinery/src/meta/object.ts';
import { NAMESPACES } from '../../packages/apimachinery/src/types/resource-types.ts';
import { eventually } from '../testkit/eventually.ts';
import { createRepository, type GitRepository } from '../testkit/git-repository.ts';
import { configMapYaml, type GitOpsCluster, startGitOpsCluster } from '../testkit/gitops-cluster.ts';

const MUTATION = 'client.lifecycle.config.k8s.io/mutation';
const IGNORE = { [MUTATION]: 'ignore' };
let at: GitOpsCluster;
let repository: GitRepository;
before(async () => {
  at = await startGitOpsCluster();
  repository = await createRepository();
  await repository.commit({ 'stays.yaml': configMapYaml('stays', {}) });
  await at.rootSync('root-sync', repository.url);
});
after(async () => {
  await at.stop();
  repository.remove();
  assert.deepEqual(at.cluster.errors, []);
});
const object = (name: string, annotations: object): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, annotations: annotations as Record<string, string> },
});
const push = async (name: string, annotations: object | null): Promise<void> => {
  const text = annotations && JSON.stringify(object(name, annotations));
  await at.synced('root-sync', await repository.commit({ [`${name}.yaml`]: text }));
};
const annotate = (name: string, annotations: Record<string, string | null>) =>
  at.client.patch(NAMESPACES, { namespace: '', name }, { type: 'merge', body: { metadata: { annotations } } });
/** Season and directive of the live object. */
const state = async (name: string): Promise<(string | undefined)[]> => {
  const { annotations = {} } = (await at.find(NAMESPACES, name))?.metadata ?? {};
  return [annotations['season'], annotations[MUTATION]];
};

// S-965: An object that is declared with `mutation: ignore` keeps what users make of it, but for its metadata of Config
//   Sync and the directive itself; it is made anew when it is deleted, pruned, and applied as a whole once the
//   directive is gone.
test('TestAddIgnoreMutationToManagedObject: from then on nothing but the directive changes', async () => {
  await push('add', { season: 'summer' });
  await push('add', { season: 'winter', ...IGNORE });
  assert.deepEqual(await state('add'), ['summer', 'ignore']);
  await push('add', { season: 'winter' });
  assert.deepEqual(await state('add'), ['winter', undefined]);
});

// S-965
test('TestDeclareIgnoreMutationForUnmanagedObject: it is taken up as it is', async () => {
  await at.client.create(NAMESPACES, object('unmanaged', {}));
  await push('unmanaged', { season: 'summer', ...IGNORE });
  assert.deepEqual(await state('unmanaged'), [undefined, 'ignore']);
});

// S-965
test('TestDeclareExistingObjectWithIgnoreAnnotation: what Git says of the directive counts', async () => {
  await at.client.create(NAMESPACES, object('existing', IGNORE));
  await push('existing', { season: 'summer' });
  assert.deepEqual(await state('existing'), ['summer', undefined]);
});

// S-965
test('TestIgnoreObjectIsDeleted: changes stay; deleted, it is made as it is declared now', async () => {
  await push('deleted', { season: 'summer', foo: 'bar', ...IGNORE });
  await push('deleted', { season: 'summer', ...IGNORE });
  await annotate('deleted', { foo: 'baz' });
  await at.client.delete(NAMESPACES, { namespace: '', name: 'deleted' });
  const made = await eventually('made anew', async () => {
    const live = await at.find(NAMESPACES, 'deleted');
    return live && live.metadata.deletionTimestamp === undefined && live.metadata.annotations?.['foo'] === undefined
      ? live
      : undefined;
  });
  assert.deepEqual(
    [made.metadata.annotations?.['season'], made.metadata.annotations?.[MUTATION]],
    ['summer', 'ignore'],
  );
});

// S-965
test('TestMutationIgnoredObjectPruned: it is pruned, and made anew as it is declared then', async () => {
  await push('pruned', { season: 'summer', ...IGNORE });
  await push('pruned', null);
  await at.gone(NAMESPACES, 'pruned');
  await push('pruned', { season: 'winter', ...IGNORE });
  assert.deepEqual(await state('pruned'), ['winter', 'ignore']);
});

// S-965
test('TestAddUpdateAdd: what a user wrote stays through later commits', async () => {
  await push('update', IGNORE);
  await push('update', { season: 'summer', ...IGNORE });
  assert.deepEqual(await state('update'), [undefined, 'ignore']);
  await annotate('update', { season: 'winter' });
  await push('another', {});
  assert.deepEqual(await state('update'), ['winter', 'ignore']);
});

// S-965
test('TestDeclareObjectWithoutIgnoreMutationAnnotation: without the directive all of it is applied', async () => {
  await push('without', { season: 'summer', ...IGNORE });
  await push('without', { season: 'winter' });
  assert.deepEqual(await state('without'), ['winter', undefined]);
});

// S-965
test('TestDriftKubectlAnnotateManagedFieldWithIgnoreMutationAnnotation: metadata of Config Sync comes back, the rest stays', async () => {
  await push('drift', { season: 'summer', ...IGNORE });
  await annotate('drift', { season: 'winter', 'configmanagement.gke.io/managed': null });
  await eventually('the metadata is back', async () =>
    (await at.find(NAMESPACES, 'drift'))?.metadata.annotations?.['configmanagement.gke.io/managed'] === 'enabled'
      ? true
      : undefined,
  );
  assert.deepEqual(await state('drift'), ['winter', 'ignore']);
});
