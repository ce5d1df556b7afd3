/** Volumes that come to a running guest, and go: through its machine, or through its instance alone. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { EVENTS, PERSISTENT_VOLUME_CLAIMS, PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { PersistentVolumeClaim } from '../../packages/apimachinery/src/types/types.ts';
import {
  KUBEVIRTS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';
import { partly } from '../testkit/partly.ts';

let cluster: FakeCluster;
before(async () => {
  cluster = await startFakeCluster({
    nodes: ['node-1', 'node-2'],
    components: 'vm,vmi,migration,scheduler,garbage-collector-controller',
  });
});
after(async () => {
  await cluster?.stop();
  assert.deepEqual(cluster?.errors, []);
});
afterEach(async () => {
  for (const node of cluster.nodes.values()) {
    node.holds.clear();
    node.nudge();
  }
  const vms = await cluster.client.list(VIRTUAL_MACHINES, { namespace: 'default' });
  for (const { metadata } of vms.items) await cluster.client.delete(VIRTUAL_MACHINES, key(metadata.name ?? ''));
  await cluster.client.delete(VIRTUAL_MACHINE_INSTANCES, key('alone')).catch(() => {});
  await eventually('all are gone', async () => {
    const left = await cluster.client.list(VIRTUAL_MACHINE_INSTANCES, { namespace: 'default' });
    return left.items.length === 0;
  });
});

const key = (name: string) => ({ namespace: 'default', name });
const claim = async (name: string, phase: 'Bound' | 'Pending' = 'Bound'): Promise<void> => {
  await cluster.client.create(
    PERSISTENT_VOLUME_CLAIMS,
    partly<PersistentVolumeClaim>({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace: 'default' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    }),
  );
  await setPhase(name, phase);
};
const setPhase = (name: string, phase: string) =>
  cluster.client.patch(
    PERSISTENT_VOLUME_CLAIMS,
    key(name),
    { type: 'merge', body: { status: { phase } } },
    { subresource: 'status' },
  );
const volume = (name: string, claimName = name) => ({
  name,
  persistentVolumeClaim: { claimName, hotpluggable: true },
});
const scsi = (name: string) => ({ name, disk: { bus: 'scsi' } });
const domain = (devices: object = {}) => ({ devices, memory: { guest: '64Mi' } });

async function run(name: string, spec: object = { domain: domain() }): Promise<VirtualMachineInstance> {
  await cluster.client.create(
    VIRTUAL_MACHINES,
    partly<VirtualMachine>({
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name, namespace: 'default' },
      spec: { runStrategy: 'Always', template: { spec } },
    }),
  );
  return eventually(`${name} runs`, async () => {
    const vmi = await cluster.vmi(name).catch(() => undefined);
    return vmi?.status?.phase === 'Running' ? vmi : undefined;
  });
}
const edit = (name: string, volumes: object[], disks: object[]) =>
  cluster.client.patch(VIRTUAL_MACHINES, key(name), {
    type: 'merge',
    body: { spec: { template: { spec: { volumes, domain: { devices: { disks } } } } } },
  });
async function put(resource: 'virtualmachines' | 'virtualmachineinstances', path: string, body: object) {
  const url = `/apis/subresources.kubevirt.io/v1/namespaces/default/${resource}/${path}`;
  return cluster.board.send('PUT', url, body);
}
const add = (name: string) => ({
  name,
  disk: { disk: { bus: 'scsi' } },
  volumeSource: { persistentVolumeClaim: { claimName: name } },
});
const stateOf = (vmi: VirtualMachineInstance, name: string) =>
  vmi.status?.volumeStatus?.find((one) => one.name === name);
const isReady = (name: string) => (vmi: VirtualMachineInstance) => stateOf(vmi, name)?.phase === 'Ready';
const isGone = (name: string) => (vmi: VirtualMachineInstance) => stateOf(vmi, name) === undefined;
const attachments = async () =>
  (await cluster.client.list(PODS, { namespace: 'default', labelSelector: 'kubevirt.io=hotplug-disk' })).items;
const vmCondition = async (name: string, type: string) =>
  (await cluster.client.get(VIRTUAL_MACHINES, key(name))).status?.conditions?.find((one) => one.type === type);
const gates = (featureGates: readonly string[]) =>
  cluster.client.patch(
    KUBEVIRTS,
    { namespace: 'kubevirt', name: 'kubevirt' },
    { type: 'merge', body: { spec: { configuration: { developerConfiguration: { featureGates } } } } },
  );

// S-1250: A volume that may be plugged comes to a running machine through its template or `addvolume`, and goes again,
//   without a restart; the instance's status says how far it is, and which Pod holds its claim.
// Compat KubeVirt's API, P1, yes: addvolume, removevolume
test('a volume is added through the machine and removed again; the Pod that held its claim goes last', async () => {
  await claim('data');
  const first = await run('takes-a-disk');
  const { status } = await put('virtualmachines', 'takes-a-disk/addvolume', add('data'));
  assert.equal(status, 202);
  const vmi = await cluster.untilVmi('takes-a-disk', 'has it', isReady('data'));
  assert.equal(vmi.metadata.uid, first.metadata.uid);
  const [pod, ...more] = await attachments();
  assert.deepEqual(more, []);
  assert.deepEqual(stateOf(vmi, 'data')?.hotplugVolume, {
    attachPodName: pod?.metadata.name,
    attachPodUID: pod?.metadata.uid,
  });
  const { target, reason, message, persistentVolumeClaimInfo } = stateOf(vmi, 'data') ?? {};
  assert.deepEqual(
    [target, reason, message, persistentVolumeClaimInfo?.claimName],
    ['sd0', 'VolumeReady', 'Successfully attach hotplugged volume data to VM', 'data'],
  );
  assert.match(pod?.metadata.name ?? '', /^hp-volume-/);
  assert.deepEqual(pod?.metadata.annotations, {
    'kubevirt.io/owner-vmi-name': 'takes-a-disk',
    'kubevirt.io/owner-vmi-uid': vmi.metadata.uid,
  });
  assert.equal(pod?.spec.nodeName, vmi.status?.nodeName);
  const vm = await cluster.client.get(VIRTUAL_MACHINES, key('takes-a-disk'));
  assert.deepEqual(vm.spec.template.spec?.volumes, [volume('data')]);
  assert.equal(await vmCondition('takes-a-disk', 'RestartRequired'), undefined);
  await eventually('an event', async () =>
    (await cluster.events('takes-a-disk')).includes(
      `Normal SuccessfulCreate Created attachment pod ${pod?.metadata.name}`,
    ),
  );

  const node = cluster.node(vmi.status?.nodeName ?? '');
  node.holds.add('unplug');
  await put('virtualmachines', 'takes-a-disk/removevolume', { name: 'data' });
  await cluster.untilVmi('takes-a-disk', 'gives it back', (now) => stateOf(now, 'data')?.phase === 'Detaching');
  assert.equal((await attachments()).length, 1, 'the guest still has the disk');
  node.holds.clear();
  node.nudge();
  const after = await cluster.untilVmi('takes-a-disk', 'has none', isGone('data'));
  assert.deepEqual(after.spec.volumes ?? [], []);
  await eventually('no Pod is left', async () => (await attachments()).length === 0);
});

// S-1250
// S-1500: The plugged volumes of an instance are held by one Pod, as upstream's: when the last of them is ready there is no
//   other, and `hotplugVolume` of each names it; one that is deleted comes back, and no guest loses a disk by it.
test('volumes that come into the template are plugged, also where something else waits for a restart', async () => {
  await claim('one');
  await claim('two');
  await run('declared');
  await cluster.client.patch(VIRTUAL_MACHINES, key('declared'), {
    type: 'merge',
    body: { spec: { template: { spec: { domain: { cpu: { cores: 2 } } } } } },
  });
  await eventually('a restart is required', () => vmCondition('declared', 'RestartRequired'));
  await edit('declared', [volume('one'), volume('two')], [scsi('one'), { name: 'two', disk: { bus: 'virtio' } }]);
  const both = await cluster.untilVmi('declared', 'has both', (vmi) => isReady('one')(vmi) && isReady('two')(vmi));
  const [pod, ...more] = await attachments();
  assert.deepEqual(more, []);
  for (const name of ['one', 'two'])
    assert.equal(stateOf(both, name)?.hotplugVolume?.attachPodUID, pod?.metadata.uid, name);
  await cluster.client.delete(PODS, key(pod?.metadata.name ?? ''), { gracePeriodSeconds: 0 });
  const again = await cluster.untilVmi('declared', 'has another Pod', (vmi) => {
    const uid = stateOf(vmi, 'one')?.hotplugVolume?.attachPodUID;
    return uid !== undefined && uid !== pod?.metadata.uid;
  });
  assert.ok(isReady('one')(again) && isReady('two')(again));
  await edit('declared', [volume('two')], [{ name: 'two', disk: { bus: 'virtio' } }]);
  await cluster.untilVmi('declared', 'has one', (vmi) => isGone('one')(vmi) && isReady('two')(vmi));
  assert.deepEqual(
    (await attachments()).map(({ spec }) => spec.volumes?.map(({ name }) => name)),
    [['two']],
  );
});

// S-1250
test('the Pods that hold plugged volumes go when the guest ends, though its instance stays', async () => {
  await claim('outlives');
  await cluster.client.create(
    VIRTUAL_MACHINES,
    partly<VirtualMachine>({
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name: 'ends', namespace: 'default' },
      spec: { runStrategy: 'Once', template: { spec: { domain: domain() } } },
    }),
  );
  await eventually('it runs', async () => {
    const vmi = await cluster.vmi('ends').catch(() => undefined);
    return vmi?.status?.phase === 'Running';
  });
  await put('virtualmachines', 'ends/addvolume', add('outlives'));
  const vmi = await cluster.untilVmi('ends', 'has it', isReady('outlives'));
  // As its agent says it.
  await cluster.board.plane
    .clientForNode(vmi.status?.nodeName ?? '')
    .patch(
      VIRTUAL_MACHINE_INSTANCES,
      key('ends'),
      { type: 'merge', body: { status: { phase: 'Succeeded' } } },
      { subresource: 'status' },
    );
  await eventually('no Pod is left', async () => (await attachments()).length === 0);
  assert.equal((await cluster.vmi('ends')).status?.phase, 'Succeeded');
});

// S-1251: A claim that is missing or not bound is waited for, and the volume's status says so (of a missing one also an event); a disk that cannot be
//   plugged, a name or a claim that is there already and a volume that is not hot-pluggable are refused with the reason.
test('what cannot be plugged says why', async () => {
  await run('waits');
  assert.equal((await put('virtualmachines', 'waits/addvolume', add('later'))).status, 202);
  const missing = await cluster.untilVmi('waits', 'waits', (vmi) => stateOf(vmi, 'later')?.phase === 'Pending');
  assert.deepEqual(
    [stateOf(missing, 'later')?.reason, stateOf(missing, 'later')?.message],
    ['FailedPvcNotFound', 'PVC later not found'],
  );
  await eventually('an event says so', async () => {
    const { items } = await cluster.client.list(EVENTS, { namespace: 'default' });
    return items.find(
      ({ reason, involvedObject }) => reason === 'FailedPvcNotFound' && involvedObject.name === 'waits',
    );
  });
  await claim('later', 'Pending');
  await cluster.untilVmi('waits', 'waits on', (vmi) => stateOf(vmi, 'later')?.message === 'PVC is in phase Pending');
  await setPhase('later', 'Bound');
  await cluster.untilVmi('waits', 'has it', isReady('later'));

  const refused = async (body: object, code: number, text: RegExp): Promise<void> => {
    const answer = await put('virtualmachines', 'waits/addvolume', body);
    assert.equal(answer.status, code);
    assert.match(JSON.stringify(answer.json), text);
  };
  await refused(add('later'), 409, /volume with that name already exists/);
  await refused({ ...add('more'), volumeSource: add('later').volumeSource }, 409, /volume source \[later\]/);
  await refused({ ...add('more'), disk: { disk: { bus: 'sata' } } }, 400, /does not use a scsi or virtio bus/);
  await refused({ ...add('more'), disk: { lun: { bus: 'virtio' } } }, 400, /LUN more does not use a scsi bus/);
  const dry = await put('virtualmachines', 'waits/addvolume', { ...add('dry'), dryRun: ['All'] });
  assert.equal(dry.status, 202);
  const vm = await cluster.client.get(VIRTUAL_MACHINES, key('waits'));
  assert.deepEqual(vm.spec.template.spec?.volumes, [volume('later')]);

  // In a template the same disk is taken for the next start, and the machine says why it is not plugged.
  await claim('wrong');
  const disks = [scsi('later'), { name: 'wrong', disk: { bus: 'sata' } }];
  await edit('waits', [volume('later'), volume('wrong')], disks);
  const failure = await eventually('the machine says so', () => vmCondition('waits', 'Failure'));
  assert.deepEqual(
    [failure.reason, failure.message],
    ['HotPlugVolumeError', 'hotplugged Disk wrong does not use a scsi or virtio bus'],
  );
});

// S-1252: A volume that was plugged into an instance alone is not its machine's: the machine does not take it away, and
//   starts without it the next time.
test('a volume of the instance alone stays until its end', async () => {
  await claim('scratch');
  await claim('lone');
  await cluster.run('alone');
  assert.equal((await put('virtualmachineinstances', 'alone/addvolume', add('lone'))).status, 202);
  await cluster.untilVmi('alone', 'has it', isReady('lone'));
  assert.equal((await put('virtualmachineinstances', 'alone/removevolume', { name: 'lone' })).status, 202);
  await cluster.untilVmi('alone', 'has none', isGone('lone'));

  await run('owned');
  const off = await put('virtualmachineinstances', 'owned/addvolume', add('scratch'));
  assert.equal(off.status, 400);
  await gates(['HotplugVolumes']);
  try {
    await eventually('the gate is on', async () => {
      const { status } = await put('virtualmachineinstances', 'owned/addvolume', add('scratch'));
      return status === 202;
    });
    await cluster.untilVmi('owned', 'has it', isReady('scratch'));
    await cluster.client.patch(VIRTUAL_MACHINES, key('owned'), {
      type: 'merge',
      body: { metadata: { labels: { looked: 'at' } } },
    });
    await eventually('the machine has looked', async () => {
      const { status, metadata } = await cluster.client.get(VIRTUAL_MACHINES, key('owned'));
      return status?.observedGeneration === metadata.generation;
    });
    assert.ok(isReady('scratch')(await cluster.vmi('owned')));
    const vm = await cluster.client.get(VIRTUAL_MACHINES, key('owned'));
    assert.deepEqual(vm.spec.template.spec?.volumes ?? [], []);
  } finally {
    await gates([]);
  }
});

// S-1253: The medium of a CD-ROM drive is put in, swapped and taken out while the guest runs.
test('a medium is put into an empty drive, swapped, and taken out', async () => {
  await claim('medium-a');
  await claim('medium-b');
  const drive = { name: 'drive', cdrom: { bus: 'sata' } };
  await run('reads', { domain: domain({ disks: [drive] }) });
  await edit('reads', [volume('drive', 'medium-a')], [drive]);
  await cluster.untilVmi('reads', 'has a medium', isReady('drive'));
  await edit('reads', [volume('drive', 'medium-b')], [drive]);
  await cluster.untilVmi('reads', 'has the other medium', (vmi) => {
    const state = stateOf(vmi, 'drive');
    return state?.phase === 'Ready' && state.persistentVolumeClaimInfo?.claimName === 'medium-b';
  });
  await edit('reads', [], [drive]);
  await cluster.untilVmi('reads', 'has none', isGone('drive'));
  assert.equal(await vmCondition('reads', 'RestartRequired'), undefined);
});

// S-1254: Plugged volumes go along when their guest moves to another node.
test('a guest that moves keeps its plugged volumes', async () => {
  await claim('moves-along');
  await run('mover');
  await put('virtualmachines', 'mover/addvolume', add('moves-along'));
  const before = await cluster.untilVmi('mover', 'has it', isReady('moves-along'));
  const migration = await cluster.migrate('mover');
  await cluster.untilPhase(migration, 'Succeeded');
  const moved = await cluster.untilVmi('mover', 'has it there', (vmi) => {
    const { attachPodName } = stateOf(vmi, 'moves-along')?.hotplugVolume ?? {};
    return attachPodName?.startsWith('virt-launcher-') === true && isReady('moves-along')(vmi);
  });
  assert.notEqual(moved.status?.nodeName, before.status?.nodeName);
  await eventually('no Pod holds it on the old node', async () => (await attachments()).length === 0);
});

// S-1256
// S-1523: A card that is `absent` and that the running guest has let go of is taken out of the template with its network, unless the template is declared by server-side apply.
// S-1257: A card on a network by multus that is added to the template of a running machine comes to its guest; one that becomes
//   `state: absent` goes, and may come again. No restart is asked for; one that is taken out of the template without that, or
//   added with another binding than bridge, needs one.
test('a cable is pulled live; a card comes, goes, and comes again', async () => {
  const nic = { name: 'default', masquerade: {} };
  const pod = { name: 'default', pod: {} };
  const blue = { name: 'blue', bridge: {} };
  const wire = { name: 'blue', multus: { networkName: 'blue' } };
  const first = await run('linked', { domain: domain({ interfaces: [nic] }), networks: [pod] });
  const change = (interfaces: object[], networks: object[]) =>
    cluster.client.patch(VIRTUAL_MACHINES, key('linked'), {
      type: 'merge',
      body: { spec: { template: { spec: { networks, domain: { devices: { interfaces } } } } } },
    });
  const has = (vmi: VirtualMachineInstance): boolean =>
    vmi.status?.interfaces?.some(({ name }) => name === 'blue') === true;
  const annotated = async (isOn: boolean) =>
    eventually(`the Pod ${isOn ? 'names' : 'does not name'} it`, async () => {
      const { items } = await cluster.client.list(PODS, { namespace: 'default' });
      const launcher = items.find(({ metadata }) => metadata.annotations?.['kubevirt.io/domain'] === 'linked');
      return (launcher?.metadata.annotations?.['k8s.v1.cni.cncf.io/networks'] !== undefined) === isOn;
    });
  const down = { ...nic, state: 'down' };
  await change([down], [pod]);
  await cluster.untilVmi('linked', 'is down', ({ spec }) => spec.domain.devices.interfaces?.[0]?.state === 'down');

  await change([down, blue], [pod, wire]);
  await cluster.untilVmi('linked', 'has it', has);
  await annotated(true);
  const node = cluster.node((await cluster.vmi('linked')).status?.nodeName ?? '');
  node.holds.add('unplug');
  await change([down, { ...blue, state: 'absent' }], [pod, wire]);
  const going = await cluster.untilVmi(
    'linked',
    'is to give it back',
    ({ spec }) => spec.domain.devices.interfaces?.[1]?.state === 'absent',
  );
  assert.ok(has(going));
  node.holds.clear();
  node.nudge();
  await cluster.untilVmi('linked', 'forgets it', ({ spec }) => spec.networks?.length === 1);
  await annotated(false);
  await eventually('the template forgets it too', async () => {
    const { spec } = await cluster.client.get(VIRTUAL_MACHINES, key('linked'));
    const { networks, domain } = spec.template?.spec ?? {};
    return networks?.length === 1 && domain?.devices.interfaces?.length === 1;
  });
  await change([down, blue], [pod, wire]);
  await cluster.untilVmi('linked', 'has it again', has);
  await change([nic, blue], [pod, wire]);
  const last = await cluster.untilVmi(
    'linked',
    'is up',
    ({ spec }) => spec.domain.devices.interfaces?.[0]?.state === undefined,
  );
  assert.equal(last.metadata.uid, first.metadata.uid);
  for (const type of ['RestartRequired', 'Failure']) assert.equal(await vmCondition('linked', type), undefined, type);
  await change([nic], [pod]);
  await eventually('a restart is required', () => vmCondition('linked', 'RestartRequired'));
  await change([nic, blue], [pod, wire]);
  await eventually('none is', async () => (await vmCondition('linked', 'RestartRequired')) === undefined);
});
