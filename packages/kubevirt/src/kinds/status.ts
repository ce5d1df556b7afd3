/** What the controllers and the agent report of an instance. */
import type { Static } from 'typebox';
import { cpuTopology, machine } from './domain.ts';
import {
  atomicList,
  bool,
  int,
  list,
  long,
  map,
  needed,
  object,
  oneOf,
  quantity,
  resourceList,
  str,
  stringMap,
  strings,
  time,
} from './fields.ts';
import { migrationOptions } from './migration-options.ts';

/** The older condition shape, with a probe time, that all of this API uses. */
export const condition = object('One observed aspect.', {
  type: needed(str('Aspect.')),
  status: needed(oneOf(['True', 'False', 'Unknown'], 'True, False or Unknown.')),
  lastProbeTime: time('When it was last looked at.', { nullable: true }),
  lastTransitionTime: time('When the status last changed.', { nullable: true }),
  reason: str('Reason in one word.'),
  message: str('Details for people.'),
});

export const conditions = list(condition, 'Observed aspects.');

export const VMI_PHASES = [
  'Pending',
  'Scheduling',
  'Scheduled',
  'Running',
  'Succeeded',
  'Failed',
  'WaitingForSync',
  'Unknown',
] as const;

const claimInfo = object('Facts about a claim.', {
  claimName: str('Name of the claim.'),
  accessModes: atomicList(str('Access mode.'), 'Wanted access modes.'),
  volumeMode: str('Filesystem or Block.'),
  capacity: resourceList('Capacity in the status of the claim.'),
  requests: resourceList('Requests in the spec of the claim.'),
  preallocated: bool('The storage is allocated in full.'),
  filesystemOverhead: str('Share of the file system kept free.', { pattern: '^(0(?:\\.\\d{1,3})?|1)$' }),
});

export const migratedVolumes = atomicList(
  object('One volume on its way.', {
    volumeName: needed(str('Name of the volume.')),
    sourcePVCInfo: claimInfo,
    destinationPVCInfo: claimInfo,
  }),
  'Volumes that are being moved, from where and to where.',
);

const checksum = object('Facts about a file.', {
  checksum: long('Checksum; no longer written.', { minimum: 0, maximum: 4294967295 }),
});

const volumeStatus = object('State of one volume.', {
  name: needed(str('Name of the volume.')),
  target: needed(str('Device name in the machine, for instance vda.')),
  phase: str('Phase.'),
  reason: str('Why it is in this phase.'),
  message: str('Details for people.'),
  persistentVolumeClaimInfo: claimInfo,
  hotplugVolume: object('State of a plugged volume.', {
    attachPodName: str('Pod that attaches the volume.'),
    attachPodUID: str('UID of that pod.'),
  }),
  size: long('Size in bytes.'),
  memoryDumpVolume: object('State of a memory dump.', {
    startTimestamp: time('Start.'),
    endTimestamp: time('End.'),
    claimName: str('Claim that takes the dump.'),
    targetFileName: str('File of the dump.'),
  }),
  containerDiskVolume: checksum,
});

const interfaceStatus = object('State of one interface.', {
  ipAddress: str('First address.'),
  mac: str('Hardware address.'),
  name: str('Name of the network.'),
  ipAddresses: strings('All addresses.'),
  podInterfaceName: str('Name in the pod.'),
  interfaceName: str('Name in the guest.'),
  infoSource: str('Where this is known from: domain, guest-agent, multus-status.'),
  queueCount: int('Number of queues.'),
  linkState: str('up or down.'),
});

export const guestOsInfo = object('Operating system of the guest, by its agent.', {
  name: str('Name.'),
  kernelRelease: str('Kernel release.'),
  version: str('Version.'),
  prettyName: str('Name and version for people.'),
  versionId: str('Version id.'),
  kernelVersion: str('Kernel version.'),
  machine: str('Machine type.'),
  id: str('Id.'),
});

const commonSide = {
  node: str('Node.'),
  pod: str('Launcher pod.'),
  migrationUID: str('UID of the migration object.'),
  domainName: str('Name of the domain.'),
  domainNamespace: str('Namespace in the name of the domain.'),
  syncAddress: str('Address to synchronise with.'),
  persistentStatePVCName: str('Claim with the persistent state.'),
  selinuxContext: str('SELinux context of the pod.'),
  virtualMachineInstanceUID: str('UID of the instance.'),
};

export const migrationState = object('State of a live migration.', {
  startTimestamp: time('Start.', { nullable: true }),
  endTimestamp: time('End.', { nullable: true }),
  targetNodeDomainReadyTimestamp: time('When the target saw the guest run.'),
  targetNodeDomainDetected: bool('The target saw the domain start.'),
  targetNodeAddress: str('Address of the target node.'),
  targetDirectMigrationNodePorts: map(int('Port.'), 'Ports opened on the target.'),
  targetNode: str('Target node.'),
  targetPod: str('Target pod.'),
  targetAttachmentPodUID: str('UID of the target attachment pod.'),
  sourceNode: str('Source node.'),
  sourcePod: str('Source pod.'),
  completed: bool('It has ended.'),
  failed: bool('It has failed.'),
  abortRequested: bool('Somebody asked to abort.'),
  abortStatus: oneOf(['Succeeded', 'Failed', 'Aborting'], 'What became of the abort.'),
  failureReason: str('Why it failed.'),
  migrationUid: str('UID of the migration object.'),
  mode: oneOf(['PreCopy', 'PostCopy', 'Paused'], 'Mode it runs in.'),
  migrationPolicyName: str('Policy that applied.'),
  migrationConfiguration: migrationOptions,
  targetCPUSet: atomicList(int('Processor.'), 'Dedicated processors on the target.'),
  targetNodeTopology: str('NUMA topology of the target.'),
  sourcePersistentStatePVCName: str('Claim with the persistent state, source.'),
  targetPersistentStatePVCName: str('Claim with the persistent state, target.'),
  sourceState: object('What the source knows.', {
    ...commonSide,
    nodeSelectors: stringMap('Node selectors the target needs.'),
  }),
  targetState: object('What the target knows.', {
    ...commonSide,
    domainReadyTimestamp: time('When the target saw the guest run.'),
    domainDetected: bool('The target saw the domain start.'),
    nodeAddress: str('Address of the target node.'),
    directMigrationNodePorts: map(int('Port.'), 'Ports opened on the target.'),
    attachmentPodUID: str('UID of the attachment pod.'),
    cpuSet: atomicList(int('Processor.'), 'Dedicated processors.'),
    nodeTopology: str('NUMA topology.'),
  }),
  migrationNetworkType: oneOf(['Pod', 'Migration'], 'Network it runs over.'),
  targetMemoryOverhead: quantity('Memory overhead of the target pod.'),
});

export const changedBlockTracking = object(
  'State of changed-block tracking.',
  {
    state: needed(str('State.')),
    backupStatus: object(
      'State of a backup.',
      {
        backupName: str('Name.'),
        startTimestamp: time('Start.'),
        endTimestamp: time('End.'),
        completed: bool('It has ended.'),
        failed: bool('It has failed.'),
        backupMsg: str('Details for people.'),
        checkpointName: str('Checkpoint made for it.'),
        volumes: atomicList(
          object('A volume.', { volumeName: needed(str('Name.')), type: str('Full or Incremental.') }),
          'Volumes in it.',
        ),
        quiesceStatus: str('What became of freezing the file systems.'),
      },
      { nullable: true },
    ),
  },
  { nullable: true },
);

export const vmiStatus = object('What is known of the instance.', {
  nodeName: str('Node it runs on.'),
  reason: str('Why it is in this state.'),
  conditions,
  phase: oneOf(VMI_PHASES, 'Where it is in its life.'),
  phaseTransitionTimestamps: atomicList(
    object('One change of phase.', { phase: oneOf(VMI_PHASES, 'Phase.'), phaseTransitionTimestamp: time('When.') }),
    'When each phase was entered.',
  ),
  interfaces: list(interfaceStatus, 'Interfaces as seen.'),
  guestOSInfo: guestOsInfo,
  migrationState,
  migrationMethod: oneOf(['BlockMigration', 'LiveMigration'], 'Whether disks move with the guest.'),
  migrationTransport: oneOf(['Unix'], 'Transport of migrations.'),
  qosClass: str('Quality-of-service class.'),
  launcherContainerImageVersion: str('Image of the launcher.'),
  evacuationNodeName: str('Node that is to be left.'),
  activePods: stringMap('Launcher pods by UID, with their nodes.'),
  volumeStatus: atomicList(volumeStatus, 'State of the volumes.'),
  kernelBootStatus: object('Facts about the booted kernel.', { kernelInfo: checksum, initrdInfo: checksum }),
  fsFreezeStatus: str('frozen while the file systems are frozen.'),
  topologyHints: object('Hints for placement.', { tscFrequency: long('TSC frequency.') }),
  virtualMachineRevisionName: str('Revision of the virtual machine it was started from.'),
  runtimeUser: long('User id the launcher runs as.'),
  VSOCKCID: long('VSOCK address.', { minimum: 0, maximum: 4294967295 }),
  selinuxContext: str('SELinux context of the launcher.'),
  machine,
  currentCPUTopology: cpuTopology,
  memory: object('Memory as it is.', {
    guestAtBoot: quantity('At boot.'),
    guestCurrent: quantity('Now.'),
    guestRequested: quantity('Asked for by hot plug.'),
    memoryOverhead: quantity('Overhead of the launcher.'),
  }),
  migratedVolumes,
  changedBlockTracking,
});

export type VmCondition = Static<typeof condition>;
export type VirtualMachineInstanceStatus = Static<typeof vmiStatus>;
export type MigrationState = Static<typeof migrationState>;
export type VolumeStatus = Static<typeof volumeStatus>;
export type GuestOsInfo = Static<typeof guestOsInfo>;
