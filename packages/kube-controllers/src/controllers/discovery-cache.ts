/** Discovery for many readers: one reading at a time, kept for a while, thrown away when CRDs or APIServices change. */
import { API_SERVICES, CUSTOM_RESOURCE_DEFINITIONS } from '@coracle/apimachinery/types/resource-types';
import type { Client } from '@coracle/client/client';
import { type Discovery, discover } from '@coracle/client/discovery/discover';
import type { InformerSet } from '@coracle/client/informer/informer-set';
import type { Clock } from '@coracle/runtime/clock/clock';

export type DiscoveryCache = ReturnType<typeof createDiscoveryCache>;

/** As upstream's garbage collector: kinds can also come and go without a CRD event being seen. */
export const MAX_AGE_MS = 30_000;

/** Makes a cache; the informers it asks for are started by the set's owner. */
export function createDiscoveryCache(client: Client, informers: InformerSet, clock: Clock) {
  let current: { readonly at: number; readonly reading: Promise<Discovery> } | undefined;
  const listeners: (() => void)[] = [];
  const invalidate = (): void => {
    current = undefined;
    for (const listener of listeners) listener();
  };
  informers.of(CUSTOM_RESOURCE_DEFINITIONS).onChange(invalidate);
  informers.of(API_SERVICES).onChange(invalidate);

  return {
    /** What the server serves, at most `MAX_AGE_MS` old. */
    read(signal: AbortSignal): Promise<Discovery> {
      const now = clock.monotonic();
      if (!current || now - current.at > MAX_AGE_MS) {
        const reading = discover(client, signal);
        const entry = { at: now, reading };
        current = entry;
        // A failure, or gaps in what was read, are not kept.
        const drop = (): void => {
          if (current === entry) current = undefined;
        };
        reading.then((found) => {
          if (found.failures.length > 0) drop();
        }, drop);
      }
      return current.reading;
    },
    /** Hears that the last reading is out of date. */
    onStale: (listener: () => void): void => void listeners.push(listener),
  };
}
