import { namespacedType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, ObjectKey } from '@coracle/apimachinery/meta/object';
import { formatTime, keyText } from '@coracle/apimachinery/meta/object';
import { conditionOf } from '@coracle/apimachinery/meta/object-state';
import { NAMESPACES, NODES, POD_DISRUPTION_BUDGETS, PODS } from '@coracle/apimachinery/types/resource-types';
import type { Binding, Node, Pod, PodCondition } from '@coracle/apimachinery/types/types';
import { isNamespaceTerminating, isNotFound } from '@coracle/client/api-failure';
import { type ReconcileContext, type ReconcileResult, requeueAfter } from '@coracle/client/controller/controller';
import { ControllerSteps } from '@coracle/client/controller/controller-steps';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { placePod } from '@coracle/cluster-rules/placement/place-pod';
import { findVictims } from '@coracle/cluster-rules/placement/preemption';
import { patchPodStatus } from '../pod-disruption.ts';
import { createPodClaims } from './pod-claims.ts';
import { evict } from './preempt.ts';
import { awaitsRoom, createSchedulerCache } from './scheduler-cache.ts';

export interface SchedulerOptions extends ControllerEnvironment {
  /** Pods naming this scheduler, or none, are bound; `default-scheduler` when absent. */
  readonly schedulerName?: string;
}

const BINDINGS = namespacedType<Binding>('v1', 'pods', 'Binding');

/** Pods without a place are looked at again after this long, whatever the watches say. */
const RETRY_MS = 60_000;

const NOT_READY_TAINT = 'node.kubernetes.io/not-ready';

/** After a start, nodes are given this long to report before a Pod is said to fit nowhere. */
const REGISTRATION_MS = 10_000;

/** True for a node that has not reported yet, or whose first report has not been acted on. */
const isRegistering = (node: DeepReadonly<Node>): boolean => {
  const ready = conditionOf(node, 'Ready');
  if (!ready) return true;
  return ready.status === 'True' && (node.spec?.taints ?? []).some(({ key }) => key === NOT_READY_TAINT);
};

/** The steps of a Pod that is to be placed: filter, score, bind, or make room. */
export class SchedulerSteps extends ControllerSteps<SchedulerOptions> {
  readonly schedulerName = this.options.schedulerName ?? 'default-scheduler';
  readonly pods = this.options.informers.of(PODS);
  readonly nodes = this.options.informers.of(NODES);
  readonly namespaces = this.options.informers.of(NAMESPACES);
  readonly budgets = this.options.informers.of(POD_DISRUPTION_BUDGETS);
  readonly podClaims = createPodClaims(this.options, this.pods);
  /** Pods that found no place. */
  readonly waiting = new Map<string, ObjectKey>();
  wakePending = false;
  startedAt = 0;
  readonly #recorder = createEventRecorder(this.client, {
    component: this.schedulerName,
    clock: this.clock,
    log: this.log,
  });
  readonly #cache = createSchedulerCache(this.nodes, this.pods);

  readonly #namespaceLabels = (name: string): Readonly<Record<string, string>> | undefined =>
    this.namespaces.get({ namespace: '', name })?.metadata.labels;

  /** Milliseconds for which a refusal may only mean that a node has not reported yet; 0 when it means what it says. */
  #registrationLeft(): number {
    const known = this.nodes.list();
    if (known.length > 0 && !known.some(isRegistering)) return 0;
    return Math.max(0, this.startedAt + REGISTRATION_MS - this.clock.monotonic());
  }

  #isOurs(pod: DeepReadonly<Pod>): boolean {
    return awaitsRoom(pod) && [this.schedulerName, ''].includes(pod.spec.schedulerName ?? '');
  }

  async #setCondition(
    pod: DeepReadonly<Pod>,
    reason: 'Unschedulable' | 'SchedulingGated',
    message: string,
    { signal, nominated }: { readonly signal: AbortSignal; readonly nominated?: string | undefined },
  ): Promise<boolean> {
    const held = conditionOf(pod, 'PodScheduled');
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
        held?.status === 'False' && held.lastTransitionTime ? held.lastTransitionTime : formatTime(this.clock.now()),
    };
    const nomination = nominated === undefined ? {} : { nominatedNodeName: nominated === '' ? null : nominated };
    await patchPodStatus(this.client, pod, { conditions: [condition], ...nomination }, signal);
    return !known;
  }

  /** Says that there is no place; `nominated` is the node where room is made, '' for none any more. */
  async #refuse(pod: DeepReadonly<Pod>, message: string, signal: AbortSignal, nominated?: string): Promise<void> {
    if (await this.#setCondition(pod, 'Unschedulable', message, { signal, nominated }))
      this.#recorder.event(pod, 'Warning', 'FailedScheduling', message);
  }

  async #bind(pod: DeepReadonly<Pod>, nodeName: string, signal: AbortSignal): Promise<void> {
    const { name = '', namespace = '', uid = '' } = pod.metadata;
    const binding: Binding = {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name, namespace, uid },
      target: { apiVersion: 'v1', kind: 'Node', name: nodeName },
    };
    this.#cache.assume(pod, nodeName);
    try {
      await this.client.create(BINDINGS, binding, { subresource: 'binding', signal });
    } catch (error) {
      this.#cache.forget(pod);
      throw error;
    }
    this.#recorder.event(pod, 'Normal', 'Scheduled', `Successfully assigned ${namespace}/${name} to ${nodeName}`);
  }

  readonly reconcile = async (key: ObjectKey, { signal, log: passLog }: ReconcileContext): Promise<ReconcileResult> => {
    const text = keyText(key);
    const pod = this.pods.get(key);
    this.waiting.delete(text);
    if (!pod || !this.#isOurs(pod) || this.#cache.isAssumed(pod)) return;
    try {
      if ((pod.spec.schedulingGates ?? []).length > 0) {
        const message = 'Scheduling is blocked due to non-empty scheduling gates';
        await this.#setCondition(pod, 'SchedulingGated', message, { signal });
        return;
      }
      const usages = this.#cache.usagesFor(pod);
      const nominated = pod.status?.nominatedNodeName;
      const volumes = this.podClaims.of(pod);
      const placement = placePod(pod, usages, { namespaceLabels: this.#namespaceLabels, nominated, volumes });
      if (placement.type === 'node') {
        const choices = volumes.choices(usages.find(({ name }) => name === placement.name)!.node);
        // Nothing is awaited where nothing is chosen: the Pod is to be assumed before the next one is placed.
        if (choices.length > 0) {
          await this.podClaims.give(choices, placement.name, signal);
          return requeueAfter(RETRY_MS);
        }
        await this.#bind(pod, placement.name, signal);
        passLog.info('pod bound', { node: placement.name });
        return;
      }
      this.waiting.set(text, key);
      const patience = this.#registrationLeft();
      if (patience > 0) return requeueAfter(patience);
      if (usages.length === 0) {
        await this.#refuse(pod, placement.message, signal);
        return requeueAfter(RETRY_MS);
      }
      const preemption = findVictims({
        pod,
        nodes: usages,
        refusals: placement.refusals,
        budgets: this.budgets.list(),
        namespaceLabels: this.#namespaceLabels,
        volumes,
      });
      if (preemption.type === 'victims') {
        const { nodeName, victims } = preemption;
        // Nominated first: another Pod must not slip into the room that is being made.
        const outranked = this.#cache.nominate(pod, nodeName);
        await this.#refuse(pod, placement.message, signal, nodeName);
        const { client, clock, schedulerName } = this;
        const preemptor = { client, recorder: this.#recorder, clock, schedulerName, signal };
        await evict(pod, { nodeName, victims, outranked }, preemptor);
        passLog.info('preempting', { node: nodeName, victims: victims.length });
      } else {
        const ends = preemption.endsNomination && (nominated ?? '') !== '';
        if (ends) this.#cache.endNomination(pod);
        await this.#refuse(pod, `${placement.message} ${preemption.message}`, signal, ends ? '' : undefined);
      }
      return requeueAfter(RETRY_MS);
    } catch (error) {
      if (isNotFound(error)) return;
      // The namespace is on its way out, and takes the Pod along.
      if (isNamespaceTerminating(error)) return passLog.debug('pod not bound, its namespace ends');
      throw error;
    }
  };
}
