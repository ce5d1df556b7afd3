/** The conditions of replica sets and pools: both have the same two. Pure. */

import { type DeepReadonly, formatTime } from '@coracle/apimachinery/meta/object';
import type { ReplicaSetStatus } from '../../kinds/kubevirt.ts';

type Condition = NonNullable<ReplicaSetStatus['conditions']>[number];

export interface SetProblem {
  readonly reason: string;
  readonly message: string;
}

/** ReplicaPaused and ReplicaFailure: each is there while it is true. The time of one that was there stays. */
export function setConditions(
  before: readonly DeepReadonly<Condition>[] | undefined,
  {
    paused,
    problem,
    now,
  }: { readonly paused: boolean; readonly problem: SetProblem | undefined; readonly now: number },
): Condition[] {
  const wanted: Omit<Condition, 'lastTransitionTime'>[] = [];
  if (problem) wanted.push({ type: 'ReplicaFailure', status: 'True', ...problem });
  if (paused)
    wanted.push({ type: 'ReplicaPaused', status: 'True', reason: 'Paused', message: 'Controller got paused' });
  return wanted.map((condition) => ({
    ...condition,
    lastTransitionTime:
      before?.find(({ type }) => type === condition.type)?.lastTransitionTime ?? (formatTime(now) as string),
  }));
}
