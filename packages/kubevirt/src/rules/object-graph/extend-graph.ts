/**
 * What the extended graph of a machine has beyond upstream's: the objects that save, restore, back up or export it, those
 * that it refers to and upstream leaves out, and revisions below the instance type or preference that they are of.
 */

import type { DeepReadonly, ReadonlyObject } from '@coracle/apimachinery/meta/object';
import type {
  ReadonlyBackup,
  ReadonlyClone,
  ReadonlyContent,
  ReadonlyExport,
  ReadonlyRestore,
  ReadonlySnapshot,
  ReadonlyVm,
  ReadonlyVmi,
  VirtualMachineBackupTracker,
} from '../../kinds/kubevirt.ts';
import { referencesOf } from '../protection/references.ts';
import { isUnderWay } from '../protection/restores.ts';
import { type GraphKind, graphNode, type ObjectGraphNode } from './graph-node.ts';
import { graphKindOf, IPAM_MACHINE_LABEL } from './graph-resources.ts';

/** What is listed in the namespace of the machine; undefined where it could not be. */
export interface GraphLists {
  readonly machines?: readonly ReadonlyVm[] | undefined;
  readonly instances?: readonly ReadonlyVmi[] | undefined;
  readonly snapshots?: readonly ReadonlySnapshot[] | undefined;
  readonly contents?: readonly ReadonlyContent[] | undefined;
  readonly restores?: readonly ReadonlyRestore[] | undefined;
  readonly backups?: readonly ReadonlyBackup[] | undefined;
  readonly trackers?: readonly DeepReadonly<VirtualMachineBackupTracker>[] | undefined;
  readonly exports?: readonly ReadonlyExport[] | undefined;
  readonly ipamClaims?: readonly ReadonlyObject[] | undefined;
  readonly clones?: readonly ReadonlyClone[] | undefined;
}

/** The tree of a virtual machine with the rest of what belongs to it, in this order behind what was there before. */
export function extendMachineGraph(root: ObjectGraphNode, vm: ReadonlyVm, lists: GraphLists): ObjectGraphNode {
  const { namespace = '', name = '' } = vm.metadata;
  const children = revisionsBelow(root.children ?? []);
  const extended = [...children, ...leftOut(vm, children), ...addressNodes(namespace, name, lists)];
  extended.push(...savedNodes(namespace, name, lists));
  extended.push(...exportNodes(namespace, name, [...extended], lists));
  return { ...root, ...(extended.length > 0 && { children: extended }) };
}

/** The same for an instance: what was there before, and its addresses. */
export function extendInstanceGraph(root: ObjectGraphNode, lists: GraphLists): ObjectGraphNode {
  const { namespace, name } = root.objectReference;
  const children = [...(root.children ?? []), ...addressNodes(namespace, name, lists)];
  return { ...root, ...(children.length > 0 && { children }) };
}

/** Upstream puts a revision behind the object that it is of. */
function revisionsBelow(children: readonly ObjectGraphNode[]): ObjectGraphNode[] {
  const nested: ObjectGraphNode[] = [];
  for (const node of children) {
    const last = nested.at(-1);
    if (node.objectReference.kind === 'ControllerRevision' && last && isSource(last) && !last.children)
      nested[nested.length - 1] = { ...last, children: [node] };
    else nested.push(node);
  }
  return nested;
}

const isSource = ({ objectReference: { kind } }: ObjectGraphNode): boolean => /(Instancetype|Preference)$/.test(kind);

/** What the machine refers to and the tree does not have yet, each object once. */
function leftOut(vm: ReadonlyVm, children: readonly ObjectGraphNode[]): ObjectGraphNode[] {
  const known = new Set(allNodes(children).map(keyOfNode));
  return referencesOf(vm).flatMap(({ namespace, name, ...resource }): ObjectGraphNode[] => {
    const kind = graphKindOf(resource);
    if (kind === undefined) return [];
    const node = graphNode(kind, { namespace, name });
    if (known.has(keyOfNode(node))) return [];
    known.add(keyOfNode(node));
    return [node];
  });
}

/** A node and all below it, parents first. */
export const allNodes = <T extends { readonly children?: readonly T[] }>(nodes: readonly T[]): T[] =>
  nodes.flatMap((node) => [node, ...allNodes(node.children ?? [])]);

/** Identity of the object of a node. */
export const keyOfNode = ({ objectReference }: Pick<ObjectGraphNode, 'objectReference'>): string =>
  `${objectReference.apiGroup}/${objectReference.kind}/${objectReference.namespace}/${objectReference.name}`;

const OPTIONAL = { optional: true };

const addressNodes = (namespace: string, machine: string, { ipamClaims = [] }: GraphLists): ObjectGraphNode[] =>
  ipamClaims
    .filter(({ metadata }) => metadata.labels?.[IPAM_MACHINE_LABEL] === machine)
    .map(({ metadata }) => graphNode('IPAMClaim', { namespace, name: metadata.name ?? '' }, OPTIONAL));

/** Snapshots with their contents, restores under way, trackers with their backups, other backups. */
function savedNodes(namespace: string, machine: string, lists: GraphLists): ObjectGraphNode[] {
  const node = (kind: GraphKind, { metadata }: ReadonlyObject, children: ObjectGraphNode[] = []) =>
    graphNode(kind, { namespace, name: metadata.name ?? '' }, { ...OPTIONAL, children });
  const { snapshots = [], contents = [], restores = [], backups = [], trackers = [] } = lists;
  const isOfMachine = (ref: { readonly kind: string; readonly name: string } | undefined): boolean =>
    ref?.kind === 'VirtualMachine' && ref.name === machine;
  const volumesOf = ({ spec }: ReadonlyContent): ObjectGraphNode[] =>
    (spec.volumeBackups ?? []).flatMap(({ volumeSnapshotName }) =>
      volumeSnapshotName ? [graphNode('VolumeSnapshot', { namespace, name: volumeSnapshotName }, OPTIONAL)] : [],
    );
  const contentsOf = ({ metadata }: ReadonlyObject): ObjectGraphNode[] =>
    contents
      .filter(({ spec }) => spec.virtualMachineSnapshotName === metadata.name)
      .map((content) => node('VirtualMachineSnapshotContent', content, volumesOf(content)));
  const backupsOf = ({ metadata }: ReadonlyObject): ObjectGraphNode[] =>
    backups
      .filter(({ spec }) => spec.source.kind === 'VirtualMachineBackupTracker' && spec.source.name === metadata.name)
      .map((backup) => node('VirtualMachineBackup', backup));
  return [
    ...snapshots
      .filter(({ spec }) => isOfMachine(spec.source))
      .map((snapshot) => node('VirtualMachineSnapshot', snapshot, contentsOf(snapshot))),
    ...restores
      .filter((restore) => isUnderWay(restore) && isOfMachine(restore.spec.target))
      .map((restore) => node('VirtualMachineRestore', restore)),
    ...trackers
      .filter(({ spec }) => isOfMachine(spec.source))
      .map((tracker) => node('VirtualMachineBackupTracker', tracker, backupsOf(tracker))),
    ...backups.filter(({ spec }) => isOfMachine(spec.source)).map((backup) => node('VirtualMachineBackup', backup)),
  ];
}

/** Exports of the machine, of its snapshots and of its claims. */
function exportNodes(
  namespace: string,
  machine: string,
  nodes: readonly ObjectGraphNode[],
  { exports = [] }: GraphLists,
): ObjectGraphNode[] {
  const exported = new Set(
    allNodes(nodes)
      .filter(({ objectReference: { kind } }) => kind === 'PersistentVolumeClaim' || kind === 'VirtualMachineSnapshot')
      .map(({ objectReference: { kind, name } }) => `${kind}/${name}`),
  ).add(`VirtualMachine/${machine}`);
  return exports
    .filter(({ spec }) => exported.has(`${spec?.source?.kind}/${spec?.source?.name}`))
    .map(({ metadata }) => graphNode('VirtualMachineExport', { namespace, name: metadata.name ?? '' }, OPTIONAL));
}
