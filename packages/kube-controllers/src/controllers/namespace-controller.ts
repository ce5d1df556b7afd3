/**
 * Empties terminating namespaces and lets them go: syncs that delete in order first, for a while, then Pods, then everything else there is by discovery, then the
 * finalizer `kubernetes`. What keeps a namespace from its end is reported in its conditions.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { NAMESPACES, PODS } from '@coracle/apimachinery/types/resource-types';
import type { Namespace } from '@coracle/apimachinery/types/types';
import { isNotFound } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { commit } from '@coracle/client/commit/commit';
import { createController, ownKeys, requeueAfter, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { createDiscoveryCache } from './discovery-cache.ts';
import { namespaceConditions } from './namespace-conditions.ts';
import { deleteNamespaceContent, type NamespaceContent, type NamespaceContentOptions } from './namespace-content.ts';

/** Everything may live in a namespace, so everything may have to be deleted with it. */
export const namespaceRules = policyRules(
  'get list watch : core : namespaces',
  'update : core : namespaces/finalize',
  'patch : core : namespaces/status',
  'list watch : apiextensions.k8s.io : customresourcedefinitions',
  'list watch : apiregistration.k8s.io : apiservices',
  'delete deletecollection list watch : * : *',
  'get : /api /api/* /apis /apis/*',
);

const FINALIZER = 'kubernetes';
/** Namespaces emptied at once. */
const CONCURRENCY = 10;
/** Content that stays waits for others (grace periods, finalizers): looked at again soon, then less often. */
const FIRST_RECHECK_MS = 250;
const LAST_RECHECK_MS = 5_000;

export interface NamespaceControllerOptions extends ControllerEnvironment {
  /**
   * Content that has to go before all other, and that deletes itself in order: what is left of it, undefined for none. The
   * rest of the namespace waits for it.
   */
  readonly goesFirst?: (
    client: Client,
    namespace: string,
    options: NamespaceContentOptions,
  ) => Promise<NamespaceContent | undefined>;
}

/** Makes the controller; its keys are namespaces. */
export function createNamespaceController(environment: NamespaceControllerOptions) {
  const { client, informers, clock } = environment;
  const namespaces = informers.of(NAMESPACES);
  const pods = informers.of(PODS);
  const discovery = createDiscoveryCache(client, informers, clock);
  /** Rounds so far that left content behind, of namespaces that are terminating. */
  const rounds = new Map<string, number>();
  const isTerminating = (name: string): boolean =>
    namespaces.get({ namespace: '', name })?.metadata.deletionTimestamp !== undefined;

  const finalize = async (namespace: DeepReadonly<Namespace>, signal: AbortSignal): Promise<void> => {
    const after = cloneJson<Namespace>(namespace);
    after.spec = { ...after.spec, finalizers: (after.spec?.finalizers ?? []).filter((one) => one !== FINALIZER) };
    await client.update(NAMESPACES, after, { subresource: 'finalize', signal });
  };

  return createController({
    ...environment,
    name: 'namespace-controller',
    concurrency: CONCURRENCY,
    sources: [
      ownKeys(namespaces),
      source(pods, ({ metadata }) => {
        // The last Pod's end is what most namespaces wait for.
        const name = metadata.namespace ?? '';
        return pods.get({ namespace: name, name: metadata.name ?? '' }) === undefined && isTerminating(name)
          ? [{ namespace: '', name }]
          : [];
      }),
    ],
    async reconcile(key, { signal, log: passLog }) {
      if (!isTerminating(key.name)) {
        rounds.delete(key.name);
        return;
      }
      try {
        // The cache may lag behind our own last write: work on what is stored.
        const namespace = await client.get(NAMESPACES, key, { signal });
        if (namespace.metadata.deletionTimestamp === undefined) return requeueAfter(FIRST_RECHECK_MS);
        if (!(namespace.spec?.finalizers ?? []).includes(FINALIZER)) return;
        const found = await discovery.read(signal);
        const deletedForMs = clock.now() - Date.parse(namespace.metadata.deletionTimestamp);
        const options = { discovery: found, deletedForMs, signal };
        const waiting = await environment.goesFirst?.(client, key.name, options);
        const content = waiting ?? (await deleteNamespaceContent(client, key.name, options));
        const conditions = namespaceConditions(namespace.status?.conditions ?? [], content, {
          failures: found.failures,
          now: clock.now(),
        });
        // Also when all is well by now: a finalizer of somebody else may keep the namespace, and what it says, around.
        let current: DeepReadonly<Namespace> = namespace;
        if (!deepEqual(conditions, namespace.status?.conditions ?? [])) {
          const after = { ...namespace, status: { ...namespace.status, phase: 'Terminating' as const, conditions } };
          current = (await commit(client, NAMESPACES, { before: namespace, after, signal })) ?? namespace;
        }
        if (content.remaining.size === 0 && content.failures.length === 0 && found.failures.length === 0) {
          await finalize(current, signal);
          rounds.delete(key.name);
          passLog.info('namespace emptied');
          return;
        }
        if (waiting) return requeueAfter(FIRST_RECHECK_MS);
        const round = (rounds.get(key.name) ?? 0) + 1;
        rounds.set(key.name, round);
        passLog.debug('namespace not empty yet', {
          resources: content.remaining.size,
          failures: content.failures.length,
        });
        return requeueAfter(Math.min(FIRST_RECHECK_MS * 2 ** Math.min(round - 1, 10), LAST_RECHECK_MS));
      } catch (error) {
        if (!isNotFound(error)) throw error;
        rounds.delete(key.name);
      }
    },
  });
}
