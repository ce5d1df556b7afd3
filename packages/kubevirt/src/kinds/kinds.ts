/** The KubeVirt kinds as TypeScript types, and their names as clients use them. */
import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import type { BackupSpec, BackupStatus, BackupTrackerSpec, BackupTrackerStatus } from './backup.ts';
import type { CloneSpec, CloneStatus } from './clone.ts';
import type { InstancetypeSpec, PreferenceSpec } from './instancetype.ts';
import type { KubeVirtSpec, KubeVirtStatus } from './kubevirt-cr.ts';
import type { MigrationSpec, MigrationStatus } from './migration.ts';
import type { MigrationPolicySpec } from './migration-policy.ts';
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

export interface VirtualMachineBackup extends KubeObject {
  spec: BackupSpec;
  status?: BackupStatus;
}

export interface VirtualMachineBackupTracker extends KubeObject {
  spec: BackupTrackerSpec;
  status?: BackupTrackerStatus;
}

const define = <T>(resource: string, kind: string): ResourceType<T> =>
  Object.freeze({ group: KUBEVIRT_GROUP, version: 'v1', resource, kind, namespaced: true });

export const VIRTUAL_MACHINES: ResourceType<VirtualMachine> = define('virtualmachines', 'VirtualMachine');
export const VIRTUAL_MACHINE_INSTANCES: ResourceType<VirtualMachineInstance> = Object.freeze({
  ...define<VirtualMachineInstance>('virtualmachineinstances', 'VirtualMachineInstance'),
  statusIsOptional: true,
});
export const VIRTUAL_MACHINE_INSTANCE_MIGRATIONS: ResourceType<VirtualMachineInstanceMigration> = define(
  'virtualmachineinstancemigrations',
  'VirtualMachineInstanceMigration',
);
export const VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS: ResourceType<VirtualMachineInstanceReplicaSet> = define(
  'virtualmachineinstancereplicasets',
  'VirtualMachineInstanceReplicaSet',
);
export const VIRTUAL_MACHINE_INSTANCE_PRESETS: ResourceType<VirtualMachineInstancePreset> = define(
  'virtualmachineinstancepresets',
  'VirtualMachineInstancePreset',
);
export const KUBEVIRTS: ResourceType<KubeVirt> = define('kubevirts', 'KubeVirt');

const defineInstancetype = <T>(resource: string, kind: string, namespaced: boolean): ResourceType<T> =>
  Object.freeze({ group: INSTANCETYPE_GROUP, version: INSTANCETYPE_VERSION, resource, kind, namespaced });

export const VIRTUAL_MACHINE_INSTANCETYPES: ResourceType<VirtualMachineInstancetype> = defineInstancetype(
  'virtualmachineinstancetypes',
  'VirtualMachineInstancetype',
  true,
);
export const VIRTUAL_MACHINE_CLUSTER_INSTANCETYPES: ResourceType<VirtualMachineInstancetype> = defineInstancetype(
  'virtualmachineclusterinstancetypes',
  'VirtualMachineClusterInstancetype',
  false,
);
export const VIRTUAL_MACHINE_PREFERENCES: ResourceType<VirtualMachinePreference> = defineInstancetype(
  'virtualmachinepreferences',
  'VirtualMachinePreference',
  true,
);
export const VIRTUAL_MACHINE_CLUSTER_PREFERENCES: ResourceType<VirtualMachinePreference> = defineInstancetype(
  'virtualmachineclusterpreferences',
  'VirtualMachineClusterPreference',
  false,
);
export const MIGRATION_POLICIES: ResourceType<MigrationPolicy> = Object.freeze({
  group: MIGRATIONS_GROUP,
  version: 'v1alpha1',
  resource: 'migrationpolicies',
  kind: 'MigrationPolicy',
  namespaced: false,
});

const defineSnapshot = <T>(resource: string, kind: string): ResourceType<T> =>
  Object.freeze({ group: SNAPSHOT_GROUP, version: SNAPSHOT_VERSION, resource, kind, namespaced: true });

export const VIRTUAL_MACHINE_SNAPSHOTS: ResourceType<VirtualMachineSnapshot> = defineSnapshot(
  'virtualmachinesnapshots',
  'VirtualMachineSnapshot',
);
export const VIRTUAL_MACHINE_SNAPSHOT_CONTENTS: ResourceType<VirtualMachineSnapshotContent> = defineSnapshot(
  'virtualmachinesnapshotcontents',
  'VirtualMachineSnapshotContent',
);
export const VIRTUAL_MACHINE_RESTORES: ResourceType<VirtualMachineRestore> = defineSnapshot(
  'virtualmachinerestores',
  'VirtualMachineRestore',
);

export const VIRTUAL_MACHINE_CLONES: ResourceType<VirtualMachineClone> = Object.freeze({
  group: CLONE_GROUP,
  version: 'v1beta1',
  resource: 'virtualmachineclones',
  kind: 'VirtualMachineClone',
  namespaced: true,
});

const defineBackup = <T>(resource: string, kind: string): ResourceType<T> =>
  Object.freeze({ group: BACKUP_GROUP, version: 'v1alpha1', resource, kind, namespaced: true });

export const VIRTUAL_MACHINE_BACKUPS: ResourceType<VirtualMachineBackup> = defineBackup(
  'virtualmachinebackups',
  'VirtualMachineBackup',
);
export const VIRTUAL_MACHINE_BACKUP_TRACKERS: ResourceType<VirtualMachineBackupTracker> = defineBackup(
  'virtualmachinebackuptrackers',
  'VirtualMachineBackupTracker',
);
