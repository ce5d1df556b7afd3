/**
 * What the deletion of a virtual machine would mean, before it is asked for: what would go with it, what would stay and
 * who else uses it, what stands against it, and what would keep objects around. Pure; whether the machine may be deleted
 * is the server's to say.
 */

import type { ReadonlyObject } from '@coracle/apimachinery/meta/object';
import type { ReadonlyVm, ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { VM_FINALIZER } from '../machine-defaults/hold-machine.ts';
import { allNodes, keyOfNode } from '../object-graph/extend-graph.ts';
import type { ObjectGraphReference } from '../object-graph/graph-node.ts';
import type { ExtendedGraphNode } from '../object-graph/mark-graph.ts';
import { decideDeletion } from '../protection/decide-deletion.ts';
import { DELETE_PROTECTION_LABEL, isDeleteProtected } from '../protection/delete-protection.ts';
import { mustStopFirst, notStopped } from '../protection/delete-when-stopped.ts';
import type { ProtectionLookup } from '../protection/deletion-target.ts';
import type { ProtectionSettings } from '../protection/protection-settings.ts';
import { refusalText } from '../protection/refusal-text.ts';
import { collectedWith, type Dependent } from './collected-with.ts';

/**
 * `Deleted`: goes with the machine. `Held`: would, but other protected machines do not allow it. `Kept`: stays. `Missing`:
 * is named and not there. `Unknown`: the caller may not look.
 */
export type Fate = 'Deleted' | 'Held' | 'Kept' | 'Missing' | 'Unknown';

export interface PreviewRow extends ObjectGraphReference {
  readonly fate: Fate;
  /** Who holds it. */
  readonly why?: string;
  /** Others that refer to it, as `Kind/name`; the first of them where there are many. */
  readonly usedBy?: readonly string[];
  /** How many they are, where that is more. */
  readonly usedByTotal?: number;
}

/** An object of the namespace with the resource that it is of. */
export interface NamespaceObject extends Dependent {
  readonly resource: string;
  readonly object: ReadonlyObject;
}

/** What the objects around a machine become: those of its graph in the order of the graph, then others that go with it. */
export function previewRows({
  vm,
  graph,
  objects,
  lookup,
}: {
  readonly vm: ReadonlyVm;
  readonly graph: ExtendedGraphNode;
  /** All objects of the namespace of the kinds that the caller may list. */
  readonly objects: readonly NamespaceObject[];
  /** Without this machine. */
  readonly lookup: ProtectionLookup;
}): PreviewRow[] {
  const reasons = new Map<string, string>();
  const isHeld = ({ group, resource, kind, object }: NamespaceObject): boolean => {
    const { namespace = '', name = '' } = object.metadata;
    const refusal = decideDeletion({ group, resource, namespace, name, object }, lookup);
    if (refusal) reasons.set(keyOf({ apiGroup: group, kind, namespace, name }), refusalText(refusal));
    return refusal !== undefined;
  };
  const { collected } = collectedWith(vm.metadata.uid ?? '', objects, isHeld);
  const collectedRefs = collected.map(({ group, kind, metadata: { namespace = '', name = '' } }) => ({
    apiGroup: group,
    kind,
    name,
    namespace,
  }));
  const going = new Set(collectedRefs.map(keyOf));
  const known = new Set(objects.map(({ group, kind }) => `${group}/${kind}`));
  const rows = new Map<string, PreviewRow>();
  const visit = (node: ExtendedGraphNode, parent: Fate | undefined): void => {
    const { objectReference: ref, exists, unknown, owned, usedBy, usedByTotal } = node;
    const key = keyOf(ref);
    const fateOf = (): Fate => {
      if (going.has(key)) return 'Deleted';
      if (reasons.has(key)) return 'Held';
      if (unknown) return 'Unknown';
      if (exists === false) return 'Missing';
      // A volume goes with its claim; of kinds that could not be listed the graph knows who owns them.
      if (ref.kind === 'PersistentVolume') return owned && parent === 'Deleted' ? 'Deleted' : 'Kept';
      return owned && !known.has(`${ref.apiGroup}/${ref.kind}`) ? 'Deleted' : 'Kept';
    };
    const fate = fateOf();
    const why = reasons.get(key);
    if (!rows.has(key))
      rows.set(key, {
        ...ref,
        fate,
        ...(fate === 'Held' && why !== undefined && { why }),
        ...(usedBy && { usedBy: usedBy.map(({ kind, name }) => `${kind}/${name}`) }),
        ...(usedByTotal !== undefined && { usedByTotal }),
      });
    for (const child of node.children ?? []) visit(child, fate);
  };
  for (const child of graph.children ?? []) visit(child, undefined);
  const inGraph = new Set(allNodes(graph.children ?? []).map(keyOfNode));
  const others = collectedRefs.filter((ref) => !inGraph.has(keyOf(ref))).sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  return [...rows.values(), ...others.map((ref): PreviewRow => ({ ...ref, fate: 'Deleted' }))];
}

const keyOf = (objectReference: ObjectGraphReference): string => keyOfNode({ objectReference });

/** Something that stands against the deletion of a machine. */
export interface Block {
  readonly reason: 'Protected' | 'DeleteOnlyWhenStopped';
  readonly message: string;
  /** Shell command that lifts it. */
  readonly command: string;
}

/** What stands against the deletion of a machine by what is written in it. `vmi` is the instance of its name. */
export function blocksOf(
  vm: ReadonlyVm,
  { vmi, settings }: { readonly vmi: ReadonlyVmi | undefined; readonly settings: ProtectionSettings },
): Block[] {
  const { namespace = '', name = '', labels } = vm.metadata;
  const blocks: Block[] = [];
  if (isDeleteProtected(vm))
    blocks.push({
      reason: 'Protected',
      message: `label ${DELETE_PROTECTION_LABEL}=${labels?.[DELETE_PROTECTION_LABEL]}`,
      command: unprotectCommand({ namespace, name }),
    });
  const running = mustStopFirst(vm, settings) ? notStopped(vm, vmi) : undefined;
  if (running !== undefined)
    blocks.push({
      reason: 'DeleteOnlyWhenStopped',
      message: running,
      command: `virtctl stop ${name} -n ${namespace}`,
    });
  return blocks;
}

/** The command that takes upstream's label off. */
export const unprotectCommand = ({ namespace, name }: { readonly namespace: string; readonly name: string }): string =>
  `kubectl label vm ${name} -n ${namespace} ${DELETE_PROTECTION_LABEL}-`;

export interface FinalizerRow {
  readonly kind: string;
  readonly name: string;
  readonly finalizer: string;
  /** Who takes it off, and when. */
  readonly waitsFor: string;
}

const FINALIZERS: Readonly<Record<string, string>> = {
  [VM_FINALIZER]: 'virt-controller, when the instance is gone',
  'kubevirt.io/foregroundDeleteVirtualMachine': 'virt-controller, when the guest has ended',
  'kubevirt.io/migrationJobFinalize': 'virt-controller, when the migration has ended',
  'snapshot.kubevirt.io/snapshot-source-protection': 'the snapshot controller, when the snapshot or restore has ended',
  'kubernetes.io/pvc-protection': 'the control plane, when no Pod uses the claim',
  'kubernetes.io/pv-protection': 'the control plane, when no claim is bound to the volume',
  foregroundDeletion: 'the garbage collector, when the dependents are gone',
  orphan: 'the garbage collector, when the dependents are orphaned',
};

/** What would keep the machine, and what goes with it, after their deletion has begun. */
export function finalizerRows(objects: readonly Pick<NamespaceObject, 'kind' | 'metadata'>[]): FinalizerRow[] {
  return objects.flatMap(({ kind, metadata: { name = '', finalizers = [] } }) =>
    finalizers.map((finalizer) => ({
      kind,
      name,
      finalizer,
      waitsFor: FINALIZERS[finalizer] ?? 'the component that added it: it is not a finalizer of Kubernetes or KubeVirt',
    })),
  );
}
