/** Informers shared by the controllers of one process: one list/watch for each resource, however many read it. */
import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import { qualifiedResource } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import { type Clock, systemClock } from '@coracle/runtime/clock/clock';
import { type Logger, silentLogger } from '@coracle/runtime/log/log';
import { aborted } from '@coracle/runtime/signal/abortable';
import type { Client } from '../client.ts';
import { createInformer, type Informer } from './informer.ts';
import { syncedInTime } from './not-synced.ts';

export interface InformerSetOptions {
  readonly clock?: Clock;
  readonly log?: Logger;
  /** Only this namespace, for all of them; all namespaces when undefined. */
  readonly namespace?: string;
}

export interface InformerSet {
  /** The one informer of that resource, or of what the selector leaves of it. One asked for after `start` starts at once. */
  of<T extends KubeObject>(type: ResourceType<T>, scope?: { readonly fieldSelector?: string }): Informer<T>;
  /** Starts all; resolves when all have stopped. */
  start(signal: AbortSignal): Promise<void>;
  /** Resolves when every informer asked for so far holds a whole state. */
  synced(signal: AbortSignal): Promise<void>;
  /** The same within a time. Rejects with NotSyncedError. */
  syncedInTime(signal: AbortSignal): Promise<void>;
}

/** Makes an empty set. */
export function createInformerSet(client: Client, options: InformerSetOptions = {}): InformerSet {
  const { clock = systemClock, log = silentLogger, namespace } = options;
  const informers = new Map<string, Informer<KubeObject>>();
  const running = new Set<Promise<void>>();
  let startSignal: AbortSignal | undefined;

  const launch = (informer: Informer<KubeObject>, signal: AbortSignal): void => {
    const run: Promise<void> = informer.start(signal).finally(() => running.delete(run));
    running.add(run);
  };

  return {
    of<T extends KubeObject>(type: ResourceType<T>, { fieldSelector }: { readonly fieldSelector?: string } = {}) {
      const name = `${type.version}/${qualifiedResource(type)}?${fieldSelector ?? ''}`;
      const known = informers.get(name);
      if (known) return known as unknown as Informer<T>;
      const made = createInformer(client, type, {
        clock,
        log,
        ...(namespace !== undefined && { namespace }),
        ...(fieldSelector !== undefined && { fieldSelector }),
      });
      const erased = made as unknown as Informer<KubeObject>;
      informers.set(name, erased);
      if (startSignal) launch(erased, startSignal);
      return made;
    },
    async start(signal) {
      startSignal = signal;
      for (const informer of informers.values()) launch(informer, signal);
      await aborted(signal);
      await Promise.all(running);
    },
    syncedInTime: (signal) => syncedInTime([...informers.values()], clock, signal),
    async synced(signal) {
      await Promise.all([...informers.values()].map((informer) => informer.synced(signal)));
    },
  };
}
