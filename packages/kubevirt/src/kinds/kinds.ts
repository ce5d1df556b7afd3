/** The KubeVirt kinds as TypeScript types, and their names as clients use them. */
import { clusterType, namespacedType, type ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, KubeObject } from '@coracle/apimachinery/meta/object';
import type { BackupSpec, BackupStatus, BackupTrackerSpec, BackupTrackerStatus } from './backup.ts';
import type { CloneSpec, CloneStatus } from './clone.ts';
import type { ExportSpec, ExportStatus } from './export.ts';
import type { InstancetypeSpec, PreferenceSpec } from './instancetype.ts';
import type { KubeVirtSpec, KubeVirtStatus } from './kubevirt-cr.ts';
import type { MigrationSpec, MigrationStatus } from './migration.ts';
import type { MigrationPolicySpec } from './migration-policy.ts';
import type { PoolSpec, PoolStatus } from './pool.ts';
import type { RestoreSpec, RestoreStatus } from './restore.ts';
import type { PresetSpec, ReplicaSetSpec, ReplicaSetStatus } from './sets.ts';
import type { SnapshotContentSpec, SnapshotContentStatus, SnapshotSpec, SnapshotStatus } from './snapshot.ts';
import type { VirtualMachineInstanceStatus } from './status.ts';
import type { VirtualMachineSpec, VirtualMachineStatus } from './vm.ts';
import type { VirtualMachineInstanceSpec } from './vmi-spec.ts';

export const KUBEVIRT_GROUP = 'kubevirt.io';
export const INSTANCETYPE_GROUP = 'instancetype.kubevirt.io';
export const INSTANCETYPE_VERSION = 'v1beta1';
export const MIGRATIONS_GROUP = 'migrations.kubevirt.io';
export const SNAPSHOT_GROUP = 'snapshot.kubevirt.io';
export const SNAPSHOT_VERSION = 'v1beta1';
export const CLONE_GROUP = 'clone.kubevirt.io';
export const BACKUP_GROUP = 'backup.kubevirt.io';
export const EXPORT_GROUP = 'export.kubevirt.io';
export const POOL_GROUP = 'pool.kubevirt.io';

type Kind<Spec, Status> = KubeObject & { spec: Spec; status?: Status };

export type VirtualMachine = Kind<VirtualMachineSpec, VirtualMachineStatus>;
export type VirtualMachineInstance = Kind<VirtualMachineInstanceSpec, VirtualMachineInstanceStatus>;
export type VirtualMachineInstanceMigration = Kind<MigrationSpec, MigrationStatus>;
export type VirtualMachineInstanceReplicaSet = Kind<ReplicaSetSpec, ReplicaSetStatus>;
export type VirtualMachineInstancePreset = KubeObject & { spec: PresetSpec };
export type KubeVirt = Kind<KubeVirtSpec, KubeVirtStatus>;

/** Namespaced and cluster-wide instance types share this shape. */
export type VirtualMachineInstancetype = KubeObject & { spec: InstancetypeSpec };

/** Namespaced and cluster-wide preferences share this shape. */
export type VirtualMachinePreference = KubeObject & { spec: PreferenceSpec };

export type MigrationPolicy = Kind<MigrationPolicySpec, Record<string, unknown>>;
export type VirtualMachineSnapshot = Kind<SnapshotSpec, SnapshotStatus>;
export type VirtualMachineSnapshotContent = Kind<SnapshotContentSpec, SnapshotContentStatus>;
export type VirtualMachineRestore = Kind<RestoreSpec, RestoreStatus>;
export type VirtualMachineClone = Kind<CloneSpec, CloneStatus>;
export type VirtualMachinePool = Kind<PoolSpec, PoolStatus>;
export type VirtualMachineBackup = Kind<BackupSpec, BackupStatus>;
export type VirtualMachineBackupTracker = Kind<BackupTrackerSpec, BackupTrackerStatus>;

/** A kind whose plural is its name with an s. */
const namespaced = <T>(apiVersion: string, kind: string): ResourceType<T> =>
  namespacedType(apiVersion, `${kind.toLowerCase()}s`, kind);
const cluster = <T>(apiVersion: string, kind: string): ResourceType<T> =>
  clusterType(apiVersion, `${kind.toLowerCase()}s`, kind);

export interface VirtualMachineExport extends KubeObject {
  spec: ExportSpec;
  status?: ExportStatus;
}

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

const API_VERSION = `${KUBEVIRT_GROUP}/v1`;
export const VIRTUAL_MACHINES = namespaced<VirtualMachine>(API_VERSION, 'VirtualMachine');
export const VIRTUAL_MACHINE_INSTANCES: ResourceType<VirtualMachineInstance> = Object.freeze({
  ...namespaced<VirtualMachineInstance>(API_VERSION, 'VirtualMachineInstance'),
  statusIsOptional: true,
});
export const VIRTUAL_MACHINE_INSTANCE_MIGRATIONS = namespaced<VirtualMachineInstanceMigration>(
  API_VERSION,
  'VirtualMachineInstanceMigration',
);
export const VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS = namespaced<VirtualMachineInstanceReplicaSet>(
  API_VERSION,
  'VirtualMachineInstanceReplicaSet',
);
export const VIRTUAL_MACHINE_INSTANCE_PRESETS = namespaced<VirtualMachineInstancePreset>(
  API_VERSION,
  'VirtualMachineInstancePreset',
);
export const KUBEVIRTS = namespaced<KubeVirt>(API_VERSION, 'KubeVirt');

const INSTANCETYPE_API = `${INSTANCETYPE_GROUP}/${INSTANCETYPE_VERSION}`;
export const VIRTUAL_MACHINE_INSTANCETYPES = namespaced<VirtualMachineInstancetype>(
  INSTANCETYPE_API,
  'VirtualMachineInstancetype',
);
export const VIRTUAL_MACHINE_CLUSTER_INSTANCETYPES = cluster<VirtualMachineInstancetype>(
  INSTANCETYPE_API,
  'VirtualMachineClusterInstancetype',
);
export const VIRTUAL_MACHINE_PREFERENCES = namespaced<VirtualMachinePreference>(
  INSTANCETYPE_API,
  'VirtualMachinePreference',
);
export const VIRTUAL_MACHINE_CLUSTER_PREFERENCES = cluster<VirtualMachinePreference>(
  INSTANCETYPE_API,
  'VirtualMachineClusterPreference',
);
export const MIGRATION_POLICIES = clusterType<MigrationPolicy>(
  `${MIGRATIONS_GROUP}/v1alpha1`,
  'migrationpolicies',
  'MigrationPolicy',
);

const SNAPSHOT_API = `${SNAPSHOT_GROUP}/${SNAPSHOT_VERSION}`;
export const VIRTUAL_MACHINE_SNAPSHOTS = namespaced<VirtualMachineSnapshot>(SNAPSHOT_API, 'VirtualMachineSnapshot');
export const VIRTUAL_MACHINE_SNAPSHOT_CONTENTS = namespaced<VirtualMachineSnapshotContent>(
  SNAPSHOT_API,
  'VirtualMachineSnapshotContent',
);
export const VIRTUAL_MACHINE_RESTORES = namespaced<VirtualMachineRestore>(SNAPSHOT_API, 'VirtualMachineRestore');

export const VIRTUAL_MACHINE_CLONES = namespaced<VirtualMachineClone>(`${CLONE_GROUP}/v1beta1`, 'VirtualMachineClone');

export const VIRTUAL_MACHINE_POOLS = namespaced<VirtualMachinePool>(`${POOL_GROUP}/v1beta1`, 'VirtualMachinePool');

const BACKUP_API = `${BACKUP_GROUP}/v1alpha1`;
export const VIRTUAL_MACHINE_BACKUPS = namespaced<VirtualMachineBackup>(BACKUP_API, 'VirtualMachineBackup');
export const VIRTUAL_MACHINE_BACKUP_TRACKERS = namespaced<VirtualMachineBackupTracker>(
  BACKUP_API,
  'VirtualMachineBackupTracker',
);

export const VIRTUAL_MACHINE_EXPORTS = namespacedType<VirtualMachineExport>(
  `${EXPORT_GROUP}/v1`,
  'virtualmachineexports',
  'VirtualMachineExport',
);
