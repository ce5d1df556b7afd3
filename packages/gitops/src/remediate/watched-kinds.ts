/** One watch for each kind that a sync declares, of those objects that are the sync's. */
import { apiVersionOf, type ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import type { Client } from '@coracle/client/client';
import { createInformer, type Informer } from '@coracle/client/informer/informer';
import type { Change } from '@coracle/client/informer/store';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { createLinkedController, type LinkedController } from '@coracle/runtime/signal/linked-controller';
import { applySetId } from '../status/apply-set.ts';
import { PART_OF } from '../status/metadata-keys.ts';
import type { SyncIdentity } from '../status/sync-identity.ts';

export interface WatchedKindsOptions {
  readonly sync: SyncIdentity;
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onChange: (type: ResourceType<KubeObject>, change: Change<KubeObject>) => void;
  readonly signal: AbortSignal;
}

interface Watch {
  readonly informer: Informer<KubeObject>;
  readonly stop: LinkedController;
  readonly ended: Promise<void>;
}

const nameOf = (type: ResourceType<KubeObject>): string => `${apiVersionOf(type)}/${type.resource}`;

export class WatchedKinds {
  readonly #options: WatchedKindsOptions;
  readonly #watches = new Map<string, Watch>();

  constructor(options: WatchedKindsOptions) {
    this.#options = options;
  }

  /** Watches these kinds from now on, and no others. */
  follow(types: readonly ResourceType<KubeObject>[]): void {
    const wanted = new Map(types.map((type) => [nameOf(type), type]));
    for (const [name, { stop }] of this.#watches) {
      if (wanted.has(name)) continue;
      stop.abort(new Error('the kind is no longer declared'));
      this.#watches.delete(name);
    }
    for (const [name, type] of wanted) if (!this.#watches.has(name)) this.#watches.set(name, this.#begin(type));
  }

  of(type: ResourceType<KubeObject>): Informer<KubeObject> | undefined {
    return this.#watches.get(nameOf(type))?.informer;
  }

  informers(): readonly Informer<KubeObject>[] {
    return [...this.#watches.values()].map(({ informer }) => informer);
  }

  /** Resolves when all have ended. */
  async stop(): Promise<void> {
    for (const { stop } of this.#watches.values()) stop.abort(new Error('the sync has ended'));
    await Promise.all([...this.#watches.values()].map(({ ended }) => ended));
    for (const { stop } of this.#watches.values()) stop.release();
  }

  #begin(type: ResourceType<KubeObject>): Watch {
    const { sync, client, clock, log, onChange, signal } = this.#options;
    const stop = createLinkedController(signal);
    const informer = createInformer<KubeObject>(client, type, {
      clock,
      log,
      omitsManagedFields: true,
      labelSelector: `${PART_OF}=${applySetId(sync)}`,
      ...(sync.kind === 'RepoSync' && { namespace: sync.namespace }),
    });
    informer.onChange((change) => onChange(type, change));
    return { informer, stop, ended: informer.start(stop.signal) };
  }
}
