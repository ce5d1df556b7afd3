/**
 * What decisions about deletions ask of machines, claims, KubeVirt objects, restores and contents, kept in indexes: by the objects that
 * machines refer to, by namespace, by whose firmware state a claim holds. Fed by writes of the store, or by informers.
 *
 * Bounds: nothing is held of a machine that is not guarding; else one entry for each object that it refers to. See
 * `state-index.ts` for writes that are under way.
 */

import type { DeepReadonly, ObjectMeta, ReadonlyObject } from '@coracle/apimachinery/meta/object';
import type { ReadonlyClaim } from '@coracle/apimachinery/types/types';
import type { ReadonlyContent, ReadonlyRestore, ReadonlyVm } from '../../kinds/kubevirt.ts';
import { STATE_LABEL } from '../backend-storage/backend-storage.ts';
import { guardsItsParts } from './delete-protection.ts';
import type { GuardingMachine, Machines, ProtectionLookup } from './deletion-target.ts';
import { type ResourceName, referencesOf } from './references.ts';
import { isUnderWay } from './restores.ts';
import { type IndexedObject, type IndexedObjects, type KeysOf, StateIndex } from './state-index.ts';

/** An object as it is indexed: its metadata is read first, the rest only where it counts. */
export interface IndexedKind {
  readonly metadata: DeepReadonly<ObjectMeta>;
  readonly object: ReadonlyObject;
}

type Index = StateIndex<IndexedKind>;

/** Prefixes (`group/resource`) of the kinds that the index is fed with. */
export const INDEXED_PREFIXES = [
  'kubevirt.io/virtualmachines',
  '/persistentvolumeclaims',
  'kubevirt.io/kubevirts',
  'snapshot.kubevirt.io/virtualmachinerestores',
  'snapshot.kubevirt.io/virtualmachinesnapshotcontents',
] as const;
export type IndexedPrefix = (typeof INDEXED_PREFIXES)[number];

/** Key that every guarding machine has. */
const ALL = '*';

const ofNamespace = (namespace: string): string => `in ${namespace}`;
const ofKind = ({ group, resource }: ResourceName): string => `kind ${group}/${resource}`;
const ofObject = ({ group, resource }: ResourceName, namespace: string, name: string): string =>
  `${group}/${resource} ${namespace}/${name}`;

const machineKeys: KeysOf<IndexedKind> = (vm, { namespace }) => {
  if (!guardsItsParts(vm)) return undefined;
  const keys = new Map([
    [ALL, ''],
    [ofNamespace(namespace), ''],
  ]);
  for (const reference of referencesOf(vm.object as ReadonlyVm)) {
    const field = shared(reference.field);
    for (const key of [ofObject(reference, namespace, reference.name), ofKind(reference)])
      if (!keys.has(key)) keys.set(key, field);
  }
  return keys;
};

/** Machines name the same few fields: each text is kept once. */
const fields = new Map<string, string>();
const MAX_FIELDS = 4096;
function shared(field: string): string {
  const known = fields.get(field);
  if (known !== undefined) return known;
  if (fields.size >= MAX_FIELDS) fields.clear();
  fields.set(field, field);
  return field;
}

const claimKeys: KeysOf<IndexedKind> = ({ metadata: { labels } }, { namespace }) => {
  const machine = labels?.[STATE_LABEL];
  return machine === undefined ? undefined : new Map([[`${namespace}/${machine}`, '']]);
};

const restoreKeys: KeysOf<IndexedKind> = ({ object }, { namespace }) =>
  isUnderWay(object as ReadonlyRestore) ? new Map([[namespace, '']]) : undefined;

const contentKeys: KeysOf<IndexedKind> = ({ object }, { namespace }) => {
  const { virtualMachineSnapshotName } = (object as ReadonlyContent).spec ?? {};
  return virtualMachineSnapshotName === undefined
    ? undefined
    : new Map([[`${namespace}/${virtualMachineSnapshotName}`, '']]);
};

const kubevirtKeys: KeysOf<IndexedKind> = ({ metadata }, { namespace }) =>
  metadata.deletionTimestamp === undefined ? new Map([[namespace, '']]) : undefined;

export interface ProtectionIndex {
  /** The parts that are fed, by prefix. */
  readonly parts: Readonly<Record<IndexedPrefix, Index>>;
  readonly lookup: ProtectionLookup;
}

/** An empty index. `claim` looks one up, whatever its labels. */
export function createProtectionIndex(claim: ProtectionLookup['claim']): ProtectionIndex {
  const machines: Index = new StateIndex(machineKeys);
  const claims: Index = new StateIndex(claimKeys);
  const restores: Index = new StateIndex(restoreKeys);
  const contents: Index = new StateIndex(contentKeys);
  const kubevirts: Index = new StateIndex(kubevirtKeys);
  const parts = {
    'kubevirt.io/virtualmachines': machines,
    '/persistentvolumeclaims': claims,
    'kubevirt.io/kubevirts': kubevirts,
    'snapshot.kubevirt.io/virtualmachinerestores': restores,
    'snapshot.kubevirt.io/virtualmachinesnapshotcontents': contents,
  };
  return {
    parts,
    lookup: {
      referring: (resource, { namespace, name }) => guarding(machines.withKey(ofObject(resource, namespace, name))),
      referringToKind: (resource) => guarding(machines.withKey(ofKind(resource))),
      machines: (namespace) => guarding(machines.withKey(namespace === undefined ? ALL : ofNamespace(namespace))),
      machine(namespace, name) {
        const found = machines.get({ namespace, name }, ALL);
        return found && guardingMachine(found);
      },
      claim,
      *stateClaims(namespace, machine) {
        // One that is not there yet, or about to go, does not take the place of another.
        for (const { object, pending } of claims.withKey(`${namespace}/${machine}`))
          if (!pending) yield object.object as ReadonlyClaim;
      },
      kubevirts: (namespace) => [...kubevirts.withKey(namespace)].map(({ name }) => name).sort(),
      *restores(namespace) {
        for (const { object } of restores.withKey(namespace)) yield object.object as ReadonlyRestore;
      },
      content(namespace, snapshot) {
        for (const { object } of contents.withKey(`${namespace}/${snapshot}`)) return object.object as ReadonlyContent;
        return undefined;
      },
    },
  };
}

const guarding = (found: IndexedObjects<IndexedKind>): Machines => ({
  size: found.size,
  *[Symbol.iterator]() {
    for (const each of found) yield guardingMachine(each);
  },
  first: (count, among) => found.first(count, among).map(guardingMachine),
});

const guardingMachine = ({ namespace, name, object, value, pending }: IndexedObject<IndexedKind>): GuardingMachine => ({
  namespace,
  name,
  get object() {
    return object.object as ReadonlyVm;
  },
  ...(value !== '' && { field: value }),
  pending,
});
