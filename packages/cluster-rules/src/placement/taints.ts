/** Taints and tolerations. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { Node, Pod, Taint, TaintEffect, Toleration } from '@coracle/apimachinery/types/types';

/** True when the toleration answers the taint. An empty key with Exists answers every taint, an empty effect every effect. */
export function tolerates(toleration: DeepReadonly<Toleration>, taint: DeepReadonly<Taint>): boolean {
  const { key = '', operator = 'Equal', value = '', effect = '' } = toleration;
  if (effect !== '' && effect !== taint.effect) return false;
  if (key !== '' && key !== taint.key) return false;
  switch (operator) {
    case 'Exists':
      return true;
    case 'Equal':
      return key !== '' && value === (taint.value ?? '');
    case 'Lt':
    case 'Gt': {
      const bound = Number(value);
      const actual = Number(taint.value ?? '');
      if (!Number.isInteger(bound) || !Number.isInteger(actual)) return false;
      return operator === 'Lt' ? actual < bound : actual > bound;
    }
    default:
      return false;
  }
}

/** The first taint of these effects that the Pod does not tolerate. */
export const untoleratedTaint = (
  pod: DeepReadonly<Pod>,
  node: DeepReadonly<Node>,
  effects: readonly TaintEffect[],
): DeepReadonly<Taint> | undefined => untoleratedTaints(pod, node, effects)[0];

/** All taints of these effects that the Pod does not tolerate. */
export function untoleratedTaints(
  pod: DeepReadonly<Pod>,
  node: DeepReadonly<Node>,
  effects: readonly TaintEffect[],
): DeepReadonly<Taint>[] {
  const tolerations = pod.spec.tolerations ?? [];
  return (node.spec?.taints ?? []).filter(
    (taint) => effects.includes(taint.effect) && !tolerations.some((one) => tolerates(one, taint)),
  );
}
