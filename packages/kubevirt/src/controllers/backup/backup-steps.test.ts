import { PERSISTENT_VOLUME_CLAIMS } from '../../../../apimachinery/src/types/resource-types.ts';
import type { ControllerEnvironment } from '../../../../client/src/controller/environment.ts';
import { createEventRecorder } from '../../../../client/src/events/recorder.ts';
import { NOW, stored } from '../../../../client/src/run-step.fixture.ts';
import {
  VIRTUAL_MACHINE_BACKUP_TRACKERS,
  VIRTUAL_MACHINE_BACKUPS,
  type VirtualMachineBackup,
  type VirtualMachineInstance,
} from '../../kinds/kubevirt.ts';
import { CHECKPOINT_FINALIZER } from '../../rules/backup/checkpoint-handles.ts';
import { instance, machine, testSteps } from '../step.fixture.ts';
import { BACKUP_FINALIZER, BackupSteps } from './backup-steps.ts';
import { backupStores } from './backup-stores.ts';

const backup = (
  metadata: Partial<VirtualMachineBackup['metadata']> = {},
  spec: Partial<VirtualMachineBackup['spec']> = {},
) =>
  stored(VIRTUAL_MACHINE_BACKUPS, 'b', {
    metadata: { finalizers: [BACKUP_FINALIZER], ...metadata },
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'vm' }, pvcName: 'target', ...spec },
  });
type Report = NonNullable<
  NonNullable<NonNullable<VirtualMachineInstance['status']>['changedBlockTracking']>['backupStatus']
>;
const guest = (backupStatus?: Report, phase: 'Running' | 'Failed' = 'Running') =>
  instance(
    { phase, changedBlockTracking: { state: 'Enabled', ...(backupStatus && { backupStatus }) } },
    {},
    {
      volumes: [{ name: 'd', persistentVolumeClaim: { claimName: 'disk' } }],
    },
  );
const CLAIM = stored(PERSISTENT_VOLUME_CLAIMS, 'target', {
  spec: {},
  status: { phase: 'Bound', capacity: { storage: '1Gi' } },
});
const tracked = { source: { apiGroup: 'backup.kubevirt.io', kind: 'VirtualMachineBackupTracker', name: 't' } };
const TRACKER = stored(VIRTUAL_MACHINE_BACKUP_TRACKERS, 't', {
  spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'vm' } },
  status: { latestCheckpoint: { name: 'before' } },
});
const VM = machine({});

const run = (step: 'start' | 'goOn' | 'end') => (steps: BackupSteps) =>
  steps[step](steps.stores.backups.get({ namespace: 'ns', name: 'b' })!);
const make = (environment: ControllerEnvironment) =>
  new BackupSteps({
    ...environment,
    stores: backupStores(environment),
    events: createEventRecorder(environment.client, { component: 'test', clock: environment.clock }),
  });

const ASK = 'PUT virtualmachineinstances/vm/backup';
const META = 'PATCH virtualmachinebackups/b';
const SAVE = `${META}/status`;
const GUEST = 'PATCH virtualmachineinstances/vm';
const waits = (message: string) =>
  [SAVE, { status: { conditions: [{ type: 'Progressing', reason: 'Initializing', message }] } }] as const;
const SOON = { requeueAfterMs: 5000 };
testSteps({ make, act: run('start') }, [
  {
    name: 'a backup takes its finalizer before the agent is asked',
    objects: [backup({ finalizers: [] }), VM, guest(), CLAIM],
    outcome: undefined,
    writes: [[META, { metadata: { finalizers: [BACKUP_FINALIZER] } }]],
  },
  {
    name: 'the agent is asked for a full backup into the claim, which may not hold more than it has',
    objects: [backup(), VM, guest(), CLAIM],
    outcome: SOON,
    writes: [
      [
        ASK,
        {
          cmd: 'Start',
          targetPath: 'uid-target',
          maxBytes: 2 ** 30,
          incremental: undefined,
          keepsCheckpoint: undefined,
        },
      ],
      [SAVE, { status: { startTimestamp: NOW } }],
    ],
  },
  {
    name: 'a backup of a tracker builds on its latest checkpoint, and keeps its own',
    objects: [backup({}, tracked), TRACKER, VM, guest(), CLAIM],
    outcome: SOON,
    writes: [[ASK, { incremental: 'before', keepsCheckpoint: true }], [SAVE]],
  },
  {
    name: 'a full backup that is forced does not build on it',
    objects: [backup({}, { ...tracked, forceFullBackup: true }), TRACKER, VM, guest(), CLAIM],
    writes: [[ASK, { incremental: undefined, keepsCheckpoint: true }], [SAVE]],
  },
  {
    name: 'a backup waits for a tracker that does not exist',
    objects: [backup({}, tracked), VM, guest(), CLAIM],
    outcome: SOON,
    writes: [waits('BackupTracker t does not exist')],
  },
  {
    name: 'a backup waits while another one of the guest is under way',
    objects: [backup(), VM, guest({ backupName: 'other' }), CLAIM],
    outcome: SOON,
    writes: [waits('another backup other is already in progress, cannot start backup b')],
  },
  {
    name: 'pull mode is refused',
    objects: [backup({}, { mode: 'Pull' }), VM, guest(), CLAIM],
    outcome: undefined,
    writes: [[SAVE]],
    events: ['Warning VirtualMachineBackupFailed pull mode is not served here, mode Push is'],
  },
  {
    name: 'a guest that ended during its backup fails it',
    act: run('goOn'),
    objects: [backup(), VM, guest(undefined, 'Failed'), CLAIM],
    outcome: undefined,
    writes: [[SAVE]],
    events: ['Warning VirtualMachineBackupFailed VMI is not in a running state: Failed'],
  },
  {
    name: 'the checkpoint of a backup that is complete is held by its tracker before the tracker names it',
    act: run('goOn'),
    objects: [
      backup({}, tracked),
      TRACKER,
      VM,
      guest({ backupName: 'b', completed: true, checkpointName: 'now', volumes: [{ volumeName: 'd' }] }),
    ],
    outcome: undefined,
    writes: [
      ['PATCH virtualmachinebackuptrackers/t', { metadata: { finalizers: [CHECKPOINT_FINALIZER] } }],
      ['PATCH virtualmachinebackuptrackers/t/status', { status: { latestCheckpoint: { name: 'now' } } }],
      [SAVE, { status: { checkpointName: 'now' } }],
    ],
    events: ['Normal VirtualMachineBackupCompletedSuccessfully Successfully completed VirtualMachineBackup'],
  },
  {
    name: 'a backup that is deleted while it is under way is aborted first',
    act: run('end'),
    objects: [backup({ deletionTimestamp: NOW }), VM, guest({ backupName: 'b' })],
    outcome: { requeueAfterMs: 1000 },
    writes: [[ASK, { cmd: 'Abort' }]],
  },
  {
    name: 'a backup that is deleted after its end takes its report along',
    act: run('end'),
    objects: [backup({ deletionTimestamp: NOW }), VM, guest({ backupName: 'b', completed: true })],
    outcome: undefined,
    writes: [
      [GUEST, { status: { changedBlockTracking: { backupStatus: null } } }],
      [META, { metadata: { finalizers: null } }],
    ],
  },
]);
