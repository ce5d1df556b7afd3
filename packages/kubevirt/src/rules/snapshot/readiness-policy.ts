/** What a restore does while its target runs. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { VirtualMachineRestore } from '../../kinds/kubevirt.ts';

type Restore = DeepReadonly<VirtualMachineRestore>;

/** How long a user has to stop the target, where the policy gives time. */
const GRACE_MS = 5 * 60_000;

export type NotReady =
  | { readonly type: 'wait' }
  | { readonly type: 'stop' }
  /** `reason` is that of the condition `Failure`. */
  | { readonly type: 'failed'; readonly reason: string };

/** Milliseconds of the grace period left, at least 1; undefined where the policy knows none. */
export function graceLeft({ metadata, spec }: Restore, now: number): number | undefined {
  if ((spec.targetReadinessPolicy ?? 'WaitGracePeriod') !== 'WaitGracePeriod') return undefined;
  return Math.max(1, Date.parse(metadata.creationTimestamp ?? '') + GRACE_MS - now + 1);
}

/** What to do now. */
export function notReady(restore: Restore, now: number): NotReady {
  const { spec, metadata } = restore;
  switch (spec.targetReadinessPolicy ?? 'WaitGracePeriod') {
    case 'WaitEventually':
      return { type: 'wait' };
    case 'StopTarget':
      return { type: 'stop' };
    case 'FailImmediate':
      return { type: 'failed', reason: 'Restore target not ready' };
    default: {
      const isOver = Date.parse(metadata.creationTimestamp ?? '') + GRACE_MS < now;
      return isOver ? { type: 'failed', reason: 'Restore target failed to be ready within 5m0s' } : { type: 'wait' };
    }
  }
}
