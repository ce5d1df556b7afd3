/**
 * Counts what each ResourceQuota has given out (pkg/controller/resourcequota). Admission charges a write before it is
 * stored; this controller gives back what was deleted, has ended or was never stored, and fills in a new quota.
 *
 * Guarantee: a charge is never taken back before its object could be seen. A count above the status is written at once;
 * one below it only when the quota has stood still for `SETTLE_MS`, under the revision that was counted against. While
 * writes go on being charged the status stays too high, never too low.
 */
import type { PolicyRule } from '../../api/kinds/builtin/access-types.ts';
import {
  PERSISTENT_VOLUME_CLAIMS,
  PODS,
  RESOURCE_CLAIMS,
  RESOURCE_QUOTAS,
  SERVICES,
} from '../../api/kinds/builtin/resource-types.ts';
import type { ResourceQuota } from '../../api/kinds/builtin/types.ts';
import { deepEqual } from '../../api/meta/deep-equal.ts';
import type { ResourceType } from '../../api/meta/gvk.ts';
import type { DeepReadonly, KubeObject, UnstructuredObject } from '../../api/meta/object.ts';
import { compareQuantity } from '../../api/quantity/quantity.ts';
import { type Amounts, fromAmounts, masked, plus, toAmounts, whole } from '../../api/quota/amounts.ts';
import { type QuotaEvaluator, quotaEvaluator, quotaMatches } from '../../api/quota/evaluator.ts';
import { type QuotaSpec, scopesOf } from '../../api/quota/scopes.ts';
import { nextTurn } from '../../base/clock/next-turn.ts';
import { isNotFound } from '../../client/api-failure.ts';
import { type Controller, createController, DONE, ownKeys, requeueAfter } from '../../client/controller/controller.ts';
import type { ControllerEnvironment } from '../../client/controller/environment.ts';
import type { Informer } from '../../client/informer/informer.ts';
import { createDiscoveryCache, type DiscoveryCache } from './discovery-cache.ts';

export const resourceQuotaRules: PolicyRule[] = [
  { apiGroups: [''], resources: ['resourcequotas'], verbs: ['list', 'watch'] },
  { apiGroups: [''], resources: ['resourcequotas/status'], verbs: ['patch'] },
  { apiGroups: [''], resources: ['pods', 'persistentvolumeclaims', 'services'], verbs: ['list', 'watch'] },
  { apiGroups: ['resource.k8s.io'], resources: ['resourceclaims'], verbs: ['list', 'watch'] },
  { apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'], verbs: ['list', 'watch'] },
  { apiGroups: ['apiregistration.k8s.io'], resources: ['apiservices'], verbs: ['list', 'watch'] },
  // Whatever a quota counts by number.
  { apiGroups: ['*'], resources: ['*'], verbs: ['list'] },
  { nonResourceURLs: ['/api', '/api/*', '/apis', '/apis/*'], verbs: ['get'] },
];

/** How long a quota stands still before something is given back. */
const SETTLE_MS = 500;
/** Kinds counted by number are asked for this often: nothing watches them all. */
const COUNT_EVERY_MS = 2_000;
/** Objects counted by value in one go. */
const LOOKED_TOGETHER = 200;
/** All others: as upstream's resync. */
const RESYNC_MS = 5 * 60_000;

type Quota = DeepReadonly<ResourceQuota>;

const BY_VALUE = [PODS, PERSISTENT_VOLUME_CLAIMS, SERVICES, RESOURCE_CLAIMS] as ResourceType<KubeObject>[];

interface Sources {
  readonly byValue: readonly { readonly informer: Informer<KubeObject>; readonly evaluator: QuotaEvaluator }[];
  readonly discovery: DiscoveryCache;
}

const PLAIN = new Set(['configmaps', 'replicationcontrollers', 'resourcequotas', 'secrets']);

/** Makes the controller; its keys are quotas. */
export function createResourceQuotaController(environment: ControllerEnvironment): Controller {
  const { client, informers, clock, log } = environment;
  const quotas = informers.of(RESOURCE_QUOTAS);
  /** Quota -> its revision and since when it has stood there, monotonic. Entries go with the quota. */
  const still = new Map<string, { revision: string; since: number }>();
  /** What is counted by value, and discovery for the rest: nothing is watched before there is a quota. */
  let sources: Sources | undefined;
  const sourcesFor = async (signal: AbortSignal): Promise<Sources> => {
    if (!sources) {
      const byValue = BY_VALUE.map((type) => ({ informer: informers.of(type), evaluator: quotaEvaluator(type)! }));
      for (const { informer } of byValue) {
        informer.onChange(({ object }) => {
          for (const { metadata } of quotas.list(object.metadata.namespace ?? '')) {
            controller.enqueue({ namespace: metadata.namespace ?? '', name: metadata.name ?? '' });
          }
        });
      }
      sources = { byValue, discovery: createDiscoveryCache(client, informers, clock) };
    }
    await Promise.all(sources.byValue.map(({ informer }) => informer.synced(signal)));
    return sources;
  };

  /** What the objects of a namespace take, of the names in `hard` that can be counted. */
  const usageOf = async (quota: Quota, hard: Amounts, signal: AbortSignal): Promise<Amounts> => {
    const namespace = quota.metadata.namespace ?? '';
    const spec = quota.spec as QuotaSpec | undefined;
    let used: Amounts = new Map();
    const done = new Set<string>();
    const { byValue, discovery } = await sourcesFor(signal);
    for (const { informer, evaluator } of byValue) {
      const names = [...hard.keys()].filter((name) => evaluator.counts(name));
      if (names.length === 0) continue;
      for (const name of names) done.add(name);
      used = plus(used, new Map(names.map((name) => [name, whole(0)])));
      let looked = 0;
      for (const object of informer.list(namespace)) {
        // What is counted while others are let in is the state at the beginning, as is the revision it is written under.
        if (++looked % LOOKED_TOGETHER === 0) await nextTurn();
        const target = object as unknown as UnstructuredObject;
        if (quotaMatches(evaluator, { hard: names, spec }, target)) {
          used = plus(used, masked(evaluator.usage(target, clock.now()), hard));
        }
      }
    }
    for (const name of hard.keys()) {
      if (done.has(name)) continue;
      const type = await countedType(name, discovery, signal);
      if (!type) continue;
      // No scope is about kinds that are counted by number.
      const count = scopesOf(spec).length > 0 ? 0 : await countOf(type, namespace, signal);
      used = plus(used, new Map([[name, whole(count)]]));
    }
    return used;
  };

  /** `secrets`, `count/deployments.apps`: the kind behind a name; undefined when nothing of that name is served. */
  const countedType = async (
    name: string,
    discovery: DiscoveryCache,
    signal: AbortSignal,
  ): Promise<ResourceType<KubeObject> | undefined> => {
    const counted = name.startsWith('count/') ? name.slice('count/'.length) : PLAIN.has(name) ? name : undefined;
    if (counted === undefined) return undefined;
    const dot = counted.indexOf('.');
    const [resource, group] = dot < 0 ? [counted, ''] : [counted.slice(0, dot), counted.slice(dot + 1)];
    const { resources } = await discovery.read(signal);
    return resources.find(
      ({ type, preferred, verbs }) =>
        preferred && type.namespaced && type.group === group && type.resource === resource && verbs.includes('list'),
    )?.type;
  };

  const countOf = async (type: ResourceType<KubeObject>, namespace: string, signal: AbortSignal): Promise<number> => {
    try {
      const { items, metadata } = await client.list(type, { namespace, limit: 1, metadataOnly: true, signal });
      return items.length + (metadata.remainingItemCount ?? 0);
    } catch (error) {
      if (isNotFound(error)) return 0;
      throw error;
    }
  };

  const stoodStill = (key: string, revision: string): number => {
    const now = clock.monotonic();
    const known = still.get(key);
    if (known?.revision === revision) return now - known.since;
    still.set(key, { revision, since: now });
    return 0;
  };

  const controller = createController({
    name: 'resourcequota-controller',
    client,
    clock,
    log,
    concurrency: 5,
    sources: [ownKeys(quotas)],
    async reconcile(key, { signal }) {
      const quota = quotas.get(key);
      const keyName = `${key.namespace}/${key.name}`;
      if (!quota) {
        still.delete(keyName);
        return DONE;
      }
      const hard = toAmounts(quota.spec?.hard);
      const byNumber = [...hard.keys()].some((name) => !BY_VALUE.some((type) => quotaEvaluator(type)!.counts(name)));
      const next = requeueAfter(byNumber ? COUNT_EVERY_MS : RESYNC_MS);
      const { resourceVersion = '' } = quota.metadata;
      const quiet = stoodStill(keyName, resourceVersion);
      const counted = await usageOf(quota, hard, signal);
      const before = toAmounts(quota.status?.used);
      const lower = [...counted].some(([name, amount]) => {
        const known = before.get(name);
        return known !== undefined && compareQuantity(amount, known) < 0;
      });
      const used = fromAmounts(masked(new Map([...before, ...counted]), hard));
      const status = { hard: fromAmounts(hard), used };
      if (deepEqual(status, quota.status)) return next;
      if (lower && quiet < SETTLE_MS) return requeueAfter(SETTLE_MS - quiet);
      // Names that are no longer limited are named as null: a merge patch keeps the others.
      const patch = {
        hard: { ...gone(quota.status?.hard, status.hard), ...status.hard },
        used: { ...gone(quota.status?.used, status.used), ...status.used },
      };
      try {
        await client.patch(
          RESOURCE_QUOTAS,
          key,
          { type: 'merge', body: { metadata: { resourceVersion }, status: patch } },
          { subresource: 'status', signal },
        );
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
      return next;
    },
  });
  return controller;
}

function gone(
  before: Readonly<Record<string, string>> | undefined,
  after: Readonly<Record<string, string>>,
): Record<string, null> {
  return Object.fromEntries(
    Object.keys(before ?? {})
      .filter((name) => !(name in after))
      .map((name) => [name, null]),
  );
}
