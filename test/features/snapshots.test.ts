/** Snapshots of virtual machines over the API: what is locked, frozen, saved and let go, and what becomes of it. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  CONTROLLER_REVISIONS,
  PERSISTENT_VOLUME_CLAIMS,
} from '../../packages/apimachinery/src/types/resource-types.ts';
import type { PersistentVolumeClaim } from '../../packages/apimachinery/src/types/types.ts';
import { VOLUME_SNAPSHOTS } from '../../packages/cluster-rules/src/volume-snapshot/kinds.ts';
import {
  VIRTUAL_MACHINE_CLUSTER_INSTANCETYPES,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineSnapshot,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';
import { playStorage, type StoragePlayer } from '../testkit/storage-player.ts';

let cluster: FakeCluster;
let storage: StoragePlayer;
/** `freeze`, `unfreeze` of the guests, in order, and how many VolumeSnapshots there were. */
const agentCalls: string[] = [];
let freezeAnswer: { status: number; body?: string } = { status: 200 };

before(async () => {
  cluster = await startFakeCluster({
    nodes: ['node-1'],
    components: 'vm,vmi,scheduler,snapshot,garbage-collector-controller',
    plane: {
      connectNode: async () => async (request) => {
        const action = request.path.split('/').at(-1);
        const { items } = await cluster.client.list(VOLUME_SNAPSHOTS, { namespace: 'default' });
        agentCalls.push(`${action} ${items.length}`);
        const { status, body = '' } = action === 'freeze' ? freezeAnswer : { status: 200 };
        return { status, headers: {}, body: new TextEncoder().encode(body) };
      },
    },
  });
  storage = playStorage(cluster.client);
});
after(async () => {
  await storage.stop();
  await cluster.stop();
  assert.deepEqual(cluster.errors, []);
});

const key = (name: string) => ({ namespace: 'default', name });

const claim = (name: string, storageClassName = 'local'): Promise<PersistentVolumeClaim> =>
  cluster.client.create(PERSISTENT_VOLUME_CLAIMS, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: 'default' },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests: { storage: '1Gi' } } },
  });

async function machine(name: string, claims: readonly string[], spec: object = {}): Promise<VirtualMachine> {
  for (const each of claims) await claim(each);
  const volumes = [
    ...claims.map((each) => ({ name: each, persistentVolumeClaim: { claimName: each } })),
    { name: 'boot', containerDisk: { image: 'tiny' } },
  ];
  return cluster.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: 'default', labels: { app: name } },
    spec: {
      runStrategy: 'Halted',
      template: { spec: { domain: { devices: {}, memory: { guest: '64Mi' } }, volumes } },
      ...spec,
    },
  } as unknown as VirtualMachine);
}

const snapshotOf = (name: string, vm: string, spec: object = {}): Promise<VirtualMachineSnapshot> =>
  cluster.client.create(VIRTUAL_MACHINE_SNAPSHOTS, {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshot',
    metadata: { name, namespace: 'default' },
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: vm }, ...spec },
  } as VirtualMachineSnapshot);

async function untilSnapshot(
  name: string,
  what: string,
  holds: (snapshot: VirtualMachineSnapshot) => boolean,
): Promise<VirtualMachineSnapshot> {
  let last: VirtualMachineSnapshot | undefined;
  return eventually(`${name} ${what}`, async () => {
    last = await cluster.client.get(VIRTUAL_MACHINE_SNAPSHOTS, key(name));
    return holds(last) ? last : undefined;
  }).catch((error: Error) => {
    throw new Error(`${error.message}: ${JSON.stringify(last?.status)}`);
  });
}
const ready = (name: string) =>
  untilSnapshot(name, 'ready', ({ status }) => status?.readyToUse === true && status.phase === 'Succeeded');
const untilFree = (vm: string) =>
  eventually(`${vm} unlocked`, async () => {
    const { metadata, status } = await cluster.client.get(VIRTUAL_MACHINES, key(vm));
    const held = metadata.finalizers?.some((each) => each.startsWith('snapshot.kubevirt.io/'));
    return status?.snapshotInProgress === undefined && !held ? true : undefined;
  });
const condition = ({ status }: VirtualMachineSnapshot, type: string): string | undefined => {
  const found = status?.conditions?.find((each) => each.type === type);
  return found && `${found.status} ${found.reason}`;
};
const run = async (vm: string): Promise<void> => {
  await cluster.client.patch(VIRTUAL_MACHINES, key(vm), { type: 'merge', body: { spec: { runStrategy: 'Always' } } });
  await eventually(`${vm} runs`, async () => {
    const vmi = await cluster.client.get(VIRTUAL_MACHINE_INSTANCES, key(vm)).catch(() => undefined);
    return vmi?.status?.phase === 'Running' ? vmi : undefined;
  });
};
const connectAgent = async (vm: string, more: object[] = []): Promise<void> => {
  const vmi = await cluster.client.get(VIRTUAL_MACHINE_INSTANCES, key(vm));
  const agent = { type: 'AgentConnected', status: 'True', lastProbeTime: null, lastTransitionTime: null };
  const conditions = [...(vmi.status?.conditions ?? []), agent, ...more];
  const url = `/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances/${vm}`;
  const answer = await cluster.board.report('PATCH', url, { status: { conditions } }, 'application/merge-patch+json');
  assert.equal(answer.status, 200);
};

// S-563: A snapshot locks its machine, saves every claim that can be saved at one point in time, and lets the machine
//   go; while it works the run strategy and the volumes of the machine stay as they are.
// Compat KubeVirt's API, P1, yes: VirtualMachineSnapshot: rules, phases, conditions, indications, volumes in and out,
//   deadline, deletion policies
test('a machine that is off: saved with its claims, locked meanwhile, free after', async () => {
  const vm = await machine('off', ['off-a', 'off-b']);
  await snapshotOf('s-off', 'off');
  const snapshot = await ready('s-off');
  await untilFree('off');
  assert.equal(condition(snapshot, 'Ready'), 'True Ready');
  assert.equal(condition(snapshot, 'Progressing'), 'False Operation complete');
  assert.equal(snapshot.status?.sourceUID, vm.metadata.uid);
  assert.equal(snapshot.status?.indications, undefined);
  assert.deepEqual(snapshot.status?.snapshotVolumes, {
    includedVolumes: ['off-a', 'off-b'],
    excludedVolumes: ['boot'],
  });
  assert.deepEqual(snapshot.metadata.finalizers, ['snapshot.kubevirt.io/vmsnapshot-protection']);

  const contentName = `vmsnapshot-content-${snapshot.metadata.uid}`;
  assert.equal(snapshot.status?.virtualMachineSnapshotContentName, contentName);
  const content = await cluster.client.get(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, key(contentName));
  const saved = content.spec.source.virtualMachine;
  assert.deepEqual(saved?.metadata?.labels, { app: 'off' });
  assert.equal(saved?.metadata?.managedFields, undefined);
  assert.equal(saved?.spec?.template.spec?.domain.firmware?.uuid, vm.spec.template.spec?.domain.firmware?.uuid);
  assert.equal(content.spec.volumeBackups?.[0]?.persistentVolumeClaim.spec?.storageClassName, 'local');

  const name = `vmsnapshot-${snapshot.metadata.uid}-volume-off-b`;
  const taken = await cluster.client.get(VOLUME_SNAPSHOTS, key(name));
  assert.deepEqual(taken.spec, { source: { persistentVolumeClaimName: 'off-b' }, volumeSnapshotClassName: 'local' });
  assert.deepEqual(taken.metadata.labels, {
    'snapshot.kubevirt.io/source-vm-name': 'off',
    'snapshot.kubevirt.io/source-vm-namespace': 'default',
  });
  assert.deepEqual(taken.metadata.annotations, {
    'coracle.dev/snapshot-group': content.metadata.uid,
    'coracle.dev/snapshot-group-size': '2',
  });
  assert.equal(taken.metadata.ownerReferences?.[0]?.kind, 'VirtualMachineSnapshotContent');
});

// S-564: A snapshot of a running machine freezes the guest through its agent before the first VolumeSnapshot and thaws
//   it when all are taken, also when the snapshot fails.
// Compat KubeVirt's API, P1, yes: VirtualMachineSnapshot of a running guest: freeze, pause, spec as started
test('a machine that runs: frozen before the first VolumeSnapshot, thawed when all are taken', async () => {
  await machine('on', ['on-a', 'on-b']);
  await run('on');
  await connectAgent('on');
  const before = (await cluster.client.list(VOLUME_SNAPSHOTS, { namespace: 'default' })).items.length;
  agentCalls.length = 0;
  storage.holds.add('snapshot');
  await snapshotOf('s-on', 'on');
  await eventually('VolumeSnapshots', async () => {
    const { items } = await cluster.client.list(VOLUME_SNAPSHOTS, { namespace: 'default' });
    return items.length === before + 2 ? true : undefined;
  });
  const busy = await untilSnapshot(
    's-on',
    'locked',
    (each) => condition(each, 'Progressing')?.startsWith('True') === true,
  );
  assert.equal(condition(busy, 'Progressing'), 'True Source locked and operation in progress');
  // What would change the disks, or the guest's run, waits.
  await assert.rejects(
    cluster.client.patch(VIRTUAL_MACHINES, key('on'), { type: 'merge', body: { spec: { runStrategy: 'Halted' } } }),
    /Cannot update vm running state until snapshot "s-on" completes/,
  );
  storage.holds.clear();
  const snapshot = await ready('s-on');
  await untilFree('on');
  assert.deepEqual(agentCalls, [`freeze ${before}`, `unfreeze ${before + 2}`]);
  assert.deepEqual(snapshot.status?.indications, ['GuestAgent', 'Online']);
  assert.equal(
    snapshot.status?.sourceIndications?.[0]?.message,
    'Guest agent was active and attempted to quiesce the filesystem for application consistency.',
  );
});

test('a machine that runs is saved as it was started, with the volumes that it has now', async () => {
  await machine('drifted', ['drifted-a']);
  await run('drifted');
  await claim('drifted-b');
  const template = (await cluster.client.get(VIRTUAL_MACHINES, key('drifted'))).spec.template.spec!;
  await cluster.client.patch(VIRTUAL_MACHINES, key('drifted'), {
    type: 'merge',
    body: {
      spec: {
        template: {
          spec: {
            domain: { memory: { guest: '96Mi' } },
            volumes: [
              ...template.volumes!,
              { name: 'more', persistentVolumeClaim: { claimName: 'drifted-b', hotpluggable: true } },
            ],
          },
        },
      },
    },
  });
  agentCalls.length = 0;
  await snapshotOf('s-drifted', 'drifted');
  const { status } = await ready('s-drifted');
  assert.deepEqual(agentCalls, []);
  assert.deepEqual(status?.indications, ['NoGuestAgent', 'Online']);
  assert.deepEqual(status?.snapshotVolumes?.includedVolumes, ['drifted-a', 'more']);
  const content = await cluster.client.get(
    VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
    key(status?.virtualMachineSnapshotContentName ?? ''),
  );
  assert.equal(content.spec.source.virtualMachine?.spec?.template.spec?.domain.memory?.guest, '64Mi');
});

test('a paused guest is saved without a freeze', async () => {
  await machine('paused', ['paused-a']);
  await run('paused');
  await connectAgent('paused', [{ type: 'Paused', status: 'True', lastProbeTime: null, lastTransitionTime: null }]);
  agentCalls.length = 0;
  await snapshotOf('s-paused', 'paused');
  assert.deepEqual((await ready('s-paused')).status?.indications, ['Online', 'Paused']);
  assert.deepEqual(agentCalls, []);
});

test('claims that no VolumeSnapshotClass can save are left out, and the snapshot says that it is partial', async () => {
  await claim('partial-b', 'nobody');
  await machine('partial', ['partial-a'], {
    template: {
      spec: {
        domain: { devices: {}, memory: { guest: '64Mi' } },
        volumes: [
          { name: 'a', persistentVolumeClaim: { claimName: 'partial-a' } },
          { name: 'b', persistentVolumeClaim: { claimName: 'partial-b' } },
        ],
      },
    },
  });
  await snapshotOf('s-partial', 'partial');
  const { status } = await ready('s-partial');
  assert.deepEqual(status?.snapshotVolumes, { includedVolumes: ['a'], excludedVolumes: ['b'] });
  assert.deepEqual(status?.indications, ['PartialSnapshot']);
});

// S-565: The copy of an instance type or preference that only the status of a machine names is saved with its snapshot.
test('the copy of an instance type that only the status names is saved with the snapshot', async () => {
  await cluster.client.create(VIRTUAL_MACHINE_CLUSTER_INSTANCETYPES, {
    apiVersion: 'instancetype.kubevirt.io/v1beta1',
    kind: 'VirtualMachineClusterInstancetype',
    metadata: { name: 'small' },
    spec: { cpu: { guest: 1 }, memory: { guest: '64Mi' } },
  });
  await machine('typed', [], {
    instancetype: { name: 'small' },
    template: { spec: { domain: { devices: {} } } },
  });
  const vm = await eventually('captured', async () => {
    const found = await cluster.client.get(VIRTUAL_MACHINES, key('typed'));
    return found.status?.instancetypeRef?.controllerRevisionRef?.name ? found : undefined;
  });
  const own = vm.status?.instancetypeRef?.controllerRevisionRef?.name ?? '';
  await snapshotOf('s-typed', 'typed');
  const snapshot = await ready('s-typed');
  const { spec } = await cluster.client.get(
    VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
    key(snapshot.status?.virtualMachineSnapshotContentName ?? ''),
  );
  const copy = own.replace('typed', 's-typed');
  assert.equal(spec.source.virtualMachine?.spec?.instancetype?.revisionName, copy);
  assert.equal(spec.source.virtualMachine?.status?.instancetypeRef?.controllerRevisionRef?.name, copy);
  const revision = await cluster.client.get(CONTROLLER_REVISIONS, key(copy));
  assert.equal(revision.metadata.ownerReferences?.[0]?.uid, snapshot.metadata.uid);
  assert.deepEqual(revision.data, (await cluster.client.get(CONTROLLER_REVISIONS, key(own))).data);
});

// S-564
test('a deadline that passes: failed, nothing left but the snapshot, the guest thawed, the machine free', async () => {
  await machine('late', ['late-a']);
  await run('late');
  await connectAgent('late');
  agentCalls.length = 0;
  storage.holds.add('snapshot');
  // Long enough for a busy machine to freeze the guest before it.
  await snapshotOf('s-late', 'late', { failureDeadline: '4s' });
  const snapshot = await untilSnapshot('s-late', 'failed', ({ status }) => status?.phase === 'Failed');
  assert.equal(condition(snapshot, 'Failure'), 'True snapshot deadline exceeded');
  assert.equal(condition(snapshot, 'Progressing'), 'False Operation failed');
  await untilFree('late');
  storage.holds.clear();
  assert.deepEqual(
    agentCalls.map((call) => call.split(' ')[0]),
    ['freeze', 'unfreeze'],
  );
  await eventually('the content gone', async () => {
    const contents = await cluster.client.list(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, { namespace: 'default' });
    const taken = await cluster.client.list(VOLUME_SNAPSHOTS, { namespace: 'default' });
    const left = [...contents.items, ...taken.items].filter(({ metadata }) =>
      metadata.name?.includes(snapshot.metadata.uid ?? ''),
    );
    return left.length === 0 ? true : undefined;
  });
});

test('a guest that does not freeze: the error is reported, and it is tried again until the deadline', async () => {
  await machine('stubborn', ['stubborn-a']);
  await run('stubborn');
  await connectAgent('stubborn');
  freezeAnswer = {
    status: 500,
    body: JSON.stringify({ kind: 'Status', apiVersion: 'v1', code: 500, message: 'command Freeze failed' }),
  };
  await snapshotOf('s-stubborn', 'stubborn', { failureDeadline: '2s' });
  const reported = await untilSnapshot('s-stubborn', 'error', ({ status }) => status?.error !== undefined);
  assert.match(reported.status?.error?.message ?? '', /command Freeze failed/);
  assert.equal(condition(reported, 'Progressing'), 'False In error state');
  await untilSnapshot('s-stubborn', 'failed', ({ status }) => status?.phase === 'Failed');
  freezeAnswer = { status: 200 };
  await untilFree('stubborn');
});

test('without a source a snapshot waits; of two of one machine the second waits for the first', async () => {
  await snapshotOf('s-early', 'later');
  const early = await untilSnapshot('s-early', 'waiting', ({ status }) => status?.phase === 'InProgress');
  assert.equal(condition(early, 'Progressing'), 'False Source does not exist');
  storage.holds.add('snapshot');
  await machine('later', ['later-a']);
  await untilSnapshot('s-early', 'locked', (each) => condition(each, 'Progressing')?.startsWith('True') === true);
  await snapshotOf('s-second', 'later');
  const second = await untilSnapshot(
    's-second',
    'reported',
    (each) => condition(each, 'Progressing')?.includes('s-early') === true,
  );
  assert.equal(condition(second, 'Progressing'), 'False Source not locked snapshot "s-early" in progress');
  storage.holds.clear();
  await ready('s-early');
  await ready('s-second');
});

test('a claim that is not bound keeps the source from being locked, and is named', async () => {
  storage.holds.add('bind');
  await machine('unbound', ['unbound-a']);
  await snapshotOf('s-unbound', 'unbound');
  const reported = await untilSnapshot(
    's-unbound',
    'reported',
    (each) => condition(each, 'Progressing')?.includes('unbound-a') === true,
  );
  assert.equal(
    condition(reported, 'Progressing'),
    'False Source not locked source default/unbound volume not bound: unbound-a',
  );
  storage.holds.clear();
  await ready('s-unbound');
});

test('Delete takes the content along, Retain keeps it', async () => {
  await machine('kept', ['kept-a']);
  for (const deletionPolicy of ['Delete', 'Retain'] as const) {
    const name = `s-${deletionPolicy.toLowerCase()}`;
    await snapshotOf(name, 'kept', { deletionPolicy });
    const { metadata, status } = await ready(name);
    await cluster.client.delete(VIRTUAL_MACHINE_SNAPSHOTS, key(name));
    await eventually(`${name} gone`, async () => {
      const { items } = await cluster.client.list(VIRTUAL_MACHINE_SNAPSHOTS, { namespace: 'default' });
      return items.every((each) => each.metadata.name !== name) ? true : undefined;
    });
    const content = key(status?.virtualMachineSnapshotContentName ?? '');
    const taken = key(`vmsnapshot-${metadata.uid}-volume-kept-a`);
    if (deletionPolicy === 'Retain') {
      await cluster.client.get(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, content);
      await cluster.client.get(VOLUME_SNAPSHOTS, taken);
      continue;
    }
    await eventually('the content and its VolumeSnapshots gone', async () => {
      const left = await Promise.allSettled([
        cluster.client.get(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, content),
        cluster.client.get(VOLUME_SNAPSHOTS, taken),
      ]);
      return left.every(({ status: outcome }) => outcome === 'rejected') ? true : undefined;
    });
  }
});

// S-566: A machine whose snapshot is not there any more is let go.
test('a machine is let go although its snapshot was taken away by force', async () => {
  await machine('forced', ['forced-a']);
  storage.holds.add('snapshot');
  await snapshotOf('s-forced', 'forced');
  await eventually('locked', async () => {
    const { status } = await cluster.client.get(VIRTUAL_MACHINES, key('forced'));
    return status?.snapshotInProgress === 's-forced' ? true : undefined;
  });
  await cluster.restart(async () => {
    await cluster.client.patch(VIRTUAL_MACHINE_SNAPSHOTS, key('s-forced'), {
      type: 'merge',
      body: { metadata: { finalizers: null } },
    });
    await cluster.client.delete(VIRTUAL_MACHINE_SNAPSHOTS, key('s-forced'));
  });
  await untilFree('forced');
  storage.holds.clear();
  await eventually('the content gone', async () => {
    const { items } = await cluster.client.list(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, { namespace: 'default' });
    return items.every(({ spec }) => spec.virtualMachineSnapshotName !== 's-forced') ? true : undefined;
  });
});
