/** The steps of a DataVolume: its claim, then a volume in a pool that is filled, then the PersistentVolume for it. */
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import {
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  STORAGE_CLASSES,
} from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolumeClaim, StorageClass } from '@coracle/apimachinery/types/types';
import { classNameOf } from '@coracle/apimachinery/types/volume-claims';
import { isAlreadyExists } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { SELECTED_NODE } from '@coracle/cluster-rules/storage/claim-step';
import { defaultClassOf } from '@coracle/cluster-rules/storage/default-class';
import { modeOf, requestOf } from '@coracle/cluster-rules/storage/match-volume';
import type {
  CreateVolume,
  FillReport,
  FillVolume,
  PoolFacts,
  VolumeMade,
} from '@coracle/cluster-rules/storage/pool-calls';
import { POOL_DRIVER, POOL_LABEL } from '@coracle/cluster-rules/storage/pool-names';
import {
  createCall,
  formatOf,
  isLeftToPopulator,
  volumeNameFor,
  volumeObject,
} from '@coracle/cluster-rules/storage/provision-plan';
import { DATA_VOLUMES, type DataVolume, STORAGE_PROFILES } from '../../kinds/cdi/kinds.ts';
import {
  ALLOW_ADOPTION,
  BIND_IMMEDIATELY,
  claimOfDataVolume,
  ownerReference,
  PREPOPULATED,
} from '../../rules/data-volume/claim-of-data-volume.ts';
import { type DataVolumeSource, sourceOfDataVolume, workOf } from '../../rules/data-volume/data-volume-source.ts';
import { type DataVolumeOutcome, nextAttemptAt } from '../../rules/data-volume/data-volume-status.ts';
import { propertySetsOf } from '../../rules/data-volume/storage-profile.ts';
import { POPULATED_FOR_ANNOTATION } from '../../rules/snapshot/restored-claim.ts';
import { type CloneSource, findCloneSource, resolveDataSource } from './clone-source.ts';
import { createFillSourceReader, MissingPart } from './fill-source.ts';
import { type PoolAccess, reasonOf } from './pool-access.ts';

type Claim = DeepReadonly<PersistentVolumeClaim>;
type ReadonlyDataVolume = DeepReadonly<DataVolume>;

export interface DataVolumeControllerOptions extends ControllerEnvironment {
  readonly pools: PoolAccess;
}

/** Where a volume in the making lies. */
interface Place {
  readonly pool: string;
  readonly handle: string;
}

const VIRT_DEFAULT_CLASS = 'storageclass.kubevirt.io/is-default-virt-class';
/** How often a fill is asked how far it is. */
const WATCH_MS = 1000;
/** So is one that has just begun: small images are there at once. */
const EARLY_MS = 100;
const EARLY_BYTES = 64 * 1024 * 1024;
/** When what is missing, or a pool that cannot be reached, is looked for again. */
const MISSING_MS = 3000;

export interface StepResult {
  readonly outcome: DataVolumeOutcome;
  readonly claim: Claim | undefined;
  /** When to look again; undefined: when something changes. */
  readonly againMs?: number;
}

/** What the passes of all DataVolumes share. */
export class DataVolumeSteps {
  readonly client;
  readonly clock;
  readonly log;
  readonly dataVolumes;
  readonly claims;
  readonly classes;
  readonly nodes;
  readonly profiles;
  readonly #pools;
  readonly #sources;
  /** Volumes in the making that no PersistentVolume stands for, by namespace and name of their DataVolume. */
  readonly #making = new Map<string, Place>();

  constructor({ client, clock, log, informers, pools }: DataVolumeControllerOptions) {
    this.client = client;
    this.clock = clock;
    this.log = log;
    this.dataVolumes = informers.of(DATA_VOLUMES);
    this.claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
    this.classes = informers.of(STORAGE_CLASSES);
    this.nodes = informers.of(NODES);
    this.profiles = informers.of(STORAGE_PROFILES);
    this.#pools = pools;
    this.#sources = createFillSourceReader(client);
  }

  /** Takes the next step. Errors of the API are thrown; what a user can correct is an outcome. */
  async step(dataVolume: ReadonlyDataVolume, signal: AbortSignal): Promise<StepResult> {
    const { namespace = '', name = '' } = dataVolume.metadata;
    const source = sourceOfDataVolume(dataVolume.spec, namespace);
    const work = workOf(source);
    const claim = this.claims.get({ namespace, name });
    await this.#dropOthers(dataVolume, claim, signal);
    try {
      if (!claim) return await this.#makeClaim(dataVolume, source);
      if (!isOwn(claim, dataVolume)) return await this.#takeClaim(dataVolume, claim);
      if (claim.status?.phase === 'Bound') {
        this.#making.delete(textOf(dataVolume));
        return { outcome: { type: 'bound', work }, claim };
      }
      return await this.#populate(dataVolume, claim, source, signal);
    } catch (error) {
      const reason = reasonOf(error);
      if (error instanceof MissingPart || reason !== undefined)
        return { outcome: { type: 'waiting', message: (error as Error).message }, claim, againMs: MISSING_MS };
      throw error;
    }
  }

  /** Ends what is being made for a DataVolume that is gone, or whose claim is. */
  async forget(key: { readonly namespace: string; readonly name: string }, signal: AbortSignal): Promise<void> {
    const text = `${key.namespace}/${key.name}`;
    const place = this.#making.get(text);
    if (!place) return;
    await this.#pools.call(place.pool, 'deleteVolume', { handle: place.handle }, signal);
    this.#making.delete(text);
  }

  async #dropOthers(dataVolume: ReadonlyDataVolume, claim: Claim | undefined, signal: AbortSignal): Promise<void> {
    const place = this.#making.get(textOf(dataVolume));
    const { namespace = '', name = '' } = dataVolume.metadata;
    if (place && place.handle !== claim?.metadata.uid) await this.forget({ namespace, name }, signal);
  }

  async #makeClaim(dataVolume: ReadonlyDataVolume, source: DataVolumeSource | undefined): Promise<StepResult> {
    const { metadata, status, spec } = dataVolume;
    if (metadata.annotations?.[PREPOPULATED] !== undefined && metadata.annotations[PREPOPULATED] !== 'false')
      return { outcome: { type: 'waiting', message: 'Waits for the claim that is filled already' }, claim: undefined };
    // Content that was there once is not made up for by fetching it again.
    if (status?.phase === 'Succeeded' || metadata.deletionTimestamp !== undefined)
      return { outcome: { type: 'waiting', reason: 'NotFound', message: 'The claim is gone' }, claim: undefined };
    const asked = spec.pvc ?? spec.storage;
    const className = asked?.storageClassName ?? this.#defaultClass();
    const clone = source && (await this.#cloneSource(source));
    const wanted = claimOfDataVolume(dataVolume, {
      propertySets: propertySetsOf(
        className === undefined ? undefined : this.classes.get({ namespace: '', name: className }),
        className === undefined ? undefined : this.profiles.get({ namespace: '', name: className }),
      ),
      ...(clone && { sourceBytes: clone.bytes }),
    });
    if ('problem' in wanted)
      return { outcome: { type: 'waiting', message: wanted.problem }, claim: undefined, againMs: MISSING_MS };
    // A claim that names no class waits for a default one.
    const { claim } = wanted;
    if (className !== undefined && claim.spec) claim.spec.storageClassName = className;
    const made = await this.client.create(PERSISTENT_VOLUME_CLAIMS, claim);
    return { outcome: { type: 'waiting', message: `PVC ${made.metadata.name} Pending` }, claim: made as Claim };
  }

  #defaultClass(): string | undefined {
    const classes = this.classes.list();
    const virt = classes.find(({ metadata }) => metadata.annotations?.[VIRT_DEFAULT_CLASS] === 'true');
    return (virt ?? defaultClassOf(classes))?.metadata.name;
  }

  /** A claim of the name that somebody else made: taken over where that is allowed, else in the way. */
  async #takeClaim(dataVolume: ReadonlyDataVolume, claim: Claim): Promise<StepResult> {
    const { name } = dataVolume.metadata;
    const annotations = dataVolume.metadata.annotations ?? {};
    const isFilled =
      claim.metadata.annotations?.[POPULATED_FOR_ANNOTATION] === name ||
      annotations[PREPOPULATED] === name ||
      annotations[ALLOW_ADOPTION] === 'true';
    const isFree = !claim.metadata.ownerReferences?.some(({ controller }) => controller);
    if (!isFilled || !isFree)
      return {
        outcome: {
          type: 'waiting',
          reason: 'ErrResourceExists',
          message: `Resource "${name}" already exists and is not managed by DataVolume`,
        },
        claim: undefined,
      };
    const after = {
      ...claim,
      metadata: {
        ...claim.metadata,
        ownerReferences: [...(claim.metadata.ownerReferences ?? []), ownerReference(dataVolume)],
      },
    } as PersistentVolumeClaim;
    const stored = await commit(this.client, PERSISTENT_VOLUME_CLAIMS, { before: claim, after });
    return { outcome: { type: 'waiting', message: `PVC ${name} Pending` }, claim: (stored ?? claim) as Claim };
  }

  async #populate(
    dataVolume: ReadonlyDataVolume,
    claim: Claim,
    source: DataVolumeSource | undefined,
    signal: AbortSignal,
  ): Promise<StepResult> {
    const waiting = (message: string): StepResult => ({
      outcome: { type: 'waiting', message },
      claim,
      againMs: MISSING_MS,
    });
    // A claim that fills itself, or was taken over: its provisioner makes it.
    if (!source || !isLeftToPopulator(claim)) return waiting('PVC Pending');
    const className = classNameOf(claim);
    const storageClass = this.classes.get({ namespace: '', name: className });
    if (!storageClass) return waiting(`StorageClass "${className}" is not there`);
    if (storageClass.provisioner !== POOL_DRIVER)
      return waiting(
        `StorageClass "${className}" is served by ${storageClass.provisioner}: only volumes of ${POOL_DRIVER} are filled here`,
      );
    const format = formatOf(storageClass);
    if (!format) return waiting('parameter "format" of the StorageClass must be raw or qcow2');
    const selected = claim.metadata.annotations?.[SELECTED_NODE];
    const isImmediate = dataVolume.metadata.annotations?.[BIND_IMMEDIATELY] !== undefined;
    if (storageClass.volumeBindingMode === 'WaitForFirstConsumer' && selected === undefined && !isImmediate)
      return { outcome: { type: 'no-consumer' }, claim };
    const work = workOf(source);
    const waitMs = nextAttemptAt(dataVolume.status) - this.clock.now();
    if (waitMs > 0) return { outcome: { type: 'pausing' }, claim, againMs: waitMs };
    const clone = await this.#cloneSource(source);
    if (clone && clone.bytes > requestOf(claim))
      return waiting(`The clone would have ${requestOf(claim)} bytes, and its source has ${clone.bytes}`);
    const pool = await this.#choosePool(dataVolume, claim, { clone, selected }, signal);
    this.#making.set(textOf(dataVolume), { pool, handle: claim.metadata.uid ?? '' });
    if (clone || source.type === 'blank') {
      const call: CreateVolume = createCall(claim, format, clone && { kind: clone.kind, handle: clone.handle });
      const made = await this.#pools.call<VolumeMade>(pool, 'createVolume', call, signal);
      await this.#standFor(claim, { pool, made, storageClass }, signal);
      return { outcome: { type: 'filled', work }, claim };
    }
    return this.#fill(dataVolume, claim, { pool, storageClass, format, source }, signal);
  }

  async #fill(
    dataVolume: ReadonlyDataVolume,
    claim: Claim,
    {
      pool,
      storageClass,
      format,
      source,
    }: {
      readonly pool: string;
      readonly storageClass: DeepReadonly<StorageClass>;
      readonly format: 'raw' | 'qcow2';
      readonly source: DataVolumeSource;
    },
    signal: AbortSignal,
  ): Promise<StepResult> {
    const { namespace = '' } = dataVolume.metadata;
    if (source.type !== 'http' && source.type !== 'registry')
      throw new MissingPart(`nothing here fetches from source ${'name' in source ? source.name : source.type}`);
    const call: FillVolume = {
      handle: claim.metadata.uid ?? '',
      bytes: Math.ceil(requestOf(claim) / SECTOR) * SECTOR,
      mode: modeOf(claim),
      format,
      attempt: dataVolume.status?.restartCount ?? 0,
      source:
        source.type === 'http'
          ? await this.#sources.http(namespace, source.http)
          : await this.#sources.registry(namespace, source.registry),
    };
    const report = await this.#pools.call<FillReport>(pool, 'fillVolume', call, signal);
    switch (report.state) {
      case 'running': {
        const isEarly = report.step === 'waiting' || (report.totalBytes ?? report.bytes) < EARLY_BYTES;
        return { outcome: { type: 'running', work: 'Import', report }, claim, againMs: isEarly ? EARLY_MS : WATCH_MS };
      }
      case 'failed': {
        const reason = source.type === 'registry' && report.problem === 'Source' ? 'ImagePullFailed' : 'Error';
        const message = `Unable to process data: ${report.message}`;
        return { outcome: { type: 'failed', work: 'Import', reason, message }, claim };
      }
      case 'done':
        await this.#standFor(claim, { pool, made: report.volume, storageClass }, signal);
        return { outcome: { type: 'filled', work: 'Import' }, claim };
      default:
        return report satisfies never;
    }
  }

  async #cloneSource(source: DataVolumeSource): Promise<CloneSource | undefined> {
    if (source.type !== 'pvc' && source.type !== 'snapshot' && source.type !== 'dataSource') return undefined;
    return findCloneSource(this.client, await resolveDataSource(this.client, source));
  }

  /** The pool that has begun already, else that of the source or of the node, else the one with most room. */
  async #choosePool(
    dataVolume: ReadonlyDataVolume,
    claim: Claim,
    { clone, selected }: { readonly clone: CloneSource | undefined; readonly selected: string | undefined },
    signal: AbortSignal,
  ): Promise<string> {
    const known = this.#making.get(textOf(dataVolume));
    if (known && known.handle === claim.metadata.uid) return known.pool;
    if (selected !== undefined) {
      const pool = this.nodes.get({ namespace: '', name: selected })?.metadata.labels?.[POOL_LABEL];
      if (pool === undefined) throw new MissingPart(`node ${selected} serves no pool of volumes`);
      if (clone && clone.pool !== pool)
        throw new MissingPart(`the source lies in pool ${clone.pool}, and node ${selected} serves ${pool}`);
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
  async #standFor(
    claim: Claim,
    { pool, made, storageClass }: { pool: string; made: VolumeMade; storageClass: DeepReadonly<StorageClass> },
    signal: AbortSignal,
  ): Promise<void> {
    const reclaimPolicy = storageClass.reclaimPolicy === 'Retain' ? 'Retain' : 'Delete';
    try {
      await this.client.create(PERSISTENT_VOLUMES, volumeObject(claim, { pool, made, reclaimPolicy }), { signal });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    this.log.info('volume filled', { volume: volumeNameFor(claim) });
    // What goes wrong here the sweeper does again.
    await this.#pools.call(pool, 'confirmVolume', { handle: made.handle }, signal).catch((error: unknown) => {
      if (reasonOf(error) === undefined) throw error;
    });
  }
}

const SECTOR = 512;
const textOf = ({ metadata }: ReadonlyDataVolume): string => `${metadata.namespace}/${metadata.name}`;
const isOwn = ({ metadata }: Claim, dataVolume: ReadonlyDataVolume): boolean =>
  metadata.ownerReferences?.some(({ controller, uid }) => controller === true && uid === dataVolume.metadata.uid) ??
  false;
