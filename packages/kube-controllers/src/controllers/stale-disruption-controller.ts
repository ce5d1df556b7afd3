/**
 * Takes back the condition of a Pod whose end did not come: two minutes after somebody set the condition
 * `DisruptionTarget`, a Pod that is not being deleted gets it as False (pkg/controller/disruption, syncStalePodDisruption).
 */

import { type DeepReadonly, formatTime } from '@coracle/apimachinery/meta/object';
import { conditionOf, hasEnded, isDeleting } from '@coracle/apimachinery/meta/object-state';
import { PODS } from '@coracle/apimachinery/types/resource-types';
import type { Pod, PodCondition } from '@coracle/apimachinery/types/types';
import { orGone } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { type Controller, createController, ownKeys, requeueAfter } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';

/** An eviction or preemption that has not led to a deletion by then never will. */
const STALE_MS = 120_000;
const TYPE = 'DisruptionTarget';
/** Says that the node itself ends the Pod, which may take as long as it takes. */
const BY_KUBELET = 'TerminationByKubelet';

/** When the Pod's condition is to be taken back, milliseconds; undefined when there is nothing to take back. */
export function staleAt(pod: DeepReadonly<Pod>): number | undefined {
  if (isDeleting(pod) || hasEnded(pod)) return undefined;
  const condition = conditionOf(pod, TYPE);
  if (condition?.status !== 'True' || condition.reason === BY_KUBELET) return undefined;
  const since = Date.parse(condition.lastTransitionTime ?? '');
  return (Number.isNaN(since) ? 0 : since) + STALE_MS;
}

/** Makes the controller; its keys are Pods. */
export function createStaleDisruptionController({ client, informers, clock, log }: ControllerEnvironment): Controller {
  const pods = informers.of(PODS);
  return createController({
    name: 'stale-disruption',
    client,
    clock,
    log,
    sources: [ownKeys(pods)],
    async reconcile(key, { signal }) {
      const pod = pods.get(key);
      const at = pod && staleAt(pod);
      if (!pod || at === undefined) return;
      const left = at - clock.now();
      if (left > 0) return requeueAfter(left);
      const condition: PodCondition = {
        type: TYPE,
        observedGeneration: pod.metadata.generation ?? 0,
        status: 'False',
        lastTransitionTime: formatTime(clock.now()),
      };
      const before = pod as Pod;
      const conditions = (before.status?.conditions ?? []).map((one) => (one.type === TYPE ? condition : one));
      // Somebody wrote meanwhile: their version comes by.
      const after = { ...before, status: { ...before.status, conditions } };
      await orGone(commit(client, PODS, { before, after, subresource: 'status', signal }));
    },
  });
}
