import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import { type DeepReadonly, type KubeObject, keyOf, type UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { type Amounts, masked, plus, whole } from '@coracle/apimachinery/quota/amounts';
import { type QuotaEvaluator, quotaEvaluator, quotaMatches } from '@coracle/apimachinery/quota/evaluator';
import { type QuotaSpec, scopesOf } from '@coracle/apimachinery/quota/scopes';
import {
  PERSISTENT_VOLUME_CLAIMS,
  PODS,
  RESOURCE_CLAIMS,
  RESOURCE_QUOTAS,
  SERVICES,
} from '@coracle/apimachinery/types/resource-types';
import type { ResourceQuota } from '@coracle/apimachinery/types/types';
import { orAbsent } from '@coracle/client/api-failure';
import type { Controller } from '@coracle/client/controller/controller';
import { ControllerSteps } from '@coracle/client/controller/controller-steps';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import type { Informer } from '@coracle/client/informer/informer';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import { createDiscoveryCache, type DiscoveryCache } from './discovery-cache.ts';

/** Objects counted by value in one go. */
const LOOKED_TOGETHER = 200;

type Quota = DeepReadonly<ResourceQuota>;

export const BY_VALUE = [PODS, PERSISTENT_VOLUME_CLAIMS, SERVICES, RESOURCE_CLAIMS] as ResourceType<KubeObject>[];

interface Sources {
  readonly byValue: readonly { readonly informer: Informer<KubeObject>; readonly evaluator: QuotaEvaluator }[];
  readonly discovery: DiscoveryCache;
}

const PLAIN = new Set(['configmaps', 'replicationcontrollers', 'resourcequotas', 'secrets']);

/** What the objects of a namespace take of a quota. */
export class QuotaUsage extends ControllerSteps<ControllerEnvironment> {
  readonly quotas = this.options.informers.of(RESOURCE_QUOTAS);
  /** Quota -> its revision and since when it has stood there, monotonic. Entries go with the quota. */
  readonly still = new Map<string, { revision: string; since: number }>();
  #sources: Sources | undefined;
  readonly #enqueue;

  constructor(environment: ControllerEnvironment, enqueue: Controller['enqueue']) {
    super(environment);
    this.#enqueue = enqueue;
  }

  async #sourcesFor(signal: AbortSignal): Promise<Sources> {
    if (!this.#sources) {
      const { informers } = this.options;
      const byValue = BY_VALUE.map((type) => ({ informer: informers.of(type), evaluator: quotaEvaluator(type)! }));
      for (const { informer } of byValue) {
        informer.onChange(({ object }) => {
          for (const quota of this.quotas.list(object.metadata.namespace ?? '')) this.#enqueue(keyOf(quota));
        });
      }
      this.#sources = { byValue, discovery: createDiscoveryCache(this.client, informers, this.clock) };
    }
    await Promise.all(this.#sources.byValue.map(({ informer }) => informer.synced(signal)));
    return this.#sources;
  }

  /** What the objects of a namespace take, of the names in `hard` that can be counted. */
  async usageOf(quota: Quota, hard: Amounts, signal: AbortSignal): Promise<Amounts> {
    const namespace = quota.metadata.namespace ?? '';
    const spec = quota.spec as QuotaSpec | undefined;
    let used: Amounts = new Map();
    const done = new Set<string>();
    const { byValue, discovery } = await this.#sourcesFor(signal);
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
          used = plus(used, masked(evaluator.usage(target, this.clock.now()), hard));
        }
      }
    }
    for (const name of hard.keys()) {
      if (done.has(name)) continue;
      const type = await this.#countedType(name, discovery, signal);
      if (!type) continue;
      // No scope is about kinds that are counted by number.
      const count = scopesOf(spec).length > 0 ? 0 : await this.#countOf(type, namespace, signal);
      used = plus(used, new Map([[name, whole(count)]]));
    }
    return used;
  }

  /** `secrets`, `count/deployments.apps`: the kind behind a name; undefined when nothing of that name is served. */
  async #countedType(
    name: string,
    discovery: DiscoveryCache,
    signal: AbortSignal,
  ): Promise<ResourceType<KubeObject> | undefined> {
    const counted = name.startsWith('count/') ? name.slice('count/'.length) : PLAIN.has(name) ? name : undefined;
    if (counted === undefined) return undefined;
    const dot = counted.indexOf('.');
    const [resource, group] = dot < 0 ? [counted, ''] : [counted.slice(0, dot), counted.slice(dot + 1)];
    const { resources } = await discovery.read(signal);
    return resources.find(
      ({ type, preferred, verbs }) =>
        preferred && type.namespaced && type.group === group && type.resource === resource && verbs.includes('list'),
    )?.type;
  }

  async #countOf(type: ResourceType<KubeObject>, namespace: string, signal: AbortSignal): Promise<number> {
    const page = await orAbsent(this.client.list(type, { namespace, limit: 1, metadataOnly: true, signal }));
    return page ? page.items.length + (page.metadata.remainingItemCount ?? 0) : 0;
  }

  stoodStill(key: string, revision: string): number {
    const now = this.clock.monotonic();
    const known = this.still.get(key);
    if (known?.revision === revision) return now - known.since;
    this.still.set(key, { revision, since: now });
    return 0;
  }
}
