/** Fills a claim that is not bound: class, node and pool, then the call that fits its source, then the PersistentVolume. */
import { keyOf, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { STORAGE_CLASSES } from '@coracle/apimachinery/types/resource-types';
import type { ReadonlyClaim } from '@coracle/apimachinery/types/types';
import { classNameOf } from '@coracle/apimachinery/types/volume-claims';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { SELECTED_NODE } from '@coracle/cluster-rules/storage/claim-step';
import { modeOf, requestOf } from '@coracle/cluster-rules/storage/match-volume';
import type { FillReport, FillSource, FillVolume, VolumeMade } from '@coracle/cluster-rules/storage/pool-calls';
import { POOL_DRIVER } from '@coracle/cluster-rules/storage/pool-names';
import { createCall, formatOf } from '@coracle/cluster-rules/storage/provision-plan';
import { type DataVolumeSource, workOf } from '../../rules/data-volume/data-volume-source.ts';
import type { DataVolumeOutcome, Work } from '../../rules/data-volume/data-volume-status.ts';
import { uploadAttempt } from '../../rules/data-volume/upload-annotations.ts';
import { MissingPart, resolveDataSource } from '../resolve-data-source.ts';
import { type CloneSource, findCloneSource } from './clone-source.ts';
import { createFillSourceReader } from './fill-source.ts';
import { type PoolAccess, reasonOf } from './pool-access.ts';
import { PoolPlaces } from './pool-places.ts';
import type { UploadTargets } from './upload-targets.ts';

type Running = Extract<FillReport, { state: 'running' }>;

export interface ClaimFillingOptions extends ControllerEnvironment {
  readonly pools: PoolAccess;
  /** Where uploads find what they are for; none are taken without. */
  readonly uploads?: UploadTargets;
  /** Where exports are served too. */
  readonly uploadProxy?: { readonly url: string };
}

export interface StepResult {
  readonly outcome: DataVolumeOutcome;
  readonly claim: ReadonlyClaim | undefined;
  /** When to look again; undefined: when something changes. */
  readonly againMs?: number;
}

export interface Filling {
  readonly claim: ReadonlyClaim;
  readonly source: DataVolumeSource;
  /** Of this number; after a failure the next one has another. */
  readonly attempt: number;
  /** Milliseconds since 1970 before which no further attempt is made. */
  readonly notBefore: number;
  /** It waits for no Pod. */
  readonly isImmediate: boolean;
}

/** How often a fill is asked how far it is. */
const WATCH_MS = 1000;
/** So is one that has just begun: small images are there at once. */
const EARLY_MS = 100;
const EARLY_BYTES = 64 * 1024 * 1024;
/** When what is missing, or a pool that cannot be reached, is looked for again. */
export const MISSING_MS = 3000;
const SECTOR = 512;

/** Takes a step; what a user can correct, and a pool that refuses, is an outcome. Errors of the API are thrown. */
export async function withReason(
  claim: ReadonlyClaim | undefined,
  step: () => Promise<StepResult>,
): Promise<StepResult> {
  try {
    return await step();
  } catch (error) {
    if (!(error instanceof MissingPart) && reasonOf(error) === undefined) throw error;
    return { outcome: { type: 'waiting', message: (error as Error).message }, claim, againMs: MISSING_MS };
  }
}

export class ClaimFilling {
  readonly classes;
  readonly nodes;
  readonly #client;
  readonly #clock;
  readonly #pools: PoolAccess;
  readonly #uploads: UploadTargets | undefined;
  readonly #sources;
  readonly #places: PoolPlaces;

  constructor(options: ClaimFillingOptions) {
    const { client, clock, informers, pools, uploads, uploadProxy } = options;
    this.#client = client;
    this.#clock = clock;
    this.classes = informers.of(STORAGE_CLASSES);
    this.#pools = pools;
    this.#uploads = uploads;
    this.#sources = createFillSourceReader(client, uploadProxy?.url);
    this.#places = new PoolPlaces(options);
    this.nodes = this.#places.nodes;
  }

  /** The claim is bound. */
  end(claim: ReadonlyClaim, work: Work): StepResult {
    this.#places.settle(keyOf(claim));
    if (work === 'Upload') this.#uploads?.set(keyOf(claim), { state: 'full' });
    return { outcome: { type: 'bound', work }, claim };
  }

  /** Ends what is being made for a claim that is gone. Throws PoolCallError. */
  async forget(key: ObjectKey, signal: AbortSignal): Promise<void> {
    this.#uploads?.drop(key);
    await this.#places.forget(key, signal);
  }

  /** The same for a claim of that name which another one has replaced. */
  forgetOthers(key: ObjectKey, claim: ReadonlyClaim | undefined, signal: AbortSignal): Promise<void> {
    return this.#places.forgetOthers(key, claim, signal);
  }

  async fill({ claim, source, attempt, notBefore, isImmediate }: Filling, signal: AbortSignal): Promise<StepResult> {
    const waiting = (message: string): StepResult => ({
      outcome: { type: 'waiting', message },
      claim,
      againMs: MISSING_MS,
    });
    const className = classNameOf(claim);
    const storageClass = this.classes.get({ namespace: '', name: className });
    if (!storageClass) return waiting(`StorageClass "${className}" does not exist`);
    if (storageClass.provisioner !== POOL_DRIVER)
      return waiting(
        `StorageClass "${className}" is served by ${storageClass.provisioner}: only volumes of ${POOL_DRIVER} are filled here`,
      );
    const format = formatOf(storageClass);
    if (!format) return waiting('parameter "format" of the StorageClass must be raw or qcow2');
    const selected = claim.metadata.annotations?.[SELECTED_NODE];
    if (storageClass.volumeBindingMode === 'WaitForFirstConsumer' && selected === undefined && !isImmediate)
      return { outcome: { type: 'no-consumer' }, claim };
    const work = workOf(source);
    const waitMs = notBefore - this.#clock.now();
    // An upload is made again by whoever makes it, at any time.
    if (waitMs > 0 && source.type !== 'upload') return { outcome: { type: 'pausing' }, claim, againMs: waitMs };
    const clone = await this.cloneSource(source);
    if (clone && clone.bytes > requestOf(claim))
      return waiting(`The clone would have ${requestOf(claim)} bytes, and its source has ${clone.bytes}`);
    const pool = await this.#places.choose(claim, clone, signal);
    if (clone || source.type === 'blank') {
      const call = createCall(claim, format, clone && { kind: clone.kind, handle: clone.handle });
      const made = await this.#pools.call<VolumeMade>(pool, 'createVolume', call, signal);
      await this.#places.standFor(claim, { pool, made, storageClass }, signal);
      return { outcome: { type: 'filled', work }, claim };
    }
    const call: FillVolume = {
      handle: claim.metadata.uid ?? '',
      bytes: Math.ceil(requestOf(claim) / SECTOR) * SECTOR,
      mode: modeOf(claim),
      format,
      attempt: source.type === 'upload' ? uploadAttempt(claim) : attempt,
      source: await this.#fillSource(claim, source),
    };
    const report = await this.#pools.call<FillReport>(pool, 'fillVolume', call, signal);
    if (source.type === 'upload') this.#uploads?.set(keyOf(claim), { state: 'ready', pool, call });
    switch (report.state) {
      case 'running':
        return { outcome: { type: 'running', work, report }, claim, ...again(source, report) };
      case 'failed': {
        const reason = source.type === 'registry' && report.problem === 'Source' ? 'ImagePullFailed' : 'Error';
        const message = `Unable to process data: ${report.message}`;
        return { outcome: { type: 'failed', work, reason, message }, claim };
      }
      case 'done':
        await this.#places.standFor(claim, { pool, made: report.volume, storageClass }, signal);
        return { outcome: { type: 'filled', work }, claim };
      default:
        return report satisfies never;
    }
  }

  /** Throws MissingPart. */
  async #fillSource(claim: ReadonlyClaim, source: DataVolumeSource): Promise<FillSource> {
    const { namespace = '' } = claim.metadata;
    switch (source.type) {
      case 'http':
        return this.#sources.http(namespace, source.http);
      case 'registry':
        return this.#sources.registry(namespace, source.registry);
      case 'upload':
        if (!this.#uploads) throw new MissingPart('no upload proxy runs beside this server');
        return { type: 'upload' };
      default:
        throw new MissingPart(`nothing here fetches from source ${'name' in source ? source.name : source.type}`);
    }
  }

  /** What a source is a copy of; undefined for any other. Throws MissingPart. */
  async cloneSource(source: DataVolumeSource): Promise<CloneSource | undefined> {
    if (source.type !== 'pvc' && source.type !== 'snapshot' && source.type !== 'dataSource') return undefined;
    return findCloneSource(this.#client, await resolveDataSource(this.#client, source));
  }
}

/** What waits for an upload hears of it; all else is asked. */
function again(source: DataVolumeSource, { step, bytes, totalBytes }: Running): { readonly againMs?: number } {
  if (step === 'waiting' && source.type === 'upload') return {};
  return { againMs: step === 'waiting' || (totalBytes ?? bytes) < EARLY_BYTES ? EARLY_MS : WATCH_MS };
}
