/**
 * The nodes as placements see them: what the informers show, plus the Pods that were just sent to a node and are not
 * shown there yet ("assumed"). Without them, a hundred Pods placed in one second would all land on one free node.
 */
import type { Node, Pod } from '../../api/kinds/builtin/types.ts';
import type { DeepReadonly } from '../../api/meta/object.ts';
import type { Informer } from '../../client/informer/informer.ts';
import { type NodeUsage, nodeUsage } from '../../domain/placement/node-usage.ts';

export interface SchedulerCache {
  /** One entry for each node, in no particular order. */
  usages(): NodeUsage[];
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

  pods.addIndex(BY_NODE, (pod) => [pod.spec.nodeName ?? '']);
  const touch = (nodeName: string | undefined): void => {
    if (nodeName !== undefined) known.delete(nodeName);
  };
  nodes.onChange((change) => touch(change.object.metadata.name));
  pods.onChange((change) => {
    touch(change.object.spec.nodeName);
    touch(change.previous?.spec.nodeName);
    const uid = change.object.metadata.uid ?? '';
    const assumption = assumed.get(uid);
    if (assumption && (change.type === 'deleted' || (change.object.spec.nodeName ?? '') !== '')) {
      assumed.delete(uid);
      touch(assumption.nodeName);
    }
  });

  return {
    usages: () =>
      nodes.list().map((node) => {
        const name = node.metadata.name ?? '';
        let usage = known.get(name);
        if (!usage) {
          const coming = [...assumed.values()].filter((one) => one.nodeName === name).map((one) => one.pod);
          usage = nodeUsage(node, [...pods.byIndex(BY_NODE, name), ...coming]);
          known.set(name, usage);
        }
        return usage;
      }),
    assume(pod, nodeName) {
      assumed.set(pod.metadata.uid ?? '', { pod, nodeName });
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
