/** How outcomes of a probe become a result (pkg/kubelet/prober/worker.go): pure. */
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { GuestProbe } from '../../kinds/kinds.ts';

export interface ProbeSettings {
  readonly initialDelayMs: number;
  readonly periodMs: number;
  readonly timeoutMs: number;
  readonly successThreshold: number;
  readonly failureThreshold: number;
}

/** What asking once came to. `errored`: the probe itself could not be run, which says nothing of the guest. */
export type ProbeOutcome =
  | { readonly type: 'success' }
  | { readonly type: 'failure'; readonly output: string }
  | { readonly type: 'errored'; readonly message: string };

/** The result so far, and the outcomes in a row that speak for or against it. */
export interface ProbeCount {
  readonly result: 'success' | 'failure';
  readonly last: 'success' | 'failure' | undefined;
  /** How many times in a row `last` was seen. */
  readonly run: number;
}

const DEFAULT_PERIOD = 10;
const DEFAULT_TIMEOUT = 1;
const DEFAULT_FAILURES = 3;

/** An absent or zero field has Kubernetes' default. */
export function probeSettings(probe: DeepReadonly<GuestProbe>): ProbeSettings {
  return {
    initialDelayMs: (probe.initialDelaySeconds || 0) * 1000,
    periodMs: (probe.periodSeconds || DEFAULT_PERIOD) * 1000,
    timeoutMs: (probe.timeoutSeconds || DEFAULT_TIMEOUT) * 1000,
    successThreshold: probe.successThreshold || 1,
    failureThreshold: probe.failureThreshold || DEFAULT_FAILURES,
  };
}

/** Nothing has been asked yet: a guest counts as alive, and as ready only where it was so before. */
export const firstCount = (result: ProbeCount['result']): ProbeCount => ({ result, last: undefined, run: 0 });

/** The count after one more outcome: the result turns when its threshold is reached. */
export function countOutcome(
  count: ProbeCount,
  outcome: ProbeOutcome,
  { successThreshold, failureThreshold }: ProbeSettings,
): ProbeCount {
  if (outcome.type === 'errored') return count;
  const run = count.last === outcome.type ? count.run + 1 : 1;
  const threshold = outcome.type === 'success' ? successThreshold : failureThreshold;
  return { result: run >= threshold ? outcome.type : count.result, last: outcome.type, run };
}
