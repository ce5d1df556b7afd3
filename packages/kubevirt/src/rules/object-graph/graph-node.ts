/**
 * One node of an object graph, and the kinds that may stand in one: those of upstream's graph
 * (pkg/virt-api/rest/objectgraph.go), and those that only the extended graph has.
 */

/** Label of every node: what the machine needs the object for. */
export const DEPENDENCY_LABEL = 'kubevirt.io/dependency-type';

export type DependencyType = 'storage' | 'network' | 'compute' | 'config';

export interface ObjectGraphReference {
  /** Empty for the core group. */
  readonly apiGroup: string;
  readonly kind: string;
  readonly name: string;
  /** Empty for what has none. */
  readonly namespace: string;
}

/** A node as upstream's API writes it (ObjectGraphNode). */
export interface ObjectGraphNode {
  readonly objectReference: ObjectGraphReference;
  readonly labels: Readonly<Record<string, string>>;
  /** Only ever true: the machine can be had without the object. */
  readonly optional?: true;
  /** Absent when there are none. */
  readonly children?: readonly ObjectGraphNode[];
}

const INSTANCETYPE_GROUP = 'instancetype.kubevirt.io';

const SNAPSHOT_GROUP = 'snapshot.kubevirt.io';
const BACKUP_GROUP = 'backup.kubevirt.io';

/** Group and type of each kind. */
const KINDS = {
  VirtualMachine: ['kubevirt.io', 'compute'],
  VirtualMachineInstance: ['kubevirt.io', 'compute'],
  Pod: ['', 'compute'],
  VirtualMachineInstancetype: [INSTANCETYPE_GROUP, 'config'],
  VirtualMachineClusterInstancetype: [INSTANCETYPE_GROUP, 'config'],
  VirtualMachinePreference: [INSTANCETYPE_GROUP, 'config'],
  VirtualMachineClusterPreference: [INSTANCETYPE_GROUP, 'config'],
  ControllerRevision: ['apps', 'config'],
  ConfigMap: ['', 'config'],
  Secret: ['', 'config'],
  ServiceAccount: ['', 'config'],
  DataVolume: ['cdi.kubevirt.io', 'storage'],
  PersistentVolumeClaim: ['', 'storage'],
  NetworkAttachmentDefinition: ['k8s.cni.cncf.io', 'network'],
  // From here on: of the extended graph alone.
  PersistentVolume: ['', 'storage'],
  VirtualMachineSnapshot: [SNAPSHOT_GROUP, 'storage'],
  VirtualMachineSnapshotContent: [SNAPSHOT_GROUP, 'storage'],
  VirtualMachineRestore: [SNAPSHOT_GROUP, 'storage'],
  VolumeSnapshot: ['snapshot.storage.k8s.io', 'storage'],
  VirtualMachineBackup: [BACKUP_GROUP, 'storage'],
  VirtualMachineBackupTracker: [BACKUP_GROUP, 'storage'],
  VirtualMachineExport: ['export.kubevirt.io', 'storage'],
  VirtualMachineClone: ['clone.kubevirt.io', 'storage'],
  IPAMClaim: ['k8s.cni.cncf.io', 'network'],
  ResourceClaim: ['resource.k8s.io', 'compute'],
  ResourceClaimTemplate: ['resource.k8s.io', 'compute'],
} as const satisfies Record<string, readonly [group: string, type: DependencyType]>;

export type GraphKind = keyof typeof KINDS;

/** A node of a kind. `children` may be empty. */
export function graphNode(
  kind: GraphKind,
  key: { readonly namespace: string; readonly name: string },
  more: { readonly optional?: boolean; readonly children?: readonly ObjectGraphNode[] } = {},
): ObjectGraphNode {
  const [apiGroup, type] = KINDS[kind];
  return {
    objectReference: { apiGroup, kind, name: key.name, namespace: key.namespace },
    labels: { [DEPENDENCY_LABEL]: type },
    ...(more.optional && { optional: true }),
    ...(more.children && more.children.length > 0 && { children: more.children }),
  };
}
