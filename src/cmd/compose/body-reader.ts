/** The door to the thread that reads large bodies: started with the first of them, ended when none came for a while. */
import { Worker } from 'node:worker_threads';
import { ApiError, badRequest } from '../../api/meta/status.ts';
import type { ReadElsewhere } from '../../server/endpoints/read-elsewhere.ts';
import type { BodyAnswer } from './body-worker.ts';

/** How long one document may take. The worst that fit into a body take some seconds. */
const PATIENCE_MS = 20_000;
/** The thread holds some 20 MB: nobody needs it most of the time. */
const IDLE_MS = 30_000;
/** Heap of the thread: what a YAML document of 3 MB becomes before it is a value. */
const MAX_HEAP_MB = 1024;
/** Documents that may be with the thread at once, and their bytes: one is being read, the others wait their turn. */
const MAX_DOCUMENTS = 64;
const MAX_BYTES = 32 * 1024 * 1024;

export interface BodyReader {
  readonly read: ReadElsewhere;
  /** Ends the thread; what it was reading is refused. */
  close(): Promise<void>;
}

export interface BodyReaderOptions {
  /** How long one document may take, in milliseconds. */
  readonly patience?: number;
  readonly maxDocuments?: number;
  readonly maxBytes?: number;
}

interface Job {
  readonly bytes: number;
  readonly resolve: (read: Awaited<ReturnType<ReadElsewhere>>) => void;
  readonly reject: (why: unknown) => void;
}

/**
 * Starts nothing yet. A document that takes too long or too much memory is refused with 400, and with it the thread goes;
 * one that comes when too many wait is refused with 429.
 */
export function createBodyReader(options: BodyReaderOptions = {}): BodyReader {
  const { patience = PATIENCE_MS, maxDocuments = MAX_DOCUMENTS, maxBytes = MAX_BYTES } = options;
  let worker: Worker | undefined;
  let timer: NodeJS.Timeout | undefined;
  let nextId = 1;
  const jobs = new Map<number, Job>();
  let bytesWaiting = 0;

  const end = async (why: unknown): Promise<void> => {
    clearTimeout(timer);
    const ended = worker;
    worker = undefined;
    for (const job of jobs.values()) job.reject(why);
    jobs.clear();
    bytesWaiting = 0;
    await ended?.terminate();
  };
  // The one at the front is being read: its time begins when it gets there.
  const watch = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => void end(tooHard('time')), jobs.size > 0 ? patience : IDLE_MS);
    timer.unref();
    if (jobs.size > 0) worker?.ref();
    else worker?.unref();
  };
  const receive = (answer: BodyAnswer): void => {
    const job = jobs.get(answer.id);
    if (jobs.delete(answer.id)) bytesWaiting -= job?.bytes ?? 0;
    watch();
    if ('json' in answer) job?.resolve(answer);
    else if ('refusal' in answer) job?.reject(new ApiError(answer.refusal));
    else job?.reject(new Error(answer.failure));
  };
  const start = (): Worker => {
    // Beside this file, and compiled or not as this file is.
    const url = new URL(import.meta.url.endsWith('.ts') ? './body-worker.ts' : './body-worker.js', import.meta.url);
    const started = new Worker(url, {
      name: 'bodies',
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    started.on('message', receive);
    started.on('error', (error: NodeJS.ErrnoException) => {
      if (started !== worker) return;
      void end(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? tooHard('memory') : error);
    });
    return started;
  };
  return {
    read: (body) =>
      new Promise((resolve, reject) => {
        const bytes = body.bytes.length;
        // The first is read whatever its size, or it could never be.
        if (jobs.size >= maxDocuments || (jobs.size > 0 && bytesWaiting + bytes > maxBytes)) return reject(tooMany());
        worker ??= start();
        const id = nextId++;
        jobs.set(id, { bytes, resolve, reject });
        bytesWaiting += bytes;
        if (jobs.size === 1) watch();
        worker.postMessage({ ...body, id });
      }),
    close: () => end(new Error('the server stops')),
  };
}

const tooHard = (what: 'memory' | 'time'): ApiError =>
  badRequest(`the document takes more ${what} to read than one may have`);

const tooMany = (): ApiError =>
  new ApiError({
    code: 429,
    reason: 'TooManyRequests',
    message: 'Too many requests, please try again later.',
    details: { retryAfterSeconds: 1 },
  });
