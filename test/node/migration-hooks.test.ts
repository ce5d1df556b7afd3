/** The hooks by which KubeVirt's own tests make migrations of real guests fail or wait. */
// test:full: six migrations, one after the other.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  KUBEVIRTS,
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  type VirtualMachineInstanceMigration,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { kernelSpec, NAMESPACE } from './board.ts';
import { type MigrationBoard, startMigrationBoard } from './migration-board.ts';

let board: MigrationBoard;
before(async () => {
  board = await startMigrationBoard({ controller: true });
});
after(() => board?.close());

// S-405
test("hooks of KubeVirt's own tests: where the gate is on, launchers fail and wait as those say", {
  timeout: 600_000,
}, async () => {
  const { client } = board;
  const hook = (name: string): string => `kubevirt.io/func-test-${name}`;
  const setGate = (featureGates: string[]): Promise<unknown> =>
    client.patch(
      KUBEVIRTS,
      { namespace: 'kubevirt', name: 'kubevirt' },
      { type: 'merge', body: { spec: { configuration: { developerConfiguration: { featureGates } } } } },
    );
  const annotate = (annotations: Record<string, string | null>): Promise<unknown> =>
    client.patch(
      VIRTUAL_MACHINE_INSTANCES,
      { namespace: NAMESPACE, name: 'hooked' },
      { type: 'merge', body: { metadata: { annotations } } },
    );
  const migrate = (name: string, annotations: Record<string, string> = {}): Promise<unknown> =>
    client.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstanceMigration',
      metadata: { name, namespace: NAMESPACE, annotations },
      spec: { vmiName: 'hooked' },
    } as unknown as VirtualMachineInstanceMigration);
  const reaches = async (name: string, phase: string): Promise<void> => {
    let last: string | undefined;
    await eventually(`${name} ${phase}`, async () => {
      last = (await client.get(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { namespace: NAMESPACE, name })).status?.phase;
      return last === phase;
    }).catch((error: Error) => assert.fail(`${error.message}: ${last}`));
  };
  const targetOf = async (migration: string) =>
    (await board.launchers('hooked')).find(
      ({ metadata }) => metadata.annotations?.['kubevirt.io/migrationJobName'] === migration,
    );
  await board.createVmi('hooked', kernelSpec({ evictionStrategy: 'LiveMigrate', terminationGracePeriodSeconds: 0 }));
  const vmi = await board.until('hooked', 'running', ({ status }) => status?.phase === 'Running');
  const node = vmi.status?.nodeName;
  await setGate(['FunctionalTestHooks']);

  await annotate({ [hook('force-launcher-migration-failure')]: '' });
  await migrate('forced');
  await reaches('forced', 'Failed');
  const { migrationState } = (await board.vmi('hooked')).status ?? {};
  assert.match(migrationState?.failureReason ?? '', /Failed migration to satisfy functional test condition/);
  assert.ok(migrationState?.startTimestamp && migrationState.endTimestamp && migrationState.targetNodeAddress);
  assert.deepEqual([migrationState.failed, migrationState.completed], [true, true]);

  // An eviction whose migrations fail: the mark, its condition and the note on the Pod stay, and it is tried again.
  const source = (await board.launchers('hooked')).find(({ spec }) => spec.nodeName === node);
  await client
    .raw('POST', `/api/v1/namespaces/${NAMESPACE}/pods/${source?.metadata.name}/eviction`, {
      body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: source?.metadata.name } },
    })
    .catch(() => undefined);
  await eventually('a migration of the eviction has failed', async () =>
    (await client.list(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { namespace: NAMESPACE })).items.some(
      ({ metadata, spec, status }) =>
        metadata.annotations?.['kubevirt.io/evacuationMigration'] === node &&
        spec.priority === 'system-critical' &&
        status?.phase === 'Failed',
    ),
  );
  const marked = await board.vmi('hooked');
  assert.equal(marked.status?.evacuationNodeName, node);
  assert.ok(marked.status?.conditions?.some(({ type, status }) => type === 'EvictionRequested' && status === 'True'));
  const kept = (await board.launchers('hooked')).find(({ metadata }) => metadata.uid === source?.metadata.uid);
  assert.ok(kept?.metadata.annotations?.['descheduler.alpha.kubernetes.io/eviction-in-progress']);
  await board.patchStatus('hooked', { evacuationNodeName: null });
  for (const { metadata } of (await client.list(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { namespace: NAMESPACE })).items)
    if (metadata.annotations?.['kubevirt.io/evacuationMigration'] !== undefined)
      await client.delete(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { namespace: NAMESPACE, name: metadata.name ?? '' });
  await eventually('no migration is under way', async () =>
    (await client.list(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { namespace: NAMESPACE })).items.every(
      ({ status }) => status?.phase === 'Failed' || status?.phase === 'Succeeded',
    ),
  );

  await annotate({
    [hook('force-launcher-migration-failure')]: null,
    [hook('block-migration-target-preparation')]: '',
  });
  await migrate('blocked');
  await reaches('blocked', 'PreparingTarget');
  await board.removePod((await targetOf('blocked'))?.metadata.name ?? '');
  await reaches('blocked', 'Failed');

  await annotate({ [hook('block-migration-target-preparation')]: null });
  await migrate('no-image', {
    [hook('migration-target-image-override')]: 'registry.invalid/none:1',
    'kubevirt.io/migrationPendingPodTimeoutSeconds': '2',
  });
  await eventually('the image is missed', async () => {
    const target = await targetOf('no-image');
    const compute = target?.status?.containerStatuses?.find(({ name }) => name === 'compute');
    return compute?.state?.waiting?.reason === 'ErrImagePull' && target?.status?.phase === 'Pending';
  });
  await reaches('no-image', 'Failed');
  assert.equal((await board.vmi('hooked')).status?.nodeName, node);

  // Without the gate they are annotations like any other.
  await annotate({ [hook('force-launcher-migration-failure')]: '', [hook('block-migration-target-preparation')]: '' });
  await setGate([]);
  await migrate('plain');
  await reaches('plain', 'Succeeded');
  await client.delete(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name: 'hooked' });
});
