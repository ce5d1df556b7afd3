/** Pods that a controller ends: found by their node, with a condition that says why they go. */
import { type DeepReadonly, formatTime, keyOf } from '@coracle/apimachinery/meta/object';
import { PODS } from '@coracle/apimachinery/types/resource-types';
import type { Pod, PodCondition } from '@coracle/apimachinery/types/types';
import type { Client } from '@coracle/client/client';
import type { Informer } from '@coracle/client/informer/informer';

const BY_NODE = 'spec.nodeName';

/** Files the Pods of an informer by the name of their node; returns what reads them. */
export function podsByNode(pods: Informer<Pod>): (node: string) => readonly DeepReadonly<Pod>[] {
  pods.addIndex(BY_NODE, (pod) => [pod.spec.nodeName ?? '']);
  return (node) => pods.byIndex(BY_NODE, node);
}

/** Merges `status` into that of this very Pod. Rejects with ApiError 404 or 409 when it is gone. */
export const patchPodStatus = (
  client: Client,
  pod: DeepReadonly<Pod>,
  status: object,
  signal: AbortSignal,
): Promise<Pod> => {
  const body = { metadata: { uid: pod.metadata.uid }, status };
  return client.patch(PODS, keyOf(pod), { type: 'strategic', body }, { subresource: 'status', signal });
};

/** The condition of a Pod that is about to be deleted at `now`. */
export const disruptionTarget = (
  { metadata }: DeepReadonly<Pod>,
  why: { readonly reason: string; readonly message: string },
  now: number,
): PodCondition => ({
  type: 'DisruptionTarget',
  observedGeneration: metadata.generation ?? 0,
  status: 'True',
  ...why,
  lastTransitionTime: formatTime(now),
});
