/** The kinds as TypeScript types, and their names as clients use them: those of the tables, and names for parts of them. */
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type {
  DataVolume,
  DataVolumeStatus,
  KubeVirt,
  MigrationStatus,
  PreferenceSpec,
  SnapshotStatus,
  SspStatus,
  VirtualMachine,
  VirtualMachineBackup,
  VirtualMachineClone,
  VirtualMachineExport,
  VirtualMachineInstance,
  VirtualMachineInstanceMigration,
  VirtualMachineInstanceSpec,
  VirtualMachinePool,
  VirtualMachineRestore,
  VirtualMachineSnapshot,
  VirtualMachineSnapshotContent,
  VirtualMachineSpec,
} from './kinds.generated.ts';

export type * from './basic-types.ts';
export * from './kinds.generated.ts';

export const KUBEVIRT_GROUP = 'kubevirt.io';
export const INSTANCETYPE_GROUP = 'instancetype.kubevirt.io';
export const INSTANCETYPE_VERSION = 'v1beta1';
export const SNAPSHOT_GROUP = 'snapshot.kubevirt.io';
export const SNAPSHOT_VERSION = 'v1beta1';
export const CLONE_GROUP = 'clone.kubevirt.io';
export const BACKUP_GROUP = 'backup.kubevirt.io';
export const EXPORT_GROUP = 'export.kubevirt.io';
export const POOL_GROUP = 'pool.kubevirt.io';
export const CDI_GROUP = 'cdi.kubevirt.io';
export const CDI_VERSION = 'v1beta1';
export const CORACLE_GROUP = 'coracle.dev';
export const CORACLE_VERSION = 'v1alpha1';
export const SSP_GROUP = 'ssp.kubevirt.io';

/** As stores and caches hand them out: nobody changes them. */
export type ReadonlyVm = DeepReadonly<VirtualMachine>;
export type ReadonlyVmi = DeepReadonly<VirtualMachineInstance>;
export type ReadonlyMigration = DeepReadonly<VirtualMachineInstanceMigration>;
export type ReadonlySnapshot = DeepReadonly<VirtualMachineSnapshot>;
export type ReadonlyContent = DeepReadonly<VirtualMachineSnapshotContent>;
export type ReadonlyRestore = DeepReadonly<VirtualMachineRestore>;
export type ReadonlyClone = DeepReadonly<VirtualMachineClone>;
export type ReadonlyPool = DeepReadonly<VirtualMachinePool>;
export type ReadonlyExport = DeepReadonly<VirtualMachineExport>;
export type ReadonlyBackup = DeepReadonly<VirtualMachineBackup>;
export type ReadonlyKubeVirt = DeepReadonly<KubeVirt>;
export type ReadonlyDataVolume = DeepReadonly<DataVolume>;

export type RunStrategy = NonNullable<VirtualMachineSpec['runStrategy']>;
export type EvictionStrategy = NonNullable<VirtualMachineInstanceSpec['evictionStrategy']>;
export type MigrationPhase = NonNullable<MigrationStatus['phase']>;
type CpuPreferences = NonNullable<PreferenceSpec['cpu']>;
export type CpuTopologyName = NonNullable<CpuPreferences['preferredCPUTopology']>;
export type SpreadAcross = NonNullable<NonNullable<CpuPreferences['spreadOptions']>['across']>;
export type Indication = NonNullable<SnapshotStatus['sourceIndications']>[number]['indication'];
export type DataVolumePhase = NonNullable<DataVolumeStatus['phase']>;
export type SspPhase = NonNullable<SspStatus['phase']>;
