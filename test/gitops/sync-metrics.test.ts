/** What a sync leaves behind for those who watch it: metrics with upstream's names, a history, `nomos status`. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CONFIG_MAPS, EVENTS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { clusterState } from '../../packages/coracle/src/cli/nomos/cluster-state.ts';
import { statusText } from '../../packages/coracle/src/cli/nomos/status-text.ts';
import { CONFIG_SYNC_NAMESPACE, ROOT_SYNCS, type Sync } from '../../packages/gitops/src/kinds/kinds.ts';
import { attemptsOf } from '../../packages/gitops/src/status/sync-history.ts';
import { createGitOpsMetrics } from '../../packages/gitops/src/status/sync-metrics.ts';
import { familyText } from '../../packages/runtime/src/metrics/metric-family.ts';
import { eventually } from '../testkit/eventually.ts';
import { createRepository, type GitRepository } from '../testkit/git-repository.ts';
import { configMapYaml, type GitOpsCluster, startGitOpsCluster } from '../testkit/gitops-cluster.ts';

let at: GitOpsCluster;
let repository: GitRepository;
const metrics = createGitOpsMetrics();
before(async () => {
  at = await startGitOpsCluster({ metrics });
  repository = await createRepository();
});
after(async () => {
  await at.stop();
  repository.remove();
  assert.deepEqual(at.cluster.errors, []);
});

const OWN =
  'configsync_sync_kind="RootSync",configsync_sync_name="root-sync",configsync_sync_namespace="config-management-system"';
/** The value of a sample of the sync; undefined when there is none. */
const sample = (name: string, labels: string): number | undefined => {
  const lines = metrics.families().map(familyText).join('').split('\n');
  const found = lines.find((line) => line.startsWith(`config_sync_${name}{${labels}} `));
  return found === undefined ? undefined : Number(found.split(' ').at(-1));
};
const own = (name: string, more = ''): number | undefined => sample(name, more === '' ? OWN : `${OWN},${more}`);
const status = async (): Promise<string> => {
  const value = await clusterState(at.client, { resources: true }, AbortSignal.timeout(60_000));
  return statusText([{ name: 'here', isCurrent: true, answer: { value } }], { history: true });
};
const history = (sync: Sync) => attemptsOf(sync).map(({ commit, result, codes }) => [commit, result, codes.join()]);

// S-943: Each attempt of a sync is in its metrics (upstream's names and labels, the newest commit alone), in an event,
//   in the history of the sync and in `coracle nomos status`; what is repaired is no longer an error in any of them,
//   and a sync that is gone is in none.
test('metrics, history, events and nomos status tell of a sync that goes well, fails and is repaired', async () => {
  const first = await repository.commit({
    'n.yaml': 'apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n',
    'a.yaml': configMapYaml('a', { k: '1' }, { namespace: 'shop' }),
  });
  await at.rootSync('root-sync', repository.url);
  await at.synced('root-sync', first);
  await at.until('root-sync', 'has a history', (sync) => attemptsOf(sync).length === 1);
  await eventually('the attempt is counted', async () =>
    own('declared_resources', `commit="${first}"`) === 2 ? true : undefined,
  );
  assert.equal(own('pipeline_error_observed', 'name="root-sync",reconciler="root-reconciler",component="sync"'), 0);
  assert.ok((own('last_sync_timestamp', `commit="${first}",status="success"`) ?? 0) > 1_600_000_000);
  assert.equal(own('apply_operations_total', 'controller="applier",operation="patch",status="success"'), 2);
  assert.ok(own('reconcile_duration_seconds_count', 'status="success"'));
  for (const source of ['read', 'parse', 'update'])
    assert.equal(own('parser_duration_seconds_count', `status="success",trigger="reimport",source="${source}"`), 1);
  const group = `resourcegroup="${CONFIG_SYNC_NAMESPACE}/root-sync"`;
  assert.deepEqual(
    ['resource_count', 'ready_resource_count', 'resource_ns_count', 'cluster_scoped_resource_count'].map((name) =>
      sample(name, group),
    ),
    [2, 2, 1, 1],
  );
  assert.match(
    await status(),
    new RegExp(
      [
        String.raw`^\*here\n  -{20}\n  <root>:root-sync    file://\S+@main\n  SYNCED @ \S+ \S+ \+0000 UTC    ${first}\n`,
        String.raw`  Managed resources:\n        NAMESPACE   NAME             STATUS    SOURCEHASH\n`,
        String.raw` {20}namespace/shop   Current   ${first.slice(0, 7)}\n        shop        configmap/a      Current   ${first.slice(0, 7)}\n`,
        String.raw`  Last attempts:\n`,
      ].join(''),
    ),
  );

  await at.client.patch(CONFIG_MAPS, { namespace: 'shop', name: 'a' }, { type: 'merge', body: { data: { k: 'x' } } });
  await eventually('drift is put back and counted', async () =>
    own('apply_operations_total', 'controller="remediator",operation="patch",status="success"') ? true : undefined,
  );

  const second = await repository.commit({ 'bad.yaml': 'a: [' });
  await at.failing('root-sync', ['1006']);
  const failed = await at.until('root-sync', 'has it in its history', (sync) => attemptsOf(sync)[0]?.commit === second);
  assert.equal(attemptsOf(failed)[0]?.result, 'Failed');
  assert.ok(own('reconciler_errors', 'component="source",errorclass="1xxx"'));
  assert.equal(own('pipeline_error_observed', 'name="root-sync",reconciler="root-reconciler",component="source"'), 1);
  assert.equal(own('declared_resources', `commit="${first}"`), undefined, 'of the newest commit alone');
  assert.match(
    await status(),
    new RegExp(String.raw`\n  ERROR    ${second}\n  TotalErrorCount: \d\n  Error:    KNV1006: `),
  );

  const third = await repository.commit({ 'bad.yaml': null });
  await at.synced('root-sync', third);
  const repaired = await at.until('root-sync', 'has three', (sync) => attemptsOf(sync)[0]?.commit === third);
  const [newest, , oldest] = [history(repaired)[0], undefined, history(repaired).at(-1)];
  assert.deepEqual(
    [newest, oldest],
    [
      [third, 'Synced', ''],
      [first, 'Synced', ''],
    ],
  );
  const events = await eventually('events of each', async () => {
    const { items } = await at.client.list(EVENTS, { namespace: CONFIG_SYNC_NAMESPACE });
    const reasons = items.map(({ reason, message }) => `${reason} ${message}`);
    return reasons.some((text) => text.startsWith('SyncFailed') && text.includes(second)) &&
      reasons.some((text) => text === `Synced synced commit ${third}`)
      ? reasons
      : undefined;
  });
  assert.ok(events.some((text) => text === `Synced synced commit ${first}`));
});

// S-943
test('a sync that is gone is in no metric, and nomos status says that there is none', async () => {
  await at.client.delete(ROOT_SYNCS, { namespace: CONFIG_SYNC_NAMESPACE, name: 'root-sync' });
  await at.gone(ROOT_SYNCS, 'root-sync', CONFIG_SYNC_NAMESPACE);
  await eventually('its gauges are gone', async () =>
    metrics.families().some(({ name, samples }) => name.endsWith('declared_resources') && samples.length > 0)
      ? undefined
      : true,
  );
  assert.equal(
    await status(),
    '*here\n  --------------------\n  UNKNOWN\n  Error:    no RootSync or RepoSync resources found',
  );
});
