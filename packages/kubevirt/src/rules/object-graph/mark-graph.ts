/**
 * What the extended graph tells of each object: whether it is there, whether it goes with the machine, and who else refers
 * to it. What the caller may not read is marked unknown, and nothing else is said of it.
 */

import { controllerOf } from '@coracle/apimachinery/meta/controller-reference';
import type { DeepReadonly, ReadonlyObject } from '@coracle/apimachinery/meta/object';
import type { Pause } from '@coracle/apimachinery/meta/pause';
import type { PersistentVolume, ReadonlyClaim } from '@coracle/apimachinery/types/types';
import type { ReadonlyVm, ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { sourceType } from '../instancetype/matcher.ts';
import { type ResourceName, referencesOf } from '../protection/references.ts';
import type { GraphLists } from './extend-graph.ts';
import { allNodes, keyOfNode } from './extend-graph.ts';
import { type GraphKind, graphNode, type ObjectGraphNode, type ObjectGraphReference } from './graph-node.ts';
import { GRAPH_RESOURCES } from './graph-resources.ts';

/** How many of those that refer to an object are named. */
export const MAX_USERS = 10;

/** A node of the extended graph. */
export interface ExtendedGraphNode extends ObjectGraphNode {
  /** Absent where it is unknown. */
  readonly exists?: boolean;
  /** Only ever true: the caller may not get the object. */
  readonly unknown?: true;
  /** Only ever true: the garbage collector, or the storage below, deletes it when the machine is gone. */
  readonly owned?: true;
  /** Others that refer to it, at most MAX_USERS, by kind and name. */
  readonly usedBy?: readonly ObjectGraphReference[];
  /** All of them, where they are more than are named. */
  readonly usedByTotal?: number;
  /** Of the root: resources of which nothing is known, as `resource.group`, since the caller may not list them. */
  readonly notListed?: readonly string[];
  readonly children?: readonly ExtendedGraphNode[];
}

/** What became of a look at an object, on behalf of the caller. */
export type Looked = ReadonlyObject | 'missing' | 'forbidden';

/** Every claim that is bound with its PersistentVolume below it. `looked` has the claims. */
export function volumesBelowClaims<T extends ObjectGraphNode>(root: T, looked: ReadonlyMap<string, Looked>): T {
  const withVolumes = (node: ObjectGraphNode): ObjectGraphNode => {
    const children = (node.children ?? []).map(withVolumes);
    if (node.objectReference.kind === 'PersistentVolumeClaim') {
      const claim = looked.get(keyOfNode(node));
      const volume = isFound(claim) ? (claim as ReadonlyClaim).spec?.volumeName : undefined;
      if (volume) children.push(graphNode('PersistentVolume', { namespace: '', name: volume }));
    }
    return { ...node, ...(children.length > 0 && { children }) };
  };
  return withVolumes(root) as T;
}

/** `looked` has every node but the root, which is there. `users` is of `usersOfObjects`. */
export function markGraph(
  root: ObjectGraphNode,
  facts: {
    readonly rootUid: string | undefined;
    readonly looked: ReadonlyMap<string, Looked>;
    readonly users: ObjectUsers;
    readonly notListed: readonly string[];
  },
): ExtendedGraphNode {
  const { looked, users, notListed, rootUid } = facts;
  const owned = ownedNodes(root, looked, rootUid);
  const marked = (node: ObjectGraphNode): ExtendedGraphNode => {
    const { children: below, ...rest } = node;
    const children = below?.map(marked);
    const key = keyOfNode(node);
    const found = node === root || looked.get(key);
    const known = found === true || isFound(found) || found === 'missing';
    return {
      ...rest,
      ...(known ? { exists: found !== 'missing' } : { unknown: true as const }),
      ...(owned.has(key) && { owned: true as const }),
      ...(known && usersFields(users.get(key))),
      ...(node === root && notListed.length > 0 && { notListed }),
      ...(children && { children }),
    };
  };
  return marked(root);
}

const isFound = (looked: Looked | undefined | true): looked is ReadonlyObject => typeof looked === 'object';

function usersFields(refs: readonly ObjectGraphReference[] | undefined) {
  if (refs === undefined || refs.length === 0) return {};
  const sorted = refs.toSorted((a, b) => (`${a.kind}/${a.name}` < `${b.kind}/${b.name}` ? -1 : 1));
  return {
    usedBy: sorted.slice(0, MAX_USERS),
    ...(sorted.length > MAX_USERS && { usedByTotal: sorted.length }),
  };
}

/** Keys of what has no owner but the root and what goes with it, and of volumes that go with their claim. */
function ownedNodes(
  root: ObjectGraphNode,
  looked: ReadonlyMap<string, Looked>,
  rootUid: string | undefined,
): ReadonlySet<string> {
  const owned = new Set<string>();
  const uids = new Set(rootUid === undefined ? [] : [rootUid]);
  const nodes = allNodes(root.children ?? []);
  for (let before = -1; before !== owned.size; ) {
    before = owned.size;
    for (const node of nodes) {
      const object = looked.get(keyOfNode(node));
      if (!isFound(object)) continue;
      const { ownerReferences = [], uid } = object.metadata;
      if (ownerReferences.length === 0 || !ownerReferences.every((owner) => uids.has(owner.uid))) continue;
      owned.add(keyOfNode(node));
      if (uid !== undefined) uids.add(uid);
    }
  }
  for (const claim of nodes) {
    if (claim.objectReference.kind !== 'PersistentVolumeClaim' || !owned.has(keyOfNode(claim))) continue;
    for (const node of claim.children ?? []) {
      const volume = looked.get(keyOfNode(node));
      if (!isFound(volume)) continue;
      if ((volume as DeepReadonly<PersistentVolume>).spec?.persistentVolumeReclaimPolicy === 'Delete')
        owned.add(keyOfNode(node));
    }
  }
  return owned;
}

/** Who refers to what, by the key of a node. */
export type ObjectUsers = ReadonlyMap<string, readonly ObjectGraphReference[]>;

/** Objects looked at in one go: each has some ten places to look at. */
const TOGETHER = 100;

/**
 * Who else of a namespace refers to the objects of a tree: other virtual machines, by their spec and status, the sources
 * of the disks that they are to fill, and their instance type and preference; instances that no virtual machine owns;
 * and, of the machine itself, its clones. The machine is left out, and so is its instance. `pause` is awaited between some
 * of them.
 */
export async function usersOfObjects(
  tree: ObjectGraphNode,
  { machines = [], instances = [], clones = [] }: GraphLists,
  pause: Pause,
): Promise<ObjectUsers> {
  const root = tree.objectReference;
  const users = new Map<string, ObjectGraphReference[]>();
  const wanted = wantedObjects(tree);
  const note = (key: string, user: ObjectGraphReference): void => {
    const known = users.get(key);
    if (!known) users.set(key, [user]);
    // One that names an object in several places notes them one after another.
    else if (known.at(-1) !== user) known.push(user);
  };
  const noteAll = (refs: readonly Named[], user: ObjectGraphReference): void => {
    for (const { group, resource, namespace, name } of refs) {
      const key = wanted.get(name)?.get(`${group}/${resource}/${namespace}`);
      if (key !== undefined) note(key, user);
    }
  };
  let looked = 0;
  for (const vm of machines) {
    if (++looked % TOGETHER === 0) await pause();
    if (vm.metadata.name === root.name) continue;
    noteAll([...referencesOf(vm), ...filledFrom(vm), ...sourcesOf(vm)], referenceTo('VirtualMachine', vm));
  }
  for (const vmi of instances) {
    if (++looked % TOGETHER === 0) await pause();
    if (vmi.metadata.name === root.name || isOfMachine(vmi)) continue;
    const asMachine = { metadata: vmi.metadata, spec: { template: { spec: vmi.spec } } } as unknown;
    noteAll(referencesOf(asMachine as ReadonlyVm), referenceTo('VirtualMachineInstance', vmi));
  }
  for (const clone of clones) {
    const { source, target } = clone.spec;
    const isNamed = [source, target].some((ref) => ref?.kind === 'VirtualMachine' && ref.name === root.name);
    if (isNamed || clone.status?.targetName === root.name)
      note(keyOfNode(tree), referenceTo('VirtualMachineClone', clone));
  }
  return users;
}

type Named = ResourceName & { readonly namespace: string; readonly name: string };

/** The keys of a tree's objects, by name and by `group/resource/namespace`. */
function wantedObjects(tree: ObjectGraphNode): ReadonlyMap<string, ReadonlyMap<string, string>> {
  const wanted = new Map<string, Map<string, string>>();
  for (const node of allNodes(tree.children ?? [])) {
    const { kind, namespace, name } = node.objectReference;
    const { group, resource } = GRAPH_RESOURCES[kind as GraphKind];
    const known = wanted.get(name) ?? new Map<string, string>();
    wanted.set(name, known.set(`${group}/${resource}/${namespace}`, keyOfNode(node)));
  }
  return wanted;
}

const referenceTo = (
  kind: 'VirtualMachine' | 'VirtualMachineInstance' | 'VirtualMachineClone',
  { metadata: { namespace = '', name = '' } }: ReadonlyObject,
): ObjectGraphReference => ({ apiGroup: GRAPH_RESOURCES[kind].group, kind, name, namespace });

const isOfMachine = (vmi: ReadonlyVmi): boolean => controllerOf(vmi, 'VirtualMachine') !== undefined;

/** Claims and snapshots that templates of DataVolumes take their data from. */
function filledFrom(vm: ReadonlyVm): Named[] {
  const own = vm.metadata.namespace ?? '';
  return (vm.spec.dataVolumeTemplates ?? []).flatMap(({ spec }): Named[] => {
    const source =
      (spec as { source?: Record<string, { namespace?: string; name?: string } | undefined> }).source ?? {};
    return (['pvc', 'snapshot'] as const).flatMap((field): Named[] => {
      const { name, namespace = own } = source[field] ?? {};
      const kind = field === 'pvc' ? ('PersistentVolumeClaim' as const) : ('VolumeSnapshot' as const);
      return name ? [{ ...GRAPH_RESOURCES[kind], namespace, name }] : [];
    });
  });
}

/** Instance type and preference, also of the cluster and also where a copy is kept. */
const sourcesOf = (vm: ReadonlyVm): Named[] =>
  (['instancetype', 'preference'] as const).flatMap((field): Named[] => {
    const { kind, name } = vm.spec[field] ?? {};
    const type = name ? sourceType(field, kind) : undefined;
    return type ? [{ ...type, namespace: type.namespaced ? (vm.metadata.namespace ?? '') : '', name: name! }] : [];
  });
