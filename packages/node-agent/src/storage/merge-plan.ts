/** Which layers of a pool can be made fewer, and how: pure rules over its state. */
import { chainFrom, childrenOf, type PoolState, snapshotsOf, volumesOver } from './pool-state.ts';

/** One piece of work, and the handles that nobody may change meanwhile. */
export type MergePlan = { readonly keys: readonly string[] } & (
  | {
      /** What the upper layer holds goes into the lower one, which nobody else refers to. */
      readonly kind: 'commit';
      readonly upper: string;
      readonly lower: string;
      /** Volume whose guest does it; absent where no guest has either of them open. */
      readonly by?: string;
    }
  | {
      /** All between the top of a volume and the lowest layer is copied into the top. */
      readonly kind: 'flatten';
      readonly volume: string;
      readonly base: string;
      readonly by?: string;
    }
);

/**
 * What can be done now, in the order in which it should. A layer goes when no snapshot is it and one layer alone lies on
 * it. While a guest writes to the upper one it stays: a guest cannot be moved back to a layer such that a crash leaves one
 * certain top.
 */
export function mergePlans(
  state: PoolState,
  { isUsed, maxLayers }: { readonly isUsed: (volume: string) => boolean; readonly maxLayers: number },
): MergePlan[] {
  const plans: MergePlan[] = [];
  const seen = new Set<string>();
  for (const [handle, { top, next }] of Object.entries(state.volumes)) {
    if (next !== undefined) continue;
    const chain = chainFrom(state, top);
    for (const [at, upper] of chain.entries()) {
      const lower = chain[at + 1];
      if (lower === undefined || seen.has(lower)) continue;
      seen.add(lower);
      if (snapshotsOf(state, lower).length > 0 || childrenOf(state, lower).length !== 1) continue;
      const volumes = volumesOver(state, lower);
      const used = volumes.filter(isUsed);
      const keys = [...volumes, ...snapshotsOf(state, upper)];
      if (used.length === 0) plans.push({ kind: 'commit', upper, lower, keys });
      else if (at > 0 && volumes.length === 1) plans.push({ kind: 'commit', upper, lower, keys, by: handle });
    }
    const base = chain.at(-1);
    if (chain.length > maxLayers && base !== undefined)
      plans.push({ kind: 'flatten', volume: handle, base, keys: [handle], ...(isUsed(handle) && { by: handle }) });
  }
  return plans;
}
