/** What is kept as it is declared, and what is nobody's: scenarios of upstream's managed_resources_test.go. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ResourceType } from '../../packages/apimachinery/src/meta/gvk.ts';
import type { KubeObject } from '../../packages/apimachinery/src/meta/object.ts';
import { CONFIG_MAPS, NAMESPACES } from '../../packages/apimachinery/src/types/resource-types.ts';
import { eventually } from '../testkit/eventually.ts';
import { configMapYaml, type GitOpsCluster, startGitOpsCluster } from '../testkit/gitops-cluster.ts';
import { createSources } from '../testkit/gitops-sources.ts';

const ID = 'configsync.gke.io/resource-id';
const MANAGER = 'configsync.gke.io/manager';
const PART_OF = 'applyset.kubernetes.io/part-of';
const sources = createSources();
let at: GitOpsCluster;
before(async () => {
  at = await startGitOpsCluster();
  const { url, commit } = await sources.of({
    'ns.yaml': JSON.stringify({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'declared', annotations: { season: 'summer' }, labels: { tier: 'one' } },
    }),
    'map.yaml': configMapYaml(
      'declared',
      { k: 'declared' },
      { namespace: 'declared', annotations: { season: 'summer' } },
    ),
  });
  await at.rootSync('root-sync', url);
  await at.synced('root-sync', commit);
});
after(async () => {
  await at.stop();
  await sources.removeAll();
  assert.deepEqual(at.cluster.errors, []);
});

interface Scope {
  readonly name: string;
  readonly type: ResourceType<KubeObject>;
  readonly namespace: string;
}
const SCOPES: readonly Scope[] = [
  { name: 'ClusterScoped', type: NAMESPACES, namespace: '' },
  { name: 'NamespaceScoped', type: CONFIG_MAPS, namespace: 'declared' },
];
const keyOf = ({ namespace }: Scope, name = 'declared') => ({ namespace, name });
const live = (scope: Scope, name = 'declared') => at.find(scope.type, name, scope.namespace);
const patch = (scope: Scope, metadata: object) =>
  at.client.patch(scope.type, keyOf(scope), { type: 'merge', body: { metadata } });
const until = (scope: Scope, what: string, isSo: (object: KubeObject) => boolean) =>
  eventually(what, async () => {
    const object = await live(scope);
    return object && isSo(object) ? object : undefined;
  });

/** What a copy of the metadata has otherwise; and whether the copy is taken for an object that is declared no longer. */
const COPIES: readonly [
  what: string,
  annotations: Record<string, string | undefined>,
  labels: Record<string, string>,
  isDeleted: boolean,
][] = [
  ['all of it right', {}, {}, true],
  ['a wrong id', { [ID]: '_configmap_declared_wrong' }, {}, false],
  ['another manager', { [MANAGER]: ':abcdef' }, {}, false],
  ['no manager', { [MANAGER]: undefined }, {}, false],
  ['another apply set', {}, { [PART_OF]: 'applyset-wrong-v1' }, false],
  ['not managed', { 'configmanagement.gke.io/managed': 'disabled' }, {}, false],
];

for (const scope of SCOPES) {
  // S-972: What drifts of a managed object is put back, field by field; what carries metadata of a sync that is not
  //   quite its own is left alone.
  test(`TestDriftKubectlApply${scope.name}: what carries our metadata and is not declared is deleted, and nothing else`, async () => {
    const { annotations = {}, labels = {} } = (await live(scope))!.metadata;
    const make = async (name: string, [, changed, otherLabels]: (typeof COPIES)[number]): Promise<void> => {
      const id = scope.namespace === '' ? `_namespace_${name}` : `_configmap_${scope.namespace}_${name}`;
      const all = { ...annotations, [ID]: id, ...changed };
      const kept = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
      await at.client.create(scope.type, {
        apiVersion: 'v1',
        kind: scope.type.kind,
        metadata: { ...keyOf(scope, name), labels: { ...labels, ...otherLabels }, annotations: kept },
      });
    };
    // The one that goes is made last: when it is gone, the others were looked at.
    const rows = [...COPIES.entries()].reverse();
    for (const [index, row] of rows) await make(`copy-${index}`, row);
    await at.gone(scope.type, 'copy-0', scope.namespace);
    for (const [index, [what, , , isDeleted]] of rows)
      assert.equal((await live(scope, `copy-${index}`)) === undefined, isDeleted, what);
  });

  // S-972
  test(`TestDriftKubectlDelete, ${scope.name}: it is made anew`, async () => {
    const { uid } = (await live(scope))!.metadata;
    await at.client.delete(scope.type, keyOf(scope));
    await until(scope, 'made anew', ({ metadata }) => metadata.uid !== uid && metadata.deletionTimestamp === undefined);
    await eventually('the map is there', () => live(SCOPES[1]!));
  });

  // S-972
  test(`TestDriftKubectlAnnotate, ${scope.name}: a declared field is put back, another stays through it`, async () => {
    await patch(scope, { annotations: { mine: 'x', season: 'winter' } });
    const back = await until(scope, 'put back', ({ metadata }) => metadata.annotations?.['season'] === 'summer');
    assert.equal(back.metadata.annotations?.['mine'], 'x');
  });

  // S-972
  test(`TestDriftKubectlAnnotateDeleteManagedFields, ${scope.name}: a declared field that is taken off comes back`, async () => {
    await patch(scope, { annotations: { season: null } });
    await until(scope, 'put back', ({ metadata }) => metadata.annotations?.['season'] === 'summer');
  });

  // S-972
  test(`TestDriftRemoveApplySetPartOfLabel, ${scope.name}: metadata of the sync comes back, each part of it`, async () => {
    const { annotations, labels } = (await live(scope))!.metadata;
    await patch(scope, { labels: { [PART_OF]: null } });
    await until(scope, 'the label is back', ({ metadata }) => metadata.labels?.[PART_OF] === labels?.[PART_OF]);
    await patch(scope, { annotations: { [ID]: 'wrong', [MANAGER]: null, 'configmanagement.gke.io/token': 'x' } });
    await until(scope, 'the annotations are back', ({ metadata }) =>
      [ID, MANAGER, 'configmanagement.gke.io/token'].every((key) => metadata.annotations?.[key] === annotations?.[key]),
    );
  });
}
