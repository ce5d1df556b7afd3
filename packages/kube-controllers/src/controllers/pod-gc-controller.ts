/**
 * Pods nobody can end any more: those on a node that is gone, and unscheduled ones that are terminating. A node counts
 * as gone after it was missing for 40 s and the server confirms it, so that a node that is being replaced keeps its Pods.
 * An administrator says that a silent node's machine is off by the taint node.kubernetes.io/out-of-service: Pods that are
 * terminating there go at once.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { formatTime, keyOf } from '@coracle/apimachinery/meta/object';
import { hasEnded } from '@coracle/apimachinery/meta/object-state';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { NODES, PODS } from '@coracle/apimachinery/types/resource-types';
import type { Node, Pod, PodCondition } from '@coracle/apimachinery/types/types';
import { isNotFound, orAbsent } from '@coracle/client/api-failure';
import {
  type Controller,
  createController,
  DONE,
  ownKeys,
  requeueAfter,
  source,
} from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';

export const podGcRules = policyRules(
  'list watch delete : core : pods',
  'get list watch : core : nodes',
  'patch : core : pods/status',
);

const BY_NODE = 'pod-gc.nodeName';
const QUARANTINE_MS = 40_000;
const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';

/** Makes the controller; its keys are Pods. */
export function createPodGcController(environment: ControllerEnvironment): Controller {
  const { client, informers, clock } = environment;
  const nodes = informers.of(NODES);
  const pods = informers.of(PODS);
  pods.addIndex(BY_NODE, (pod) => [pod.spec.nodeName ?? '']);
  /** Node name -> when it was first missed, monotonic. Entries go when the node is back or its last Pod is gone. */
  const missing = new Map<string, number>();

  const markFailed = async (
    pod: DeepReadonly<Pod>,
    message: string | undefined,
    signal: AbortSignal,
  ): Promise<void> => {
    if (hasEnded(pod)) return;
    const condition: PodCondition = {
      type: 'DisruptionTarget',
      observedGeneration: pod.metadata.generation ?? 0,
      status: 'True',
      reason: 'DeletionByPodGC',
      message: message ?? '',
      lastTransitionTime: formatTime(clock.now()),
    };
    const conditions = message === undefined ? {} : { conditions: [condition] };
    const body = { metadata: { uid: pod.metadata.uid }, status: { phase: 'Failed', ...conditions } };
    await client.patch(PODS, keyOf(pod), { type: 'strategic', body }, { subresource: 'status', signal });
  };

  const forceDelete = (pod: DeepReadonly<Pod>, signal: AbortSignal): Promise<void> =>
    client.delete(PODS, keyOf(pod), {
      gracePeriodSeconds: 0,
      preconditions: { uid: pod.metadata.uid ?? '' },
      signal,
    });

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
        return pods.byIndex(BY_NODE, name).map((pod) => keyOf(pod));
      }),
    ],
    async reconcile(key, { signal, log: passLog }) {
      const pod = pods.get(key);
      if (!pod) return DONE;
      const nodeName = pod.spec.nodeName ?? '';
      if (nodeName === '') {
        if (pod.metadata.deletionTimestamp === undefined || (pod.metadata.finalizers ?? []).length > 0) return DONE;
        await orAbsent(forceDelete(pod, signal));
        return DONE;
      }
      const node = nodes.get({ namespace: '', name: nodeName });
      if (node) {
        missing.delete(nodeName);
        if (pod.metadata.deletionTimestamp === undefined || !isOutOfService(node)) return DONE;
        passLog.info('deleting pod of a node that is out of service', { node: nodeName });
        await orAbsent(markFailed(pod, undefined, signal));
        await orAbsent(forceDelete(pod, signal));
        return DONE;
      }
      const now = clock.monotonic();
      const since = missing.get(nodeName) ?? now;
      missing.set(nodeName, since);
      const left = since + QUARANTINE_MS - now;
      if (left > 0) return requeueAfter(left);
      if (await exists(nodeName, signal)) return requeueAfter(QUARANTINE_MS);
      passLog.info('deleting pod of a node that is gone', { node: nodeName });
      await orAbsent(markFailed(pod, 'PodGC: node no longer exists', signal));
      await orAbsent(forceDelete(pod, signal));
      if (pods.byIndex(BY_NODE, nodeName).length <= 1) missing.delete(nodeName);
      return DONE;
    },
  });

  async function exists(nodeName: string, signal: AbortSignal): Promise<boolean> {
    try {
      await client.get(NODES, { namespace: '', name: nodeName }, { signal });
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }
}

/** Not ready, and said to be off. */
const isOutOfService = (node: DeepReadonly<Node>): boolean =>
  (node.spec?.taints ?? []).some(({ key }) => key === OUT_OF_SERVICE) &&
  !node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
