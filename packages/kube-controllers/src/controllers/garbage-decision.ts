/** What becomes of an object, given how its owners stand. Pure; the rules are upstream's attemptToDeleteItem. */
import type { DeepReadonly, OwnerReference } from '@coracle/apimachinery/meta/object';
import { FOREGROUND_FINALIZER, ORPHAN_FINALIZER } from './owner-graph.ts';

type Reference = DeepReadonly<OwnerReference>;

/**
 * How one owner stands: `solid` exists, `waiting` exists but is being deleted in the foreground, `dangling` does not
 * exist.
 */
export type OwnerState = 'solid' | 'waiting' | 'dangling';

export type GarbageDecision =
  | { readonly type: 'keep' }
  /** Owners that are left hold it; the other references go. */
  | { readonly type: 'strip'; readonly references: readonly Reference[] }
  | {
      readonly type: 'delete';
      readonly policy: 'Background' | 'Foreground' | 'Orphan';
      /** References to write first, no longer blocking: breaks a circle of objects that wait for each other. */
      readonly unblocked?: readonly Reference[];
    };

export interface GarbageFacts {
  readonly owners: readonly { readonly reference: Reference; readonly state: OwnerState }[];
  readonly finalizers: readonly string[];
  readonly hasDependents: boolean;
  /** One of its dependents waits for its own dependents: possibly a circle. */
  readonly dependentIsWaiting: boolean;
}

/** The decision. An object without owners is never garbage. */
export function garbageDecision({
  owners,
  finalizers,
  hasDependents,
  dependentIsWaiting,
}: GarbageFacts): GarbageDecision {
  const of = (state: OwnerState): Reference[] =>
    owners.filter((one) => one.state === state).map((one) => one.reference);
  const solid = of('solid');
  if (owners.length === 0 || solid.length === owners.length) return { type: 'keep' };
  if (solid.length > 0) return { type: 'strip', references: solid };
  if (of('waiting').length > 0 && hasDependents) {
    const blocks = owners.some(({ reference }) => reference.blockOwnerDeletion === true);
    if (!dependentIsWaiting || !blocks) return { type: 'delete', policy: 'Foreground' };
    const unblocked = owners.map(({ reference }) => ({ ...reference, blockOwnerDeletion: false }));
    return { type: 'delete', policy: 'Foreground', unblocked };
  }
  // Finalizers that are there already say how its deletion was wanted.
  if (finalizers.includes(ORPHAN_FINALIZER)) return { type: 'delete', policy: 'Orphan' };
  if (finalizers.includes(FOREGROUND_FINALIZER)) return { type: 'delete', policy: 'Foreground' };
  return { type: 'delete', policy: 'Background' };
}
