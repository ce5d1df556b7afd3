/** The KubeVirt kinds: types, names, served resources, CustomResourceDefinitions. */
export type { BackupSpec, BackupStatus, BackupTrackerSpec, BackupTrackerStatus } from './backup.ts';
export type { ClonePhase, CloneSpec, CloneStatus } from './clone.ts';
export type { DataVolumeTemplate } from './data-volume.ts';
export type { CdromTarget, Devices, Disk, DiskTarget, Gpu, HostDevice, Input, LunTarget, Watchdog } from './devices.ts';
export type {
  Clock,
  Cpu,
  CpuTopology,
  DomainSpec,
  FeatureHyperv,
  Features,
  Firmware,
  KernelBoot,
  Machine,
  Memory,
} from './domain.ts';
export type { QuantityValue } from './fields.ts';
export type {
  CpuTopologyName,
  DevicePreferences,
  InstancetypeSpec,
  PreferenceSpec,
  SpreadAcross,
} from './instancetype.ts';
export { CPU_TOPOLOGIES, SPREAD_ACROSS } from './instancetype.ts';
export type {
  KubeVirt,
  MigrationPolicy,
  VirtualMachine,
  VirtualMachineBackup,
  VirtualMachineBackupTracker,
  VirtualMachineClone,
  VirtualMachineInstance,
  VirtualMachineInstanceMigration,
  VirtualMachineInstancePreset,
  VirtualMachineInstanceReplicaSet,
  VirtualMachineInstancetype,
  VirtualMachinePool,
  VirtualMachinePreference,
  VirtualMachineRestore,
  VirtualMachineSnapshot,
  VirtualMachineSnapshotContent,
} from './kinds.ts';
export {
  BACKUP_GROUP,
  CLONE_GROUP,
  INSTANCETYPE_GROUP,
  INSTANCETYPE_VERSION,
  KUBEVIRT_GROUP,
  KUBEVIRTS,
  MIGRATION_POLICIES,
  MIGRATIONS_GROUP,
  POOL_GROUP,
  SNAPSHOT_GROUP,
  SNAPSHOT_VERSION,
  VIRTUAL_MACHINE_BACKUP_TRACKERS,
  VIRTUAL_MACHINE_BACKUPS,
  VIRTUAL_MACHINE_CLONES,
  VIRTUAL_MACHINE_CLUSTER_INSTANCETYPES,
  VIRTUAL_MACHINE_CLUSTER_PREFERENCES,
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCE_PRESETS,
  VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_INSTANCETYPES,
  VIRTUAL_MACHINE_POOLS,
  VIRTUAL_MACHINE_PREFERENCES,
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
} from './kinds.ts';
export type { KubeVirtConfiguration, KubeVirtSpec, KubeVirtStatus } from './kubevirt-cr.ts';
export type { MigrationPhase, MigrationSpec, MigrationStatus } from './migration.ts';
export { MIGRATION_PHASES } from './migration.ts';
export type { MigrationConfiguration, MigrationOptions } from './migration-options.ts';
export type { MigrationPolicySpec } from './migration-policy.ts';
export type { Interface, Network, Port } from './network.ts';
export type { PoolSpec, PoolStatus } from './pool.ts';
export { SORT_POLICIES, STATE_PRESERVATIONS } from './pool.ts';
export { kubevirtCrd, kubevirtCrds, kubevirtResources } from './resources.ts';
export type {
  RestoreSpec,
  RestoreStatus,
  TargetReadinessPolicy,
  VolumeRestore,
  VolumeRestoreOverride,
} from './restore.ts';
export { VOLUME_OWNERSHIP_POLICIES, VOLUME_RESTORE_POLICIES } from './restore.ts';
export type { PresetSpec, ReplicaSetSpec, ReplicaSetStatus } from './sets.ts';
export type {
  Indication,
  SnapshotContentSpec,
  SnapshotContentStatus,
  SnapshotError,
  SnapshotPhase,
  SnapshotSpec,
  SnapshotStatus,
  SourceVirtualMachine,
  VolumeBackup,
} from './snapshot.ts';
export type {
  GuestOsInfo,
  InterfaceStatus,
  MigrationState,
  VirtualMachineInstanceStatus,
  VmCondition,
  VmiPhase,
  VolumeStatus,
} from './status.ts';
export { VMI_PHASES } from './status.ts';
export { toStructuralSchema } from './structural-schema.ts';
export type {
  InstancetypeMatcher,
  PreferenceMatcher,
  RunStrategy,
  StateChangeRequest,
  VirtualMachineSpec,
  VirtualMachineStatus,
} from './vm.ts';
export { RUN_STRATEGIES } from './vm.ts';
export type {
  AccessCredential,
  EvictionStrategy,
  GuestProbe,
  TemplateMeta,
  VirtualMachineInstanceSpec,
  VirtualMachineInstanceTemplateSpec,
} from './vmi-spec.ts';
export { EVICTION_STRATEGIES } from './vmi-spec.ts';
export type { CloudInitSource, ContainerDiskSource, UtilityVolume, Volume } from './volumes.ts';
