/**
 * Deletes what nobody owns any more, for every kind there is.
 *
 * Flow: monitors fill the owner graph > objects whose owners changed are enqueued by uid > a pass decides by the graph,
 * and, before it acts, again by what is stored > delete, strip references, or remove a finalizer.
 * Guarantees: nothing is deleted before every owner was confirmed absent by the server; deletions carry the uid and
 * resourceVersion that the decision was made on. What a protected machine holds stays, without its owners. Caveat: a dependent created while its owner is being deleted in the foreground may
 * not be waited for; it is collected after.
 */

import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { createController } from '@coracle/client/controller/controller';
import type { ControllerEnvironment, Runnable } from '@coracle/client/controller/environment';
import type { Discovery } from '@coracle/client/discovery/discover';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { createDiscoveryCache, MAX_AGE_MS } from './discovery-cache.ts';
import { createGarbageMonitors } from './garbage-monitors.ts';
import { GarbagePasses } from './garbage-passes.ts';
import { OwnerChanges } from './owner-changes.ts';
import { OwnerGraph, toGraphNode } from './owner-graph.ts';

export const garbageCollectorRules = policyRules(
  'get list watch patch delete : * : *',
  'create : core : events',
  'get : /api /api/* /apis /apis/*',
);

const NAME = 'garbage-collector-controller';
const CONCURRENCY = 20;
/** Changes of CRDs are gathered this long before discovery is read again. */
const REFRESH_DELAY_MS = 250;

export interface GarbageCollectorOptions extends ControllerEnvironment {
  /** Whether a refused deletion means that something else holds the object, as an owner would: then it stays, without a retry. */
  readonly isKept?: (error: unknown) => boolean;
}

/** Makes the garbage collector. */
export function createGarbageCollectorController(environment: GarbageCollectorOptions): Runnable {
  const { client, informers, clock, log } = environment;
  const graph = new OwnerGraph();
  const discovery = createDiscoveryCache(client, informers, clock);
  const recorder = createEventRecorder(client, { component: NAME, clock, log });
  let served: Discovery = { resources: [], failures: [] };

  const controller = createController({
    ...environment,
    name: NAME,
    concurrency: CONCURRENCY,
    sources: [],
    reconcile: (key, context) => passes.pass(key.name, context),
  });
  const enqueue = (uid: string): void => controller.enqueue({ namespace: '', name: uid });
  const changes = new OwnerChanges(graph, { recorder, enqueue });

  const monitors = createGarbageMonitors({
    client,
    clock,
    log,
    onChange: (type, change) => {
      if (change.type === 'deleted') changes.forget(change.object.metadata.uid ?? '');
      else changes.observe(toGraphNode(type, change.object));
    },
    onGone: (type) => {
      // Not served is not deleted: dependents ask again, and wait until the kind is back.
      for (const { uid } of graph.ofResource(type.group, type.resource)) changes.drop(uid);
    },
  });
  const passes = new GarbagePasses({
    client,
    clock,
    graph,
    changes,
    isReady: () => monitors.ready(),
    served: () => served,
    enqueue,
    isKept: environment.isKept,
  });

  return {
    name: NAME,
    async start(signal) {
      let cancel: (() => void) | undefined;
      let refreshing = false;
      const refresh = async (): Promise<void> => {
        if (refreshing) return;
        refreshing = true;
        let next = MAX_AGE_MS;
        try {
          served = await discovery.read(signal);
          if (!signal.aborted) monitors.sync(served, signal);
          passes.retryPuzzling();
        } catch (error) {
          next = 1_000;
          if (!signal.aborted) log.warn('discovery failed', { controller: NAME, error: String(error) });
        }
        refreshing = false;
        plan(next);
      };
      const plan = (ms: number): void => {
        cancel?.();
        if (!signal.aborted) cancel = clock.schedule(ms, () => void refresh());
      };
      discovery.onStale(() => plan(REFRESH_DELAY_MS));
      await refresh();
      await controller.start(signal);
      cancel?.();
      await monitors.stopped();
    },
  };
}
