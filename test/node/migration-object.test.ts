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
import { heartbeat, type MigrationBoard, startMigrationBoard } from './migration-board.ts';

let board: MigrationBoard;
before(async () => {
  board = await startMigrationBoard({ controller: true });
});
after(() => board?.close());

// S-194
test('a VirtualMachineInstanceMigration moves a real guest, from Pending to Succeeded', {
  timeout: 240_000,
}, async () => {
  await board.createVmi('mover', kernelSpec());
  const vmi = await board.until('mover', 'running', ({ status }) => status?.phase === 'Running');
  const beats = await heartbeat(vmi);
  const source = vmi.status?.nodeName ?? '';
  await board.client.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name: 'move', namespace: NAMESPACE },
    spec: { vmiName: 'mover' },
  } as unknown as VirtualMachineInstanceMigration);
  let last: VirtualMachineInstanceMigration | undefined;
  await eventually('the migration is over', async () => {
    last = await board.client.get(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { namespace: NAMESPACE, name: 'move' });
    return last.status?.phase === 'Succeeded' || last.status?.phase === 'Failed';
  }).catch(async (error: Error) => {
    throw new Error(
      `${error.message}: ${JSON.stringify(last?.status)} ${JSON.stringify((await board.vmi('mover')).status?.migrationState)}`,
    );
  });
  assert.equal(last?.status?.phase, 'Succeeded', JSON.stringify(last?.status));
  const phases = last?.status?.phaseTransitionTimestamps?.map(({ phase }) => phase);
  assert.deepEqual(
    phases?.filter((phase) => phase === 'TargetReady' || phase === 'Running' || phase === 'Succeeded').at(-1),
    'Succeeded',
  );
  const moved = await board.vmi('mover');
  assert.notEqual(moved.status?.nodeName, source);
  assert.equal(moved.status?.phase, 'Running');
  assert.ok((await heartbeat(moved)) >= beats, 'another boot');
  await eventually('one QEMU is left', async () => (await board.qemus(moved)).size === 1);
  assert.deepEqual([...(await board.qemus(moved)).keys()], [moved.status?.nodeName]);
});

// S-405: The annotations by which KubeVirt's tests make launchers fail or wait act where gate `FunctionalTestHooks` is
//   on, and there alone; a migration that fails keeps the mark of an eviction.
test("hooks of KubeVirt's own tests: where the gate is on, launchers fail and wait as those say", {
  timeout: 240_000,
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

// S-405
test('a launcher that is to fail fast fails before there is a guest, where the gate is on', async () => {
  const { client } = board;
  const gate = { spec: { configuration: { developerConfiguration: { featureGates: ['FunctionalTestHooks'] } } } };
  await client.patch(KUBEVIRTS, { namespace: 'kubevirt', name: 'kubevirt' }, { type: 'merge', body: gate });
  await eventually('the gate is seen', async () => {
    const name = `fast-${Math.random().toString(36).slice(2, 8)}`;
    await client.create(VIRTUAL_MACHINE_INSTANCES, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: { name, namespace: NAMESPACE, annotations: { 'kubevirt.io/func-test-virt-launcher-fail-fast': '' } },
      spec: kernelSpec({ terminationGracePeriodSeconds: 0 }),
    });
    const ended = await board.until(name, 'decided', ({ status }) =>
      ['Failed', 'Running'].includes(status?.phase ?? ''),
    );
    await client.delete(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name });
    return ended.status?.phase === 'Failed';
  });
});

// S-286: A node that cannot prove its name sends no guest and takes none, and says why.
test('a node that cannot prove its name sends no guest and takes none, and says why', {
  timeout: 240_000,
}, async () => {
  const why = 'certificate request x was refused: because';
  const reported = `the agent of this node has no certificate to prove its name to other nodes with: ${why}`;
  const decided = (status: string) =>
    board.until('mover', `LiveMigratable ${status}`, (vmi) =>
      (vmi.status?.conditions ?? []).some((one) => one.type === 'LiveMigratable' && one.status === status),
    );
  const at = (await decided('True')).status?.nodeName ?? '';
  const other = board.nodes.find((node) => node !== at) ?? '';
  const move = (name: string): Promise<VirtualMachineInstanceMigration> =>
    board.client.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstanceMigration',
      metadata: { name, namespace: NAMESPACE },
      spec: { vmiName: 'mover' },
    } as unknown as VirtualMachineInstanceMigration);

  board.obstructPeer(at, why);
  const stuck = await decided('False');
  const condition = stuck.status?.conditions?.find(({ type }) => type === 'LiveMigratable');
  assert.deepEqual([condition?.reason, condition?.message], ['NodeNotLiveMigratable', reported]);
  await assert.rejects(move('refused'), new RegExp(why));
  board.obstructPeer(at, undefined);
  await decided('True');

  const failed = (name: string): Promise<unknown> =>
    eventually(`${name} has failed`, async () => {
      const key = { namespace: NAMESPACE, name };
      return (await board.client.get(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, key)).status?.phase === 'Failed';
    });
  await move('unsent');
  board.obstructPeer(at, why);
  await failed('unsent');
  assert.equal((await board.vmi('mover')).status?.migrationState?.failureReason, reported);
  board.obstructPeer(at, undefined);
  await decided('True');
  for (const { metadata, status } of await board.launchers('mover'))
    if (status?.phase === 'Failed') await board.removePod(metadata.name ?? '');

  board.obstructPeer(other, why);
  await move('untaken');
  await failed('untaken');
  const ended = (await board.launchers('mover')).find(({ status }) => status?.phase === 'Failed');
  assert.deepEqual([ended?.status?.reason, ended?.status?.message], ['MigrationNotSupported', reported]);
  assert.equal((await board.vmi('mover')).status?.nodeName, at);
  board.obstructPeer(other, undefined);
});
