/** What a VirtualMachineSnapshot says of the memory of its guest, in annotations that the controller writes. */
import { INCLUDE_MEMORY, RESUME_FALLBACK, RESUME_FROM, resumeFrom } from './resume-request.ts';

/** The node whose agent saves it, written before it is asked. */
export const MEMORY_NODE = 'coracle.dev/memory-node';

/** The pool of that node's data directory, which has the saved memory: every node that serves it can resume the guest. */
export const MEMORY_POOL = 'coracle.dev/memory-pool';

/** How it came out: `Saved`, or `NotSaved`. Absent until then. */
export const MEMORY_OUTCOME = 'coracle.dev/memory';

/** Keeps the snapshot until its state is removed. */
export const MEMORY_FINALIZER = 'coracle.dev/memory-state';

/** Condition of a snapshot: True when memory is part of it, False with the reason when it is not. */
export const MEMORY_INCLUDED = 'MemoryIncluded';

export type MemoryOutcome = 'Saved' | 'NotSaved';

interface Annotated {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> | undefined };
}

/** The snapshot is to have the memory of its guest. */
export const includesMemory = ({ metadata }: Annotated): boolean => metadata.annotations?.[INCLUDE_MEMORY] === 'true';

/** How it came out; undefined while nobody knows. */
export function memoryOutcome({ metadata }: Annotated): MemoryOutcome | undefined {
  const outcome = metadata.annotations?.[MEMORY_OUTCOME];
  return outcome === 'Saved' || outcome === 'NotSaved' ? outcome : undefined;
}

/** True while the volumes of the snapshot must wait: they are taken in the moment in which the memory is saved. */
export const waitsForMemory = (snapshot: Annotated): boolean =>
  includesMemory(snapshot) && memoryOutcome(snapshot) === undefined;

type Named = Annotated & { readonly metadata: { readonly uid?: string | undefined } };

/**
 * What a machine carries that is restored from a snapshot: its next start goes on from the saved memory, once for each
 * restore. Nothing where there is none, or the restore says `coracle.dev/include-memory: "false"`.
 */
export function resumeAfterRestore(snapshot: Named | undefined, restore: Named): Record<string, string> {
  const annotations = restore.metadata.annotations ?? {};
  const state = snapshot?.metadata.uid;
  if (!snapshot || state === undefined || memoryOutcome(snapshot) !== 'Saved') return {};
  if (annotations[INCLUDE_MEMORY] === 'false') return {};
  const ticket = restore.metadata.uid;
  const fallback = annotations[RESUME_FALLBACK];
  return {
    [RESUME_FROM]: resumeFrom({ state, ...(ticket !== undefined && { ticket }) }),
    ...(fallback !== undefined && { [RESUME_FALLBACK]: fallback }),
  };
}
