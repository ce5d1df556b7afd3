import assert from 'node:assert/strict';
import { test } from 'node:test';
import { partly } from '../../../../../test/testkit/partly.ts';
import type { VirtualMachineInstance, VirtualMachineInstanceSpec } from '../../kinds/kubevirt.ts';
import { diskChanges } from './disk-changes.ts';
import { EPHEMERAL_VOLUMES, neutraliseVolumes, plugObstacle, volumesDecision } from './volume-changes.ts';

const hot = (name: string, claimName = name) => ({ name, persistentVolumeClaim: { claimName, hotpluggable: true } });
const fixed = (name: string) => ({ name, persistentVolumeClaim: { claimName: name } });
const disk = (name: string, bus = 'scsi') => ({ name, disk: { bus } });
const drive = (name: string) => ({ name, cdrom: { bus: 'sata' } });
type Listed = readonly [volumes: readonly object[], disks: readonly object[]];
const specOf = ([volumes, disks]: Listed) =>
  partly<VirtualMachineInstanceSpec>({ volumes, domain: { devices: { disks } } });
const vmiOf = (listed: Listed, more: object = {}) =>
  partly<VirtualMachineInstance>({ metadata: {}, spec: specOf(listed), ...more });

const ROWS: readonly (readonly [what: string, before: Listed, wanted: Listed, after: Listed | string | undefined])[] = [
  ['nothing', [[hot('a')], [disk('a')]], [[hot('a')], [disk('a')]], undefined],
  [
    'one more, with a serial number',
    [[fixed('root')], [disk('root', 'virtio')]],
    [
      [fixed('root'), hot('a')],
      [disk('root', 'virtio'), disk('a')],
    ],
    [
      [fixed('root'), hot('a')],
      [disk('root', 'virtio'), { ...disk('a'), serial: 'a' }],
    ],
  ],
  [
    'one less',
    [
      [hot('a'), hot('b')],
      [disk('a'), disk('b')],
    ],
    [[hot('b')], [disk('b')]],
    [[hot('b')], [disk('b')]],
  ],
  ['one that is not hot-pluggable', [[], []], [[fixed('a')], [disk('a')]], undefined],
  ['a medium', [[], [drive('d')]], [[hot('d')], [drive('d')]], [[hot('d')], [drive('d')]]],
  ['no medium', [[hot('d')], [drive('d')]], [[], [drive('d')]], [[], [drive('d')]]],
  ['another medium goes first', [[hot('d', 'x')], [drive('d')]], [[hot('d', 'y')], [drive('d')]], [[], [drive('d')]]],
  ['another claim of a disk', [[hot('a', 'x')], [disk('a')]], [[hot('a', 'y')], [disk('a')]], 'restart'],
  ['another bus', [[hot('a')], [disk('a')]], [[hot('a')], [disk('a', 'virtio')]], 'restart'],
  ['a drive', [[], []], [[hot('d')], [drive('d')]], 'restart'],
  ['a wrong bus', [[], []], [[hot('a')], [disk('a', 'sata')]], 'HotPlugVolumeError'],
];
for (const [what, before, wanted, after] of ROWS)
  test(`volumesDecision(): ${what}`, () => {
    const { patch, restart, failure } = volumesDecision({ wanted: specOf(wanted), vmi: vmiOf(before), isFilled: true });
    const put = (path: string) => patch.find((one) => one.op === 'add' && one.path === path)?.value;
    if (typeof after === 'string') assert.deepEqual([failure?.reason ?? (restart && 'restart'), patch], [after, []]);
    else if (!after)
      assert.deepEqual({ patch, restart, failure }, { patch: [], restart: undefined, failure: undefined });
    else assert.deepEqual([put('/spec/volumes') ?? before[0], put('/spec/domain/devices/disks') ?? before[1]], after);
  });

test('a volume of the instance alone stays; one waits for its DataVolume, its migration, and one of its name to go', () => {
  const none: Listed = [[], []];
  const one: Listed = [[hot('a')], [disk('a')]];
  const decision = (vmi: VirtualMachineInstance, wanted: Listed, isFilled = true) =>
    volumesDecision({ wanted: specOf(wanted), vmi, isFilled });
  const alone = vmiOf(one, { metadata: { annotations: { [EPHEMERAL_VOLUMES]: 'a' } } });
  assert.deepEqual(decision(alone, none).patch, []);
  const filled: Listed = [[{ name: 'a', dataVolume: { name: 'a', hotpluggable: true } }], [disk('a')]];
  assert.deepEqual(decision(vmiOf(none), filled, false).patch, []);
  assert.equal(decision(vmiOf(none), filled).patch.length, 4);
  const leaving = vmiOf(none, { status: { volumeStatus: [{ name: 'a', target: '', phase: 'Detaching' }] } });
  assert.deepEqual(decision(leaving, one).patch, []);
  const moving = decision(vmiOf(none, { status: { migrationState: { migrationUid: 'u' } } }), one);
  assert.deepEqual([moving.patch, moving.failure?.reason], [[], 'HotPlugVolumeError']);
});

test('neutraliseVolumes(): what is plugged or unplugged is no difference, all else stays one', () => {
  const rows: readonly (readonly [started: Listed, current: Listed, isSame: boolean])[] = [
    [
      [[fixed('r')], [disk('r')]],
      [
        [hot('a'), fixed('r')],
        [disk('a'), disk('r')],
      ],
      true,
    ],
    [
      [
        [hot('a'), fixed('r')],
        [disk('a'), disk('r')],
      ],
      [[fixed('r')], [disk('r')]],
      true,
    ],
    [[[hot('d', 'x')], [drive('d')]], [[hot('d', 'y')], [drive('d')]], true],
    [[[hot('a', 'x')], [disk('a')]], [[hot('a', 'y')], [disk('a')]], false],
    [[[hot('a')], [disk('a')]], [[hot('a')], [disk('a', 'virtio')]], false],
    [[[fixed('r')], [disk('r')]], [[hot('a')], [disk('a')]], false],
    [[[fixed('r'), fixed('s')], []], [[hot('a'), fixed('s'), fixed('r')], []], false],
  ];
  for (const [started, current, isSame] of rows) {
    const [before, after] = [structuredClone(specOf(started)), specOf(current)];
    neutraliseVolumes(before, after);
    const check = isSame ? assert.deepEqual : assert.notDeepEqual;
    check(before, after, JSON.stringify([started, current]));
  }
});

test('plugObstacle(): disks and LUNs on SCSI, disks on virtio, media', () => {
  assert.equal(plugObstacle(disk('a')), undefined);
  assert.equal(plugObstacle(disk('a', 'virtio')), undefined);
  assert.equal(plugObstacle({ name: 'a', lun: { bus: 'scsi' } }), undefined);
  assert.equal(plugObstacle(drive('a')), undefined);
  assert.match(plugObstacle(undefined) ?? '', /needs a disk/);
  assert.match(plugObstacle(disk('a', 'usb')) ?? '', /does not use a scsi or virtio bus/);
  assert.match(plugObstacle({ name: 'a', lun: { bus: 'virtio' } }) ?? '', /does not use a scsi bus/);
  assert.match(plugObstacle({ ...disk('a'), dedicatedIOThread: true }) ?? '', /IOThread/);
});

test('diskChanges(): a volume is plugged once a Pod holds its claim, and goes when the spec has it no more', () => {
  const status = (attachPodUID: string) => ({
    status: { volumeStatus: [{ name: 'a', target: '', hotplugVolume: { attachPodUID } }] },
  });
  const has = (...names: string[]) => ({
    disks: names.map((name) => ({
      ...partly<Parameters<typeof diskChanges>[1]['disks'][number]>({ name, hasVolume: true, hotpluggable: true }),
    })),
  });
  const one: Listed = [[hot('a'), fixed('r')], [disk('a')]];
  assert.deepEqual(diskChanges(vmiOf(one, status('')), has()), { plug: [], unplug: [] });
  assert.deepEqual(diskChanges(vmiOf(one, status('uid')), has()), { plug: ['a'], unplug: [] });
  assert.deepEqual(diskChanges(vmiOf(one, status('uid')), has('a', 'b')), { plug: [], unplug: ['b'] });
});
