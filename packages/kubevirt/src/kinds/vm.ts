/** VirtualMachine: the lasting object from which instances are started. */
import type { Static } from 'typebox';
import { dataVolumeTemplate } from './data-volume.ts';
import { disk } from './devices.ts';
import { cpuTopology } from './domain.ts';
import { atomicList, bool, int, list, long, needed, object, oneOf, quantity, str, stringMap, time } from './fields.ts';
import { changedBlockTracking, conditions, migratedVolumes } from './status.ts';
import { vmiTemplate } from './vmi-spec.ts';
import { hotplugVolumeSource } from './volumes.ts';

export const RUN_STRATEGIES = ['Always', 'Halted', 'Manual', 'RerunOnFailure', 'Once', 'WaitAsReceiver'] as const;

const matcher = (what: string) =>
  object(`The ${what} of the virtual machine.`, {
    name: str('Name.'),
    kind: str('Kind; the cluster-wide one when absent.'),
    revisionName: str('ControllerRevision that holds the copy to use.'),
    inferFromVolume: str('Volume whose source names it.'),
    inferFromVolumeFailurePolicy: str('Reject or Ignore.'),
  });

const instancetypeMatcher = matcher('instance type');
const preferenceMatcher = matcher('preference');

export const vmSpec = object('What the virtual machine is to be.', {
  running: bool('Whether it should run. Deprecated: use runStrategy.'),
  runStrategy: oneOf(RUN_STRATEGIES, 'When it should run; not together with running.'),
  instancetype: instancetypeMatcher,
  preference: preferenceMatcher,
  template: needed(vmiTemplate),
  dataVolumeTemplates: list(dataVolumeTemplate, 'DataVolumes made for it.'),
  updateVolumesStrategy: oneOf(['Replacement', 'Migration'], 'What a change of volumes does.'),
});

const dryRun = { dryRun: atomicList(str('All.'), 'All means: check only.') };

const addVolumeOptions = object('A volume to plug.', {
  name: needed(str('Name of the disk and of its volume.')),
  disk: needed(disk),
  volumeSource: needed(hotplugVolumeSource),
  ...dryRun,
});

const removeVolumeOptions = object('A volume to unplug.', { name: needed(str('Name of the volume.')), ...dryRun });

const statusRef = (what: string) =>
  object(
    `The ${what} in use.`,
    {
      name: str('Name.'),
      kind: str('Kind.'),
      controllerRevisionRef: object('Copy in use.', { name: str('Name of the ControllerRevision.') }),
      inferFromVolume: str('Volume whose source named it.'),
      inferFromVolumeFailurePolicy: str('Reject or Ignore.'),
      resources: object('What the guest gets by it; before a restart that is required, what it has.', {
        cpu: needed(cpuTopology),
        memory: needed(quantity('Memory of the guest.')),
      }),
    },
    { nullable: true },
  );

const stateChangeRequest = object('A request to start or stop.', {
  action: needed(oneOf(['Start', 'Stop'], 'Start or Stop.')),
  data: stringMap('Details of the request.'),
  uid: str('Instance the request is about.'),
});

export const vmStatus = object('What is known of the virtual machine.', {
  snapshotInProgress: str('Snapshot that is being taken.'),
  restoreInProgress: str('Restore that is running.'),
  created: bool('An instance exists.'),
  ready: bool('The instance is ready.'),
  printableStatus: str('State for people.', { default: 'Stopped' }),
  conditions,
  stateChangeRequests: list(stateChangeRequest, 'Requests to start or stop.'),
  volumeRequests: atomicList(
    object('A request to plug or unplug; one member only.', { addVolumeOptions, removeVolumeOptions }),
    'Requests to plug or unplug volumes.',
  ),
  volumeSnapshotStatuses: list(
    object('Whether a volume can be snapshotted.', {
      name: needed(str('Name of the volume.')),
      enabled: needed(bool('It can.')),
      reason: str('Why not.'),
    }),
    'Which volumes can be snapshotted.',
  ),
  startFailure: object(
    'Failed starts in a row.',
    {
      consecutiveFailCount: int('How many.'),
      lastFailedVMIUID: str('The last instance that failed.'),
      retryAfterTimestamp: time('When the next start is tried.'),
    },
    { nullable: true },
  ),
  memoryDumpRequest: object(
    'A request for a memory dump.',
    {
      claimName: needed(str('Claim that takes the dump.')),
      phase: needed(str('Phase.')),
      remove: bool('The claim is to be let go.'),
      startTimestamp: time('Start.'),
      endTimestamp: time('End.'),
      fileName: str('File of the dump.'),
      message: str('Details for people.'),
    },
    { nullable: true },
  ),
  observedGeneration: long('Generation the instance was started from.'),
  desiredGeneration: long('Generation of the spec.'),
  runStrategy: oneOf(RUN_STRATEGIES, 'Run strategy in effect.'),
  volumeUpdateState: object('State of a volume update.', {
    volumeMigrationState: object('State of a volume migration.', { migratedVolumes }),
  }),
  changedBlockTracking,
  instancetypeRef: statusRef('instance type'),
  preferenceRef: statusRef('preference'),
});

export type RunStrategy = (typeof RUN_STRATEGIES)[number];
export type VirtualMachineSpec = Static<typeof vmSpec>;
export type VirtualMachineStatus = Static<typeof vmStatus>;
export type InstancetypeMatcher = Static<typeof instancetypeMatcher>;
export type PreferenceMatcher = Static<typeof preferenceMatcher>;
export type StateChangeRequest = Static<typeof stateChangeRequest>;
