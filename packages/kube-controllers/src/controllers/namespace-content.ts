/** Deletes everything in one namespace, Pods first, and reports what is left. */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import { type KubeObject, keyOf } from '@coracle/apimachinery/meta/object';
import { hasEnded } from '@coracle/apimachinery/meta/object-state';
import { PODS } from '@coracle/apimachinery/types/resource-types';
import { isApiError, isNotFound, orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import type { DiscoveredResource, Discovery } from '@coracle/client/discovery/discover';
import { resourcePath } from '@coracle/client/resource-path';

export interface NamespaceContent {
  /** `pods.` or `virtualmachines.kubevirt.io` -> how many are left. */
  readonly remaining: ReadonlyMap<string, number>;
  /** Finalizer -> how many objects still carry it. */
  readonly finalizers: ReadonlyMap<string, number>;
  /** Resources whose deletion failed, with the message. */
  readonly failures: readonly string[];
  /** True when Pods are left, so that nothing else was looked at. */
  readonly waitsForPods: boolean;
}

const PAGE = 500;
/** Resources looked at in one go, for one namespace. */
const PARALLEL = 8;

export interface NamespaceContentOptions {
  readonly discovery: Discovery;
  /** Milliseconds since the namespace was deleted: Pods may take their grace period from then on. */
  readonly deletedForMs: number;
  readonly signal: AbortSignal;
}

/**
 * Deletes the content of a namespace. While Pods are left, only Pods are touched: what they use goes after them.
 * What stays without a finalizer, or a grace period that still runs, is a failure as well. Failures of single resources
 * are gathered; the signal's reason is thrown. Rules: upstream's namespaced_resources_deleter.
 */
export async function deleteNamespaceContent(
  client: Client,
  namespace: string,
  options: NamespaceContentOptions,
): Promise<NamespaceContent> {
  const { discovery, signal } = options;
  const remaining = new Map<string, number>();
  const finalizers = new Map<string, number>();
  const failures: string[] = [];
  const resources = discovery.resources.filter(
    ({ type, verbs, preferred }) => preferred && type.namespaced && verbs.includes('delete'),
  );

  const clear = async (resource: DiscoveredResource): Promise<void> => {
    const { type } = resource;
    try {
      const graceMs = isPods(resource) ? await longestGraceMs(client, namespace, signal) : 0;
      const left = await deleteAll(client, resource, { namespace, signal });
      if (left.length === 0) return;
      remaining.set(`${type.resource}.${type.group}`, left.length);
      const held = left.flatMap((object) => object.metadata.finalizers ?? []);
      for (const finalizer of held) finalizers.set(finalizer, (finalizers.get(finalizer) ?? 0) + 1);
      if (held.length > 0 || options.deletedForMs < graceMs) return;
      failures.push(
        `unexpected items still remain in namespace: ${namespace} for gvr: ${type.group}/${type.version}, Resource=${type.resource}`,
      );
    } catch (error) {
      signal.throwIfAborted();
      // 404 and 405: the resource went away between discovery and now.
      if (isNotFound(error) || isApiError(error, 405)) return;
      failures.push(error instanceof Error ? error.message : String(error));
    }
  };

  for (const resource of resources.filter(isPods)) await clear(resource);
  const waitsForPods = remaining.size > 0;
  if (waitsForPods) return { remaining, finalizers, failures, waitsForPods };

  const rest = resources.values().filter((one) => !isPods(one));
  const worker = async (): Promise<void> => {
    for (const resource of rest) await clear(resource);
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
  return { remaining, finalizers, failures, waitsForPods };
}

const isPods = ({ type }: DiscoveredResource): boolean => type.group === '' && type.resource === 'pods';

/** The longest grace period of the Pods that have not ended. */
async function longestGraceMs(client: Client, namespace: string, signal: AbortSignal): Promise<number> {
  const { items } = await client.list(PODS, { namespace, signal });
  const seconds = items.filter((pod) => !hasEnded(pod)).map(({ spec }) => spec?.terminationGracePeriodSeconds ?? 0);
  return 1000 * Math.max(0, ...seconds);
}

/** Deletes every object of a resource in the namespace and returns those that stay (grace periods, finalizers). */
async function deleteAll(
  client: Client,
  { type, verbs }: DiscoveredResource,
  options: { readonly namespace: string; readonly signal: AbortSignal },
): Promise<readonly KubeObject[]> {
  const { namespace, signal } = options;
  const listable = verbs.includes('list');
  const before = listable ? await listAll(client, type, options) : [];
  if (listable && before.every((object) => object.metadata.deletionTimestamp !== undefined)) return before;
  if (verbs.includes('deletecollection')) {
    await client.raw('DELETE', resourcePath(type, { namespace }), {
      body: { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Background' },
      signal,
    });
  } else {
    for (const object of before) {
      const preconditions = { uid: object.metadata.uid ?? '' };
      await orAbsent(client.delete(type, keyOf(object), { preconditions, propagationPolicy: 'Background', signal }));
    }
  }
  return listable ? listAll(client, type, options) : [];
}

async function listAll(
  client: Client,
  type: ResourceType<KubeObject>,
  options: { readonly namespace: string; readonly signal: AbortSignal },
): Promise<readonly KubeObject[]> {
  const items: KubeObject[] = [];
  let next: string | undefined;
  do {
    const page = await client.list(type, {
      ...options,
      limit: PAGE,
      metadataOnly: true,
      ...(next !== undefined && { continue: next }),
    });
    items.push(...page.items);
    next = page.metadata.continue;
  } while (next !== undefined && next !== '');
  return items;
}
