/** The fills of a pool: a few at a time, each known by its handle, so that a call may be repeated. */
import { join } from 'node:path';
import type { FillReport, FillSource, FillVolume, ImageDigest } from '@coracle/cluster-rules/storage/pool-calls';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import type { Resolve } from '@coracle/runtime/oci/checked-request';
import { parseReference } from '@coracle/runtime/oci/reference';
import { createRegistryClient } from '@coracle/runtime/oci/registry-client';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import type { ImageStore } from '../image/image-store.ts';
import type { Pool } from '../storage/pool.ts';
import { PoolError } from '../storage/pool-error.ts';
import { FillError } from './fill-error.ts';
import { type FillJob, startFill } from './fill-job.ts';
import { type IncomingImage, wasReceived } from './receive.ts';

export interface FillsOptions {
  readonly pool: Pool;
  readonly images: ImageStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly resolve?: Resolve;
  readonly stallMs?: number;
  /** Go architecture name of the guests. Default amd64. */
  readonly architecture?: string;
  readonly onStep?: (step: string) => void;
}

export interface Fills {
  /** Begins the fill, or says how it stands. Throws PoolError `Invalid` for a call that makes no sense. */
  fill(request: FillVolume): Promise<FillReport>;
  /**
   * Fills a volume with what is sent, after a `fill` of type `upload` has announced it. Resolves when it is full. Throws
   * PoolError `NotFound` when nothing was announced, `Conflict` when another one is under way or it is full, else FillError.
   */
  receive(handle: string, incoming: IncomingImage): Promise<void>;
  /** Asks a registry what an image is now. Throws PoolError: `Invalid` for a name that is none, `NotFound` when it cannot be had. */
  imageDigest(source: FillSource): Promise<ImageDigest>;
  /** Ends the fill of that handle; resolves when it has ended. What it has made stays. */
  cancel(handle: string): Promise<void>;
  /** Ends all. */
  close(): Promise<void>;
}

/** Fills that work at the same time; further ones wait. */
const MAX_AT_ONCE = 3;

interface Entry {
  readonly request: FillVolume;
  /** Nothing has been sent for it yet. */
  readonly isAwaited?: boolean;
  readonly abort: () => void;
  readonly ended: Promise<void>;
  job: FillJob | undefined;
}

/** Nothing happens before the first call. */
export function createFills({ log, signal, ...options }: FillsOptions): Fills {
  const { pool } = options;
  const entries = new Map<string, Entry>();
  const waiting: (() => void)[] = [];
  let running = 0;

  const turn = async (): Promise<void> => {
    if (running >= MAX_AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
    running += 1;
  };
  const leave = (): void => {
    running -= 1;
    waiting.shift()?.();
  };
  const begin = (request: FillVolume, incoming?: IncomingImage): Entry => {
    const life = createLinkedController(signal);
    const entry: { -readonly [K in keyof Entry]: Entry[K] } = {
      request,
      abort: () => life.abort(new DOMException('the fill is cancelled', 'AbortError')),
      job: undefined,
      ended: Promise.resolve(),
    };
    entry.ended = (async () => {
      await turn();
      try {
        if (life.signal.aborted) return;
        entry.job = startFill(request, { ...options, signal: life.signal, ...(incoming && { incoming }) });
        await entry.job.ended;
        const report = entry.job.report();
        if (report.state === 'failed' && !life.signal.aborted)
          log.info('volume not filled', { volume: request.handle, problem: report.message });
      } finally {
        leave();
        life.release();
      }
    })();
    return entry;
  };
  /** True when an upload was received whole before the agent was started anew. */
  const isLeft = async (handle: string): Promise<boolean> =>
    (await pool.fills()).includes(handle) && wasReceived(join(await pool.fillDirectory(handle), 'part'));
  const cancel = async (handle: string): Promise<void> => {
    const entry = entries.get(handle);
    if (!entry) return;
    entries.delete(handle);
    entry.abort();
    await entry.ended;
  };
  return {
    async fill(request) {
      check(request);
      const running = entries.get(request.handle)?.job?.report();
      if (pool.has(request.handle) && running?.state !== 'running') {
        entries.delete(request.handle);
        const { size, format } = pool.diskOf(request.handle);
        return { state: 'done', volume: { handle: request.handle, bytes: size, format } };
      }
      const known = entries.get(request.handle);
      if (known && (request.attempt <= known.request.attempt || known.job?.report().state !== 'failed'))
        return known.job?.report() ?? WAITING;
      const isAwaited = request.source.type === 'upload' && !(await isLeft(request.handle));
      const other = entries.get(request.handle);
      if (other !== known) return other?.job?.report() ?? WAITING;
      entries.set(request.handle, isAwaited ? { request, isAwaited, ...NOTHING } : begin(request));
      return WAITING;
    },
    async receive(handle, incoming) {
      const known = entries.get(handle);
      if (pool.has(handle)) throw new PoolError('Conflict', 'the volume is full already');
      if (known?.request.source.type !== 'upload')
        throw new PoolError('NotFound', 'no upload is awaited for the volume');
      const hasFailed = known.job?.report().state === 'failed';
      if (!known.isAwaited && !hasFailed) throw new PoolError('Conflict', 'another upload to the volume is under way');
      // The failure of the last one is still to be heard of under its number.
      const entry = begin({ ...known.request, attempt: known.request.attempt + Number(hasFailed) }, incoming);
      entries.set(handle, entry);
      await entry.ended;
      const report = entry.job?.report();
      if (report?.state === 'failed') throw new FillError(report.problem, report.message);
      if (report?.state !== 'done') throw new FillError('Source', 'the volume has been deleted');
    },
    imageDigest: (source) => imageDigest(source, { ...options, signal }),
    cancel,
    async close() {
      await Promise.all([...entries.keys()].map(cancel));
    },
  };
}

const DIGEST_MS = 60_000;

async function imageDigest(
  source: FillSource,
  { clock, signal, architecture = 'amd64' }: Pick<FillsOptions, 'clock' | 'signal' | 'architecture'>,
): Promise<ImageDigest> {
  if (source.type !== 'registry') throw new PoolError('Invalid', 'only images of registries have a digest');
  const { reference, credentials } = source;
  const limit = createLinkedController(signal);
  const stop = clock.schedule(DIGEST_MS, () => limit.abort(new Error('the registry does not answer')));
  try {
    const registry = createRegistryClient(parseReference(reference), {
      clock,
      architecture,
      ...(credentials && { credentials }),
    });
    return { digest: (await registry.manifest(limit.signal)).digest };
  } catch (error) {
    signal.throwIfAborted();
    throw new PoolError('NotFound', error instanceof Error ? error.message : String(error), { cause: error });
  } finally {
    stop();
    limit.release();
  }
}

const NOTHING = { abort: () => {}, ended: Promise.resolve(), job: undefined };
const WAITING: FillReport = { state: 'running', step: 'waiting', bytes: 0 };

function check({ handle, bytes, mode, format, source, attempt }: FillVolume): void {
  const bad = (message: string): PoolError => new PoolError('Invalid', message);
  if (typeof handle !== 'string') throw bad('a handle is a UID');
  if (!Number.isSafeInteger(bytes) || bytes <= 0) throw bad('bytes is a whole number above 0');
  if (bytes % 512 !== 0) throw bad('bytes is a multiple of 512');
  if ((mode !== 'Filesystem' && mode !== 'Block') || (format !== 'raw' && format !== 'qcow2'))
    throw bad('mode is Filesystem or Block, format raw or qcow2');
  if (!Number.isSafeInteger(attempt)) throw bad('attempt is a number');
  if (!['http', 'registry', 'upload'].includes(source?.type)) throw bad('source is http, registry or upload');
}
