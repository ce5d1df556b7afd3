/** One metadata informer for each resource that can be listed, watched and deleted; kept in step with discovery. */
import { qualifiedResource, type ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import type { Client } from '@coracle/client/client';
import { type Discovery, preferredWith } from '@coracle/client/discovery/discover';
import { createInformer, type Informer } from '@coracle/client/informer/informer';
import type { Change } from '@coracle/client/informer/store';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';

interface GarbageMonitorOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onChange: (type: ResourceType<KubeObject>, change: Change<KubeObject>) => void;
  /** The resource is not watched any more in this version: what was reported of it counts no longer. */
  readonly onGone: (type: ResourceType<KubeObject>) => void;
}

interface Monitor {
  readonly type: ResourceType<KubeObject>;
  readonly informer: Informer<KubeObject>;
  readonly stop: AbortController;
  readonly since: number;
}

/** Events never take part: they are many, short-lived, and owned by nothing. */
const IGNORED = new Set(['events', 'events.events.k8s.io']);
/** One API that cannot be listed must not stop all collection: owners are verified live before anything is deleted. */
const GIVE_UP_MS = 30_000;

/** Makes an empty set of monitors. */
export function createGarbageMonitors({ client, clock, log, onChange, onGone }: GarbageMonitorOptions) {
  const monitors = new Map<string, Monitor>();
  const running = new Set<Promise<void>>();
  let followed: AbortSignal | undefined;
  /** One listener for all of them: who adds one to a signal looks through all that it has. */
  const follow = (signal: AbortSignal): void => {
    if (followed === signal) return;
    followed = signal;
    signal.addEventListener('abort', () => {
      for (const { stop } of monitors.values()) stop.abort(signal.reason);
    });
  };

  const begin = (id: string, type: ResourceType<KubeObject>): void => {
    const informer = createInformer(client, type, { metadataOnly: true, clock, log });
    informer.onChange((change) => onChange(type, change));
    const stop = new AbortController();
    monitors.set(id, { type, informer, stop, since: clock.monotonic() });
    const run: Promise<void> = informer.start(stop.signal).finally(() => running.delete(run));
    running.add(run);
  };
  const end = (id: string, monitor: Monitor): void => {
    monitors.delete(id);
    monitor.stop.abort(new DOMException('resource is served no more', 'AbortError'));
  };

  return {
    /** Starts and stops informers so that they match what is served. */
    sync(discovery: Discovery, signal: AbortSignal): void {
      follow(signal);
      const wanted = new Map<string, ResourceType<KubeObject>>();
      for (const type of preferredWith(discovery, ['list', 'watch', 'delete'])) {
        const id = qualifiedResource(type);
        if (!IGNORED.has(id)) wanted.set(id, type);
      }
      for (const [id, monitor] of monitors) {
        const type = wanted.get(id);
        if (type?.version === monitor.type.version) continue;
        // What could not be read is not gone.
        if (!type && discovery.failures.length > 0) continue;
        end(id, monitor);
        // Also when another version takes over: what was deleted between the two informers, neither would tell.
        onGone(monitor.type);
      }
      for (const [id, type] of wanted) if (!monitors.has(id)) begin(id, type);
    },
    /** True when each informer has shown a whole state, or has failed to for so long that waiting has no point. */
    ready(): boolean {
      const late = clock.monotonic() - GIVE_UP_MS;
      return monitors.size > 0 && monitors.values().every(({ informer, since }) => informer.isSynced || since <= late);
    },
    /** Resolves when all informers have stopped. */
    async stopped(): Promise<void> {
      await Promise.all(running);
    },
  };
}
