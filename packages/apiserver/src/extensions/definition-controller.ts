/**
 * Custom resources at run time: follows the CustomResourceDefinitions in the store and keeps the catalog of served
 * resources in step, writes their status, and clears up behind those that are deleted.
 *
 * Guarantees: a definition is served before its status says Established; a change of spec replaces what is served in one
 * step, which ends the watches on it; the last objects are gone, and their DELETED events out, before the kind is.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { apiVersionOf } from '@coracle/apimachinery/meta/gvk';
import { formatTime, type UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { ApiError } from '@coracle/apimachinery/meta/status';
import type { Schema } from '@coracle/apimachinery/schema/schema';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import type { Logger } from '@coracle/runtime/log/log';
import type { AdmissionPlugin } from '../admission/plugin.ts';
import type { Change, StoreKey, StoreWatch } from '../cache/object-store.ts';
import {
  asCrd,
  CLEANUP_FINALIZER,
  type Crd,
  type CrdNames,
  conditionOf,
  hasSameSpec,
  sameService,
  withCondition,
} from '../kinds/custom/crd.ts';
import {
  type CustomInfoOptions,
  customResourceInfos,
  largeVersionSchemas,
  versionSchemas,
} from '../kinds/custom/custom-resource-info.ts';
import type { ConnectOutbound } from '../outbound/outbound.ts';
import { guaranteedUpdate } from '../registry/guaranteed-update.ts';
import { isLargeObject } from '../registry/large-write.ts';
import type { ResourceCatalog } from '../registry/resource-catalog.ts';
import { ownWrite } from '../registry/write-call.ts';
import type { Registry } from '../registry/write-contract.ts';
import { createWebhookConverter } from './conversion-webhook.ts';
import { builtInDefinitions, DEFINITIONS, terminatingKinds } from './definition-admission.ts';
import { deleteInstances } from './instance-cleanup.ts';
import { definitionStatus, takenNames } from './names-status.ts';

interface ExtensionsOptions {
  readonly resources: ResourceCatalog;
  readonly connect: ConnectOutbound;
  readonly log: Logger;
}

const decoder = new TextDecoder();
const PREFIX = `${DEFINITIONS.group}/${DEFINITIONS.resource}`;
const RETRY_MS = 5000;

const keyOf = (name: string): StoreKey => ({ prefix: PREFIX, namespace: '', name });

/** What is served for one definition. */
interface Served {
  readonly crd: Crd;
  /** By version. */
  readonly schemas: ReadonlyMap<string, Schema>;
  readonly infos: readonly ResourceInfo[];
  readonly storage: ResourceInfo;
}

interface Known {
  readonly group: string;
  readonly names: CrdNames | undefined;
  readonly accepted: boolean;
}

/** Custom resources of one server. What `resources` holds when they are made is built in and is never touched. */
export class Extensions {
  /** For the admission chain; they know nothing to refuse before `start`. */
  readonly admission: readonly AdmissionPlugin[];
  #registry!: Registry;
  readonly #options: ExtensionsOptions;
  /** `group/resource` of definitions that are going. */
  readonly #terminating = new Set<string>();
  /** By name of the definition. */
  readonly #builtIn: ReadonlyMap<string, ResourceInfo>;
  /** The versions (`group/version`) of Kubernetes' own kinds. */
  readonly #ownVersions: ReadonlySet<string>;
  readonly #served = new Map<string, Served>();
  /** What definitions must know of one another, by name: reading them all for each would cost a parse of every schema. */
  readonly #known = new Map<string, Known>();
  readonly #cleanups = new Map<string, AbortController>();
  /** Names to look at, in order; looked at one by one, because definitions compete for names. */
  readonly #pending = new Set<string>();
  #working = false;
  #watch: StoreWatch | undefined;
  readonly #stopped = new AbortController();

  constructor(options: ExtensionsOptions) {
    this.#options = options;
    const all = options.resources.all();
    this.#builtIn = new Map(all.map((info) => [`${info.resource}.${info.group}`, info]));
    this.#ownVersions = new Set(all.filter((info) => !info.strategy.custom).map(apiVersionOf));
    this.admission = [
      terminatingKinds(this.#terminating),
      // Kubernetes' own kinds have no definition here; one that somebody adds beside them may go again.
      builtInDefinitions((name) => this.#builtIn.get(name)?.strategy.custom === true),
    ];
  }

  /** Serves what the store defines, at once, and follows it from then on. Call before the server says it is ready. */
  start(registry: Registry): void {
    this.#registry = registry;
    const { store } = registry;
    const { items, revision } = store.list(PREFIX);
    const infos: ResourceInfo[] = [];
    for (const stored of items) {
      const { name, metadata, revision: written } = stored;
      this.#pending.add(name);
      const own = this.#builtIn.get(name);
      // Most of what is stored: large, served from tables, and looked at soon after the start.
      if (own !== undefined) {
        this.#known.set(name, { group: own.group, names: { ...own, plural: own.resource }, accepted: true });
        if (metadata.deletionTimestamp !== undefined) this.#terminating.add(`${own.group}/${own.resource}`);
        continue;
      }
      const crd = asCrd(stored.object);
      this.#note(name, crd);
      if (conditionOf(crd.status, 'Established')?.status !== 'True') continue;
      // A definition that was never changed has no objects from before a change.
      const served = this.#make(crd, crd.metadata.generation === 1 ? 0 : written + 1);
      if (served === undefined) continue;
      this.#served.set(name, served);
      infos.push(...served.infos);
    }
    if (infos.length > 0) this.#options.resources.add(...infos);
    this.#watch = store.watch(PREFIX, revision, (changes) => this.#receive(changes));
    void this.#work();
  }

  stop(): void {
    this.#stopped.abort(new Error('the server stops'));
    this.#watch?.stop();
    for (const cleanup of this.#cleanups.values()) cleanup.abort(this.#stopped.signal.reason);
  }

  #receive(changes: readonly Change[]): void {
    for (const { type, current } of changes) {
      const crd = asCrd(current.object);
      if (type === 'DELETED') {
        this.#known.delete(current.name);
        this.#terminating.delete(`${crd.spec.group}/${crd.spec.names.plural}`);
      } else {
        this.#note(current.name, crd);
      }
      this.#pending.add(current.name);
    }
    void this.#work();
  }

  #note(name: string, { metadata, spec, status }: Crd): void {
    const accepted = conditionOf(status, 'NamesAccepted')?.status === 'True';
    this.#known.set(name, { group: spec.group, names: status?.acceptedNames, accepted });
    if (metadata.deletionTimestamp !== undefined) this.#terminating.add(`${spec.group}/${spec.names.plural}`);
  }

  async #work(): Promise<void> {
    if (this.#working) return;
    this.#working = true;
    try {
      for (const name of this.#pending) {
        this.#pending.delete(name);
        if (this.#stopped.signal.aborted) return;
        // At the start all are looked at, and most are found as they should be.
        if (this.#registry.clock.turnIsLong()) await nextTurn();
        try {
          await this.#sync(name);
        } catch (error) {
          this.#retry(name, error);
        }
      }
    } finally {
      this.#working = false;
    }
  }

  /** A definition that cannot be handled now (the disk is full, an object cannot be deleted) is looked at again later. */
  #retry(name: string, error: unknown): void {
    const isGone = error instanceof ApiError && error.code === 404;
    if (this.#stopped.signal.aborted || isGone) return;
    this.#options.log.error('custom resource definition not handled', { name, error: String(error) });
    this.#registry.clock.schedule(RETRY_MS, () => {
      this.#pending.add(name);
      void this.#work();
    });
  }

  async #sync(name: string): Promise<void> {
    const stored = this.#registry.store.get(keyOf(name));
    if (stored === undefined) {
      this.#unserve(name);
      this.#lookAtGroup(name);
      return;
    }
    const isBuiltIn = this.#builtIn.has(name);
    const loading = isBuiltIn ? undefined : stored.load(nextTurn);
    if (loading) await loading;
    // Nobody reads what is served from tables again: neither frozen nor kept.
    const crd = asCrd(isBuiltIn ? (JSON.parse(decoder.decode(stored.bytes)) as UnstructuredObject) : stored.object);
    if (isBuiltIn) stored.forget();
    const before = this.#served.get(name);
    const isSame = before !== undefined && hasSameSpec(before.crd, crd);
    let schemas: CustomInfoOptions['schemas'] = isSame ? before.schemas : undefined;
    // Those of a large one are made with others served in between. What cannot be made is reported when it is to be served.
    if (!isSame && !isBuiltIn && isLargeObject(stored.bytes)) {
      schemas = await largeVersionSchemas(crd.spec.versions, nextTurn).catch(() => undefined);
    }
    // What became of it meanwhile is looked at next.
    if (this.#registry.store.get(keyOf(name)) !== stored) return;
    const statusOf = (current: Crd) => definitionStatus(current, this.#takenBeside(name, crd.spec.group), this.#now());
    const status = statusOf(crd);
    const established = conditionOf(status, 'Established')?.status === 'True';
    if (established && !isBuiltIn) {
      // A spec that is the same is compared in no time.
      this.#serve(name, { ...crd, spec: isSame ? before.crd.spec : crd.spec, status }, schemas);
    }
    if (!deepEqual(status, crd.status)) {
      const freed = !deepEqual(status.acceptedNames, crd.status?.acceptedNames);
      await this.#writeStatus(name, statusOf);
      if (freed) this.#lookAtGroup(name);
    }
    if (crd.metadata.deletionTimestamp !== undefined && crd.metadata.finalizers?.includes(CLEANUP_FINALIZER)) {
      this.#beginCleanup(name);
    }
  }

  #now(): string {
    return formatTime(this.#registry.clock.now());
  }

  #takenBeside(name: string, group: string): ReturnType<typeof takenNames> {
    const others = [...this.#known].filter(([other, known]) => other !== name && known.group === group);
    return takenNames(others.map(([, { names }]) => names));
  }

  /** A name may have become free: whoever waits for one is looked at again. */
  #lookAtGroup(name: string): void {
    const group = name.slice(name.indexOf('.') + 1);
    for (const [other, known] of this.#known) {
      if (other !== name && known.group === group && !known.accepted) this.#pending.add(other);
    }
  }

  #make(crd: Crd, unchangedSince: number, given?: CustomInfoOptions['schemas']): Served | undefined {
    const { connect, log } = this.#options;
    try {
      const schemas = given ?? versionSchemas(crd.spec.versions);
      const convert = createWebhookConverter(crd, { connect, clock: this.#registry.clock });
      const { elsewhere } = this.#registry;
      const { served, storage } = customResourceInfos(crd, {
        unchangedSince,
        ...(convert && { convert }),
        ...(elsewhere && { viewElsewhere: elsewhere.view }),
        schemas,
      });
      // A version of Kubernetes' own kinds is answered for by these alone: what a definition adds to it is not reached.
      return { crd, schemas, infos: served.filter((info) => !this.#ownVersions.has(apiVersionOf(info))), storage };
    } catch (error) {
      // Written by another program, or before a rule was known here.
      log.error('custom resource definition cannot be served', { name: crd.metadata.name ?? '', error: String(error) });
      return undefined;
    }
  }

  #serve(name: string, crd: Crd, schemas: CustomInfoOptions['schemas']): void {
    const before = this.#served.get(name);
    if (before !== undefined && sameService(before.crd, crd)) return;
    const { store } = this.#registry;
    // Whatever is decided by now may have been written under the definition as it was.
    const since =
      before === undefined && crd.metadata.generation === 1 ? 0 : store.revision() + store.stats().queued + 1;
    const next = this.#make(crd, since, schemas);
    if (next === undefined) return;
    this.#served.set(name, next);
    this.#options.resources.update({ remove: before?.infos ?? [], add: next.infos });
  }

  #unserve(name: string): void {
    const before = this.#served.get(name);
    this.#served.delete(name);
    this.#cleanups.get(name)?.abort(new Error('the definition is gone'));
    if (before !== undefined) this.#options.resources.remove(...before.infos);
  }

  #beginCleanup(name: string): void {
    if (this.#cleanups.has(name)) return;
    const stop = new AbortController();
    this.#cleanups.set(name, stop);
    this.#cleanUp(name, stop.signal)
      .catch((error: unknown) => this.#retry(name, error))
      .finally(() => this.#cleanups.delete(name));
  }

  async #cleanUp(name: string, signal: AbortSignal): Promise<void> {
    const stored = this.#registry.store.get(keyOf(name));
    if (stored === undefined) return;
    const crd = asCrd(stored.object);
    const say = (status: 'True' | 'False', reason: string, message: string): Promise<void> =>
      this.#writeStatus(name, (current) => {
        const condition = { type: 'Terminating', status, reason, message };
        const conditions = withCondition(current.status?.conditions ?? [], condition, this.#now());
        return { ...current.status, conditions };
      });
    if (this.#builtIn.has(name)) {
      await say('False', 'OverlappingBuiltInResource', 'instances overlap with built-in resources in storage');
    } else if (conditionOf(crd.status, 'Established')?.status !== 'True') {
      await say('False', 'NeverEstablished', 'resource was never established');
    } else {
      await say('True', 'InstanceDeletionInProgress', 'CustomResource deletion is in progress');
      const info = this.#served.get(name)?.storage ?? this.#make(crd, 0)?.storage;
      try {
        if (info !== undefined) await deleteInstances(this.#registry, info, signal);
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        if (!signal.aborted) await say('True', 'InstanceDeletionFailed', `could not issue all deletes: ${why}`);
        throw error;
      }
      await say('False', 'InstanceDeletionCompleted', 'removed all instances');
      // A create that was decided while the last of them went is in front of that write, and is seen by now.
      if (info !== undefined) await deleteInstances(this.#registry, info, signal);
    }
    await this.#update(name, '', (next) => {
      next.metadata.finalizers = (next.metadata.finalizers ?? []).filter((one) => one !== CLEANUP_FINALIZER);
    });
  }

  #writeStatus(name: string, statusOf: (crd: Crd) => object): Promise<void> {
    return this.#update(name, 'status', (next) => {
      next['status'] = cloneJson(statusOf(asCrd(next)));
    });
  }

  async #update(name: string, subresource: string, change: (next: UnstructuredObject) => void): Promise<void> {
    const info = this.#options.resources.lookup(DEFINITIONS.group, 'v1', DEFINITIONS.resource);
    if (info === undefined) return;
    await guaranteedUpdate(this.#registry, {
      ...ownWrite('kube-apiserver'),
      info,
      subresource,
      name,
      pinned: false,
      patch: true,
      next(current) {
        const next = cloneJson(current) as UnstructuredObject;
        change(next);
        return next;
      },
    });
  }
}
