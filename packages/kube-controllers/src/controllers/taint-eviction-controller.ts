/**
 * Deletes Pods from nodes that carry NoExecute taints they do not tolerate, or not any longer. The deletion is a graceful
 * one: on a node that is silent the Pod stays Terminating until its agent is back, or somebody who knows that the machine
 * is gone deletes the Pod by force or the Node. Only then may a guest be started elsewhere.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { keyOf } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { NODES, PODS } from '@coracle/apimachinery/types/resource-types';
import type { Node, Pod, Taint } from '@coracle/apimachinery/types/types';
import { orGone } from '@coracle/client/api-failure';
import { createController, ownKeys, requeueAfter, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { tolerates } from '@coracle/cluster-rules/placement/taints';
import { disruptionTarget, patchPodStatus, podsByNode } from '../pod-disruption.ts';

export const taintEvictionRules = policyRules(
  'list watch delete : core : pods',
  'list watch : core : nodes',
  'patch : core : pods/status',
  'create patch : core : events',
);

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
export function createTaintEvictionController(environment: ControllerEnvironment) {
  const { client, informers, clock, log } = environment;
  const nodes = informers.of(NODES);
  const pods = informers.of(PODS);
  const podsOf = podsByNode(pods);
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
    const why = { reason: 'DeletionByTaintManager', message: 'Taint manager: deleting due to NoExecute taint' };
    await patchPodStatus(client, pod, { conditions: [disruptionTarget(pod, why, clock.now())] }, signal);
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
        return podsOf(node.metadata.name ?? '').map(keyOf);
      }),
    ],
    async reconcile(key, { signal, log: passLog }) {
      const pod = pods.get(key);
      const uid = pod?.metadata.uid ?? '';
      const node = pod?.spec.nodeName && nodes.get({ namespace: '', name: pod.spec.nodeName });
      const taints = node ? noExecute(node) : [];
      const report = (what: string): void =>
        recorder.event(pod!, 'Normal', 'TaintManagerEviction', `${what} Pod ${key.namespace}/${key.name}`);
      if (!pod || taints.length === 0 || isDeleting(pod)) {
        if (pod && since.delete(uid) && !isDeleting(pod)) report('Cancelling deletion of');
        return;
      }
      const patience = toleratedFor(pod, taints);
      if (patience === Number.POSITIVE_INFINITY) {
        since.delete(uid);
        return;
      }
      const began = since.get(uid) ?? clock.monotonic();
      since.set(uid, began);
      const left = began + patience - clock.monotonic();
      if (left > 0) return requeueAfter(left);
      report('Marking for deletion');
      passLog.info('pod evicted by taint', { node: pod.spec.nodeName ?? '' });
      await orGone(evict(pod, signal));
      since.delete(uid);
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
