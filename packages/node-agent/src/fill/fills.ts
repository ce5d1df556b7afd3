/** The fills of a pool: a few at a time, each known by its handle, so that a call may be repeated. */
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
import { type FillJob, startFill } from './fill-job.ts';

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
  readonly attempt: number;
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
  const begin = (request: FillVolume): Entry => {
    const life = createLinkedController(signal);
    const entry: { -readonly [K in keyof Entry]: Entry[K] } = {
      attempt: request.attempt,
      abort: () => life.abort(new DOMException('the fill is cancelled', 'AbortError')),
      job: undefined,
      ended: Promise.resolve(),
    };
    entry.ended = (async () => {
      await turn();
      try {
        if (life.signal.aborted) return;
        entry.job = startFill(request, { ...options, signal: life.signal });
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
      if (known && (known.attempt === request.attempt || known.job?.report().state !== 'failed'))
        return known.job?.report() ?? WAITING;
      const entry = begin(request);
      entries.set(request.handle, entry);
      return WAITING;
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

const WAITING: FillReport = { state: 'running', step: 'waiting', bytes: 0 };

function check({ handle, bytes, mode, format, source, attempt }: FillVolume): void {
  const bad = (message: string): PoolError => new PoolError('Invalid', message);
  if (typeof handle !== 'string') throw bad('a handle is a UID');
  if (!Number.isSafeInteger(bytes) || bytes <= 0) throw bad('bytes is a whole number above 0');
  if (bytes % 512 !== 0) throw bad('bytes is a multiple of 512');
  if ((mode !== 'Filesystem' && mode !== 'Block') || (format !== 'raw' && format !== 'qcow2'))
    throw bad('mode is Filesystem or Block, format raw or qcow2');
  if (!Number.isSafeInteger(attempt)) throw bad('attempt is a number');
  if (source?.type !== 'http' && source?.type !== 'registry') throw bad('source is http or registry');
}
