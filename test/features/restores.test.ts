/** Restores of virtual machines over the API: in place, under new names, to a new machine; what waits, what is refused. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  CONTROLLER_REVISIONS,
  PERSISTENT_VOLUME_CLAIMS,
} from '../../packages/apimachinery/src/types/resource-types.ts';
import {
  VIRTUAL_MACHINE_CLUSTER_INSTANCETYPES,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINES,
  type VirtualMachineRestore,
  type VirtualMachineSnapshotContent,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { legacyFirmwareUuid } from '../../packages/kubevirt/src/rules/identity/firmware-identity.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';
import { key, type SavedMachines, savedMachines } from '../testkit/saved-machines.ts';
import { playStorage, type StoragePlayer } from '../testkit/storage-player.ts';

let cluster: FakeCluster;
let storage: StoragePlayer;
let words: SavedMachines;
before(async () => {
  cluster = await startFakeCluster({
    nodes: ['node-1'],
    components: 'vm,vmi,scheduler,snapshot,garbage-collector-controller,persistentvolumeclaim-protection-controller',
  });
  storage = playStorage(cluster.client);
  words = savedMachines(cluster.client);
});
after(async () => {
  await storage.stop();
  await cluster.stop();
  assert.deepEqual(cluster.errors, []);
});

const claimsOf = async (vm: string): Promise<(string | undefined)[]> =>
  ((await words.vm(vm)).spec.template.spec?.volumes ?? []).map(
    ({ persistentVolumeClaim, containerDisk }) => persistentVolumeClaim?.claimName ?? containerDisk?.image,
  );
const reason = ({ status }: VirtualMachineRestore, type: string): string | undefined => {
  const found = status?.conditions?.find((each) => each.type === type);
  return found && `${found.status} ${found.reason}`;
};
const isFree = async (vm: string): Promise<void> => {
  assert.equal((await words.vm(vm)).status?.restoreInProgress, undefined);
};
const run = async (vm: string): Promise<void> => {
  await cluster.client.patch(VIRTUAL_MACHINES, key(vm), { type: 'merge', body: { spec: { runStrategy: 'Always' } } });
  await eventually(`${vm} runs`, async () => {
    const vmi = await cluster.client.get(VIRTUAL_MACHINE_INSTANCES, key(vm)).catch(() => undefined);
    return vmi?.status?.phase === 'Running' ? vmi : undefined;
  });
};

// S-567: A restore brings back the machine it was taken of on new claims, and keeps its run strategy, its metadata and
//   its identity.
test('the machine that was saved comes back as it was, on new claims, with its run strategy and its identity', async () => {
  const vm = await words.machine('same', ['same-a', 'same-b']);
  await words.snapshot('s-same', 'same');
  const snapshot = await words.saved('s-same');
  await cluster.client.patch(VIRTUAL_MACHINES, key('same'), {
    type: 'merge',
    body: {
      metadata: { labels: { later: 'yes' } },
      spec: { runStrategy: 'Manual', template: { spec: { domain: { memory: { guest: '96Mi' } } } } },
    },
  });
  storage.restoreSize = '2Gi';
  const { metadata } = await words.restore('r-same', 's-same', 'same');
  const restore = await words.restored('r-same');
  storage.restoreSize = undefined;
  const now = await words.vm('same');
  assert.equal(reason(restore, 'Ready'), 'True Operation complete');
  assert.equal(reason(restore, 'Progressing'), 'False Operation complete');
  assert.deepEqual(restore.status?.restores, [
    {
      volumeName: 'a',
      persistentVolumeClaim: `restore-${metadata.uid}-a`,
      volumeSnapshotName: `vmsnapshot-${snapshot.metadata.uid}-volume-a`,
    },
    {
      volumeName: 'b',
      persistentVolumeClaim: `restore-${metadata.uid}-b`,
      volumeSnapshotName: `vmsnapshot-${snapshot.metadata.uid}-volume-b`,
    },
  ]);
  assert.deepEqual(await claimsOf('same'), [`restore-${metadata.uid}-a`, `restore-${metadata.uid}-b`, 'tiny']);
  assert.equal(now.spec.runStrategy, 'Manual');
  assert.equal(now.spec.template.spec?.domain.memory?.guest, '64Mi');
  assert.deepEqual(now.metadata.labels, { app: 'same', later: 'yes' });
  assert.equal(now.metadata.uid, vm.metadata.uid);
  assert.deepEqual(now.spec.template.spec?.domain.firmware, vm.spec.template.spec?.domain.firmware);
  assert.equal(now.metadata.annotations?.['restore.kubevirt.io/lastRestoreUID'], `r-same-${metadata.uid}`);
  await isFree('same');
  const claim = await cluster.client.get(PERSISTENT_VOLUME_CLAIMS, key(`restore-${metadata.uid}-a`));
  assert.equal(claim.metadata.ownerReferences?.[0]?.uid, vm.metadata.uid);
  assert.equal(claim.metadata.annotations?.['restore.kubevirt.io/name'], 'r-same');
  assert.deepEqual(claim.spec?.dataSource, {
    apiGroup: 'snapshot.storage.k8s.io',
    kind: 'VolumeSnapshot',
    name: `vmsnapshot-${snapshot.metadata.uid}-volume-a`,
  });
  assert.equal(restore.metadata.ownerReferences?.[0]?.uid, vm.metadata.uid);
});

// S-568: A restore in place changes neither the spec of the machine nor the names of its claims.
test('InPlace: neither the spec nor the names of the claims change', async () => {
  await cluster.client.create(VIRTUAL_MACHINE_CLUSTER_INSTANCETYPES, {
    apiVersion: 'instancetype.kubevirt.io/v1beta1',
    kind: 'VirtualMachineClusterInstancetype',
    metadata: { name: 'small' },
    spec: { cpu: { guest: 1 }, memory: { guest: '64Mi' } },
  });
  await words.claim('git-a');
  await words.machine('git', [], {
    instancetype: { name: 'small' },
    template: {
      spec: { domain: { devices: {} }, volumes: [{ name: 'a', persistentVolumeClaim: { claimName: 'git-a' } }] },
    },
  });
  const before = await words.until(
    VIRTUAL_MACHINES,
    'git',
    ({ status }) => !!status?.instancetypeRef?.controllerRevisionRef?.name,
  );
  const claim = await cluster.client.get(PERSISTENT_VOLUME_CLAIMS, key('git-a'));
  await words.snapshot('s-git', 'git');
  await words.saved('s-git');
  await words.restore('r-git', 's-git', 'git', { volumeRestorePolicy: 'InPlace' });
  await words.restored('r-git');
  const now = await words.vm('git');
  assert.deepEqual(now.spec, before.spec);
  assert.deepEqual(now.status?.instancetypeRef, before.status?.instancetypeRef);
  const replaced = await cluster.client.get(PERSISTENT_VOLUME_CLAIMS, key('git-a'));
  assert.notEqual(replaced.metadata.uid, claim.metadata.uid);
  assert.equal(replaced.spec?.dataSource?.kind, 'VolumeSnapshot');
});

// S-572: An instance type that was changed or deleted since comes back with the snapshot that was taken before.
test('an instance type that has changed since comes back as it was saved', async () => {
  await cluster.client.create(VIRTUAL_MACHINE_CLUSTER_INSTANCETYPES, {
    apiVersion: 'instancetype.kubevirt.io/v1beta1',
    kind: 'VirtualMachineClusterInstancetype',
    metadata: { name: 'medium' },
    spec: { cpu: { guest: 1 }, memory: { guest: '64Mi' } },
  });
  await words.machine('typed', [], {
    instancetype: { name: 'medium' },
    template: { spec: { domain: { devices: {} } } },
  });
  await words.until(VIRTUAL_MACHINES, 'typed', ({ status }) => !!status?.instancetypeRef?.controllerRevisionRef?.name);
  await words.snapshot('s-typed', 'typed');
  await words.saved('s-typed');
  await cluster.client.delete(VIRTUAL_MACHINE_CLUSTER_INSTANCETYPES, { namespace: '', name: 'medium' });
  await cluster.client.patch(VIRTUAL_MACHINES, key('typed'), {
    type: 'merge',
    body: { spec: { instancetype: { name: 'small' } } },
  });
  await words.until(VIRTUAL_MACHINES, 'typed', ({ status }) => status?.instancetypeRef?.name === 'small');
  await words.restore('r-typed', 's-typed', 'typed');
  await words.restored('r-typed');
  const vm = await words.until(VIRTUAL_MACHINES, 'typed', ({ status }) => status?.instancetypeRef?.name === 'medium');
  assert.equal(vm.spec.instancetype?.name, 'medium');
  assert.equal(vm.spec.instancetype?.revisionName, undefined);
  const name = vm.status?.instancetypeRef?.controllerRevisionRef?.name ?? '';
  const revision = await cluster.client.get(CONTROLLER_REVISIONS, key(name));
  assert.equal((revision.data as { metadata: { name: string } }).metadata.name, 'medium');
  assert.equal(revision.metadata.ownerReferences?.[0]?.uid, vm.metadata.uid);

  await words.restore('r-typed-new', 's-typed', 'typed-new');
  await words.restored('r-typed-new');
  const made = await words.vm('typed-new');
  const own = await cluster.client.get(CONTROLLER_REVISIONS, key(made.spec.instancetype?.revisionName ?? ''));
  assert.equal(own.metadata.ownerReferences?.[0]?.uid, made.metadata.uid);
});

// Compat KubeVirt's API, P1, yes: VirtualMachineRestore: target that is there, new target, policies, overrides,
//   patches, owners
test('a new machine: halted, with a new identity, its patches and claims of its own', async () => {
  const source = await words.machine('first', ['first-a', 'first-b'], undefined);
  await words.snapshot('s-first', 'first');
  await words.saved('s-first');
  await words.restore('r-second', 's-first', 'second', {
    volumeRestorePolicy: 'PrefixTargetName',
    volumeRestoreOverrides: [
      { volumeName: 'b', restoreName: 'named-by-hand', labels: { disk: 'b' }, annotations: { x: 'y' } },
    ],
    patches: ['{"op": "add", "path": "/metadata/annotations/copy", "value": "a,b:c"}'],
  });
  await words.restored('r-second');
  const made = await words.vm('second');
  assert.equal(made.spec.runStrategy, 'Halted');
  assert.deepEqual(made.metadata.labels, { app: 'first' });
  assert.equal(made.metadata.annotations?.['copy'], 'a,b:c');
  assert.deepEqual(await claimsOf('second'), ['second-a', 'named-by-hand', 'tiny']);
  const [was, is] = [source, made].map((vm) => vm.spec.template.spec?.domain.firmware);
  assert.match(is?.uuid ?? '', /^[0-9a-f-]{36}$/);
  assert.notEqual(is?.uuid, was?.uuid);
  assert.notEqual(is?.serial, was?.serial);
  const claim = await cluster.client.get(PERSISTENT_VOLUME_CLAIMS, key('named-by-hand'));
  assert.equal(claim.metadata.labels?.['disk'], 'b');
  assert.equal(claim.metadata.annotations?.['x'], 'y');
  assert.equal(claim.metadata.ownerReferences?.[0]?.uid, made.metadata.uid);

  await words.restore('r-third', 's-first', 'third', { volumeOwnershipPolicy: 'None' });
  const third = await words.restored('r-third');
  const free = await cluster.client.get(
    PERSISTENT_VOLUME_CLAIMS,
    key(third.status?.restores?.[0]?.persistentVolumeClaim ?? ''),
  );
  assert.equal(free.metadata.ownerReferences, undefined);
});

/** A ready snapshot as a server from before UUIDs were written down has left it. */
async function oldSnapshot(name: string, vm: string, sourceUID: string): Promise<VirtualMachineSnapshotContent> {
  const api = { apiVersion: 'snapshot.kubevirt.io/v1beta1' };
  const content = await cluster.client.create(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, {
    ...api,
    kind: 'VirtualMachineSnapshotContent',
    metadata: { name: `c-${name}`, namespace: 'default' },
    spec: {
      virtualMachineSnapshotName: name,
      source: {
        virtualMachine: {
          metadata: { name: vm, namespace: 'default' },
          spec: { runStrategy: 'Halted', template: { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } } },
        },
      },
    },
  } as VirtualMachineSnapshotContent);
  await words.snapshot(name, vm);
  const status = { readyToUse: true, creationTime: '2020-01-01T00:00:00Z' };
  const url = `/apis/${api.apiVersion}/namespaces/default/virtualmachinesnapshot`;
  const merge = 'application/merge-patch+json';
  await cluster.board.report('PATCH', `${url}contents/c-${name}/status`, { status }, merge);
  await cluster.board.report(
    'PATCH',
    `${url}s/${name}/status`,
    { status: { ...status, sourceUID, phase: 'Succeeded', virtualMachineSnapshotContentName: `c-${name}` } },
    merge,
  );
  return content;
}

// S-569: Restoring a snapshot without a UUID gives the machine it was taken of the UUID that its guest has always seen,
//   and another machine a new one; the snapshot stays as it is.
test('a snapshot without a UUID: the legacy one for the machine it was taken of, a new one for another', async () => {
  const vm = await words.machine('elder', []);
  await cluster.restart(async () => {
    await oldSnapshot('s-elder', 'elder', vm.metadata.uid ?? '');
  });
  const content = await cluster.client.get(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, key('c-s-elder'));
  await words.restore('r-elder', 's-elder', 'elder');
  await words.restored('r-elder');
  assert.equal((await words.vm('elder')).spec.template.spec?.domain.firmware?.uuid, legacyFirmwareUuid('elder'));
  await words.restore('r-younger', 's-elder', 'younger');
  await words.restored('r-younger');
  const uuid = (await words.vm('younger')).spec.template.spec?.domain.firmware?.uuid ?? '';
  assert.match(uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-4/);
  assert.deepEqual((await cluster.client.get(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, key('c-s-elder'))).spec, content.spec);
  // Gone and brought back under its name it is the same machine.
  await cluster.client.delete(VIRTUAL_MACHINES, key('elder'));
  await eventually('elder gone', async () =>
    (await cluster.client.list(VIRTUAL_MACHINES)).items.every(({ metadata }) => metadata.name !== 'elder')
      ? true
      : undefined,
  );
  await words.restore('r-elder-again', 's-elder', 'elder');
  await words.restored('r-elder-again');
  assert.equal((await words.vm('elder')).spec.template.spec?.domain.firmware?.uuid, legacyFirmwareUuid('elder'));
});

// S-570: A restore never writes over what it did not make: neither another machine nor another's claim.
test('a machine that is there and is not the one that was saved is left alone', async () => {
  await words.machine('mine', ['mine-a']);
  await words.machine('other', []);
  await words.snapshot('s-mine', 'mine');
  await words.saved('s-mine');
  await words.restore('r-other', 's-mine', 'other');
  const reported = await words.until(
    VIRTUAL_MACHINE_RESTORES,
    'r-other',
    (each) => reason(each, 'Ready')?.includes('different') === true,
  );
  assert.equal(
    reason(reported, 'Progressing'),
    'False restore source and restore target are different but restore target already exists',
  );
  assert.equal(reported.status?.complete, false);
  await isFree('other');
});

// S-570
test('a claim that somebody else has under the name of a restored one is not taken', async () => {
  await words.machine('crowd', ['crowd-a']);
  await words.snapshot('s-crowd', 'crowd');
  await words.saved('s-crowd');
  await words.claim('mob-a');
  await words.restore('r-mob', 's-crowd', 'mob', { volumeRestorePolicy: 'PrefixTargetName' });
  const reported = await words.until(
    VIRTUAL_MACHINE_RESTORES,
    'r-mob',
    (each) => reason(each, 'Ready')?.includes('mob-a') === true,
  );
  assert.equal(reason(reported, 'Ready'), 'False PVC default/mob-a exists and was not made by this restore');
  await cluster.client.delete(VIRTUAL_MACHINE_RESTORES, key('r-mob'));
  await cluster.client.get(PERSISTENT_VOLUME_CLAIMS, key('mob-a'));
});

// Compat KubeVirt's API, P1, yes: VirtualMachineRestore: readiness policies
test('a target that runs: failed at once, waited for, or stopped, as the policy says', async () => {
  await words.machine('busy', ['busy-a']);
  await words.snapshot('s-busy', 'busy');
  await words.saved('s-busy');
  await run('busy');
  await words.restore('r-immediate', 's-busy', 'busy', { targetReadinessPolicy: 'FailImmediate' });
  const failed = await words.until(
    VIRTUAL_MACHINE_RESTORES,
    'r-immediate',
    (each) => reason(each, 'Failure') !== undefined,
  );
  const refusal = 'Restore target VMI must be powered off before restore operation';
  assert.equal(reason(failed, 'Failure'), `True ${refusal}`);
  assert.equal(reason(failed, 'Progressing'), `False ${refusal}`);
  await cluster.client.delete(VIRTUAL_MACHINE_RESTORES, key('r-immediate'));
  const gone = (name: string) =>
    eventually(`${name} gone`, async () =>
      (await cluster.client.list(VIRTUAL_MACHINE_RESTORES)).items.every(({ metadata }) => metadata.name !== name)
        ? true
        : undefined,
    );
  await gone('r-immediate');

  await words.restore('r-waits', 's-busy', 'busy');
  const waits = await words.until(
    VIRTUAL_MACHINE_RESTORES,
    'r-waits',
    (each) => reason(each, 'Ready')?.includes('Waiting for target') === true,
  );
  assert.equal(
    reason(waits, 'Progressing'),
    'False Waiting for target VM to be powered off. Please stop the restore target to proceed with restore, or the operation will fail after 5m0s',
  );
  assert.equal(waits.spec.targetReadinessPolicy, 'WaitGracePeriod');
  await cluster.client.delete(VIRTUAL_MACHINE_RESTORES, key('r-waits'));
  await gone('r-waits');

  await words.restore('r-stops', 's-busy', 'busy', { targetReadinessPolicy: 'StopTarget' });
  await words.restored('r-stops');
  assert.equal((await words.vm('busy')).spec.runStrategy, 'Halted');
  await isFree('busy');
});

// S-571: A machine is not started while it is restored, whatever its run strategy.
test('a machine that is to run always is not started while it is restored', async () => {
  await words.machine('eager', ['eager-a']);
  await words.snapshot('s-eager', 'eager');
  await words.saved('s-eager');
  storage.holds.add('bind');
  await words.restore('r-eager', 's-eager', 'eager');
  await words.until(VIRTUAL_MACHINES, 'eager', ({ status }) => status?.restoreInProgress === 'r-eager');
  await assert.rejects(
    cluster.client.patch(VIRTUAL_MACHINES, key('eager'), { type: 'merge', body: { spec: { runStrategy: 'Always' } } }),
    /Cannot start VM until restore "r-eager" completes/,
  );
  // What KubeVirt itself writes is not refused: the controller of machines holds the start.
  const vm = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines/eager';
  const reported = await cluster.board.report(
    'PATCH',
    vm,
    { spec: { runStrategy: 'Always' } },
    'application/merge-patch+json',
  );
  assert.equal(reported.status, 200);
  await new Promise((resolve) => setTimeout(resolve, 100));
  await assert.rejects(cluster.client.get(VIRTUAL_MACHINE_INSTANCES, key('eager')), /not found/);
  storage.holds.clear();
  await words.restored('r-eager');
  await eventually('started', () => cluster.client.get(VIRTUAL_MACHINE_INSTANCES, key('eager')).catch(() => undefined));
});

// S-578: A restore waits for a snapshot of its machine that is in progress, and a snapshot for a restore.
test('a restore waits for a snapshot of its machine, and touches no claim before', async () => {
  await words.machine('twice', ['twice-a']);
  await words.snapshot('s-once', 'twice');
  await words.saved('s-once');
  const claim = await cluster.client.get(PERSISTENT_VOLUME_CLAIMS, key('twice-a'));
  storage.holds.add('snapshot');
  await words.snapshot('s-twice', 'twice');
  await words.until(VIRTUAL_MACHINES, 'twice', ({ status }) => status?.snapshotInProgress === 's-twice');
  await words.restore('r-twice', 's-once', 'twice', { volumeRestorePolicy: 'InPlace' });
  await words.until(
    VIRTUAL_MACHINE_RESTORES,
    'r-twice',
    (each) => reason(each, 'Progressing') === 'False snapshot "s-twice" in progress',
  );
  const same = await cluster.client.get(PERSISTENT_VOLUME_CLAIMS, key('twice-a'));
  assert.equal(same.metadata.deletionTimestamp, undefined);
  assert.equal(same.metadata.uid, claim.metadata.uid);
  storage.holds.clear();
  await words.saved('s-twice');
  await words.restored('r-twice');
});

test('a restore that is deleted on its way leaves nothing behind', async () => {
  await words.machine('changed', ['changed-a']);
  await words.snapshot('s-changed', 'changed');
  await words.saved('s-changed');
  storage.holds.add('bind');
  const { metadata } = await words.restore('r-changed', 's-changed', 'changed');
  const name = `restore-${metadata.uid}-a`;
  await eventually('the claim', () => cluster.client.get(PERSISTENT_VOLUME_CLAIMS, key(name)).catch(() => undefined));
  await cluster.client.delete(VIRTUAL_MACHINE_RESTORES, key('r-changed'));
  await eventually('gone', async () => {
    const left = await Promise.allSettled([
      cluster.client.get(VIRTUAL_MACHINE_RESTORES, key('r-changed')),
      cluster.client.get(PERSISTENT_VOLUME_CLAIMS, key(name)),
    ]);
    return left.every(({ status }) => status === 'rejected') ? true : undefined;
  });
  storage.holds.clear();
  await isFree('changed');
  assert.deepEqual(await claimsOf('changed'), ['changed-a', 'tiny']);
});

// S-576: A machine that is deleted while it is restored stays deleted.
test('a machine that is deleted while it is restored stays deleted, and its restore goes', async () => {
  await words.machine('doomed', ['doomed-a']);
  await words.snapshot('s-doomed', 'doomed');
  await words.saved('s-doomed');
  storage.holds.add('bind');
  await words.restore('r-doomed', 's-doomed', 'doomed');
  await words.until(VIRTUAL_MACHINES, 'doomed', ({ status }) => status?.restoreInProgress === 'r-doomed');
  await cluster.client.delete(VIRTUAL_MACHINES, key('doomed'));
  await eventually('the restore gone', async () => {
    const { items } = await cluster.client.list(VIRTUAL_MACHINE_RESTORES, { namespace: 'default' });
    return items.every(({ metadata }) => metadata.name !== 'r-doomed') ? true : undefined;
  });
  storage.holds.clear();
  await assert.rejects(words.vm('doomed'), /not found/);
});

// S-577: What a user may not write into a machine a restore does not write for them.
test('patches give nobody what they may not write: reserved labels are refused', async () => {
  await words.machine('plain', []);
  await words.snapshot('s-plain', 'plain');
  await words.saved('s-plain');
  const patch =
    '{"op": "add", "path": "/spec/template/metadata", "value": {"labels": {"kubevirt.io/nodeName": "node-1"}}}';
  await words.restore('r-plain', 's-plain', 'forged', { patches: [patch] });
  const reported = await words.until(
    VIRTUAL_MACHINE_RESTORES,
    'r-plain',
    (each) => reason(each, 'Ready')?.includes('reserved') === true,
  );
  assert.match(
    reason(reported, 'Ready') ?? '',
    /reserved kubevirt.io\/ labels on a VMI object is prohibited: kubevirt.io\/nodeName/,
  );
  await assert.rejects(words.vm('forged'), /not found/);
});

test('the firmware state of a machine comes back with it, under the label that it is found by', async () => {
  await words.claim('state', { labels: { 'persistent-state-for': 'tpm' } });
  await words.machine('tpm', ['tpm-a'], {
    template: {
      spec: {
        domain: { devices: { tpm: { persistent: true } }, memory: { guest: '64Mi' } },
        volumes: [{ name: 'a', persistentVolumeClaim: { claimName: 'tpm-a' } }],
      },
    },
  });
  await words.snapshot('s-tpm', 'tpm');
  const snapshot = await words.saved('s-tpm');
  assert.deepEqual(snapshot.status?.snapshotVolumes?.includedVolumes, ['a', 'persistent-state-for-tpm']);
  const { metadata } = await words.restore('r-tpm', 's-tpm', 'tpm');
  await words.restored('r-tpm');
  const { items } = await cluster.client.list(PERSISTENT_VOLUME_CLAIMS, {
    namespace: 'default',
    labelSelector: 'persistent-state-for=tpm',
  });
  assert.deepEqual(
    items.map((each) => each.metadata.name),
    [`restore-${metadata.uid}-persistent-state-for-tpm`],
  );
  await eventually('the old state gone', async () => {
    const all = await cluster.client.list(PERSISTENT_VOLUME_CLAIMS, { namespace: 'default' });
    return all.items.every(({ metadata: { name } }) => name !== 'state') ? true : undefined;
  });
  await assert.rejects(words.restore('r-tpm-new', 's-tpm', 'tpm-new'), /Restore to a different VM is not supported/);
});
