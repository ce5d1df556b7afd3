/** What this node has given to Pods and could still give: a kubelet's part in a change of a Pod's size. */

import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { Amounts } from '@coracle/cluster-rules/placement/pod-requests';
import { isResizing, type PodResizeDecision, podResizeDecision } from '@coracle/kubevirt/rules/live-update/pod-resize';

/**
 * Makes what decides on a Pod whose size was changed; what it says 'fits' to is taken from then on. `pods` tells those of
 * this node as the API shows them; `allocatable` what it offers.
 */
export function createResizeDecision(source: {
  readonly pods: () => readonly ReadonlyPod[];
  readonly allocatable: () => Promise<Amounts>;
}): (pod: ReadonlyPod) => Promise<PodResizeDecision> {
  /** By UID: granted, and not shown by the API yet. No more than Pods of this node. */
  const granted = new Map<string, ReadonlyPod>();
  return async (pod) => {
    const allocatable = await source.allocatable();
    const pods = source.pods();
    const resizing = new Set(pods.filter(isResizing).map(({ metadata }) => metadata.uid ?? ''));
    for (const uid of granted.keys()) if (!resizing.has(uid)) granted.delete(uid);
    const given = pods.map((one) => granted.get(one.metadata.uid ?? '') ?? one);
    const decision = podResizeDecision(pod, { allocatable, pods: given });
    // Without what its status says it counts with all that it asks for.
    const { status: _, ...taken } = pod;
    if (decision.type === 'fits') granted.set(pod.metadata.uid ?? '', taken);
    return decision;
  };
}
