import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { keyOf } from '@coracle/apimachinery/meta/object';
import {
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  STORAGE_CLASSES,
} from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import { attributesClassOf, classNameOf } from '@coracle/apimachinery/types/volume-claims';
import { orThere } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { type Controller, type ReconcileResult, requeueAfter } from '@coracle/client/controller/controller';
import { ControllerSteps } from '@coracle/client/controller/controller-steps';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { BIND_COMPLETED, SELECTED_NODE, STORAGE_PROVISIONER } from '@coracle/cluster-rules/storage/claim-step';
import type { PoolFacts, VolumeMade } from '@coracle/cluster-rules/storage/pool-calls';
import { POOL_DRIVER } from '@coracle/cluster-rules/storage/pool-names';
import {
  createCall,
  formatOf,
  isLeftToPopulator,
  sourceOf,
  volumeObject,
} from '@coracle/cluster-rules/storage/provision-plan';
import { type ConnectNode, createPools, PoolCallError, poolOf } from './pools.ts';
import { type FoundSource, findClaimSource, findSnapshotSource, SourceError } from './volume-source.ts';

type Claim = DeepReadonly<PersistentVolumeClaim>;

export interface PoolControllerOptions extends ControllerEnvironment {
  readonly connect: ConnectNode;
  /** Whether somebody keeps the content of a released volume: then it is left to him. */
  readonly isHeld: (handle: string, signal: AbortSignal) => Promise<boolean>;
}

const BY_UID = 'provisioner.uid';

/** A source that is not ready is looked at again after this long. */
const SOURCE_MS = 1000;

/** So is a pool that refused or could not be reached. */
export const POOL_MS = 5000;

/** The steps from a claim to a volume in a pool. */
export class ProvisionerSteps extends ControllerSteps {
  readonly claims;
  readonly volumes;
  readonly classes;
  readonly nodes;
  readonly #pools;
  readonly events;
  /** Pools that were asked what they hold, by id; the uids of claims without a volume whose content they have. */
  readonly known;

  readonly #enqueue;

  constructor(options: PoolControllerOptions, enqueue: Controller['enqueue']) {
    super(options);
    this.#enqueue = enqueue;
    const { client, informers, clock, log } = options;
    this.claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
    this.volumes = informers.of(PERSISTENT_VOLUMES);
    this.classes = informers.of(STORAGE_CLASSES);
    this.nodes = informers.of(NODES);
    this.claims.addIndex(BY_UID, ({ metadata }) => [metadata.uid ?? '']);
    this.#pools = createPools({ nodes: this.nodes, connect: options.connect, clock });
    this.events = createEventRecorder(client, { component: `${POOL_DRIVER}_provisioner`, clock, log });
    this.known = new Map<string, ReadonlySet<string>>();
  }

  #classOf(claim: Claim) {
    return this.classes.get({ namespace: '', name: classNameOf(claim) });
  }

  heldIn(claim: Claim): string | undefined {
    return [...this.known].find(([, handles]) => handles.has(claim.metadata.uid ?? ''))?.[0];
  }

  /** True for claims that a volume of ours is to be made for. */
  isOurs(claim: Claim): boolean {
    const { metadata, spec } = claim;
    if (metadata.deletionTimestamp !== undefined || (spec?.volumeName ?? '') !== '') return false;
    if (metadata.annotations?.[BIND_COMPLETED] !== undefined || isLeftToPopulator(claim)) return false;
    return this.heldIn(claim) !== undefined || metadata.annotations?.[STORAGE_PROVISIONER] === POOL_DRIVER;
  }

  /** Asks a pool that was never asked before what it holds: claims of earlier versions are found by it. */
  async learn(signal: AbortSignal): Promise<void> {
    for (const pool of this.#pools.ready()) {
      if (this.known.has(pool)) continue;
      const facts = await this.#pools.call<PoolFacts>(pool, 'inspect', {}, signal);
      const handles = new Set(facts.volumes.map(({ handle }) => handle));
      const waiting = [...handles]
        .flatMap((uid) => this.claims.byIndex(BY_UID, uid))
        .filter((one) => !one.spec?.volumeName);
      this.known.set(pool, new Set(waiting.map(({ metadata }) => metadata.uid ?? '')));
      for (const claim of waiting) this.#enqueue(keyOf(claim));
    }
  }

  async #choosePool(claim: Claim, from: FoundSource | undefined, signal: AbortSignal): Promise<string> {
    const held = this.heldIn(claim);
    if (held !== undefined) return held;
    const selected = claim.metadata.annotations?.[SELECTED_NODE];
    if (selected !== undefined) {
      const node = this.nodes.get({ namespace: '', name: selected });
      const pool = node && poolOf(node);
      if (pool === undefined) throw new PoolCallError('NoSpace', `node ${selected} serves no pool of volumes`);
      if (from && from.pool !== pool)
        throw new PoolCallError('NoSpace', `the source is in pool ${from.pool}, and node ${selected} serves ${pool}`);
      return pool;
    }
    if (from) return from.pool;
    const ready = this.#pools.ready();
    if (ready.length === 0) throw new PoolCallError('Unreachable', 'no ready node serves a pool of volumes');
    if (ready.length === 1) return ready[0]!;
    const room = await Promise.all(
      ready.map(async (pool) => {
        const { freeBytes } = await this.#pools.call<PoolFacts>(pool, 'inspect', {}, signal);
        return { pool, freeBytes };
      }),
    );
    return room.sort((a, b) => b.freeBytes - a.freeBytes || (a.pool < b.pool ? -1 : 1))[0]!.pool;
  }

  async provision(claim: Claim, signal: AbortSignal): Promise<void> {
    const format = formatOf(this.#classOf(claim));
    if (!format) throw new SourceError('parameter "format" of the StorageClass must be raw or qcow2');
    if (claim.spec?.selector) throw new SourceError('claim Selector is not supported');
    const attributes = attributesClassOf(claim);
    if (attributes !== '')
      throw new SourceError(
        `driver ${POOL_DRIVER} has no VolumeAttributesClasses, and the claim names "${attributes}"`,
      );
    const asked = sourceOf(claim);
    if (asked.type === 'refused') throw new SourceError(asked.message);
    const about = { claim, name: 'name' in asked ? asked.name : '' };
    const held = this.heldIn(claim) !== undefined;
    let from: FoundSource | undefined;
    if (!held && asked.type === 'snapshot') from = await findSnapshotSource(this.client, about, signal);
    if (!held && asked.type === 'claim') from = await findClaimSource(this.client, about, signal);
    const pool = await this.#choosePool(claim, from, signal);
    const call = createCall(claim, format, from && { kind: from.kind, handle: from.handle });
    const made = await this.#pools.call<VolumeMade>(pool, 'createVolume', call, signal);
    const storageClass = this.#classOf(claim);
    // A class that is gone does not say any more that content may be deleted.
    const reclaimPolicy =
      storageClass?.reclaimPolicy ?? (storageClass || classNameOf(claim) === '' ? 'Delete' : 'Retain');
    await orThere(
      this.client.create(PERSISTENT_VOLUMES, volumeObject(claim, { pool, made, reclaimPolicy }), { signal }),
    );
    // What goes wrong here the sweeper does again.
    await this.#pools.call(pool, 'confirmVolume', { handle: made.handle }, signal).catch((error: unknown) => {
      if (!(error instanceof PoolCallError)) throw error;
    });
  }

  /** Lets the scheduler choose another node where the one it chose has no room. */
  async #reschedule(claim: Claim, signal: AbortSignal): Promise<void> {
    const { [SELECTED_NODE]: selected, ...annotations } = claim.metadata.annotations ?? {};
    if (selected === undefined) return;
    const after = { ...claim, metadata: { ...claim.metadata, annotations } };
    await commit<PersistentVolumeClaim>(this.client, PERSISTENT_VOLUME_CLAIMS, { before: claim, after, signal });
  }

  async failed(claim: Claim, error: unknown, signal: AbortSignal): Promise<ReconcileResult> {
    if (!(error instanceof PoolCallError) && !(error instanceof SourceError)) throw error;
    const message = `failed to provision volume with StorageClass "${classNameOf(claim)}": ${error.message}`;
    this.events.event(claim, 'Warning', 'ProvisioningFailed', message);
    if (error instanceof SourceError) return requeueAfter(SOURCE_MS);
    if (error.reason === 'NoSpace') await this.#reschedule(claim, signal);
    return requeueAfter(POOL_MS);
  }
}
