/** What is done to the Pods that must leave for another: a condition, a graceful deletion, an event. */

import { type DeepReadonly, formatTime, keyOf } from '@coracle/apimachinery/meta/object';
import { PODS } from '@coracle/apimachinery/types/resource-types';
import type { Pod, PodCondition } from '@coracle/apimachinery/types/types';
import { orGone } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import type { EventRecorder } from '@coracle/client/events/recorder';
import { PREEMPTED } from '@coracle/cluster-rules/placement/preemption';
import type { Clock } from '@coracle/runtime/clock/clock';

export interface Eviction {
  readonly nodeName: string;
  readonly victims: readonly DeepReadonly<Pod>[];
  /** Pods that were waiting for the same room and are less important: they look for another. */
  readonly outranked: readonly DeepReadonly<Pod>[];
}

export interface Preemptor {
  /** Asks the victims to leave; those that are leaving already are let be. Rejects when one could not be asked. */
  evict(pod: DeepReadonly<Pod>, eviction: Eviction, signal: AbortSignal): Promise<void>;
}

/** Makes it. */
export function createPreemptor(options: {
  readonly client: Client;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
  readonly schedulerName: string;
}): Preemptor {
  const { client, recorder, clock, schedulerName } = options;
  const patchStatus = (pod: DeepReadonly<Pod>, status: object, signal: AbortSignal) =>
    client.patch(
      PODS,
      keyOf(pod),
      { type: 'strategic', body: { metadata: { uid: pod.metadata.uid }, status } },
      { subresource: 'status', signal },
    );
  const ask = async (victim: DeepReadonly<Pod>, signal: AbortSignal): Promise<void> => {
    const condition: PodCondition = {
      type: 'DisruptionTarget',
      observedGeneration: victim.metadata.generation ?? 0,
      status: 'True',
      reason: PREEMPTED,
      message: `${schedulerName}: preempting to accommodate a higher priority pod`,
      lastTransitionTime: formatTime(clock.now()),
    };
    await patchStatus(victim, { conditions: [condition] }, signal);
    await client.delete(PODS, keyOf(victim), { preconditions: { uid: victim.metadata.uid ?? '' }, signal });
  };
  return {
    async evict(pod, { nodeName, victims, outranked }, signal) {
      for (const one of outranked) await orGone(patchStatus(one, { nominatedNodeName: null }, signal));
      await Promise.all(
        victims.map(async (victim) => {
          if (victim.metadata.deletionTimestamp !== undefined) return;
          await orGone(ask(victim, signal));
          recorder.event(victim, 'Normal', 'Preempted', `Preempted by pod ${pod.metadata.uid} on node ${nodeName}`);
        }),
      );
    },
  };
}
