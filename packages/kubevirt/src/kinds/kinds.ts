/** The KubeVirt kinds as TypeScript types, and their names as clients use them. */
import { clusterType, namespacedType, type ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
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

export interface VirtualMachine extends KubeObject {
  spec: VirtualMachineSpec;
  status?: VirtualMachineStatus;
}

export interface VirtualMachineInstance extends KubeObject {
  spec: VirtualMachineInstanceSpec;
  status?: VirtualMachineInstanceStatus;
}

export interface VirtualMachineInstanceMigration extends KubeObject {
  spec: MigrationSpec;
  status?: MigrationStatus;
}

export interface VirtualMachineInstanceReplicaSet extends KubeObject {
  spec: ReplicaSetSpec;
  status?: ReplicaSetStatus;
}

export interface VirtualMachineInstancePreset extends KubeObject {
  spec: PresetSpec;
}

export interface KubeVirt extends KubeObject {
  spec: KubeVirtSpec;
  status?: KubeVirtStatus;
}

/** Namespaced and cluster-wide instance types share this shape. */
export interface VirtualMachineInstancetype extends KubeObject {
  spec: InstancetypeSpec;
}

/** Namespaced and cluster-wide preferences share this shape. */
export interface VirtualMachinePreference extends KubeObject {
  spec: PreferenceSpec;
}

export interface MigrationPolicy extends KubeObject {
  spec: MigrationPolicySpec;
  status?: Record<string, unknown>;
}

export interface VirtualMachineSnapshot extends KubeObject {
  spec: SnapshotSpec;
  status?: SnapshotStatus;
}

export interface VirtualMachineSnapshotContent extends KubeObject {
  spec: SnapshotContentSpec;
  status?: SnapshotContentStatus;
}

export interface VirtualMachineRestore extends KubeObject {
  spec: RestoreSpec;
  status?: RestoreStatus;
}

export interface VirtualMachineClone extends KubeObject {
  spec: CloneSpec;
  status?: CloneStatus;
}

export interface VirtualMachinePool extends KubeObject {
  spec: PoolSpec;
  status?: PoolStatus;
}

export interface VirtualMachineBackup extends KubeObject {
  spec: BackupSpec;
  status?: BackupStatus;
}

export interface VirtualMachineBackupTracker extends KubeObject {
  spec: BackupTrackerSpec;
  status?: BackupTrackerStatus;
}

export interface VirtualMachineExport extends KubeObject {
  spec: ExportSpec;
  status?: ExportStatus;
}

const API_VERSION = `${KUBEVIRT_GROUP}/v1`;
export const VIRTUAL_MACHINES = namespacedType<VirtualMachine>(API_VERSION, 'virtualmachines', 'VirtualMachine');
export const VIRTUAL_MACHINE_INSTANCES: ResourceType<VirtualMachineInstance> = Object.freeze({
  ...namespacedType<VirtualMachineInstance>(API_VERSION, 'virtualmachineinstances', 'VirtualMachineInstance'),
  statusIsOptional: true,
});
export const VIRTUAL_MACHINE_INSTANCE_MIGRATIONS = namespacedType<VirtualMachineInstanceMigration>(
  API_VERSION,
  'virtualmachineinstancemigrations',
  'VirtualMachineInstanceMigration',
);
export const VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS = namespacedType<VirtualMachineInstanceReplicaSet>(
  API_VERSION,
  'virtualmachineinstancereplicasets',
  'VirtualMachineInstanceReplicaSet',
);
export const VIRTUAL_MACHINE_INSTANCE_PRESETS = namespacedType<VirtualMachineInstancePreset>(
  API_VERSION,
  'virtualmachineinstancepresets',
  'VirtualMachineInstancePreset',
);
export const KUBEVIRTS = namespacedType<KubeVirt>(API_VERSION, 'kubevirts', 'KubeVirt');

const INSTANCETYPE_API = `${INSTANCETYPE_GROUP}/${INSTANCETYPE_VERSION}`;
export const VIRTUAL_MACHINE_INSTANCETYPES = namespacedType<VirtualMachineInstancetype>(
  INSTANCETYPE_API,
  'virtualmachineinstancetypes',
  'VirtualMachineInstancetype',
);
export const VIRTUAL_MACHINE_CLUSTER_INSTANCETYPES = clusterType<VirtualMachineInstancetype>(
  INSTANCETYPE_API,
  'virtualmachineclusterinstancetypes',
  'VirtualMachineClusterInstancetype',
);
export const VIRTUAL_MACHINE_PREFERENCES = namespacedType<VirtualMachinePreference>(
  INSTANCETYPE_API,
  'virtualmachinepreferences',
  'VirtualMachinePreference',
);
export const VIRTUAL_MACHINE_CLUSTER_PREFERENCES = clusterType<VirtualMachinePreference>(
  INSTANCETYPE_API,
  'virtualmachineclusterpreferences',
  'VirtualMachineClusterPreference',
);
export const MIGRATION_POLICIES = clusterType<MigrationPolicy>(
  `${MIGRATIONS_GROUP}/v1alpha1`,
  'migrationpolicies',
  'MigrationPolicy',
);

const SNAPSHOT_API = `${SNAPSHOT_GROUP}/${SNAPSHOT_VERSION}`;
export const VIRTUAL_MACHINE_SNAPSHOTS = namespacedType<VirtualMachineSnapshot>(
  SNAPSHOT_API,
  'virtualmachinesnapshots',
  'VirtualMachineSnapshot',
);
export const VIRTUAL_MACHINE_SNAPSHOT_CONTENTS = namespacedType<VirtualMachineSnapshotContent>(
  SNAPSHOT_API,
  'virtualmachinesnapshotcontents',
  'VirtualMachineSnapshotContent',
);
export const VIRTUAL_MACHINE_RESTORES = namespacedType<VirtualMachineRestore>(
  SNAPSHOT_API,
  'virtualmachinerestores',
  'VirtualMachineRestore',
);

export const VIRTUAL_MACHINE_CLONES = namespacedType<VirtualMachineClone>(
  `${CLONE_GROUP}/v1beta1`,
  'virtualmachineclones',
  'VirtualMachineClone',
);

export const VIRTUAL_MACHINE_POOLS = namespacedType<VirtualMachinePool>(
  `${POOL_GROUP}/v1beta1`,
  'virtualmachinepools',
  'VirtualMachinePool',
);

const BACKUP_API = `${BACKUP_GROUP}/v1alpha1`;
export const VIRTUAL_MACHINE_BACKUPS = namespacedType<VirtualMachineBackup>(
  BACKUP_API,
  'virtualmachinebackups',
  'VirtualMachineBackup',
);
export const VIRTUAL_MACHINE_BACKUP_TRACKERS = namespacedType<VirtualMachineBackupTracker>(
  BACKUP_API,
  'virtualmachinebackuptrackers',
  'VirtualMachineBackupTracker',
);

export const VIRTUAL_MACHINE_EXPORTS = namespacedType<VirtualMachineExport>(
  `${EXPORT_GROUP}/v1`,
  'virtualmachineexports',
  'VirtualMachineExport',
);
