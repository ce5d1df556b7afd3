/**
 * The nodes as placements see them: what the informers show, plus the Pods that were just sent to a node and are not
 * shown there yet ("assumed"). Without them, a hundred Pods placed in one second would all land on one free node.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { hasEnded, isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { Node, Pod } from '@coracle/apimachinery/types/types';
import type { Informer } from '@coracle/client/informer/informer';
import { type NodeUsage, nodeUsage } from '@coracle/cluster-rules/placement/node-usage';
import { priorityOf } from '@coracle/cluster-rules/placement/preemption';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import { podsByNode } from '../pod-disruption.ts';

type Placed = { readonly pod: DeepReadonly<Pod>; readonly nodeName: string };

/** Makes a cache over two informers; sums are kept for each node until something on it changes. */
export function createSchedulerCache(nodes: Informer<Node>, pods: Informer<Pod>) {
  /** By uid. Holds only Pods whose binding is under way or not yet seen. */
  const assumed = new Map<string, Placed>();
  const known = new Map<string, NodeUsage>();
  /** By uid: Pods without a node for which room is being made on one. */
  const nominations = new Map<string, Placed>();

  const podsOf = podsByNode(pods);
  const touch = (nodeName: string | undefined): void => {
    if (nodeName !== undefined) known.delete(nodeName);
  };
  nodes.onChange((change) => touch(change.object.metadata.name));
  pods.onChange((change) => {
    touch(change.object.spec.nodeName);
    touch(change.previous?.spec.nodeName);
    const uid = change.object.metadata.uid ?? '';
    const nominated = change.object.status?.nominatedNodeName ?? '';
    if (change.type === 'deleted' || !awaitsRoom(change.object)) nominations.delete(uid);
    else if (nominated !== '') nominations.set(uid, { pod: change.object, nodeName: nominated });
    else if ((change.previous?.status?.nominatedNodeName ?? '') !== '') nominations.delete(uid);
    const assumption = assumed.get(uid);
    if (assumption && (change.type === 'deleted' || (change.object.spec.nodeName ?? '') !== '')) {
      assumed.delete(uid);
      touch(assumption.nodeName);
    }
  });

  const usageOf = (node: DeepReadonly<Node>): NodeUsage =>
    getOrInsert(known, node.metadata.name ?? '', (name) => {
      const coming = assumed.values().filter((one) => one.nodeName === name);
      return nodeUsage(node, [...podsOf(name), ...coming.map((one) => one.pod)]);
    });

  return {
    /** One entry for each node, in no particular order, with the Pods nominated for it that outrank this one. */
    usagesFor(pod: DeepReadonly<Pod>): NodeUsage[] {
      const usages = nodes.list().map(usageOf);
      if (nominations.size === 0) return usages;
      const uid = pod.metadata.uid ?? '';
      const rank = priorityOf(pod);
      return usages.map((usage) => {
        const before = [...nominations]
          .filter(([other, one]) => other !== uid && one.nodeName === usage.name && priorityOf(one.pod) >= rank)
          .map(([, one]) => one.pod);
        return before.length === 0 ? usage : nodeUsage(usage.node, [...usage.pods, ...before]);
      });
    },
    /** Keeps room on the node for the Pod. Returns the Pods of lower priority that were nominated for it before. */
    nominate(pod: DeepReadonly<Pod>, nodeName: string): DeepReadonly<Pod>[] {
      const lower = [...nominations.values()].filter(
        (one) => one.nodeName === nodeName && priorityOf(one.pod) < priorityOf(pod),
      );
      for (const { pod: one } of lower) nominations.delete(one.metadata.uid ?? '');
      nominations.set(pod.metadata.uid ?? '', { pod, nodeName });
      return lower.map((one) => one.pod);
    },
    endNomination: (pod: DeepReadonly<Pod>): void => void nominations.delete(pod.metadata.uid ?? ''),
    /** Counts the Pod on the node until the informer shows where it is. */
    assume(pod: DeepReadonly<Pod>, nodeName: string): void {
      assumed.set(pod.metadata.uid ?? '', { pod, nodeName });
      nominations.delete(pod.metadata.uid ?? '');
      touch(nodeName);
    },
    /** Takes an assumption back: the binding failed. */
    forget(pod: DeepReadonly<Pod>): void {
      const uid = pod.metadata.uid ?? '';
      touch(assumed.get(uid)?.nodeName);
      assumed.delete(uid);
    },
    isAssumed: (pod: DeepReadonly<Pod>): boolean => assumed.has(pod.metadata.uid ?? ''),
  };
}

/** True for a Pod that is to be placed. */
export const awaitsRoom = (pod: DeepReadonly<Pod>): boolean =>
  (pod.spec.nodeName ?? '') === '' && !isDeleting(pod) && !hasEnded(pod);
