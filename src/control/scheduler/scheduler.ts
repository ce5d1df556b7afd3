/**
 * Binds Pods to nodes. A pass takes one Pod: choose a node (`domain/placement`), assume it, bind; or say in the
 * PodScheduled condition why there is none, and ask Pods of lower priority to leave where that helps. Choosing is
 * synchronous, so that passes which wait for their binding never see each other's choice half made. Pods without a place
 * are tried again when a node or a placed Pod changes, the more important ones first.
 */
import type { PolicyRule } from '../../api/kinds/builtin/access-types.ts';
import type { Node } from '../../api/kinds/builtin/types.ts';
import { deepEqual } from '../../api/meta/deep-equal.ts';
import type { DeepReadonly, ObjectKey } from '../../api/meta/object.ts';
import { keyOf, keyText } from '../../api/meta/object.ts';
import { type Controller, createController, ownKeys } from '../../client/controller/controller.ts';
import { isTerminated } from '../../domain/placement/pod-requests.ts';
import { priorityOf } from '../../domain/placement/preemption.ts';

import { type SchedulerOptions, SchedulerSteps } from './scheduler-steps.ts';
/** What the scheduler may do, and nothing else. */
export const schedulerRules: PolicyRule[] = [
  { apiGroups: [''], resources: ['pods', 'nodes', 'namespaces'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['delete'] },
  { apiGroups: [''], resources: ['pods/binding'], verbs: ['create'] },
  { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: ['list', 'watch'] },
  { apiGroups: [''], resources: ['pods/status'], verbs: ['patch'] },
  {
    apiGroups: [''],
    resources: ['persistentvolumeclaims', 'persistentvolumes'],
    verbs: ['get', 'list', 'watch', 'patch'],
  },
  { apiGroups: ['storage.k8s.io'], resources: ['storageclasses'], verbs: ['list', 'watch'] },
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
];

/** Bindings under way at once. */
const CONCURRENCY = 32;
/** Changes of nodes and Pods are gathered this long before waiting Pods are tried again. */
const WAKE_MS = 50;
/** Makes the scheduler; nothing happens before `start`. */
export function createScheduler(options: SchedulerOptions): Controller {
  const steps = new SchedulerSteps(options);
  const controller = createController({
    name: steps.schedulerName,
    client: steps.client,
    log: steps.log,
    clock: steps.clock,
    concurrency: CONCURRENCY,
    sources: [
      ownKeys(steps.pods),
      { informer: steps.nodes, keys: () => [] },
      { informer: steps.namespaces, keys: () => [] },
      { informer: steps.budgets, keys: () => [] },
      ...steps.podClaims.informers.map((informer) => ({ informer, keys: () => [] })),
    ],
    reconcile: steps.reconcile,
  });

  const wake = (): void => {
    if (steps.wakePending || steps.waiting.size === 0) return;
    steps.wakePending = true;
    steps.clock.schedule(WAKE_MS, () => {
      steps.wakePending = false;
      const rank = (key: ObjectKey): number => {
        const pod = steps.pods.get(key);
        return pod ? priorityOf(pod) : 0;
      };
      for (const key of [...steps.waiting.values()].sort((a, b) => rank(b) - rank(a))) controller.enqueue(key);
    });
  };
  steps.nodes.onChange((change) => {
    if (change.type !== 'modified' || placementDiffers(change.object, change.previous)) wake();
  });
  steps.pods.onChange((change) => {
    const { object, previous } = change;
    if (change.type === 'deleted') steps.waiting.delete(keyText(keyOf(object)));
    const placed = (object.spec.nodeName ?? '') !== '';
    // A Pod that left made room; one that arrived may be the neighbour another waits for.
    if (
      placed &&
      (change.type !== 'modified' || previous?.spec.nodeName !== object.spec.nodeName || isTerminated(object))
    )
      wake();
  });
  steps.podClaims.onChange((keys) => {
    for (const key of keys) controller.enqueue(key);
  });
  return {
    ...controller,
    start(signal) {
      steps.startedAt = steps.clock.monotonic();
      return controller.start(signal);
    },
  };
}

/** True when something a placement looks at changed: not for the heartbeats, which come every few seconds. */
const placementDiffers = (now: DeepReadonly<Node>, before: DeepReadonly<Node>): boolean =>
  !deepEqual(now.spec, before.spec) ||
  !deepEqual(now.metadata.labels, before.metadata.labels) ||
  !deepEqual(now.status?.allocatable, before.status?.allocatable);
