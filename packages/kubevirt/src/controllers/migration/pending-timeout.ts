/** How long a target Pod may stay pending: pure (handlePendingPodTimeout). */

import { conditionOf, isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { ReadonlyMigration } from '../../kinds/kubevirt.ts';

export interface PendingDecision {
  readonly unschedulable: boolean;
  /** Why the Pod has to go, when its time is over. */
  readonly expired?: string;
  /** When to look again. */
  readonly checkInMs?: number;
}

const UNSCHEDULABLE_SECONDS = 300;
const PENDING_SECONDS = 900;
const UNSCHEDULABLE_ANNOTATION = 'kubevirt.io/migrationUnschedulablePodTimeoutSeconds';
const PENDING_ANNOTATION = 'kubevirt.io/migrationPendingPodTimeoutSeconds';

/** The decision on a target Pod at `now`, milliseconds. */
export function pendingTimeout(migration: ReadonlyMigration, pod: ReadonlyPod, now: number): PendingDecision {
  const created = Date.parse(pod.metadata.creationTimestamp ?? '');
  if ((pod.status?.phase ?? 'Pending') !== 'Pending' || isDeleting(pod) || Number.isNaN(created))
    return { unschedulable: false };
  const waited = Math.max(0, now - created);
  const limit = (annotation: string, fallback: number): number => {
    const text = migration.metadata.annotations?.[annotation] ?? '';
    return (/^-?\d{1,9}$/.test(text) ? Number(text) : fallback) * 1000;
  };
  const name = `${pod.metadata.namespace}/${pod.metadata.name}`;
  const scheduled = conditionOf(pod, 'PodScheduled');
  const unschedulable = scheduled?.status === 'False' && scheduled.reason === 'Unschedulable';
  const whole = limit(PENDING_ANNOTATION, PENDING_SECONDS);
  const unplaced = limit(UNSCHEDULABLE_ANNOTATION, UNSCHEDULABLE_SECONDS);
  if (unschedulable && waited >= unplaced)
    return { unschedulable, expired: `unschedulable pod ${name} timeout period exceeded` };
  if (waited >= whole) return { unschedulable, expired: `pending pod ${name} timeout period exceeded` };
  return { unschedulable, checkInMs: Math.min(whole, unschedulable ? unplaced : whole) - waited };
}
