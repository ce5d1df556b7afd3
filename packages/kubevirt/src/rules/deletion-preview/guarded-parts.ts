/** What a protected virtual machine keeps, and what of it is missing: the rows of `coracle protect status`. Pure. */

import type { ReadonlyClaim } from '@coracle/apimachinery/types/types';
import type { ReadonlyVm } from '../../kinds/kubevirt.ts';
import { backendStorageClaimOfVm } from '../backend-storage/backend-storage.ts';
import type { GraphKind } from '../object-graph/graph-node.ts';
import { graphKindOf } from '../object-graph/graph-resources.ts';
import { referencesOf } from '../protection/references.ts';

/** An object that a machine keeps from deletion while it is protected. */
export interface GuardedPart {
  readonly kind: GraphKind;
  readonly namespace: string;
  readonly name: string;
  /** The field that names it, or words. */
  readonly field: string;
}

/** Each object once, with the first field that names it; the claim of the firmware state last. */
export function guardedParts(vm: ReadonlyVm, claims: readonly ReadonlyClaim[]): GuardedPart[] {
  const parts = new Map<string, GuardedPart>();
  const add = (part: GuardedPart): void => {
    const key = partKey(part);
    if (!parts.has(key)) parts.set(key, part);
  };
  for (const { namespace, name, field, ...resource } of referencesOf(vm)) {
    const kind = graphKindOf(resource);
    if (kind !== undefined) add({ kind, namespace, name, field });
  }
  const state = backendStorageClaimOfVm(vm, claims);
  if (state) {
    const { namespace = '', name = '' } = state.metadata;
    add({ kind: 'PersistentVolumeClaim', namespace, name, field: 'firmware state' });
  }
  return [...parts.values()];
}

/** Identity of the object. */
export const partKey = ({ kind, namespace, name }: Omit<GuardedPart, 'field'>): string =>
  `${kind}/${namespace}/${name}`;

/**
 * Who else refers to each part: names of other machines of its namespace, sorted, by `partKey`. `among` are all machines of
 * the namespaces in question.
 */
export function sharersOf(
  vm: ReadonlyVm,
  parts: readonly GuardedPart[],
  among: readonly ReadonlyVm[],
): ReadonlyMap<string, readonly string[]> {
  const wanted = new Map(parts.map((part) => [partKey(part), new Set<string>()]));
  for (const other of among) {
    if (other.metadata.namespace !== vm.metadata.namespace || other.metadata.name === vm.metadata.name) continue;
    for (const part of guardedParts(other, [])) wanted.get(partKey(part))?.add(other.metadata.name ?? '');
  }
  return new Map([...wanted].map(([key, names]) => [key, [...names].sort()]));
}
