/**
 * Deletes Pods from nodes that carry NoExecute taints they do not tolerate, or not any longer. The deletion is a graceful
 * one: on a node that is silent the Pod stays Terminating until its agent is back, or somebody who knows that the machine
 * is gone deletes the Pod by force or the Node. Only then may a guest be started elsewhere.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { formatTime, keyOf } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { NODES, PODS } from '@coracle/apimachinery/types/resource-types';
import type { Node, Pod, PodCondition, Taint } from '@coracle/apimachinery/types/types';
import { orGone } from '@coracle/client/api-failure';
import {
  type Controller,
  createController,
  DONE,
  ownKeys,
  requeueAfter,
  source,
} from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { tolerates } from '@coracle/cluster-rules/placement/taints';

export const taintEvictionRules = policyRules(
  'list watch delete : core : pods',
  'list watch : core : nodes',
  'patch : core : pods/status',
  'create patch : core : events',
);

const BY_NODE = 'taint-eviction.nodeName';

/** How long a Pod may stay beside these taints, milliseconds: 0 not at all, Infinity for ever. */
export function toleratedFor(pod: DeepReadonly<Pod>, taints: readonly DeepReadonly<Taint>[]): number {
  let least = Number.POSITIVE_INFINITY;
  for (const taint of taints) {
    // The first that answers counts, as the Pod lists them.
    const answering = (pod.spec.tolerations ?? []).find((one) => tolerates(one, taint));
    if (!answering) return 0;
    const { tolerationSeconds } = answering;
    if (tolerationSeconds !== undefined) least = Math.min(least, Math.max(0, Number(tolerationSeconds)) * 1000);
  }
  return least;
}

/** Makes the controller; its keys are Pods. */
export function createTaintEvictionController(environment: ControllerEnvironment): Controller {
  const { client, informers, clock, log } = environment;
  const nodes = informers.of(NODES);
  const pods = informers.of(PODS);
  pods.addIndex(BY_NODE, (pod) => [pod.spec.nodeName ?? '']);
  const recorder = createEventRecorder(client, { component: 'taint-eviction-controller', clock, log });
  /**
   * Pod UID -> when its time began, monotonic: counted from when this process saw the taint, so that a control plane that
   * slept does not act on an old one. Holds only Pods beside taints.
   */
  const since = new Map<string, number>();

  pods.onChange(({ type, object }) => {
    if (type === 'deleted') since.delete(object.metadata.uid ?? '');
  });

  const evict = async (pod: DeepReadonly<Pod>, signal: AbortSignal): Promise<void> => {
    const condition: PodCondition = {
      type: 'DisruptionTarget',
      observedGeneration: pod.metadata.generation ?? 0,
      status: 'True',
      reason: 'DeletionByTaintManager',
      message: 'Taint manager: deleting due to NoExecute taint',
      lastTransitionTime: formatTime(clock.now()),
    };
    const body = { metadata: { uid: pod.metadata.uid }, status: { conditions: [condition] } };
    await client.patch(PODS, keyOf(pod), { type: 'strategic', body }, { subresource: 'status', signal });
    await client.delete(PODS, keyOf(pod), { preconditions: { uid: pod.metadata.uid ?? '' }, signal });
  };

  return createController({
    ...environment,
    name: 'taint-eviction-controller',
    concurrency: 8,
    sources: [
      ownKeys(pods),
      source(nodes, (node, previous) => {
        if (previous && taintKeys(node) === taintKeys(previous)) return [];
        return pods.byIndex(BY_NODE, node.metadata.name ?? '').map((pod) => keyOf(pod));
      }),
    ],
    async reconcile(key, { signal, log: passLog }) {
      const pod = pods.get(key);
      const uid = pod?.metadata.uid ?? '';
      const node = pod?.spec.nodeName && nodes.get({ namespace: '', name: pod.spec.nodeName });
      const taints = node ? noExecute(node) : [];
      if (!pod || taints.length === 0 || pod.metadata.deletionTimestamp !== undefined) {
        if (pod && since.delete(uid) && pod.metadata.deletionTimestamp === undefined)
          recorder.event(
            pod,
            'Normal',
            'TaintManagerEviction',
            `Cancelling deletion of Pod ${key.namespace}/${key.name}`,
          );
        return DONE;
      }
      const patience = toleratedFor(pod, taints);
      if (patience === Number.POSITIVE_INFINITY) {
        since.delete(uid);
        return DONE;
      }
      const began = since.get(uid) ?? clock.monotonic();
      since.set(uid, began);
      const left = began + patience - clock.monotonic();
      if (left > 0) return requeueAfter(left);
      recorder.event(pod, 'Normal', 'TaintManagerEviction', `Marking for deletion Pod ${key.namespace}/${key.name}`);
      passLog.info('pod evicted by taint', { node: pod.spec.nodeName ?? '' });
      await orGone(evict(pod, signal));
      since.delete(uid);
      return DONE;
    },
  });
}

const noExecute = (node: DeepReadonly<Node>): readonly DeepReadonly<Taint>[] =>
  (node.spec?.taints ?? []).filter(({ effect }) => effect === 'NoExecute');

const taintKeys = (node: DeepReadonly<Node>): string =>
  noExecute(node)
    .map(({ key, value = '' }) => `${key}=${value}`)
    .sort()
    .join();
