import type { ControllerEnvironment } from '../../../../client/src/controller/environment.ts';
import { createEventRecorder } from '../../../../client/src/events/recorder.ts';
import { NOW, stored } from '../../../../client/src/run-step.fixture.ts';
import {
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  type VirtualMachineRestore,
} from '../../kinds/kubevirt.ts';
import { RESTORE_FINALIZER } from '../../rules/snapshot/snapshot-names.ts';
import { instance, machine, testSteps } from '../step.fixture.ts';
import { RestoreSteps } from './restore-steps.ts';
import { snapshotStores } from './snapshot-stores.ts';

const OWNER = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'vm', uid: 'uid-vm' };
const restore = (
  metadata: Partial<VirtualMachineRestore['metadata']> = {},
  spec: Partial<VirtualMachineRestore['spec']> = {},
  status: VirtualMachineRestore['status'] | null = { complete: false },
) =>
  stored(VIRTUAL_MACHINE_RESTORES, 'r', {
    metadata: { finalizers: [RESTORE_FINALIZER], ownerReferences: [OWNER], ...metadata },
    spec: {
      target: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'vm' },
      virtualMachineSnapshotName: 's',
      ...spec,
    },
    ...(status && { status }),
  });
const SAVED = [
  stored(VIRTUAL_MACHINE_SNAPSHOTS, 's', {
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'vm' } },
    status: { readyToUse: true, sourceUID: 'uid-vm', virtualMachineSnapshotContentName: 'c' },
  }),
  stored(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, 'c', { spec: { source: {} }, status: { readyToUse: true } }),
];
const VM = machine({ runStrategy: 'Always' });
const GUEST = instance({ phase: 'Running' });
const make = (environment: ControllerEnvironment) =>
  new RestoreSteps({
    ...environment,
    stores: snapshotStores(environment.informers),
    restores: environment.informers.of(VIRTUAL_MACHINE_RESTORES),
    events: createEventRecorder(environment.client, { component: 'test', clock: environment.clock }),
  });
const act = (steps: RestoreSteps) => steps.reconcile(steps.restores.list()[0]!);

const META = 'PATCH virtualmachinerestores/r';
const STATUS = `${META}/status`;
const says = (progressing: string, reason: string, ready = reason) =>
  [
    STATUS,
    {
      status: {
        conditions: [
          { type: 'Progressing', status: progressing, reason },
          { type: 'Ready', status: 'False', reason: ready },
        ],
      },
    },
  ] as const;
const SOON = { requeueAfterMs: 5000 };
const halted = (message: string) => ({
  outcome: SOON,
  writes: [says('False', message)],
  events: [`Warning VirtualMachineRestoreError VirtualMachineRestore encountered error ${message}`],
});
testSteps({ make, act }, [
  {
    name: 'a restore begins with its status',
    objects: [restore({}, {}, null), VM],
    outcome: undefined,
    writes: [says('True', 'Initializing VirtualMachineRestore')],
  },
  {
    name: 'a restore belongs to its target, and holds itself',
    objects: [restore({ finalizers: [], ownerReferences: [] }), VM],
    outcome: undefined,
    writes: [[META, { metadata: { finalizers: [RESTORE_FINALIZER], ownerReferences: [{ uid: 'uid-vm' }] } }]],
  },
  {
    name: 'a restore whose target was deleted makes no other one',
    objects: [restore(), ...SAVED],
    outcome: undefined,
  },
  {
    name: 'a restore waits until its target is stopped',
    objects: [restore(), VM, GUEST, ...SAVED],
    outcome: SOON,
    writes: [
      says(
        'False',
        'Waiting for target VM to be powered off. Please stop the restore target to proceed with restore, or the operation will fail after 5m0s',
      ),
    ],
    events: [
      'Warning RestoreTargetNotReady Restore target VMI still exists, please stop the restore target to proceed with restore',
    ],
  },
  {
    name: 'a restore that may stop its target does so',
    objects: [restore({}, { targetReadinessPolicy: 'StopTarget' }), VM, GUEST, ...SAVED],
    outcome: SOON,
    writes: [
      ['PUT virtualmachines/vm/stop'],
      says('False', 'Automatically stopping restore target for restore operation'),
    ],
    events: ['Warning RestoreTargetNotReady Automatically stopping restore target for restore operation'],
  },
  {
    name: 'a restore that may not wait fails',
    objects: [restore({}, { targetReadinessPolicy: 'FailImmediate' }), VM, GUEST, ...SAVED],
    outcome: undefined,
    writes: [[STATUS]],
    events: [
      'Warning Operation failed VirtualMachineRestore failed Restore target VMI must be powered off before restore operation',
    ],
  },
  {
    name: 'a snapshot that does not exist is named',
    objects: [restore(), VM],
    ...halted('VMSnapshot ns/s does not exist'),
  },
  {
    name: 'a machine that is not the one that was saved is not overwritten',
    objects: [restore(), machine({}, {}, { uid: 'another' }), ...SAVED],
    ...halted('restore source and restore target are different but restore target already exists'),
  },
  {
    name: 'two restores do not work on one machine',
    objects: [restore(), machine({}, { restoreInProgress: 'other' }), ...SAVED],
    ...halted('vm restore other in progress'),
  },
  {
    name: 'the machine is locked before anything is made',
    objects: [restore(), VM, ...SAVED],
    outcome: SOON,
    writes: [['PATCH virtualmachines/vm/status', { status: { restoreInProgress: 'r' } }]],
  },
  {
    name: 'a restore that is deleted lets its target go first',
    objects: [restore({ deletionTimestamp: NOW }), machine({}, { restoreInProgress: 'r' })],
    outcome: undefined,
    writes: [
      ['PATCH virtualmachines/vm/status', { status: { restoreInProgress: null } }],
      says('False', 'VM restore is deleting'),
    ],
  },
  {
    name: 'a machine that names a restore which is gone is let go',
    act: (steps) => steps.releaseHeld({ namespace: 'ns', name: 'r' }),
    objects: [machine({}, { restoreInProgress: 'r' })],
    writes: [['PATCH virtualmachines/vm/status', { status: { restoreInProgress: null } }]],
  },
]);
