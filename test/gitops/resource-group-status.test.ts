/** What the inventory says of each object: resource_group_controller_test.go, status_enablement_test.go, override_reconcile_timeout_test.go. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CONFIG_MAPS } from '../../packages/apimachinery/src/types/resource-types.ts';
import {
  CONFIG_SYNC_NAMESPACE,
  RESOURCE_GROUPS,
  type ResourceGroup,
  type ResourceStatus,
  ROOT_SYNCS,
} from '../../packages/gitops/src/kinds/kinds.ts';
import { eventually } from '../testkit/eventually.ts';
import { configMapYaml, type GitOpsCluster, startGitOpsCluster } from '../testkit/gitops-cluster.ts';
import { createSources, deploymentYaml, setReady } from '../testkit/gitops-sources.ts';

const DEPENDS_ON = 'config.kubernetes.io/depends-on';
const HOLD = 'example.org/hold';
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
const groupOf = (sync: string) => at.find(RESOURCE_GROUPS, sync, CONFIG_SYNC_NAMESPACE);
const conditionOf = (group: ResourceGroup | undefined, type: string) =>
  group?.status?.conditions?.find((one) => one.type === type);
/** Waits until the inventory says this of an object: status, strategy, actuation, reconcile. */
const untilSaid = async (sync: string, name: string, said: readonly string[]): Promise<ResourceStatus> => {
  let last: readonly ResourceStatus[] | undefined;
  return eventually(`${sync}: ${name} is ${said.join()}`, async () => {
    last = (await groupOf(sync))?.status?.resourceStatuses;
    const found = last?.find((one) => one.name === name);
    const { status, strategy, actuation, reconcile } = found ?? {};
    return [status, strategy, actuation, reconcile].join() === said.join() ? found : undefined;
  }).catch((error: Error) => {
    throw new Error(`${error.message}: ${JSON.stringify(last)}`);
  });
};
const hold = (name: string, isHeld: boolean) =>
  at.client.patch(
    CONFIG_MAPS,
    { namespace: 'default', name },
    { type: 'merge', body: { metadata: { finalizers: isHeld ? [HOLD] : null } } },
  );

// S-975: The inventory says of each object how it is, what was done with it and how that ended, and follows it.
test('TestResourceGroupApplyStatus: it follows what is applied, how it is, and what is deleted', async () => {
  const { repository, url, commit } = await sources.of({
    'map.yaml': configMapYaml('rg-map', {}),
    'deployment.yaml': deploymentYaml('rg-deployment'),
    'goes.yaml': configMapYaml('rg-goes', {}),
  });
  await at.rootSync('rg', url);
  await at.synced('rg', commit);
  const map = await untilSaid('rg', 'rg-map', ['Current', 'Apply', 'Succeeded', 'Succeeded']);
  assert.equal(map.sourceHash, commit.slice(0, 7));
  await untilSaid('rg', 'rg-deployment', ['InProgress', 'Apply', 'Succeeded', 'Pending']);
  await setReady(at.client, 'rg-deployment');
  await untilSaid('rg', 'rg-deployment', ['Current', 'Apply', 'Succeeded', 'Succeeded']);
  const well = await groupOf('rg');
  assert.equal(well?.status?.observedGeneration, well?.metadata.generation);
  assert.deepEqual(
    well?.status?.conditions?.map(({ type, status }) => [type, status]),
    [
      ['Reconciling', 'False'],
      ['Stalled', 'False'],
    ],
  );

  await setReady(at.client, 'rg-deployment', { available: false, reason: 'ProgressDeadlineExceeded' });
  await untilSaid('rg', 'rg-deployment', ['Failed', 'Apply', 'Succeeded', 'Failed']);
  const stalled = await eventually('the group is stalled', async () => {
    const group = await groupOf('rg');
    return conditionOf(group, 'Stalled')?.status === 'True' ? group : undefined;
  });
  assert.match(conditionOf(stalled, 'Stalled')?.message ?? '', /rg-deployment/);

  await hold('rg-goes', true);
  await at.synced('rg', await repository.commit({ 'goes.yaml': null }));
  await untilSaid('rg', 'rg-goes', ['Terminating', 'Delete', 'Succeeded', 'Pending']);
  await hold('rg-goes', false);
  await eventually('its entry is gone', async () =>
    (await at.inventory('rg'))?.every(({ name }) => name !== 'rg-goes') ? true : undefined,
  );
});

// S-975
test('what failed and what was skipped: named when it was there before, and not when it never was', async () => {
  const { repository, url, commit } = await sources.of({
    'needed.yaml': configMapYaml('rg-needed', {}),
    'needs.yaml': configMapYaml('rg-needs', {}),
  });
  await at.rootSync('rg-skips', url, { spec: { override: { reconcileTimeout: '1s' } } });
  await at.synced('rg-skips', commit);
  const never = { annotations: { [DEPENDS_ON]: '/namespaces/default/ConfigMap/rg-never' } };
  await repository.commit({
    'needs.yaml': configMapYaml('rg-needs', {}, never),
    'new.yaml': configMapYaml('rg-new', {}, never),
    'needed.yaml': configMapYaml('rg-needed', {}, { labels: { x: 'not a label' } }),
  });
  await at.failing('rg-skips', ['2009', '2009', '2009']);
  await untilSaid('rg-skips', 'rg-needs', ['Unknown', 'Apply', 'Skipped', 'Skipped']);
  await untilSaid('rg-skips', 'rg-needed', ['Unknown', 'Apply', 'Failed', 'Skipped']);
  assert.deepEqual((await at.inventory('rg-skips'))?.map(({ name }) => name).sort(), ['rg-needed', 'rg-needs']);
});

// S-975
test('TestStatusEnabledAndDisabled: without it single objects have none, and have it again afterwards', async () => {
  const { url, commit } = await sources.of({ 'map.yaml': configMapYaml('rg-mode', {}) });
  await at.rootSync('rg-mode', url, { spec: { override: { statusMode: 'disabled' } } });
  await at.synced('rg-mode', commit);
  const said = async () => {
    const group = await groupOf('rg-mode');
    return [group?.metadata.annotations?.['configsync.gke.io/status'], group?.status?.resourceStatuses?.length ?? 0];
  };
  const until = (wanted: readonly unknown[]) =>
    eventually(`it says ${wanted.join()}`, async () => ((await said()).join() === wanted.join() ? true : undefined));
  await until(['disabled', 0]);
  const say = (statusMode: string) =>
    at.client.patch(
      ROOT_SYNCS,
      { namespace: CONFIG_SYNC_NAMESPACE, name: 'rg-mode' },
      { type: 'merge', body: { spec: { override: { statusMode } } } },
    );
  await say('enabled');
  await until(['enabled', 1]);
  await say('disabled');
  await until(['disabled', 0]);
});

// S-975
test('TestOverrideReconcileTimeout: who waits for what is not ready in time is skipped; with more time it is applied', async () => {
  const { url, commit } = await sources.of({
    'slow.yaml': deploymentYaml('rg-slow'),
    'waits.yaml': configMapYaml(
      'rg-waits',
      {},
      {
        annotations: { [DEPENDS_ON]: 'apps/namespaces/default/Deployment/rg-slow' },
      },
    ),
  });
  await at.rootSync('rg-timeout', url, { spec: { override: { reconcileTimeout: '1s' } } });
  await at.failing('rg-timeout', ['2009']);
  assert.equal(await at.configMap('rg-waits'), undefined);
  await at.client.patch(
    ROOT_SYNCS,
    { namespace: CONFIG_SYNC_NAMESPACE, name: 'rg-timeout' },
    { type: 'merge', body: { spec: { override: { reconcileTimeout: '5m' } } } },
  );
  await at.until('rg-timeout', 'syncing again', ({ status }) =>
    Boolean(status?.conditions?.some(({ type, status: value }) => type === 'Syncing' && value === 'True')),
  );
  await setReady(at.client, 'rg-slow');
  await at.synced('rg-timeout', commit);
  await untilSaid('rg-timeout', 'rg-waits', ['Current', 'Apply', 'Succeeded', 'Succeeded']);
});
