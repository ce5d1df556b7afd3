/**
 * Pods nobody can end any more: those on a node that is gone, and unscheduled ones that are terminating. A node counts
 * as gone after it was missing for 40 s and the server confirms it, so that a node that is being replaced keeps its Pods.
 * An administrator says that a silent node's machine is off by the taint node.kubernetes.io/out-of-service: Pods that are
 * terminating there go at once.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { keyOf } from '@coracle/apimachinery/meta/object';
import { hasEnded, isConditionTrue, isDeleting } from '@coracle/apimachinery/meta/object-state';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { NODES, PODS } from '@coracle/apimachinery/types/resource-types';
import type { Node, Pod } from '@coracle/apimachinery/types/types';
import { orAbsent } from '@coracle/client/api-failure';
import { createController, ownKeys, requeueAfter, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { disruptionTarget, patchPodStatus, podsByNode } from '../pod-disruption.ts';

export const podGcRules = policyRules(
  'list watch delete : core : pods',
  'get list watch : core : nodes',
  'patch : core : pods/status',
);

const QUARANTINE_MS = 40_000;
const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';

/** Makes the controller; its keys are Pods. */
export function createPodGcController(environment: ControllerEnvironment) {
  const { client, informers, clock } = environment;
  const nodes = informers.of(NODES);
  const pods = informers.of(PODS);
  const podsOf = podsByNode(pods);
  /** Node name -> when it was first missed, monotonic. Entries go when the node is back or its last Pod is gone. */
  const missing = new Map<string, number>();

  const markFailed = async (pod: DeepReadonly<Pod>, status: object, signal: AbortSignal): Promise<void> => {
    if (!hasEnded(pod)) await orAbsent(patchPodStatus(client, pod, { phase: 'Failed', ...status }, signal));
  };
  const forceDelete = async (pod: DeepReadonly<Pod>, signal: AbortSignal): Promise<void> => {
    const preconditions = { uid: pod.metadata.uid ?? '' };
    await orAbsent(client.delete(PODS, keyOf(pod), { gracePeriodSeconds: 0, preconditions, signal }));
  };

  return createController({
    ...environment,
    name: 'pod-garbage-collector-controller',
    concurrency: 4,
    sources: [
      ownKeys(pods),
      source(nodes, (node, previous) => {
        // Heartbeats say nothing new; only a node that came or went does.
        const name = node.metadata.name ?? '';
        const present = nodes.get({ namespace: '', name }) !== undefined;
        if (present && previous && isOutOfService(node) === isOutOfService(previous)) return [];
        return podsOf(name).map(keyOf);
      }),
    ],
    async reconcile(key, { signal, log: passLog }) {
      const pod = pods.get(key);
      if (!pod) return;
      const nodeName = pod.spec.nodeName ?? '';
      if (nodeName === '') {
        if (!isDeleting(pod) || (pod.metadata.finalizers ?? []).length > 0) return;
        await forceDelete(pod, signal);
        return;
      }
      const node = nodes.get({ namespace: '', name: nodeName });
      if (node) {
        missing.delete(nodeName);
        if (!isDeleting(pod) || !isOutOfService(node)) return;
        passLog.info('deleting pod of a node that is out of service', { node: nodeName });
        await markFailed(pod, {}, signal);
        await forceDelete(pod, signal);
        return;
      }
      const now = clock.monotonic();
      const since = missing.get(nodeName) ?? now;
      missing.set(nodeName, since);
      const left = since + QUARANTINE_MS - now;
      if (left > 0) return requeueAfter(left);
      if (await orAbsent(client.get(NODES, { namespace: '', name: nodeName }, { signal })))
        return requeueAfter(QUARANTINE_MS);
      passLog.info('deleting pod of a node that is gone', { node: nodeName });
      const why = { reason: 'DeletionByPodGC', message: 'PodGC: node no longer exists' };
      await markFailed(pod, { conditions: [disruptionTarget(pod, why, clock.now())] }, signal);
      await forceDelete(pod, signal);
      if (podsOf(nodeName).length <= 1) missing.delete(nodeName);
    },
  });
}

/** Not ready, and said to be off. */
const isOutOfService = (node: DeepReadonly<Node>): boolean =>
  (node.spec?.taints ?? []).some(({ key }) => key === OUT_OF_SERVICE) && !isConditionTrue(node, 'Ready');
