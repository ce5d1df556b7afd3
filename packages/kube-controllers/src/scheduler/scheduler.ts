/**
 * Binds Pods to nodes. A pass takes one Pod: choose a node (`cluster-rules/placement`), assume it, bind; or say in the
 * PodScheduled condition why there is none, and ask Pods of lower priority to leave where that helps. Choosing is
 * synchronous, so that passes which wait for their binding never see each other's choice half made. Pods without a place
 * are tried again when a node or a placed Pod changes, the more important ones first.
 */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly, ObjectKey } from '@coracle/apimachinery/meta/object';
import { keyOf, keyText } from '@coracle/apimachinery/meta/object';
import { hasEnded } from '@coracle/apimachinery/meta/object-state';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import type { Node } from '@coracle/apimachinery/types/types';
import { type Controller, createController, ownKeys } from '@coracle/client/controller/controller';
import { priorityOf } from '@coracle/cluster-rules/placement/preemption';

import { type SchedulerOptions, SchedulerSteps } from './scheduler-steps.ts';

/** What the scheduler may do, and nothing else. */
export const schedulerRules = policyRules(
  'get list watch : core : pods nodes namespaces',
  'delete : core : pods',
  'create : core : pods/binding',
  'list watch : policy : poddisruptionbudgets',
  'patch : core : pods/status',
  'get list watch patch : core : persistentvolumeclaims persistentvolumes',
  'list watch : storage.k8s.io : storageclasses',
  'create patch : core : events',
);

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
      ...[steps.nodes, steps.namespaces, steps.budgets, ...steps.podClaims.informers].map((informer) => ({
        informer,
        keys: () => [],
      })),
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
    if (placed && (change.type !== 'modified' || previous?.spec.nodeName !== object.spec.nodeName || hasEnded(object)))
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
