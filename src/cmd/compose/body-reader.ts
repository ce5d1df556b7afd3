/** The door to the thread that reads large bodies: started with the first of them, ended when none came for a while. */
import { Worker } from 'node:worker_threads';
import { ApiError, badRequest } from '../../api/meta/status.ts';
import { BodyBudget } from '../../base/http/body-budget.ts';
import type { LargeBody, ReadElsewhere } from '../../server/endpoints/read-elsewhere.ts';
import type { BodyAnswer } from './body-worker.ts';
import { FairQueue } from './fair-queue.ts';

/** How long one document may take. The worst that fit into a body take some seconds. */
const PATIENCE_MS = 10_000;
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
  readonly body: LargeBody;
  readonly owner: string;
  readonly resolve: (read: Awaited<ReturnType<ReadElsewhere>>) => void;
  readonly reject: (why: unknown) => void;
}

/**
 * Starts nothing yet. One document is read at a time, and owners take turns. One that takes too long or too much memory is
 * refused with 400, and its thread goes; the next one finds another. One that comes when too many wait, or too many of
 * its owner, is refused with 429.
 */
export function createBodyReader(options: BodyReaderOptions = {}): BodyReader {
  const { patience = PATIENCE_MS } = options;
  const room = new Room(options.maxDocuments ?? MAX_DOCUMENTS, options.maxBytes ?? MAX_BYTES);
  const queue = new FairQueue<Job>();
  let worker: Worker | undefined;
  let timer: NodeJS.Timeout | undefined;
  let running: Job | undefined;

  /** Ends the thread and what it reads. */
  const end = async (why: unknown): Promise<void> => {
    clearTimeout(timer);
    const ended = worker;
    const failed = running;
    worker = undefined;
    running = undefined;
    if (failed) {
      room.leave(failed);
      failed.reject(why);
    }
    await ended?.terminate();
  };
  const giveUp = (why: unknown): void => {
    void end(why);
    next();
  };
  /** Hands the next one over: its time begins now. */
  const next = (): void => {
    if (running) return;
    clearTimeout(timer);
    running = queue.shift();
    timer = running ? setTimeout(() => giveUp(tooHard('time')), patience) : setTimeout(() => void end(IDLE), IDLE_MS);
    timer.unref();
    if (!running) {
      worker?.unref();
      return;
    }
    worker ??= start();
    worker.ref();
    worker.postMessage(running.body);
  };
  const receive = (answer: BodyAnswer): void => {
    const job = running;
    running = undefined;
    if (job) room.leave(job);
    next();
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
    started.on('message', (answer: BodyAnswer) => {
      if (started === worker) receive(answer);
    });
    started.on('error', (error: NodeJS.ErrnoException) => {
      if (started === worker) giveUp(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? tooHard('memory') : error);
    });
    return started;
  };
  return {
    read: (body, owner = '') =>
      new Promise((resolve, reject) => {
        const job: Job = { body, owner, resolve, reject };
        if (!room.enter(job)) return reject(tooMany());
        queue.push(owner, job);
        next();
      }),
    close() {
      const stopped = new Error('the server stops');
      for (let job = queue.shift(); job; job = queue.shift()) {
        room.leave(job);
        job.reject(stopped);
      }
      return end(stopped);
    },
  };
}

const IDLE = new Error('nobody sends documents');

/** What may wait or be read at once: documents and their bytes, with a part for each owner. */
class Room {
  readonly #documents: BodyBudget;
  readonly #bytes: BodyBudget;
  readonly #held = new Map<Job, number>();

  constructor(documents: number, bytes: number) {
    this.#documents = new BodyBudget(documents);
    this.#bytes = new BodyBudget(bytes);
  }

  enter(job: Job): boolean {
    const { owner, body } = job;
    if (this.#documents.take(owner, 1) !== 'granted') return false;
    const isAlone = this.#held.size === 0;
    const held = this.#bytes.take(owner, body.bytes.length) === 'granted' ? body.bytes.length : 0;
    // The first is read whatever its size, or it could never be.
    if (held === 0 && !isAlone) {
      this.#documents.give(owner, 1);
      return false;
    }
    this.#held.set(job, held);
    return true;
  }

  leave(job: Job): void {
    this.#documents.give(job.owner, 1);
    this.#bytes.give(job.owner, this.#held.get(job) ?? 0);
    this.#held.delete(job);
  }
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
