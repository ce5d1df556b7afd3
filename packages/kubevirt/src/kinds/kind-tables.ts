/** What is said of each KubeVirt kind beside its schema: names, versions, columns, in the order they are served. */

import type { PrinterColumn } from '@coracle/apimachinery/types/resource';
import type { TSchema } from 'typebox';
import { backupSpec, backupStatus, backupTrackerSpec, backupTrackerStatus } from './backup.ts';
import { cloneSpec, cloneStatus } from './clone.ts';
import { exportSpec, exportStatus } from './export.ts';
import { instancetypeSpec, preferenceSpec } from './instancetype.ts';
import {
  BACKUP_GROUP,
  CLONE_GROUP,
  EXPORT_GROUP,
  INSTANCETYPE_GROUP,
  MIGRATIONS_GROUP,
  POOL_GROUP,
  SNAPSHOT_GROUP,
} from './kinds.ts';
import { kubeVirtSpec, kubeVirtStatus } from './kubevirt-cr.ts';
import { migrationSpec, migrationStatus } from './migration.ts';
import { migrationPolicySpec, migrationPolicyStatus } from './migration-policy.ts';
import { poolSpec, poolStatus } from './pool.ts';
import { restoreSpec, restoreStatus } from './restore.ts';
import { presetSpec, replicaSetSpec, replicaSetStatus } from './sets.ts';
import { snapshotContentSpec, snapshotContentStatus, snapshotSpec, snapshotStatus } from './snapshot.ts';
import { vmiStatus } from './status.ts';
import { vmSpec, vmStatus } from './vm.ts';
import { vmiSpec } from './vmi-spec.ts';

const column = (
  name: string,
  path: string,
  more: { type?: PrinterColumn['type']; priority?: number; description?: string } = {},
): PrinterColumn => ({
  name,
  type: more.type ?? 'string',
  path,
  priority: more.priority ?? 0,
  ...(more.description !== undefined && { description: more.description }),
});
const conditionPath = (type: string): string => `.status.conditions[?(@.type=='${type}')].status`;
export const age = column('Age', '.metadata.creationTimestamp', { type: 'date' });
const phase = column('Phase', '.status.phase');

/** How one served version differs from the others of its kind. */
export interface Version {
  readonly name: string;
  readonly deprecationWarning?: string;
}

/** The versions of a kind whose table names none. */
export const VERSIONS: readonly Version[] = [
  { name: 'v1' },
  {
    name: 'v1alpha3',
    deprecationWarning: 'kubevirt.io/v1alpha3 is now deprecated and will be removed in a future release.',
  },
];

const presetVersion = (name: string): Version => ({
  name,
  deprecationWarning: `kubevirt.io/${name} VirtualMachineInstancePresets is now deprecated and will be removed in v2.`,
});

export interface KindTable {
  readonly kind: string;
  /** kubevirt.io when absent. */
  readonly group?: string;
  /** The kind in lower case with an s when absent. */
  readonly plural?: string;
  /** Namespaced when absent. */
  readonly scope?: 'Namespaced' | 'Cluster';
  /** `all` when absent. */
  readonly categories?: readonly string[];
  readonly shortNames: readonly string[];
  readonly description: string;
  readonly spec: TSchema;
  readonly status?: TSchema;
  /** Its status is written through the object itself. */
  readonly statusInObject?: true;
  /** Its number of replicas is read and changed at `/scale`. */
  readonly scalable?: true;
  readonly columns: readonly PrinterColumn[];
  /** v1 and the deprecated v1alpha3 when absent. */
  readonly versions?: readonly Version[];
  /** v1 when absent. */
  readonly storage?: string;
}

/** The kinds of the instancetype group have one version, no status and no columns of their own. */
const instancetypeKind = {
  group: INSTANCETYPE_GROUP,
  columns: [],
  versions: [{ name: 'v1beta1' }],
  storage: 'v1beta1',
};
/** The kinds of the snapshot group, and clones, have two versions, neither marked as deprecated. */
const snapshotKind = {
  group: SNAPSHOT_GROUP,
  versions: [{ name: 'v1beta1' }, { name: 'v1alpha1' }],
  storage: 'v1beta1',
};
/** The kinds of the backup group are alpha. */
const backupKind = { group: BACKUP_GROUP, versions: [{ name: 'v1alpha1' }], storage: 'v1alpha1' };
const snapshotColumns = [
  column('ReadyToUse', '.status.readyToUse', { type: 'boolean' }),
  column('CreationTime', '.status.creationTime', { type: 'date' }),
  column('Error', '.status.error.message'),
];
const clusterKind = { scope: 'Cluster', categories: [] } as const;

const setColumns = (members: string): PrinterColumn[] => [
  column('Desired', '.spec.replicas', {
    type: 'integer',
    description: `Wanted number of ${members.toLowerCase()}`,
  }),
  column('Current', '.status.replicas', { type: 'integer', description: `${members} there are` }),
  column('Ready', '.status.readyReplicas', { type: 'integer', description: `${members} that are ready` }),
  age,
];

export const KINDS: readonly KindTable[] = [
  {
    kind: 'VirtualMachine',
    shortNames: ['vm', 'vms'],
    description: 'A virtual machine: keeps its settings and disks while it is off, and starts instances.',
    spec: vmSpec,
    status: vmStatus,
    columns: [
      age,
      column('Status', '.status.printableStatus', { description: 'State for people' }),
      column('Ready', conditionPath('Ready')),
    ],
  },
  {
    kind: 'VirtualMachineInstance',
    shortNames: ['vmi', 'vmis'],
    description: 'One run of a guest.',
    spec: vmiSpec,
    status: vmiStatus,
    statusInObject: true,
    columns: [
      age,
      phase,
      column('IP', '.status.interfaces[0].ipAddress'),
      column('NodeName', '.status.nodeName'),
      column('Ready', conditionPath('Ready')),
      column('Live-Migratable', conditionPath('LiveMigratable'), { priority: 1 }),
      column('Paused', conditionPath('Paused'), { priority: 1 }),
    ],
  },
  {
    kind: 'VirtualMachineInstanceMigration',
    shortNames: ['vmim', 'vmims'],
    description: 'One live migration of an instance.',
    spec: migrationSpec,
    status: migrationStatus,
    columns: [
      column('Phase', '.status.phase', { description: 'Where the migration is' }),
      column('VMI', '.spec.vmiName', { description: 'Instance that is moved' }),
    ],
  },
  {
    kind: 'VirtualMachineInstanceReplicaSet',
    shortNames: ['vmirs', 'vmirss'],
    description: 'Keeps a number of equal instances.',
    spec: replicaSetSpec,
    status: replicaSetStatus,
    scalable: true,
    columns: setColumns('Instances'),
  },
  {
    kind: 'VirtualMachineInstancePreset',
    shortNames: ['vmipreset', 'vmipresets'],
    description: 'Defaults for the instances that a selector matches.',
    spec: presetSpec,
    columns: [],
    versions: [presetVersion('v1'), presetVersion('v1alpha3')],
    storage: 'v1alpha3',
  },
  {
    kind: 'KubeVirt',
    shortNames: ['kv', 'kvs'],
    description: 'Settings of virtualization in this cluster.',
    spec: kubeVirtSpec,
    status: kubeVirtStatus,
    columns: [age, phase],
  },
  {
    ...instancetypeKind,
    kind: 'VirtualMachineInstancetype',
    shortNames: ['vminstancetype', 'vminstancetypes', 'vmf', 'vmfs'],
    description: 'Amounts that virtual machines of its namespace take over.',
    spec: instancetypeSpec,
  },
  {
    ...instancetypeKind,
    ...clusterKind,
    kind: 'VirtualMachineClusterInstancetype',
    shortNames: ['vmclusterinstancetype', 'vmclusterinstancetypes', 'vmcf', 'vmcfs'],
    description: 'Amounts that virtual machines of every namespace take over.',
    spec: instancetypeSpec,
  },
  {
    ...instancetypeKind,
    kind: 'VirtualMachinePreference',
    shortNames: ['vmpref', 'vmprefs', 'vmp', 'vmps'],
    description: 'How a guest likes its machine, for virtual machines of its namespace.',
    spec: preferenceSpec,
  },
  {
    ...instancetypeKind,
    ...clusterKind,
    kind: 'VirtualMachineClusterPreference',
    shortNames: ['vmcp', 'vmcps'],
    description: 'How a guest likes its machine, for virtual machines of every namespace.',
    spec: preferenceSpec,
  },
  {
    ...clusterKind,
    kind: 'MigrationPolicy',
    group: MIGRATIONS_GROUP,
    plural: 'migrationpolicies',
    shortNames: [],
    description: 'Settings of the migrations of the instances it selects.',
    spec: migrationPolicySpec,
    status: migrationPolicyStatus,
    columns: [],
    versions: [{ name: 'v1alpha1' }],
    storage: 'v1alpha1',
  },
  {
    ...snapshotKind,
    kind: 'VirtualMachineSnapshot',
    shortNames: ['vmsnapshot', 'vmsnapshots'],
    description: 'A saved state of a virtual machine.',
    spec: snapshotSpec,
    status: snapshotStatus,
    columns: [
      column('SourceKind', '.spec.source.kind'),
      column('SourceName', '.spec.source.name'),
      phase,
      ...snapshotColumns,
    ],
  },
  {
    ...snapshotKind,
    kind: 'VirtualMachineSnapshotContent',
    shortNames: ['vmsnapshotcontent', 'vmsnapshotcontents'],
    description: 'What a snapshot of a virtual machine holds.',
    spec: snapshotContentSpec,
    status: snapshotContentStatus,
    columns: snapshotColumns,
  },
  {
    ...snapshotKind,
    kind: 'VirtualMachineRestore',
    shortNames: ['vmrestore', 'vmrestores'],
    description: 'Brings a virtual machine back to a snapshot, or makes one from it.',
    spec: restoreSpec,
    status: restoreStatus,
    columns: [
      column('TargetKind', '.spec.target.kind'),
      column('TargetName', '.spec.target.name'),
      column('Complete', '.status.complete', { type: 'boolean' }),
      column('RestoreTime', '.status.restoreTime', { type: 'date' }),
      column('Error', '.status.error.message'),
    ],
  },
  {
    ...snapshotKind,
    group: CLONE_GROUP,
    kind: 'VirtualMachineClone',
    shortNames: ['vmclone', 'vmclones'],
    description: 'Makes a second virtual machine from one, or from a snapshot of it.',
    spec: cloneSpec,
    status: cloneStatus,
    columns: [
      phase,
      column('SourceVirtualMachine', '.spec.source.name'),
      column('TargetVirtualMachine', '.spec.target.name'),
    ],
  },
  {
    kind: 'VirtualMachinePool',
    group: POOL_GROUP,
    shortNames: ['vmpool', 'vmpools'],
    description: 'Keeps a number of equal virtual machines, each with a number in its name.',
    spec: poolSpec,
    status: poolStatus,
    scalable: true,
    columns: setColumns('Machines'),
    versions: [{ name: 'v1beta1' }, { name: 'v1alpha1' }],
    storage: 'v1beta1',
  },
  {
    ...backupKind,
    kind: 'VirtualMachineBackup',
    shortNames: ['vmbackup', 'vmbackups'],
    description: 'A copy of the disks of a running machine.',
    spec: backupSpec,
    status: backupStatus,
    columns: [],
  },
  {
    ...backupKind,
    kind: 'VirtualMachineBackupTracker',
    shortNames: ['vmbackuptracker', 'vmbackuptrackers'],
    description: 'Has the backups of a machine build on one another.',
    spec: backupTrackerSpec,
    status: backupTrackerStatus,
    columns: [],
  },
  {
    kind: 'VirtualMachineExport',
    group: EXPORT_GROUP,
    shortNames: ['vmexport', 'vmexports'],
    description: 'Offers the disks of a machine, of a snapshot or of a claim for download.',
    spec: exportSpec,
    status: exportStatus,
    columns: [column('SourceKind', '.spec.source.kind'), column('SourceName', '.spec.source.name'), phase],
    versions: [
      { name: 'v1' },
      {
        name: 'v1beta1',
        deprecationWarning: 'export.kubevirt.io/v1beta1 VirtualMachineExport is deprecated',
      },
    ],
  },
];
