/** Where volumes in the making lie: the choice of a pool, what becomes of the volume at the end, and when nobody wants it. */
import type { DeepReadonly, ObjectKey } from '@coracle/apimachinery/meta/object';
import { NODES, PERSISTENT_VOLUMES } from '@coracle/apimachinery/types/resource-types';
import type { ReadonlyClaim, StorageClass } from '@coracle/apimachinery/types/types';
import { orThere } from '@coracle/client/api-failure';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { SELECTED_NODE } from '@coracle/cluster-rules/storage/claim-step';
import type { PoolFacts, VolumeMade } from '@coracle/cluster-rules/storage/pool-calls';
import { POOL_LABEL } from '@coracle/cluster-rules/storage/pool-names';
import { volumeNameFor, volumeObject } from '@coracle/cluster-rules/storage/provision-plan';
import { MissingPart } from '../resolve-data-source.ts';
import type { CloneSource } from './clone-source.ts';
import { type PoolAccess, reasonOf } from './pool-access.ts';

interface Place {
  readonly pool: string;
  readonly handle: string;
}

const textOf = ({ namespace = '', name = '' }: Partial<ObjectKey>): string => `${namespace}/${name}`;

/** Volumes in the making that no PersistentVolume stands for, by namespace and name of their claim. */
export class PoolPlaces {
  readonly nodes;
  readonly #client;
  readonly #log;
  readonly #pools: PoolAccess;
  readonly #making = new Map<string, Place>();

  constructor({ client, informers, log, pools }: ControllerEnvironment & { readonly pools: PoolAccess }) {
    this.nodes = informers.of(NODES);
    this.#client = client;
    this.#log = log;
    this.#pools = pools;
  }

  /** A PersistentVolume stands for it. */
  settle(key: ObjectKey): void {
    this.#making.delete(textOf(key));
  }

  /** Ends what is being made for a claim that is gone. Throws PoolCallError. */
  async forget(key: ObjectKey, signal: AbortSignal): Promise<void> {
    const place = this.#making.get(textOf(key));
    if (!place) return;
    await this.#pools.call(place.pool, 'deleteVolume', { handle: place.handle }, signal);
    this.#making.delete(textOf(key));
  }

  /** The same for a claim of that name which another one has replaced. */
  async forgetOthers(key: ObjectKey, claim: ReadonlyClaim | undefined, signal: AbortSignal): Promise<void> {
    const place = this.#making.get(textOf(key));
    if (place && place.handle !== claim?.metadata.uid) await this.forget(key, signal);
  }

  /** The pool that has begun already, else that of the source or of the node, else the one with most room. */
  async choose(claim: ReadonlyClaim, clone: CloneSource | undefined, signal: AbortSignal): Promise<string> {
    const handle = claim.metadata.uid ?? '';
    const text = textOf(claim.metadata);
    const known = this.#making.get(text);
    const pool = known && known.handle === handle ? known.pool : await this.#find(claim, clone, signal);
    this.#making.set(text, { pool, handle });
    return pool;
  }

  async #find(claim: ReadonlyClaim, clone: CloneSource | undefined, signal: AbortSignal): Promise<string> {
    const selected = claim.metadata.annotations?.[SELECTED_NODE];
    if (selected !== undefined) {
      const pool = this.nodes.get({ namespace: '', name: selected })?.metadata.labels?.[POOL_LABEL];
      if (pool === undefined) throw new MissingPart(`node ${selected} serves no pool of volumes`);
      if (clone && clone.pool !== pool)
        throw new MissingPart(`the source is in pool ${clone.pool}, and node ${selected} serves ${pool}`);
      return pool;
    }
    if (clone) return clone.pool;
    const ready = this.#pools.ready();
    if (ready.length === 0) throw new MissingPart('no ready node serves a pool of volumes');
    if (ready.length === 1) return ready[0] ?? '';
    const rooms = await Promise.all(
      ready.map(async (pool) => {
        const facts = await this.#pools.call<PoolFacts>(pool, 'inspect', {}, signal);
        const isHere =
          facts.fills?.includes(claim.metadata.uid ?? '') ||
          facts.volumes.some(({ handle }) => handle === claim.metadata.uid);
        return { pool, isHere, freeBytes: facts.freeBytes };
      }),
    );
    rooms.sort(
      (a, b) => Number(b.isHere) - Number(a.isHere) || b.freeBytes - a.freeBytes || (a.pool < b.pool ? -1 : 1),
    );
    return rooms[0]?.pool ?? '';
  }

  /** Writes the PersistentVolume of a volume that is ready; the volume controller binds the claim to it. */
  async standFor(
    claim: ReadonlyClaim,
    { pool, made, storageClass }: { pool: string; made: VolumeMade; storageClass: DeepReadonly<StorageClass> },
    signal: AbortSignal,
  ): Promise<void> {
    const reclaimPolicy = storageClass.reclaimPolicy === 'Retain' ? 'Retain' : 'Delete';
    await orThere(
      this.#client.create(PERSISTENT_VOLUMES, volumeObject(claim, { pool, made, reclaimPolicy }), { signal }),
    );
    this.#log.info('volume filled', { volume: volumeNameFor(claim) });
    // What goes wrong here the sweeper does again.
    await this.#pools.call(pool, 'confirmVolume', { handle: made.handle }, signal).catch((error: unknown) => {
      if (reasonOf(error) === undefined) throw error;
    });
  }
}
