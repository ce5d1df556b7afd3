/** A decision about a large object, with that written: what is left for the store to do is one short step. */
import type { Pause } from '@coracle/apimachinery/meta/pause';
import type { Decision } from '../cache/object-store.ts';
import { writeInPieces } from '../cache/written-object.ts';

/** Freezes what the object holds below its own members and those of its metadata. */
export async function writtenDecision<D extends Decision>(decision: D, pause: Pause): Promise<D> {
  await pause();
  if (decision.type === 'keep') return decision;
  const written = await writeInPieces(decision.object, pause);
  await pause();
  return { ...decision, written };
}
