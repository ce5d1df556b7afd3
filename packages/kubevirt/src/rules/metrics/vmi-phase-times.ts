/** How long instances took, from phase to phase (upstream's perfscale_metrics.go). */

import { isFinal } from '@coracle/apimachinery/meta/object-state';
import { createHistogram } from '@coracle/runtime/metrics/histogram';
import type { HistogramFamily } from '@coracle/runtime/metrics/metric-family';
import type { ReadonlyVmi } from '../../kinds/kubevirt.ts';

/** Upstream's PhaseTransitionTimeBuckets, seconds. */
export const PHASE_TIME_BOUNDS = [
  0.5, 1, 2, 5, 10, 20, 30, 40, 50, 60, 90, 120, 180, 300, 600, 1200, 1800, 3600,
] as const;
/** More than there are pairs of phases: what is no phase of ours does not fill the memory. */
const MAX_SERIES = 64;

export interface VmiPhaseTimes {
  /** One change of an instance; counts where it is in another phase by it. */
  observe(before: ReadonlyVmi | undefined, after: ReadonlyVmi): void;
  families(): HistogramFamily[];
}

/** Counts since the start of the process, as upstream does. */
export function createVmiPhaseTimes(): VmiPhaseTimes {
  const histogram = (which: string, help: string) =>
    createHistogram({
      name: `kubevirt_vmi_phase_transition_time_${which}seconds`,
      help: `Histogram of VM phase transitions duration ${help} in seconds.`,
      bounds: PHASE_TIME_BOUNDS,
      maxSeries: MAX_SERIES,
    });
  const between = histogram('', 'between different phases');
  const fromCreation = histogram('from_creation_', 'from creation time');
  const fromDeletion = histogram('from_deletion_', 'from deletion time');
  return {
    observe(before, after) {
      const [phase, last] = [after.status?.phase ?? '', before?.status?.phase ?? ''];
      if (!before || phase === last) return;
      const entered = enteredAt(after, phase);
      if (entered === undefined) return;
      const { creationTimestamp, deletionTimestamp } = after.metadata;
      const since = (from: number): number => Math.max(0, entered - from) / 1000;
      const created = Date.parse(creationTimestamp ?? '');
      const left = last === '' ? created : enteredAt(after, last);
      if (left !== undefined && !Number.isNaN(left)) between.observe({ phase, last_phase: last }, since(left));
      if (!Number.isNaN(created)) fromCreation.observe({ phase }, since(created));
      if (deletionTimestamp && isFinal(phase)) fromDeletion.observe({ phase }, since(Date.parse(deletionTimestamp)));
    },
    families: () => [between.family(), fromCreation.family(), fromDeletion.family()],
  };
}

/** ms since the epoch. */
function enteredAt({ status }: ReadonlyVmi, phase: string): number | undefined {
  const stamp = status?.phaseTransitionTimestamps?.find((entry) => entry.phase === phase)?.phaseTransitionTimestamp;
  return stamp ? Date.parse(stamp) : undefined;
}
