/** What a restore does while its target runs. */

import type { ReadonlyRestore } from '../../kinds/kubevirt.ts';

/** How long a user has to stop the target, where the policy gives time. */
const GRACE_MS = 5 * 60_000;

export type NotReady =
  /** `reason` is that of the conditions. */
  { readonly type: 'wait' | 'stop' | 'failed'; readonly reason: string };

const WAITS = 'Waiting for target VM to be powered off. Please stop the restore target to proceed with restore';

/** Milliseconds of the grace period left, at least 1; undefined where the policy knows none. */
export function graceLeft({ metadata, spec }: ReadonlyRestore, now: number): number | undefined {
  if ((spec.targetReadinessPolicy ?? 'WaitGracePeriod') !== 'WaitGracePeriod') return undefined;
  return Math.max(1, Date.parse(metadata.creationTimestamp ?? '') + GRACE_MS - now + 1);
}

/** What to do now. */
export function notReady(restore: ReadonlyRestore, now: number): NotReady {
  const { spec, metadata } = restore;
  switch (spec.targetReadinessPolicy ?? 'WaitGracePeriod') {
    case 'WaitEventually':
      return { type: 'wait', reason: WAITS };
    case 'StopTarget':
      return { type: 'stop', reason: 'Automatically stopping restore target for restore operation' };
    case 'FailImmediate':
      return { type: 'failed', reason: 'Restore target VMI must be powered off before restore operation' };
    default: {
      const isOver = Date.parse(metadata.creationTimestamp ?? '') + GRACE_MS < now;
      return isOver
        ? {
            type: 'failed',
            reason:
              'Restore target failed to be ready within 5m0s. Please power off the target VM before attempting restore',
          }
        : { type: 'wait', reason: `${WAITS}, or the operation will fail after 5m0s` };
    }
  }
}
