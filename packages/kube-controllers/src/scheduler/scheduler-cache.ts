/**
 * The nodes as placements see them: what the informers show, plus the Pods that were just sent to a node and are not
 * shown there yet ("assumed"). Without them, a hundred Pods placed in one second would all land on one free node.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { hasEnded } from '@coracle/apimachinery/meta/object-state';
import type { Node, Pod } from '@coracle/apimachinery/types/types';
import type { Informer } from '@coracle/client/informer/informer';
import { type NodeUsage, nodeUsage } from '@coracle/cluster-rules/placement/node-usage';
import { priorityOf } from '@coracle/cluster-rules/placement/preemption';

export interface SchedulerCache {
  /** One entry for each node, in no particular order, with the Pods nominated for it that outrank this one. */
  usagesFor(pod: DeepReadonly<Pod>): NodeUsage[];
  /** Keeps room on the node for the Pod. Returns the Pods of lower priority that were nominated for it before. */
  nominate(pod: DeepReadonly<Pod>, nodeName: string): DeepReadonly<Pod>[];
  endNomination(pod: DeepReadonly<Pod>): void;
  /** Counts the Pod on the node until the informer shows where it is. */
  assume(pod: DeepReadonly<Pod>, nodeName: string): void;
  /** Takes an assumption back: the binding failed. */
  forget(pod: DeepReadonly<Pod>): void;
  isAssumed(pod: DeepReadonly<Pod>): boolean;
}

const BY_NODE = 'scheduler.nodeName';

/** Makes a cache over two informers; sums are kept for each node until something on it changes. */
export function createSchedulerCache(nodes: Informer<Node>, pods: Informer<Pod>): SchedulerCache {
  /** By uid. Holds only Pods whose binding is under way or not yet seen. */
  const assumed = new Map<string, { readonly pod: DeepReadonly<Pod>; readonly nodeName: string }>();
  const known = new Map<string, NodeUsage>();
  /** By uid: Pods without a node for which room is being made on one. */
  const nominations = new Map<string, { readonly pod: DeepReadonly<Pod>; readonly nodeName: string }>();

  pods.addIndex(BY_NODE, (pod) => [pod.spec.nodeName ?? '']);
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

  const usageOf = (node: DeepReadonly<Node>): NodeUsage => {
    const name = node.metadata.name ?? '';
    let usage = known.get(name);
    if (!usage) {
      const coming = [...assumed.values()].filter((one) => one.nodeName === name).map((one) => one.pod);
      usage = nodeUsage(node, [...pods.byIndex(BY_NODE, name), ...coming]);
      known.set(name, usage);
    }
    return usage;
  };

  return {
    usagesFor(pod) {
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
    nominate(pod, nodeName) {
      const lower = [...nominations.values()].filter(
        (one) => one.nodeName === nodeName && priorityOf(one.pod) < priorityOf(pod),
      );
      for (const { pod: one } of lower) nominations.delete(one.metadata.uid ?? '');
      nominations.set(pod.metadata.uid ?? '', { pod, nodeName });
      return lower.map((one) => one.pod);
    },
    endNomination(pod) {
      nominations.delete(pod.metadata.uid ?? '');
    },
    assume(pod, nodeName) {
      assumed.set(pod.metadata.uid ?? '', { pod, nodeName });
      nominations.delete(pod.metadata.uid ?? '');
      touch(nodeName);
    },
    forget(pod) {
      const uid = pod.metadata.uid ?? '';
      touch(assumed.get(uid)?.nodeName);
      assumed.delete(uid);
    },
    isAssumed: (pod) => assumed.has(pod.metadata.uid ?? ''),
  };
}

const awaitsRoom = (pod: DeepReadonly<Pod>): boolean =>
  (pod.spec.nodeName ?? '') === '' && pod.metadata.deletionTimestamp === undefined && !hasEnded(pod);
