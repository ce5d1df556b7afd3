/** What a VirtualMachineSnapshot says of the memory of its guest, in annotations that the controller writes. */
import { INCLUDE_MEMORY } from './resume-request.ts';

/** The node whose agent saves it, written before it is asked. */
export const MEMORY_NODE = 'coracle.dev/memory-node';

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
