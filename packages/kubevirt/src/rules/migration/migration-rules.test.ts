import assert from 'node:assert/strict';
import { test } from 'node:test';
import { partly } from '../../../../../test/testkit/partly.ts';
import type { VirtualMachineInstance } from '../../kinds/kinds.ts';
import type { MachinePlan, PlannedDisk, PlannedInterface } from '../machine/machine-plan.ts';
import { migratability } from './migratability.ts';
import { completionMs, migrationLimits, monitorStep } from './migration-limits.ts';
import { movedPlan, planDifference } from './plan-difference.ts';

const vmi = (spec: object, status: object = {}, annotations: object = {}): VirtualMachineInstance =>
  ({
    metadata: { annotations },
    spec: { domain: { devices: {} }, ...spec },
    status,
  }) as unknown as VirtualMachineInstance;

const nic = (binding: object) => ({
  domain: { devices: { interfaces: [{ name: 'default', ...binding }] } },
  networks: [{ name: 'default', pod: {} }],
});
const claim = { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] };
const claimIs = (mode: string) => ({
  volumeStatus: [
    { name: 'data', target: 'vda', persistentVolumeClaimInfo: { claimName: 'data', accessModes: [mode] } },
  ],
});
const BRIDGE = 'kubevirt.io/allow-pod-bridge-network-live-migration';

test('migratability(): the reason of each thing that keeps a guest, upstream words', () => {
  const table: [string, VirtualMachineInstance, string | undefined, string][] = [
    ['nothing', vmi({}), undefined, 'LiveMigration'],
    ['masquerade', vmi(nic({ masquerade: {} })), undefined, 'LiveMigration'],
    ['bridge', vmi(nic({ bridge: {} })), 'InterfaceNotLiveMigratable', 'LiveMigration'],
    ['bridge that is allowed', vmi(nic({ bridge: {} }), {}, { [BRIDGE]: '' }), undefined, 'LiveMigration'],
    [
      'container disk',
      vmi({ volumes: [{ name: 'root', containerDisk: { image: 'x' } }] }),
      undefined,
      'BlockMigration',
    ],
    ['claim nobody knows', vmi(claim), 'DisksNotLiveMigratable', 'BlockMigration'],
    ['claim of one node', vmi(claim, claimIs('ReadWriteOnce')), 'DisksNotLiveMigratable', 'BlockMigration'],
    ['shared claim', vmi(claim, claimIs('ReadWriteMany')), undefined, 'LiveMigration'],
    [
      'claim that is being migrated',
      vmi(claim, { ...claimIs('ReadWriteOnce'), migratedVolumes: [{ volumeName: 'data' }] }),
      undefined,
      'BlockMigration',
    ],
    [
      'host disk',
      vmi({ volumes: [{ name: 'd', hostDisk: { path: '/d' } }] }),
      'DisksNotLiveMigratable',
      'BlockMigration',
    ],
    [
      'shared host disk',
      vmi({ volumes: [{ name: 'd', hostDisk: { path: '/d', shared: true } }] }),
      undefined,
      'LiveMigration',
    ],
    [
      'host device',
      vmi({ domain: { devices: { hostDevices: [{}] } } }),
      'HostDeviceNotLiveMigratable',
      'LiveMigration',
    ],
    ['SEV', vmi({ domain: { devices: {}, launchSecurity: { sev: {} } } }), 'SEVNotLiveMigratable', 'LiveMigration'],
    [
      'the machine comes before its disks',
      vmi({ ...claim, ...nic({ bridge: {} }) }),
      'InterfaceNotLiveMigratable',
      'BlockMigration',
    ],
  ];
  for (const [name, object, reason, method] of table) {
    const result = migratability(object);
    assert.deepEqual([result.obstacle?.reason, result.method], [reason, method], name);
  }
  assert.match(
    migratability(vmi(claim, claimIs('ReadWriteOnce'))).obstacle?.message ?? '',
    /^cannot migrate VMI: PVC data is not shared, live migration requires/,
  );
  // Of storage alone the disks say nothing.
  assert.equal(migratability(vmi(claim)).storageObstacle, undefined);
  assert.match(migratability(vmi(nic({ bridge: {} }))).storageObstacle?.message ?? '', /^InterfaceNotLiveMigratable: /);
  const agent = { reason: 'NodeNotLiveMigratable', message: 'why' };
  assert.deepEqual(migratability(vmi({}), agent).obstacle, agent);
});

test('limits have upstream defaults and take what the state says', () => {
  assert.deepEqual(migrationLimits(undefined), {
    bandwidth: 0,
    completionMsPerGiB: 150_000,
    progressMs: 150_000,
    downtimeMs: 900,
    autoConverge: false,
    workloadDisruption: false,
    postCopy: false,
  });
  assert.equal(migrationLimits({ bandwidthPerMigration: '1Ei' }).bandwidth, Number.MAX_SAFE_INTEGER);
  const own = migrationLimits({ bandwidthPerMigration: '64Mi', completionTimeoutPerGiB: 2, allowPostCopy: true });
  assert.deepEqual([own.bandwidth, own.completionMsPerGiB, own.workloadDisruption], [64 * 2 ** 20, 2000, true]);
  assert.equal(migrationLimits({ allowPostCopy: true, allowWorkloadDisruption: false }).workloadDisruption, false);
  assert.equal(completionMs(own, 1), 2000);
  assert.equal(completionMs(own, 2 ** 30 + 1), 4000);
});

test('monitorStep(): no progress aborts, too long aborts or pauses, a pause doubles the time', () => {
  const strict = migrationLimits({});
  const lenient = migrationLimits({ allowWorkloadDisruption: true });
  const at = (elapsedMs: number, sinceProgressMs: number, paused = false) => ({
    elapsedMs,
    sinceProgressMs,
    acceptableMs: 1000,
    paused,
    streaming: true,
    switched: false,
  });
  assert.equal(monitorStep(strict, at(900, 10)).act, 'go-on');
  assert.deepEqual(monitorStep(strict, at(900, 151_000)), {
    act: 'abort',
    reason: 'Live migration stuck for 151 seconds and has been aborted',
  });
  assert.equal(monitorStep(strict, at(1001, 10)).act, 'abort');
  assert.equal(monitorStep(lenient, at(1001, 10)).act, 'pause');
  assert.equal(monitorStep(lenient, at(1999, 10, true)).act, 'go-on');
  assert.equal(monitorStep(lenient, at(2001, 10, true)).act, 'abort');
  assert.equal(monitorStep(migrationLimits({ completionTimeoutPerGiB: 0 }), at(1e9, 10)).act, 'go-on');
});

test('monitorStep(): with post-copy it switches when the time is over, memory is under way, and it may be disrupted', () => {
  const at = (change: object) => ({
    elapsedMs: 1001,
    sinceProgressMs: 10,
    acceptableMs: 1000,
    paused: false,
    streaming: true,
    switched: false,
    ...change,
  });
  const lenient = migrationLimits({ allowPostCopy: true });
  assert.equal(monitorStep(lenient, at({ elapsedMs: 999 })).act, 'go-on');
  assert.equal(monitorStep(lenient, at({})).act, 'post-copy');
  assert.equal(monitorStep(lenient, at({ sinceProgressMs: 151_000 })).act, 'post-copy', 'the switch comes first');
  assert.equal(monitorStep(lenient, at({ elapsedMs: 999, sinceProgressMs: 151_000 })).act, 'abort');
  // Disks are still going: nothing to switch to, and only a stand-still is a reason to give up.
  assert.equal(monitorStep(lenient, at({ streaming: false })).act, 'go-on');
  assert.equal(monitorStep(lenient, at({ streaming: false, sinceProgressMs: 151_000 })).act, 'abort');
  assert.equal(monitorStep(lenient, at({ switched: true, elapsedMs: 1e9, sinceProgressMs: 1e9 })).act, 'go-on');
  const strict = migrationLimits({ allowPostCopy: true, allowWorkloadDisruption: false });
  assert.equal(monitorStep(strict, at({})).act, 'abort');
});

test('planDifference() names what a running guest would see; the texts of its next boot go along', () => {
  const plan = {
    name: 'a_b',
    sandbox: true,
    unsupported: ['x'],
    devices: [
      { driver: 'virtio-serial-pci', id: 'virtio-serial0' },
      { driver: 'VGA', id: 'video0' },
    ],
    cpu: { model: 'max', features: [], sockets: 1, cores: 1, threads: 1 },
    memoryBytes: 1,
    machine: { type: 'pc-q35-7.2', options: {} },
    firmware: { kind: 'efi', code: '/a', vars: '/b' },
    smbios: [{ type: 1, fields: [['manufacturer', 'KubeVirt']] }],
  } as unknown as MachinePlan;
  assert.equal(planDifference(plan, { ...plan, sandbox: false, unsupported: [] }), undefined);
  assert.equal(planDifference(plan, { ...plan, firmware: { kind: 'efi', code: '/c', vars: '/d' } }), undefined);
  assert.equal(planDifference(plan, { ...plan, firmware: { kind: 'bios' } }), 'firmware');
  assert.equal(planDifference(plan, { ...plan, memoryBytes: 2 }), 'memoryBytes');
  assert.equal(planDifference(plan, { ...plan, machine: { type: 'pc-q35-8.2', options: {} } }), 'machine');
  // A guest that began with the adapter that another version gave keeps it; other devices are not exchanged.
  const bochs: MachinePlan = { ...plan, devices: [plan.devices[0]!, { driver: 'bochs-display', id: 'video0' }] };
  assert.equal(planDifference(plan, bochs), undefined);
  assert.deepEqual(movedPlan(plan, bochs).devices, plan.devices);
  assert.equal(planDifference(plan, { ...plan, devices: plan.devices.slice(0, 1) }), 'devices');
  assert.equal(planDifference(plan, { ...plan, devices: plan.devices.slice(1) }), 'devices');
  // What disks are plugged into differs with the version: the guest keeps what it has. So do the places of its disks.
  const scsi = { driver: 'virtio-scsi-pci', id: 'scsi0', addr: '0x1d.0x0' };
  const roomy: MachinePlan = { ...plan, devices: [scsi, ...plan.devices] };
  assert.equal(planDifference(plan, roomy), undefined);
  assert.deepEqual(movedPlan(plan, roomy).devices, plan.devices);
  assert.deepEqual(movedPlan(roomy, { ...roomy, devices: [...plan.devices, scsi] }).devices, roomy.devices);
  const disk = (name: string, more: object = {}) =>
    partly<PlannedDisk>({ name, id: `ua-${name}`, bus: 'scsi', ...more });
  const place = { bus: 'scsi0.0', 'scsi-id': 4 };
  const plugged: MachinePlan = { ...plan, disks: [disk('b', { bootIndex: 2 }), disk('a', { node: 7, place })] };
  const fresh: MachinePlan = { ...plan, disks: [disk('a', { bootIndex: 1 }), disk('b', { bootIndex: 2 })] };
  assert.equal(planDifference(plugged, fresh), undefined);
  assert.deepEqual(movedPlan(plugged, fresh).disks, plugged.disks);
  assert.equal(planDifference(plugged, { ...fresh, disks: [disk('a')] }), 'disks');
  assert.equal(planDifference(plugged, { ...fresh, disks: [disk('a'), disk('b', { serial: 'x' })] }), 'disks');
  const hostile: MachinePlan = { ...plan, disks: [disk('a', { place: { ...place, drive: 'b' } })] };
  assert.deepEqual(movedPlan(hostile, { ...plan, disks: [disk('a')] }).disks[0]?.place, place);
  // So with cards: one that was plugged hangs where the source says, and stands last.
  const card = (name: string, more: object = {}) =>
    partly<PlannedInterface>({ name, id: `ua-${name}`, driver: 'virtio-net-pci', ...more });
  const port = { bus: 'plug-2', addr: '0x0' };
  const given: MachinePlan = { ...plan, interfaces: [card('b'), card('a', { place: port })] };
  const built: MachinePlan = { ...plan, interfaces: [card('a', { place: { bus: 'plug-0', addr: '0x0' } }), card('b')] };
  assert.equal(planDifference(given, built), undefined);
  assert.deepEqual(movedPlan(given, built).interfaces, given.interfaces);
  assert.equal(planDifference(given, { ...built, interfaces: [card('b')] }), 'interfaces');
  assert.equal(planDifference(given, { ...built, interfaces: [card('a', { mac: 'x' }), card('b')] }), 'interfaces');
  // Queues are those of the start, or QEMU's own for a guest of a version that named none.
  const queued = (queues: object): MachinePlan => ({ ...plan, disks: [disk('a', queues)] });
  assert.equal(planDifference(queued({ queues: 1 }), queued({ queues: 2 })), undefined);
  for (const [given, kept] of [
    [{ queues: 1 }, 1],
    [{}, undefined],
    [{ queues: 'all' }, undefined],
  ] as const)
    assert.equal(movedPlan(queued(given), queued({ queues: 2 })).disks[0]?.queues, kept);
  const renamed: MachinePlan = { ...plan, smbios: [{ type: 1, fields: [['manufacturer', 'Acme']] }] };
  assert.deepEqual(movedPlan(renamed, plan).smbios, renamed.smbios);
  // A guest of a version without TPMs comes without one; one that has a TPM needs one.
  const tpm = { model: 'tpm-tis', persistent: false } as const;
  assert.equal(planDifference(plan, { ...plan, tpm }), undefined);
  assert.equal(movedPlan(plan, { ...plan, tpm }).tpm, undefined);
  assert.equal(planDifference({ ...plan, tpm }, plan), 'tpm');
  assert.deepEqual(movedPlan({ ...plan, tpm }, { ...plan, tpm }).tpm, tpm);
  // Processors and memory that can be plugged: the guest comes with what it has, and the room for more that it has.
  const hot = { ...plan, cpu: { ...plan.cpu, maxSockets: 4 }, hotMemory: { bytes: 9, requestedBytes: 2 } };
  const grown = { ...plan, cpu: { ...plan.cpu, sockets: 2, maxSockets: 4 }, memoryBytes: 3 };
  assert.equal(planDifference(hot, grown), undefined);
  assert.equal(planDifference(plan, { ...plan, cpu: { ...plan.cpu, sockets: 2 } }), 'cpu');
  assert.equal(planDifference(hot, { ...grown, cpu: { ...grown.cpu, cores: 2 } }), 'cpu');
  const { cpu, memoryBytes, hotMemory } = movedPlan(hot, grown);
  assert.deepEqual({ cpu, memoryBytes, hotMemory }, { cpu: hot.cpu, memoryBytes: 1, hotMemory: hot.hotMemory });
  assert.deepEqual(movedPlan(plan, grown).cpu, plan.cpu);
  // What a guest does not get of its memory it never gets, and one that got all of it keeps it.
  const less = { ...plan, heldBackBytes: 131072 };
  assert.equal(planDifference(plan, less), undefined);
  assert.equal(planDifference(less, plan), undefined);
  assert.equal(movedPlan(less, plan).heldBackBytes, 131072);
  assert.equal('heldBackBytes' in movedPlan(plan, less), false);
  const odd: MachinePlan = { ...plan, smbios: [{ type: 1, fields: [['file', '/etc/shadow']] }] };
  assert.deepEqual(movedPlan(odd, plan).smbios, plan.smbios, 'a table of another form is not taken over');
});
