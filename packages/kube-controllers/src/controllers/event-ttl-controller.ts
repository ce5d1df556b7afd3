/**
 * Deletes Events an hour after they were last written. Upstream leaves that to etcd's leases; the store here has none,
 * and against a cluster that has them this controller finds nothing to do.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { EVENTS } from '@coracle/apimachinery/types/resource-types';
import type { Event } from '@coracle/apimachinery/types/types';
import { orAbsent } from '@coracle/client/api-failure';
import { type Controller, createController, ownKeys, requeueAfter } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';

export const eventTtlRules = policyRules('list watch delete : core : events');

const TTL_MS = 60 * 60_000;

/** When the event was last written, milliseconds since the epoch. */
function lastWritten(event: DeepReadonly<Event>): number {
  const stamps = [
    event.lastTimestamp,
    event.series?.lastObservedTime,
    event.eventTime,
    event.firstTimestamp,
    event.metadata.creationTimestamp,
  ];
  const times = stamps.map((stamp) => Date.parse(stamp ?? '')).filter((time) => !Number.isNaN(time));
  return Math.max(0, ...times);
}

/** Makes the controller. */
export function createEventTtlController(environment: ControllerEnvironment): Controller {
  const { client, informers, clock } = environment;
  const events = informers.of(EVENTS);
  return createController({
    ...environment,
    name: 'event-ttl-controller',
    concurrency: 4,
    sources: [ownKeys(events)],
    async reconcile(key, { signal }) {
      const event = events.get(key);
      if (!event) return;
      const left = lastWritten(event) + TTL_MS - clock.now();
      // A clock that was set back, or an event from the future, must not keep it for ever.
      if (left > 0) return requeueAfter(Math.min(left, TTL_MS));
      const { uid = '', resourceVersion = '' } = event.metadata;
      await orAbsent(client.delete(EVENTS, key, { preconditions: { uid, resourceVersion }, signal }));
    },
  });
}
