/** Which launcher Pods of an instance are alive, ready, and the one its guest runs in. */

import type { ReadonlyObject } from '@coracle/apimachinery/meta/object';
import { hasEnded, isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { MIGRATION_JOB_LABEL } from './launcher-labels.ts';

/**
 * True when every container runs and all but `compute` are ready: the readiness of `compute` is the guest's, and a target
 * has no guest yet (upstream's IsPodReady).
 */
export function isLauncherReady(pod: ReadonlyPod): boolean {
  if (pod.status?.phase !== 'Running' || isDeleting(pod)) return false;
  const containers = pod.status.containerStatuses ?? [];
  return (
    containers.length > 0 &&
    containers.every(({ name, ready, state }) =>
      name === 'compute' ? ready || state?.running !== undefined : name === 'istio-proxy' || ready,
    )
  );
}

/**
 * The Pod the guest runs in: the newest one on the instance's node. Before it has a node, the newest one that no
 * migration made. One that has ended counts only when there is no other.
 */
export function currentPod<T extends ReadonlyPod>(vmi: ReadonlyVmi, pods: readonly T[]): T | undefined {
  const node = vmi.status?.nodeName;
  const candidates = node
    ? pods.filter((pod) => pod.spec.nodeName === node)
    : pods.filter((pod) => pod.metadata.labels?.[MIGRATION_JOB_LABEL] === undefined);
  return [...candidates].sort((a, b) => Number(hasEnded(b)) - Number(hasEnded(a)) || byAge(a, b)).at(-1);
}

/** Oldest first; of the same second, by name. */
export const byAge = (a: ReadonlyObject, b: ReadonlyObject): number =>
  (a.metadata.creationTimestamp ?? '').localeCompare(b.metadata.creationTimestamp ?? '') ||
  (a.metadata.name ?? '').localeCompare(b.metadata.name ?? '');
