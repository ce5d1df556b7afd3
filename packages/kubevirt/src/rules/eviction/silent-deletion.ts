/**
 * Deletions that nobody decided: the taint manager marks the Pods of a node that no longer answers, and the mark cannot be
 * taken back. When the node answers again its guests were never lost, so that the mark alone is no reason to end them.
 */

import { conditionOf, isConditionTrue } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyNode, ReadonlyPod } from '@coracle/apimachinery/types/types';
import { tolerates } from '@coracle/cluster-rules/placement/taints';

/** The taints that a node's silence puts on it; any other was put there by somebody. */
const OF_SILENCE = new Set(['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']);

/**
 * True when a Pod is marked for deletion by the taint manager alone, and its node carries no taint of somebody's that it
 * must go for. Whoever deletes it with less time than its own has decided: then it is false.
 */
export function isDeletedForSilence(pod: ReadonlyPod, node: ReadonlyNode | undefined): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds } = pod.metadata;
  if (deletionTimestamp === undefined) return false;
  const target = conditionOf(pod, 'DisruptionTarget');
  if (target?.status !== 'True' || target.reason !== 'DeletionByTaintManager') return false;
  const own = pod.spec.terminationGracePeriodSeconds;
  if (own !== undefined && deletionGracePeriodSeconds !== undefined && deletionGracePeriodSeconds < own) return false;
  return !(node?.spec?.taints ?? []).some(
    (taint) =>
      taint.effect === 'NoExecute' &&
      !OF_SILENCE.has(taint.key) &&
      !(pod.spec.tolerations ?? []).some((toleration) => tolerates(toleration, taint)),
  );
}

/** True when the node's agent answers. */
export const isNodeReady = (node: ReadonlyNode): boolean => isConditionTrue(node, 'Ready');
