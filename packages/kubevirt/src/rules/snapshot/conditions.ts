/** Conditions of snapshots and restores: their reason is a sentence, as upstream's is. */

import { type DeepReadonly, formatTime } from '@coracle/apimachinery/meta/object';
import type { VmCondition } from '../../kinds/kubevirt.ts';

/** One aspect as it is now. */
export interface ConditionValue {
  readonly type: 'Ready' | 'Progressing' | 'Failure';
  readonly status: 'True' | 'False';
  readonly reason: string;
}

/** The conditions with this aspect; the list itself when that stands there already. */
export function withCondition<T extends DeepReadonly<VmCondition>>(
  conditions: readonly T[],
  { type, status, reason }: ConditionValue,
  now: number,
): readonly T[] {
  const at = conditions.findIndex((each) => each.type === type);
  const known = conditions[at];
  if (known !== undefined && known.status === status && known.reason === reason) return conditions;
  const made = { type, status, lastProbeTime: null, lastTransitionTime: formatTime(now), reason } as unknown as T;
  return known === undefined ? [...conditions, made] : conditions.with(at, made);
}

/** True when the aspect is there, whatever its status. */
export const hasCondition = (
  status: { readonly conditions?: readonly DeepReadonly<VmCondition>[] } | undefined,
  type: ConditionValue['type'],
): boolean => status?.conditions?.some((each) => each.type === type) === true;
