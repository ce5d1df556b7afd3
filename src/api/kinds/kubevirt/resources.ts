/** The KubeVirt kinds as served resources, and as the CustomResourceDefinitions that `kubectl get crd` shows. */
import type { TSchema } from 'typebox';
import { formatTime } from '../../meta/object.ts';
import type { Schema } from '../../schema/schema.ts';
import type { CustomResourceDefinition, CustomResourceDefinitionVersion } from '../builtin/access-types.ts';
import { builtinSchema } from '../builtin/builtin-types.ts';
import { customStrategy, type PrinterColumn, type ResourceInfo, type SubresourceInfo } from '../resource.ts';
import { instancetypeSpec, preferenceSpec } from './instancetype.ts';
import { INSTANCETYPE_GROUP, KUBEVIRT_GROUP, MIGRATIONS_GROUP, SNAPSHOT_GROUP } from './kinds.ts';
import { kubeVirtSpec, kubeVirtStatus } from './kubevirt-cr.ts';
import { migrationSpec, migrationStatus } from './migration.ts';
import { migrationPolicySpec, migrationPolicyStatus } from './migration-policy.ts';
import { restoreSpec, restoreStatus } from './restore.ts';
import { presetSpec, replicaSetSpec, replicaSetStatus } from './sets.ts';
import { snapshotContentSpec, snapshotContentStatus, snapshotSpec, snapshotStatus } from './snapshot.ts';
import { vmiStatus } from './status.ts';
import { toStructuralSchema } from './structural-schema.ts';
import { vmSpec, vmStatus } from './vm.ts';
import { vmiSpec } from './vmi-spec.ts';

/** In the order in which discovery of custom resources lists them. */
const VERBS = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'] as const;

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
const age = column('Age', '.metadata.creationTimestamp', { type: 'date' });
const phase = column('Phase', '.status.phase');

/** How one served version differs from the others of its kind. */
interface Version {
  readonly name: string;
  readonly deprecationWarning?: string;
}

const VERSIONS: readonly Version[] = [
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

interface KindTable {
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
/** The kinds of the snapshot group have two versions, neither marked as deprecated. */
const snapshotKind = {
  group: SNAPSHOT_GROUP,
  versions: [{ name: 'v1beta1' }, { name: 'v1alpha1' }],
  storage: 'v1beta1',
};
const snapshotColumns = [
  column('ReadyToUse', '.status.readyToUse', { type: 'boolean' }),
  column('CreationTime', '.status.creationTime', { type: 'date' }),
  column('Error', '.status.error.message'),
];
const clusterKind = { scope: 'Cluster', categories: [] } as const;

const KINDS: readonly KindTable[] = [
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
    columns: [
      column('Desired', '.spec.replicas', { type: 'integer', description: 'Wanted number of instances' }),
      column('Current', '.status.replicas', { type: 'integer', description: 'Instances there are' }),
      column('Ready', '.status.readyReplicas', { type: 'integer', description: 'Instances that are ready' }),
      age,
    ],
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
];

const hasStatusSubresource = ({ status, statusInObject }: KindTable): boolean =>
  status !== undefined && statusInObject !== true;
const groupOf = (table: KindTable): string => table.group ?? KUBEVIRT_GROUP;

function schemaOf(table: KindTable, metadata: Schema): Schema {
  const properties: Record<string, Schema> = Object.create(null);
  properties['apiVersion'] = { type: 'string', description: 'Version of the API this object is written in.' };
  properties['kind'] = { type: 'string', description: 'Kind of this object.' };
  properties['metadata'] = metadata;
  properties['spec'] = toStructuralSchema(table.spec);
  if (table.status !== undefined) properties['status'] = toStructuralSchema(table.status);
  return { type: 'object', description: table.description, properties, required: ['spec'] };
}

function infoOf(table: KindTable, version: Version, schema: Schema): ResourceInfo {
  const singular = table.kind.toLowerCase();
  const storage = table.storage ?? 'v1';
  const group = groupOf(table);
  const subresources: SubresourceInfo[] = !hasStatusSubresource(table)
    ? []
    : [{ name: 'status', kind: table.kind, verbs: ['get', 'patch', 'update'] }];
  return {
    group,
    version: version.name,
    resource: table.plural ?? `${singular}s`,
    singular,
    kind: table.kind,
    listKind: `${table.kind}List`,
    namespaced: table.scope !== 'Cluster',
    verbs: VERBS,
    shortNames: table.shortNames,
    categories: table.categories ?? ['all'],
    subresources,
    schema,
    // A CustomResourceDefinition without columns is shown with the age alone.
    columns: table.columns.length > 0 ? table.columns : [age],
    selectableFields: {},
    strategy: customStrategy(hasStatusSubresource(table)),
    ...(version.name !== storage && { storageVersion: `${group}/${storage}` }),
    ...(version.deprecationWarning !== undefined && { deprecationWarning: version.deprecationWarning }),
  };
}

let resources: readonly ResourceInfo[] | undefined;

/** Every served version of every KubeVirt kind; the stored version of a kind comes without `storageVersion`. */
export function kubevirtResources(): readonly ResourceInfo[] {
  resources ??= KINDS.flatMap((table) => {
    const schema = schemaOf(table, builtinSchema('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'));
    return (table.versions ?? VERSIONS).map((version) => infoOf(table, version, schema));
  });
  return resources;
}

/** The CustomResourceDefinition of each kind, once. `now` is the time their conditions carry. */
export function kubevirtCrds(now: number): readonly CustomResourceDefinition[] {
  return kubevirtResources()
    .filter(({ storageVersion }) => storageVersion === undefined)
    .map((info) => kubevirtCrd(info, now));
}

/**
 * The CustomResourceDefinition of the kind that `info` (any version of it) serves, with the status of an accepted one.
 * `now` is the time its conditions carry.
 * @throws Error when `info` is no KubeVirt resource
 */
export function kubevirtCrd(info: ResourceInfo, now: number): CustomResourceDefinition {
  const table = KINDS.find((candidate) => info.group === groupOf(candidate) && candidate.kind === info.kind);
  if (table === undefined) throw new Error(`${info.group}/${info.kind} is no kind of ${KUBEVIRT_GROUP}`);
  const storage = table.storage ?? 'v1';
  const names = {
    plural: info.resource,
    singular: info.singular,
    shortNames: [...info.shortNames],
    kind: info.kind,
    listKind: info.listKind,
    categories: [...info.categories],
  };
  const at = formatTime(now);
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: `${info.resource}.${info.group}`,
      labels: info.kind === 'KubeVirt' ? { 'operator.kubevirt.io': '' } : { 'kubevirt.io': '' },
    },
    spec: {
      group: info.group,
      names,
      scope: table.scope === 'Cluster' ? 'Cluster' : 'Namespaced',
      versions: (table.versions ?? VERSIONS).map((version) => versionOf(table, version, version.name === storage)),
      conversion: { strategy: 'None' },
    },
    status: {
      conditions: [
        {
          type: 'NamesAccepted',
          status: 'True',
          lastTransitionTime: at,
          reason: 'NoConflicts',
          message: 'no conflicts found',
        },
        {
          type: 'Established',
          status: 'True',
          lastTransitionTime: at,
          reason: 'InitialNamesAccepted',
          message: 'the initial names have been accepted',
        },
      ],
      acceptedNames: names,
      storedVersions: [storage],
    },
  };
}

function versionOf(table: KindTable, version: Version, storage: boolean): CustomResourceDefinitionVersion {
  return {
    name: version.name,
    served: true,
    storage,
    ...(version.deprecationWarning !== undefined && {
      deprecated: true,
      deprecationWarning: version.deprecationWarning,
    }),
    schema: { openAPIV3Schema: schemaOf(table, { type: 'object' }) as Record<string, unknown> },
    ...(hasStatusSubresource(table) && { subresources: { status: {} } }),
    ...(table.columns.length > 0 && {
      additionalPrinterColumns: table.columns.map(({ name, type, description, priority, path }) => ({
        name,
        type,
        ...(description !== undefined && { description }),
        ...(priority > 0 && { priority }),
        jsonPath: path!,
      })),
    }),
  };
}
