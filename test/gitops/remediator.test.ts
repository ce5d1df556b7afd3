/** What is done with an object that a watch brings: each row of upstream's decision table, and remediator_test.go. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CONFIG_MAPS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { createGitOpsMetrics } from '../../packages/gitops/src/status/sync-metrics.ts';
import { familyText } from '../../packages/runtime/src/metrics/metric-family.ts';
import { eventually } from '../testkit/eventually.ts';
import { configMapYaml, type GitOpsCluster, startGitOpsCluster } from '../testkit/gitops-cluster.ts';
import { createSources, type Source } from '../testkit/gitops-sources.ts';

const MANAGED = 'configmanagement.gke.io/managed';
const MANAGER = 'configsync.gke.io/manager';
const TOKEN = 'configmanagement.gke.io/token';
const MUTATION = 'client.lifecycle.config.k8s.io/mutation';
const sources = createSources();
const metrics = createGitOpsMetrics();
let at: GitOpsCluster;
let source: Source;
before(async () => {
  at = await startGitOpsCluster({ metrics });
  source = await sources.of({
    'enabled.yaml': configMapYaml('enabled', { k: 'declared' }),
    'fought.yaml': configMapYaml('fought', { k: 'declared' }),
    'ignored.yaml': configMapYaml('ignored', { k: 'declared' }, { annotations: { [MUTATION]: 'ignore' } }),
    'disabled.yaml': configMapYaml('disabled', { k: 'declared' }, { annotations: { [MANAGED]: 'disabled' } }),
  });
  await at.rootSync('root-sync', source.url);
  await at.synced('root-sync', source.commit);
});
after(async () => {
  await at.stop();
  await sources.removeAll();
  assert.deepEqual(at.cluster.errors, []);
});
const patch = (name: string, body: object) =>
  at.client.patch(CONFIG_MAPS, { namespace: 'default', name }, { type: 'merge', body });
const annotation = async (name: string, key: string): Promise<string | undefined> =>
  (await at.configMap(name))?.metadata.annotations?.[key];
/** Makes an object with the metadata of the sync, as if it had been declared. */
const make = async (name: string, more: { annotations?: Record<string, string>; ownerReferences?: object[] } = {}) => {
  const { labels = {}, annotations = {} } = (await at.configMap('enabled'))!.metadata;
  await at.client.create(CONFIG_MAPS, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name,
      namespace: 'default',
      labels,
      annotations: {
        ...annotations,
        'configsync.gke.io/resource-id': `_configmap_default_${name}`,
        ...more.annotations,
      },
      ...(more.ownerReferences && { ownerReferences: more.ownerReferences as never }),
    },
    data: { k: 'made by hand' },
  });
};
let sentinels = 0;
/** Objects are looked at one after the other: when one that was made now is gone, everything before it was looked at. */
const allIsLookedAt = async (): Promise<void> => {
  const name = `sentinel-${sentinels++}`;
  await make(name);
  await at.gone(CONFIG_MAPS as never, name, 'default');
};

const ROWS: readonly [declared: string, live: string, action: string, act: () => Promise<void>][] = [
  [
    'enabled',
    'none',
    'created',
    async () => {
      await at.client.delete(CONFIG_MAPS, { namespace: 'default', name: 'enabled' });
      await eventually('made anew', () => at.configMap('enabled'));
    },
  ],
  [
    'enabled',
    'as declared, with what others own',
    'left alone',
    async () => {
      const written = await patch('enabled', { data: { theirs: 'x' } });
      await allIsLookedAt();
      assert.equal((await at.configMap('enabled'))?.metadata.resourceVersion, written.metadata.resourceVersion);
    },
  ],
  [
    'enabled',
    'changed',
    'applied',
    async () => {
      await patch('enabled', { data: { k: 'changed' } });
      await eventually('put back', async () =>
        (await at.configMap('enabled'))?.data?.['k'] === 'declared' ? true : undefined,
      );
      assert.equal((await at.configMap('enabled'))?.data?.['theirs'], 'x');
    },
  ],
  [
    'enabled',
    'of another manager',
    'KNV1060, until it is ours again',
    async () => {
      await at.rootSync('rival', (await sources.of({ 'a.yaml': configMapYaml('of-rival', {}) })).url);
      await patch('enabled', { metadata: { annotations: { [MANAGER]: ':root_rival' } }, data: { k: 'theirs' } });
      await at.failing('root-sync', ['1060']);
      assert.equal((await at.configMap('enabled'))?.data?.['k'], 'theirs');
      await patch('enabled', { metadata: { annotations: { [MANAGER]: ':root' } } });
      await at.synced('root-sync', source.commit);
      assert.equal((await at.configMap('enabled'))?.data?.['k'], 'declared');
    },
  ],
  [
    'enabled, mutation: ignore',
    'changed, its metadata too',
    'its metadata alone is written',
    async () => {
      await patch('ignored', { metadata: { annotations: { [TOKEN]: null } }, data: { k: 'changed' } });
      await eventually('the metadata is back', () => annotation('ignored', TOKEN));
      assert.deepEqual((await at.configMap('ignored'))?.data, { k: 'changed' });
    },
  ],
  [
    'disabled',
    'none',
    'never made',
    async () => {
      await allIsLookedAt();
      assert.equal(await at.configMap('disabled'), undefined);
    },
  ],
  [
    'disabled',
    'ours',
    'let go',
    async () => {
      await make('disabled');
      await eventually('let go', async () =>
        (await at.configMap('disabled')) && (await annotation('disabled', MANAGER)) === undefined ? true : undefined,
      );
      assert.deepEqual((await at.configMap('disabled'))?.data, { k: 'made by hand' });
    },
  ],
  [
    'none',
    'ours, with an owner',
    'left to its owner',
    async () => {
      const { uid } = (await at.configMap('enabled'))!.metadata;
      await make('owned', { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'enabled', uid }] });
      await allIsLookedAt();
      assert.equal(await annotation('owned', MANAGER), ':root');
    },
  ],
  [
    'none',
    'ours, detached',
    'let go',
    async () => {
      await make('detached', { annotations: { 'client.lifecycle.config.k8s.io/deletion': 'detach' } });
      await eventually('let go', async () =>
        (await annotation('detached', MANAGER)) === undefined ? true : undefined,
      );
      assert.ok(await at.configMap('detached'));
    },
  ],
  ['none', 'ours', 'deleted', allIsLookedAt],
];
// S-974: What a watch brings is created, applied, let go, deleted, reported or left alone by upstream’s decision table.
for (const [declared, live, action, act] of ROWS) test(`declared: ${declared}; live: ${live}: ${action}`, act);

// S-974
test('TestSurfaceFightError: it is KNV2005 and counted; other objects are put back as before', async () => {
  for (let round = 0; round < 6; round++) {
    await patch('fought', { data: { k: `round ${round}` } });
    await eventually('put back', async () =>
      (await at.configMap('fought'))?.data?.['k'] === 'declared' ? true : undefined,
    );
  }
  const fighting = await at.failing('root-sync', ['2005']);
  assert.match(fighting.status?.sync?.errors?.[0]?.errorMessage ?? '', /ConfigMap, default\/fought/);
  const fights = metrics.families().find(({ name }) => name.endsWith('resource_fights_total'));
  assert.match(fights ? familyText(fights) : '', /resource_fights_total\{[^}]*\} [1-9]/);
  await patch('enabled', { data: { k: 'changed' } });
  await eventually('put back', async () =>
    (await at.configMap('enabled'))?.data?.['k'] === 'declared' ? true : undefined,
  );
});
