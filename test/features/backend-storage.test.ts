/** The claim that keeps a machine's firmware state: made, waited for, reported, used by the launcher, gone with its owner. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  PERSISTENT_VOLUME_CLAIMS,
  PODS,
  STORAGE_CLASSES,
} from '../../packages/apimachinery/src/types/resource-types.ts';
import type { PersistentVolumeClaim, StorageClass } from '../../packages/apimachinery/src/types/types.ts';
import { VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';

const namespace = 'default';
let cluster: FakeCluster;
before(async () => {
  cluster = await startFakeCluster({ nodes: ['node-1', 'node-2'] });
  for (const { metadata } of (await cluster.client.list(STORAGE_CLASSES)).items)
    await cluster.client.delete(STORAGE_CLASSES, { namespace: '', name: metadata.name ?? '' });
  // Until the controllers have seen it.
  await new Promise((wake) => setTimeout(wake, 300));
});
after(() => cluster.stop());

const firmware = { bootloader: { efi: { persistent: true, secureBoot: false } } };
const spec = { domain: { devices: {}, memory: { guest: '64Mi' }, firmware } };
const claims = async (): Promise<PersistentVolumeClaim[]> =>
  (await cluster.client.list(PERSISTENT_VOLUME_CLAIMS, { namespace })).items;
const claimOf = (name: string): Promise<PersistentVolumeClaim> =>
  eventually(`a claim of ${name}`, async () =>
    (await claims()).find(({ metadata }) => metadata.labels?.['persistent-state-for'] === name),
  );
/** What a volume controller does. */
const setPhase = (claim: PersistentVolumeClaim, phase: string): Promise<unknown> =>
  cluster.client.patch(
    PERSISTENT_VOLUME_CLAIMS,
    { namespace, name: claim.metadata.name ?? '' },
    { type: 'merge', body: { status: { phase, accessModes: claim.spec?.accessModes } } },
    { subresource: 'status' },
  );
const synchronized = (name: string, reason: string) =>
  cluster.untilVmi(
    name,
    reason,
    ({ status }) =>
      status?.conditions?.some(
        (one) => one.type === 'Synchronized' && one.status === 'False' && one.reason === reason,
      ) ?? false,
  );
const launcherVolumes = async (name: string) =>
  (await cluster.client.list(PODS, { namespace })).items
    .filter(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.name === name))
    .map(({ spec }) => spec.volumes?.map((volume) => [volume.name, volume.persistentVolumeClaim?.claimName]));
const storageClass = (name: string, annotations: Record<string, string>, more: object = {}): StorageClass =>
  ({
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name, annotations },
    provisioner: 'csi.example',
    ...more,
  }) as StorageClass;
const makeInstance = (name: string): Promise<unknown> =>
  cluster.client.create(VIRTUAL_MACHINE_INSTANCES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name, namespace },
    spec,
  });

// S-633: A machine whose TPM state or EFI variables shall last has a claim for them, made as upstream makes it: found
//   by its label, used by the launcher, reported in `volumeStatus`, gone with the machine; its instance says what it
//   waits for.
test('without a storage class the instance says why it waits; with one it goes on by itself', async () => {
  await makeInstance('lonely');
  await synchronized('lonely', 'FailedBackendStorageCreate');
  assert.ok((await cluster.events('lonely')).some((event) => event.includes('no default storage class found')));
  assert.deepEqual(await claims(), []);

  const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' };
  await cluster.client.create(STORAGE_CLASSES, storageClass('plain', annotations));
  const claim = await claimOf('lonely');
  assert.match(claim.metadata.name ?? '', /^persistent-state-for-lonely-/);
  assert.equal(claim.spec?.storageClassName, 'plain');
  assert.deepEqual(claim.spec?.accessModes, ['ReadWriteOnce']);
  assert.equal(claim.metadata.ownerReferences?.[0]?.kind, 'VirtualMachineInstance');
  await synchronized('lonely', 'BackendStorageNotReady');
  assert.deepEqual(await launcherVolumes('lonely'), [], 'no launcher before the claim is bound');

  await setPhase(claim, 'Bound');
  const running = await cluster.untilVmi('lonely', 'runs', ({ status }) => status?.phase === 'Running');
  assert.deepEqual(await launcherVolumes('lonely'), [[['persistent-state-for-this-vm', claim.metadata.name]]]);
  const reported = running.status?.volumeStatus?.find(({ name }) => name === 'persistent-state-for-this-vm');
  assert.equal(reported?.persistentVolumeClaimInfo?.claimName, claim.metadata.name);
  assert.deepEqual(reported?.persistentVolumeClaimInfo?.accessModes, ['ReadWriteOnce']);
  assert.equal((await claims()).length, 1);
});

// S-633
test("the claim of a machine is the machine's: it outlives the instance, and the next one uses it", async () => {
  const vm = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', metadata: { name: 'kept', namespace } };
  const template = { metadata: {}, spec };
  await cluster.client.create(VIRTUAL_MACHINES, { ...vm, spec: { runStrategy: 'Always', template } });
  const claim = await claimOf('kept');
  assert.deepEqual(
    claim.metadata.ownerReferences?.map(({ kind, name }) => [kind, name]),
    [['VirtualMachine', 'kept']],
  );
  await setPhase(claim, 'Bound');
  const first = await cluster.untilVmi('kept', 'runs', ({ status }) => status?.phase === 'Running');
  await cluster.client.delete(VIRTUAL_MACHINE_INSTANCES, { namespace, name: 'kept' });
  // Between the two there is none.
  await eventually('it runs again', async () => {
    const vmi = await cluster.vmi('kept').catch(() => undefined);
    return (vmi && vmi.metadata.uid !== first.metadata.uid && vmi.status?.phase === 'Running') || undefined;
  });
  const mine = (await claims()).filter(({ metadata }) => metadata.labels?.['persistent-state-for'] === 'kept');
  assert.deepEqual(
    mine.map(({ metadata }) => metadata.uid),
    [claim.metadata.uid],
  );
});

// S-633
test('a claim that is lost, and one that waits for its first consumer', async () => {
  const annotations = { 'storageclass.kubevirt.io/is-default-virt-class': 'true' };
  const late = storageClass('late', annotations, { volumeBindingMode: 'WaitForFirstConsumer' });
  await cluster.client.create(STORAGE_CLASSES, late);
  await makeInstance('early');
  const claim = await claimOf('early');
  assert.equal(claim.spec?.storageClassName, 'late', 'the default for machines comes first');
  await cluster.untilVmi('early', 'runs though its claim is not bound', ({ status }) => status?.phase === 'Running');
  await cluster.client.delete(STORAGE_CLASSES, { namespace: '', name: 'late' });

  await makeInstance('unlucky');
  await setPhase(await claimOf('unlucky'), 'Lost');
  const vmi = await synchronized('unlucky', 'FailedBackendStorageProbe');
  const why = vmi.status?.conditions?.find(({ type }) => type === 'Synchronized')?.message;
  assert.equal(why, 'backend storage PVC lost');
});

/** The claim that a migration fills, bound as a volume controller does. */
const boundTarget = async (migration: string): Promise<PersistentVolumeClaim> => {
  const claim = await eventually(`a claim of migration ${migration}`, async () =>
    (await claims()).find(({ metadata }) => metadata.labels?.['kubevirt.io/migrationName'] === migration),
  );
  assert.equal(claim.metadata.labels?.['persistent-state-for'], undefined);
  await setPhase(claim, 'Bound');
  return claim;
};
const namesOf = async (name: string): Promise<(string | undefined)[]> =>
  (await claims())
    // One on its way out waits for the end of the Pods that use it.
    .filter(({ metadata }) => !metadata.deletionTimestamp && metadata.name?.startsWith(`persistent-state-for-${name}-`))
    .map(({ metadata }) => metadata.name);

// S-636: A claim of firmware state that one node alone may open is followed by one of the target: labelled on success,
//   deleted where the migration fails; one that both may open serves both.
// S-680
test('a claim that one node alone may open moves with the guest, and stays where the migration fails', async () => {
  await makeInstance('mover');
  const source = await claimOf('mover');
  await setPhase(source, 'Bound');
  await cluster.untilVmi('mover', 'runs', ({ status }) => status?.phase === 'Running');

  for (const node of cluster.nodes.values()) {
    node.failure = 'the test wants it';
    node.holds.add('finish');
  }
  const failing = await cluster.migrate('mover');
  await boundTarget(failing);
  await cluster.untilPhase(failing, 'Failed');
  await eventually('the target claim is gone', async () => (await namesOf('mover')).length === 1 || undefined);
  assert.deepEqual(await namesOf('mover'), [source.metadata.name]);
  for (const node of cluster.nodes.values()) {
    node.failure = undefined;
    node.holds.delete('finish');
  }

  const migration = await cluster.migrate('mover');
  const target = await boundTarget(migration);
  await cluster.untilPhase(migration, 'Succeeded');
  const { migrationState } = (
    await cluster.client.get(VIRTUAL_MACHINE_INSTANCES, { namespace: 'default', name: 'mover' })
  ).status!;
  assert.deepEqual(
    [migrationState?.sourcePersistentStatePVCName, migrationState?.targetPersistentStatePVCName],
    [source.metadata.name, target.metadata.name],
  );
  await eventually('the source claim is gone', async () => (await namesOf('mover')).length === 1 || undefined);
  const [left] = (await claims()).filter(({ metadata }) => metadata.uid === target.metadata.uid);
  assert.equal(left?.metadata.labels?.['persistent-state-for'], 'mover');
  assert.equal(left?.metadata.labels?.['kubevirt.io/migrationName'], undefined);
  await cluster.untilVmi('mover', 'names the claim that it has now', ({ status }) =>
    (status?.volumeStatus ?? []).some(({ persistentVolumeClaimInfo: info }) => info?.claimName === left?.metadata.name),
  );
  const used = (await launcherVolumes('mover')).flat().map((volume) => volume?.[1]);
  assert.ok(used.includes(target.metadata.name), 'the launcher of the target has the new claim');
});

// S-636
test('a claim that both nodes may open serves both ends of a migration', async () => {
  const annotations = { 'storageclass.kubevirt.io/is-default-virt-class': 'true' };
  const pool = { ...storageClass('pool', annotations), provisioner: 'local.coracle.dev' };
  await cluster.client.create(STORAGE_CLASSES, pool);
  await eventually('the controllers see the class', async () => {
    const name = `shared-${Math.random().toString(36).slice(2, 8)}`;
    await makeInstance(name);
    const claim = await claimOf(name);
    if (claim.spec?.accessModes?.[0] !== 'ReadWriteMany') return undefined;
    await setPhase(claim, 'Bound');
    await cluster.untilVmi(name, 'runs', ({ status }) => status?.phase === 'Running');
    await cluster.untilPhase(await cluster.migrate(name), 'Succeeded');
    assert.deepEqual(await namesOf(name), [claim.metadata.name]);
    return true;
  });
});
