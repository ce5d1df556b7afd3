/** Conditions of a clone: `Progressing` and `Ready`, as upstream writes them. */

import { type DeepReadonly, formatTime } from '@coracle/apimachinery/meta/object';
import type { CloneStatus } from '../../kinds/kubevirt.ts';

type Conditions = NonNullable<CloneStatus['conditions']>;

export interface CloneState {
  readonly progressing: 'True' | 'False';
  readonly ready: 'True' | 'False';
  /** Reason of `Progressing`, and of `Ready` unless that has its own. */
  readonly reason: string;
  /** Upstream puts whole sentences here. */
  readonly readyReason?: string;
  /** Message of `Progressing`: what holds it up. */
  readonly message?: string | undefined;
}

export const PROCESSING: CloneState = { progressing: 'True', ready: 'False', reason: 'Still processing' };
export const SUCCEEDED: CloneState = { progressing: 'False', ready: 'True', reason: 'Ready' };
/** Waits for something that users must do. */
export const pending = (readyReason: string): CloneState => ({
  progressing: 'False',
  ready: 'False',
  reason: 'Pending',
  readyReason,
});
/** Ended without a target. */
export const failed = (readyReason: string): CloneState => ({
  progressing: 'False',
  ready: 'False',
  reason: 'Failed',
  readyReason,
});

/** The conditions of that state; `now` in milliseconds is when those changed that change. */
export function cloneConditions(
  conditions: DeepReadonly<Conditions> | undefined,
  { progressing, ready, reason, readyReason = reason, message }: CloneState,
  now: number,
): Conditions {
  const written = [
    { type: 'Progressing', status: progressing, reason, ...(message && { message }) },
    { type: 'Ready', status: ready, reason: readyReason },
  ] as const;
  return written.map((condition) => {
    const old = conditions?.find(({ type }) => type === condition.type);
    const lastTransitionTime = old?.status === condition.status ? old.lastTransitionTime : undefined;
    return { ...condition, lastProbeTime: null, lastTransitionTime: lastTransitionTime ?? formatTime(now) };
  }) as unknown as Conditions;
}
