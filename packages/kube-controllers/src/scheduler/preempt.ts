/** What is done to the Pods that must leave for another: a condition, a graceful deletion, an event. */

import { type DeepReadonly, keyOf } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { PODS } from '@coracle/apimachinery/types/resource-types';
import type { Pod } from '@coracle/apimachinery/types/types';
import { orGone } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import type { EventRecorder } from '@coracle/client/events/recorder';
import { PREEMPTED } from '@coracle/cluster-rules/placement/preemption';
import type { Clock } from '@coracle/runtime/clock/clock';
import { disruptionTarget, patchPodStatus } from '../pod-disruption.ts';

interface Eviction {
  readonly nodeName: string;
  readonly victims: readonly DeepReadonly<Pod>[];
  /** Pods that were waiting for the same room and are less important: they look for another. */
  readonly outranked: readonly DeepReadonly<Pod>[];
}

interface Preemptor {
  readonly client: Client;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
  readonly schedulerName: string;
  readonly signal: AbortSignal;
}

/** Asks the victims to leave for `pod`; those that are leaving already are let be. Rejects when one could not be asked. */
export async function evict(
  pod: DeepReadonly<Pod>,
  { nodeName, victims, outranked }: Eviction,
  { client, recorder, clock, schedulerName, signal }: Preemptor,
): Promise<void> {
  const why = { reason: PREEMPTED, message: `${schedulerName}: preempting to accommodate a higher priority pod` };
  const ask = async (victim: DeepReadonly<Pod>): Promise<void> => {
    await patchPodStatus(client, victim, { conditions: [disruptionTarget(victim, why, clock.now())] }, signal);
    await client.delete(PODS, keyOf(victim), { preconditions: { uid: victim.metadata.uid ?? '' }, signal });
  };
  for (const one of outranked) await orGone(patchPodStatus(client, one, { nominatedNodeName: null }, signal));
  await Promise.all(
    victims.map(async (victim) => {
      if (isDeleting(victim)) return;
      await orGone(ask(victim));
      recorder.event(victim, 'Normal', 'Preempted', `Preempted by pod ${pod.metadata.uid} on node ${nodeName}`);
    }),
  );
}
