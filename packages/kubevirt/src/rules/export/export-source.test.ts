import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PERSISTENT_VOLUME_CLAIMS } from '../../../../apimachinery/src/types/resource-types.ts';
import { stored } from '../../../../client/src/run-step.fixture.ts';
import {
  VIRTUAL_MACHINE_EXPORTS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
} from '../../kinds/kubevirt.ts';
import { type ClaimView, claimSource, type ExportSource, machineSource, snapshotSource } from './export-source.ts';

const object = (kind: string, name: string) =>
  stored(VIRTUAL_MACHINE_EXPORTS, 'e', { spec: { source: { apiGroup: '', kind, name } } });
const claim = (name: string, phase: 'Bound' | 'Pending' | 'Lost' = 'Bound') =>
  stored(PERSISTENT_VOLUME_CLAIMS, name, { spec: {}, status: { phase } });
const view = (name: string, more: Partial<ClaimView> = {}): ClaimView => ({
  claim: claim(name),
  isPopulated: true,
  isInUse: false,
  ...more,
});
/** Names of the claims, the obstacle and the finding in short. */
const short = ({ claims, obstacle, finding, isEmpty }: ExportSource): string =>
  [
    claims.map(({ metadata }) => metadata.name).join('+') || 'nothing',
    obstacle ? `${obstacle.reason} ${obstacle.message}`.trim() : 'ready',
    finding ? `${finding.type}=${finding.status} ${finding.reason} ${finding.message}`.trim() : '-',
    ...(isEmpty ? ['empty'] : []),
  ].join(' | ');

// S-1383
for (const [name, given, expected] of [
  ['a bound claim', view('c'), 'c | ready | PVCReady=True PVCBound'],
  [
    'no claim',
    view('c', { claim: undefined }),
    'nothing | Initializing | PVCReady=False PVCNotFound PersistentVolumeClaim ns/c not found',
  ],
  [
    'a claim that is being filled',
    view('c', { isPopulated: false }),
    'c | PVCPending PersistentVolumeClaim ns/c is not populated | PVCReady=True PVCBound',
  ],
  [
    'a claim that waits for a Pod',
    view('c', { claim: claim('c', 'Pending') }),
    'c | PVCPending PersistentVolumeClaim ns/c is not bound | PVCReady=False PVCPending',
  ],
  [
    'a claim whose volume is gone',
    view('c', { claim: claim('c', 'Lost') }),
    'c | PVCPending PersistentVolumeClaim ns/c is not bound | PVCReady=False Unknown',
  ],
  [
    'a claim that a Pod has',
    view('c', { isInUse: true }),
    'c | InUse PersistentVolumeClaim ns/c is in use | PVCReady=True PVCBound',
  ],
] as const)
  test(`export of ${name}`, () =>
    assert.equal(short(claimSource(object('PersistentVolumeClaim', 'c'), given)), expected));

const vm = stored(VIRTUAL_MACHINES, 'vm', { spec: { template: { spec: { domain: { devices: {} } } } } });
const instance = (phase: 'Running' | 'Succeeded') => stored(VIRTUAL_MACHINE_INSTANCES, 'vm', { status: { phase } });
const VOLUMES = [
  { volume: 'a', claim: 'a' },
  { volume: 'b', claim: 'b' },
];
type Machine = Partial<Parameters<typeof machineSource>[1]>;
for (const [name, given, expected] of [
  ['a stopped machine', {}, 'a+b | ready | PVCReady=True PVCBound'],
  ['a machine whose guest has ended', { vmi: instance('Succeeded') }, 'a+b | ready | PVCReady=True PVCBound'],
  ['no machine', { vm: undefined }, 'nothing | VMNotFound Virtual Machine ns/vm not found | -'],
  [
    'a machine without disks',
    { volumes: [] },
    'nothing | VMNoVolumes Virtual Machine ns/vm has no volumes | - | empty',
  ],
  [
    'a machine that runs',
    { vmi: instance('Running') },
    'a+b | InUse Virtual Machine ns/vm is running | PVCReady=True PVCBound',
  ],
  [
    'a machine one of whose disks is being filled',
    { view: (claim: string) => view(claim, { isPopulated: claim !== 'b' }) },
    'a+b | VolumesNotPopulated Not all volumes in the Virtual Machine ns/vm are populated | PVCReady=True PVCBound',
  ],
  [
    'a machine whose disk another Pod has',
    { view: (claim: string) => view(claim, { isInUse: claim === 'b' }) },
    'a+b | InUse PersistentVolumeClaim ns/b is in use | PVCReady=True PVCBound',
  ],
] as const satisfies readonly (readonly [string, Machine, string])[])
  test(`export of ${name}`, () =>
    assert.equal(
      short(
        machineSource(object('VirtualMachine', 'vm'), {
          vm,
          vmi: undefined,
          volumes: VOLUMES,
          view: (claim) => view(claim),
          ...(given as Machine),
        }),
      ),
      expected,
    ));

const snapshot = (readyToUse: boolean) =>
  stored(VIRTUAL_MACHINE_SNAPSHOTS, 's', {
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'vm' } },
    status: { readyToUse },
  });
const BACKUPS = [
  { volumeName: 'a', persistentVolumeClaim: { metadata: { name: 'a' } } },
  { volumeName: 'b', persistentVolumeClaim: { metadata: { name: 'b' } } },
];
const EMPTY = 'VirtualMachineSnapshot ns/s does not contain any volume snapshots';
type Saved = Partial<Parameters<typeof snapshotSource>[1]>;
for (const [name, given, expected] of [
  ['a snapshot', {}, 'e-a+e-b | ready | VolumesCreated=True AllPVCsReady'],
  [
    'no snapshot',
    { snapshot: undefined },
    `nothing | VMSnapshotNotFound VirtualMachineSnapshot ns/s not found | VolumesCreated=False VMSnapshotNoVolumes ${EMPTY}`,
  ],
  [
    'a snapshot that is being taken',
    { snapshot: snapshot(false) },
    `nothing | NotAllPVCsCreated ${EMPTY} | VolumesCreated=False NotAllPVCsCreated ${EMPTY}`,
  ],
  [
    'a snapshot without disks',
    { backups: [] },
    `nothing | Initializing | VolumesCreated=False VMSnapshotNoVolumes ${EMPTY} | empty`,
  ],
  [
    'a snapshot whose claims are being made',
    { claimNamed: (name: string) => (name === 'e-a' ? claim(name) : undefined) },
    'nothing | Initializing | VolumesCreated=False NotAllPVCsCreated Not all PVCs have been successfully restored',
  ],
  [
    'a snapshot whose claims are not bound',
    { claimNamed: (name: string) => claim(name, 'Pending') },
    'e-a+e-b | Initializing | VolumesCreated=False NotAllPVCsReady Not all PVCs are ready',
  ],
] as const satisfies readonly (readonly [string, Saved, string])[])
  test(`export of ${name}`, () =>
    assert.equal(
      short(
        snapshotSource(object('VirtualMachineSnapshot', 's'), {
          snapshot: snapshot(true),
          backups: BACKUPS,
          claimNamed: (one) => claim(one),
          ...(given as Saved),
        }),
      ),
      expected,
    ));
