/**
 * Binds Pods to nodes. A pass takes one Pod: choose a node (`domain/placement`), assume it, bind; or say in the
 * PodScheduled condition why there is none, and ask Pods of lower priority to leave where that helps. Choosing is
 * synchronous, so that passes which wait for their binding never see each other's choice half made. Pods without a place
 * are tried again when a node or a placed Pod changes, the more important ones first.
 */
import type { PolicyRule } from '../../api/kinds/builtin/access-types.ts';
import { NAMESPACES, NODES, POD_DISRUPTION_BUDGETS, PODS } from '../../api/kinds/builtin/resource-types.ts';
import type { Binding, Node, Pod, PodCondition } from '../../api/kinds/builtin/types.ts';
import { deepEqual } from '../../api/meta/deep-equal.ts';
import type { ResourceType } from '../../api/meta/gvk.ts';
import type { DeepReadonly, ObjectKey } from '../../api/meta/object.ts';
import { formatTime, keyOf, keyText } from '../../api/meta/object.ts';
import { isNamespaceTerminating, isNotFound } from '../../client/api-failure.ts';
import {
  type Controller,
  createController,
  DONE,
  ownKeys,
  type ReconcileContext,
  type ReconcileResult,
  requeueAfter,
} from '../../client/controller/controller.ts';
import type { ControllerEnvironment } from '../../client/controller/environment.ts';
import { createEventRecorder } from '../../client/events/recorder.ts';
import { placePod } from '../../domain/placement/place-pod.ts';
import { isTerminated } from '../../domain/placement/pod-requests.ts';
import { findVictims, priorityOf } from '../../domain/placement/preemption.ts';
import { createPodClaims } from './pod-claims.ts';
import { createPreemptor } from './preempt.ts';
import { createSchedulerCache } from './scheduler-cache.ts';

export interface SchedulerOptions extends ControllerEnvironment {
  /** Pods naming this scheduler, or none, are bound; `default-scheduler` when absent. */
  readonly schedulerName?: string;
}

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

const BINDINGS: ResourceType<Binding> = {
  group: '',
  version: 'v1',
  resource: 'pods',
  kind: 'Binding',
  namespaced: true,
};

/** Bindings under way at once. */
const CONCURRENCY = 32;
/** Pods without a place are looked at again after this long, whatever the watches say. */
const RETRY_MS = 60_000;
/** Changes of nodes and Pods are gathered this long before waiting Pods are tried again. */
const WAKE_MS = 50;
const NOT_READY_TAINT = 'node.kubernetes.io/not-ready';
/** After a start, nodes are given this long to report before a Pod is said to fit nowhere. */
const REGISTRATION_MS = 10_000;

/** Makes the scheduler; nothing happens before `start`. */
export function createScheduler(options: SchedulerOptions): Controller {
  const { client, informers, clock, log, schedulerName = 'default-scheduler' } = options;
  const pods = informers.of(PODS);
  const nodes = informers.of(NODES);
  const namespaces = informers.of(NAMESPACES);
  const budgets = informers.of(POD_DISRUPTION_BUDGETS);
  const recorder = createEventRecorder(client, { component: schedulerName, clock, log });
  const cache = createSchedulerCache(nodes, pods);
  const podClaims = createPodClaims({ client, informers }, pods);
  /** Pods that found no place. */
  const waiting = new Map<string, ObjectKey>();
  let wakePending = false;
  const preemptor = createPreemptor({ client, recorder, clock, schedulerName });
  const namespaceLabels = (name: string): Readonly<Record<string, string>> | undefined =>
    namespaces.get({ namespace: '', name })?.metadata.labels;
  let startedAt = 0;
  /** Milliseconds for which a refusal may only mean that a node has not reported yet; 0 when it means what it says. */
  const registrationLeft = (): number => {
    const known = nodes.list();
    if (known.length > 0 && !known.some(isRegistering)) return 0;
    return Math.max(0, startedAt + REGISTRATION_MS - clock.monotonic());
  };

  const isOurs = (pod: DeepReadonly<Pod>): boolean =>
    (pod.spec.nodeName ?? '') === '' &&
    [schedulerName, ''].includes(pod.spec.schedulerName ?? '') &&
    pod.metadata.deletionTimestamp === undefined &&
    !isTerminated(pod);

  const setCondition = async (
    pod: DeepReadonly<Pod>,
    reason: 'Unschedulable' | 'SchedulingGated',
    message: string,
    { signal, nominated }: { readonly signal: AbortSignal; readonly nominated?: string | undefined },
  ): Promise<boolean> => {
    const held = pod.status?.conditions?.find((one) => one.type === 'PodScheduled');
    const known = held?.status === 'False' && held.reason === reason && held.message === message;
    if (known && (nominated === undefined || nominated === (pod.status?.nominatedNodeName ?? ''))) return false;
    const condition: PodCondition = {
      type: 'PodScheduled',
      observedGeneration: pod.metadata.generation ?? 0,
      status: 'False',
      reason,
      message,
      lastProbeTime: null,
      lastTransitionTime:
        held?.status === 'False' && held.lastTransitionTime ? held.lastTransitionTime : formatTime(clock.now()),
    };
    const nomination = nominated === undefined ? {} : { nominatedNodeName: nominated === '' ? null : nominated };
    const body = { metadata: { uid: pod.metadata.uid }, status: { conditions: [condition], ...nomination } };
    await client.patch(PODS, keyOf(pod), { type: 'strategic', body }, { subresource: 'status', signal });
    return !known;
  };

  /** Says that there is no place; `nominated` is the node where room is made, '' for none any more. */
  const refuse = async (
    pod: DeepReadonly<Pod>,
    message: string,
    signal: AbortSignal,
    nominated?: string,
  ): Promise<void> => {
    if (await setCondition(pod, 'Unschedulable', message, { signal, nominated }))
      recorder.event(pod, 'Warning', 'FailedScheduling', message);
  };

  const bind = async (pod: DeepReadonly<Pod>, nodeName: string, signal: AbortSignal): Promise<void> => {
    const { name = '', namespace = '', uid = '' } = pod.metadata;
    const binding: Binding = {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name, namespace, uid },
      target: { apiVersion: 'v1', kind: 'Node', name: nodeName },
    };
    cache.assume(pod, nodeName);
    try {
      await client.create(BINDINGS, binding, { subresource: 'binding', signal });
    } catch (error) {
      cache.forget(pod);
      throw error;
    }
    recorder.event(pod, 'Normal', 'Scheduled', `Successfully assigned ${namespace}/${name} to ${nodeName}`);
  };

  const reconcile = async (key: ObjectKey, { signal, log: passLog }: ReconcileContext): Promise<ReconcileResult> => {
    const text = keyText(key);
    const pod = pods.get(key);
    waiting.delete(text);
    if (!pod || !isOurs(pod) || cache.isAssumed(pod)) return DONE;
    try {
      if ((pod.spec.schedulingGates ?? []).length > 0) {
        await setCondition(pod, 'SchedulingGated', 'Scheduling is blocked due to non-empty scheduling gates', {
          signal,
        });
        return DONE;
      }
      const usages = cache.usagesFor(pod);
      const nominated = pod.status?.nominatedNodeName;
      const volumes = podClaims.of(pod);
      const placement = placePod(pod, usages, { namespaceLabels, nominated, volumes });
      if (placement.type === 'node') {
        const choices = volumes.choices(usages.find(({ name }) => name === placement.name)!.node);
        // Nothing is awaited where nothing is chosen: the Pod is to be assumed before the next one is placed.
        if (choices.length > 0) {
          await podClaims.give(choices, placement.name, signal);
          return requeueAfter(RETRY_MS);
        }
        await bind(pod, placement.name, signal);
        passLog.info('pod bound', { node: placement.name });
        return DONE;
      }
      waiting.set(text, key);
      const patience = registrationLeft();
      if (patience > 0) return requeueAfter(patience);
      if (usages.length === 0) {
        await refuse(pod, placement.message, signal);
        return requeueAfter(RETRY_MS);
      }
      const preemption = findVictims({
        pod,
        nodes: usages,
        refusals: placement.refusals,
        budgets: budgets.list(),
        namespaceLabels,
        volumes,
      });
      if (preemption.type === 'victims') {
        const { nodeName, victims } = preemption;
        // Nominated first: another Pod must not slip into the room that is being made.
        const outranked = cache.nominate(pod, nodeName);
        await refuse(pod, placement.message, signal, nodeName);
        await preemptor.evict(pod, { nodeName, victims, outranked }, signal);
        passLog.info('preempting', { node: nodeName, victims: victims.length });
      } else {
        const ends = preemption.endsNomination && (nominated ?? '') !== '';
        if (ends) cache.endNomination(pod);
        await refuse(pod, `${placement.message} ${preemption.message}`, signal, ends ? '' : undefined);
      }
      return requeueAfter(RETRY_MS);
    } catch (error) {
      if (isNotFound(error)) return DONE;
      // The namespace is on its way out, and takes the Pod along.
      if (isNamespaceTerminating(error)) {
        passLog.debug('pod not bound, its namespace ends');
        return DONE;
      }
      throw error;
    }
  };

  const controller = createController({
    name: schedulerName,
    client,
    log,
    clock,
    concurrency: CONCURRENCY,
    sources: [
      ownKeys(pods),
      { informer: nodes, keys: () => [] },
      { informer: namespaces, keys: () => [] },
      { informer: budgets, keys: () => [] },
      ...podClaims.informers.map((informer) => ({ informer, keys: () => [] })),
    ],
    reconcile,
  });

  const wake = (): void => {
    if (wakePending || waiting.size === 0) return;
    wakePending = true;
    clock.schedule(WAKE_MS, () => {
      wakePending = false;
      const rank = (key: ObjectKey): number => {
        const pod = pods.get(key);
        return pod ? priorityOf(pod) : 0;
      };
      for (const key of [...waiting.values()].sort((a, b) => rank(b) - rank(a))) controller.enqueue(key);
    });
  };
  nodes.onChange((change) => {
    if (change.type !== 'modified' || placementDiffers(change.object, change.previous)) wake();
  });
  pods.onChange((change) => {
    const { object, previous } = change;
    if (change.type === 'deleted') waiting.delete(keyText(keyOf(object)));
    const placed = (object.spec.nodeName ?? '') !== '';
    // A Pod that left made room; one that arrived may be the neighbour another waits for.
    if (
      placed &&
      (change.type !== 'modified' || previous?.spec.nodeName !== object.spec.nodeName || isTerminated(object))
    )
      wake();
  });
  podClaims.onChange((keys) => {
    for (const key of keys) controller.enqueue(key);
  });
  return {
    ...controller,
    start(signal) {
      startedAt = clock.monotonic();
      return controller.start(signal);
    },
  };
}

/** True for a node that has not reported yet, or whose first report has not been acted on. */
const isRegistering = (node: DeepReadonly<Node>): boolean => {
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
  if (!ready) return true;
  return ready.status === 'True' && (node.spec?.taints ?? []).some(({ key }) => key === NOT_READY_TAINT);
};

/** True when something a placement looks at changed: not for the heartbeats, which come every few seconds. */
const placementDiffers = (now: DeepReadonly<Node>, before: DeepReadonly<Node>): boolean =>
  !deepEqual(now.spec, before.spec) ||
  !deepEqual(now.metadata.labels, before.metadata.labels) ||
  !deepEqual(now.status?.allocatable, before.status?.allocatable);
