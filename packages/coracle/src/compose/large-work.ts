/** The threads that do what large bodies and objects ask for: started with the first of them, ended when none came for a while. */
import { Worker } from 'node:worker_threads';
import { ApiError, badRequest } from '@coracle/apimachinery/meta/status';
import type { WriteElsewhere } from '@coracle/apiserver/endpoints/document-forms';
import type { ReadElsewhere } from '@coracle/apiserver/endpoints/read-elsewhere';
import type { RunStage, StageJob } from '@coracle/apiserver/registry/stage-job';
import type { WriteClient } from '@coracle/apiserver/registry/write-contract';
import { BodyBudget } from '@coracle/runtime/http/body-budget';
import { FairQueue } from './fair-queue.ts';
import type { ThreadAnswer, ThreadTask } from './large-work-thread.ts';

/** How long one document may take. The worst that fit into a body take some seconds. */
const PATIENCE_MS = 30_000;
/** What takes longer goes on beside those behind it, where only such documents wait for each other. */
const QUICK_MS = 1000;
/** A thread that has not loaded its program by then counts as one that reads. */
const START_MS = 10_000;
/** A thread holds some 20 MB: nobody needs it most of the time. */
const IDLE_MS = 30_000;
/** Heap of a thread: what a YAML document of 3 MB becomes before it is a value. */
const MAX_HEAP_MB = 1024;
/** Documents that may be with the threads at once, and their bytes: one or two are worked on, the others wait their turn. */
const MAX_DOCUMENTS = 64;
const MAX_BYTES = 64 * 1024 * 1024;

interface Job {
  readonly task: ThreadTask;
  readonly bytes: number;
  readonly owner: string;
  /** Nobody waits for it any more. */
  isOver: boolean;
  readonly resolve: (answer: Done) => void;
  readonly reject: (why: unknown) => void;
}

type Done = Extract<ThreadAnswer, { readonly type: ThreadTask['type'] }>;
type DoneOf<T extends ThreadTask> = Extract<Done, { readonly type: T['type'] }>;
const isDone = <T extends ThreadTask>(answer: Done, task: T): answer is DoneOf<T> => answer.type === task.type;

/**
 * Starts nothing yet. Owners take turns. Most documents are read in a moment, one at a time; one that takes longer moves, with
 * its thread, to where such documents are read, also one at a time, so that nobody waits for it but those like it. One that
 * takes too long or too much memory is refused with 400. One that comes when too many wait, or too many of its owner, is
 * refused with 429.
 */
export function createLargeWork({
  patience = PATIENCE_MS,
  quick: quickLimit = QUICK_MS,
  idle: idleMs = IDLE_MS,
  maxDocuments = MAX_DOCUMENTS,
  maxBytes = MAX_BYTES,
} = {}) {
  const quickMs = Math.min(quickLimit, patience);
  const room = new Room(maxDocuments, maxBytes);
  const settle = (job: Job, act: (job: Job) => void): void => {
    if (job.isOver) return;
    job.isOver = true;
    room.leave(job);
    act(job);
  };
  const slow = new Lane({ settle, idleMs, limitMs: patience, onLimit: (lane) => lane.giveUp(tooHard('time')) });
  const quick = new Lane({
    settle,
    idleMs,
    limitMs: quickMs,
    onLimit(lane) {
      if (quickMs >= patience) return lane.giveUp(tooHard('time'));
      const { job, thread } = lane.release();
      // As it is where nothing is read there, else from its beginning.
      if (slow.isFree) slow.take(job, thread, patience - quickMs);
      else {
        void thread?.terminate();
        slow.push(job);
      }
      lane.next();
    },
  });
  const ask = <T extends ThreadTask>(task: T, bytes: number, client: WriteClient | undefined) => {
    const { owner = '', signal } = client ?? {};
    return new Promise<DoneOf<T>>((resolve, reject) => {
      const take = (answer: Done): void => {
        if (isDone(answer, task)) resolve(answer);
        else reject(new TypeError('an answer to another question'));
      };
      const job: Job = { task, bytes, owner, isOver: false, resolve: take, reject };
      if (signal?.aborted) return reject(signal.reason);
      if (!room.enter(job)) return reject(tooMany());
      signal?.addEventListener('abort', () => settle(job, () => reject(signal.reason)), { once: true });
      quick.push(job);
    });
  };
  const read: ReadElsewhere = (body, client) => ask({ type: 'read', body }, body.bytes.length, client);
  const runStage: RunStage = async (job, client) => (await ask({ type: 'stage', job }, bytesOf(job), client)).result;
  const write: WriteElsewhere = async (work, client) =>
    (await ask({ type: 'write', work }, work.json.length, client)).bytes;
  return {
    read,
    runStage,
    write,
    /** Ends the threads; what they were reading is refused. */
    async close() {
      const stopped = new Error('the server stops');
      await Promise.all([quick.close(stopped), slow.close(stopped)]);
    },
  };
}

interface LaneOptions {
  /** Called once for each job that ends here. */
  readonly settle: (job: Job, act: (job: Job) => void) => void;
  readonly limitMs: number;
  readonly idleMs: number;
  /** The job that is read has had its time. */
  readonly onLimit: (lane: Lane) => void;
}

/** One thread and those who wait for it. */
class Lane {
  readonly #options: LaneOptions;
  readonly #queue = new FairQueue<Job>();
  #thread: Worker | undefined;
  #running: Job | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  /** Nothing is read here, and nobody waits. */
  get isFree(): boolean {
    return this.#running === undefined;
  }

  push(job: Job): void {
    this.#queue.push(job.owner, job);
    this.next();
  }

  /** Hands the next one over: its time begins now. */
  next(): void {
    if (this.#running) return;
    do this.#running = this.#queue.shift();
    while (this.#running?.isOver);
    if (this.#running) {
      const isNew = this.#thread === undefined;
      this.#thread ??= this.#listen(startThread());
      this.#thread.postMessage(this.#running.task);
      // What a thread takes to start is nobody's fault.
      this.#limit(this.#options.limitMs + (isNew ? START_MS : 0));
    } else {
      this.#await(this.#options.idleMs, () => void this.#end(IDLE));
      this.#thread?.unref();
    }
  }

  /** Goes on with a job that a thread of another lane reads already. This one has to be free. */
  take(job: Job, thread: Worker | undefined, limitMs: number): void {
    void this.#thread?.terminate();
    this.#running = job;
    this.#thread = thread && this.#listen(thread);
    this.#limit(limitMs);
  }

  /** Lets go of the thread and of what it reads; the lane has neither then, and hears of neither. */
  release(): { readonly job: Job; readonly thread: Worker | undefined } {
    const [job, thread] = [this.#running as Job, this.#thread];
    this.#running = undefined;
    this.#thread = undefined;
    return { job, thread };
  }

  /** Ends the thread; what it reads is refused, those behind it find another. */
  giveUp(why: unknown): void {
    void this.#end(why);
    this.next();
  }

  close(why: unknown): Promise<void> {
    for (let job = this.#queue.shift(); job; job = this.#queue.shift())
      this.#options.settle(job, ({ reject }) => reject(why));
    return this.#end(why);
  }

  async #end(why: unknown): Promise<void> {
    clearTimeout(this.#timer);
    const [thread, failed] = [this.#thread, this.#running];
    this.#thread = undefined;
    this.#running = undefined;
    if (failed) this.#options.settle(failed, ({ reject }) => reject(why));
    await thread?.terminate();
  }

  #limit(ms: number): void {
    this.#thread?.ref();
    this.#await(ms, () => this.#options.onLimit(this));
  }

  #await(ms: number, act: () => void): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(act, ms);
    this.#timer.unref();
  }

  #listen(thread: Worker): Worker {
    thread.on('message', (answer: ThreadAnswer) => {
      if (thread !== this.#thread) return;
      if (answer.type !== 'ready') this.#receive(answer);
      else if (this.#running) this.#limit(this.#options.limitMs);
    });
    thread.on('error', (error: NodeJS.ErrnoException) => {
      if (thread === this.#thread) this.giveUp(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? tooHard('memory') : error);
    });
    thread.on('exit', () => {
      if (thread === this.#thread) this.giveUp(new Error('the thread ended'));
    });
    return thread;
  }

  #receive(answer: Exclude<ThreadAnswer, { readonly type: 'ready' }>): void {
    const job = this.#running;
    this.#running = undefined;
    if (job)
      this.#options.settle(job, ({ resolve, reject }) => {
        if (answer.type === 'refused') reject(new ApiError(answer.status));
        else if (answer.type === 'failed') reject(new Error(answer.text));
        else resolve(answer);
      });
    this.next();
  }
}

function startThread(): Worker {
  // Beside this file, and compiled or not as this file is.
  const url = new URL(
    import.meta.url.endsWith('.ts') ? './large-work-thread.ts' : './large-work-thread.js',
    import.meta.url,
  );
  return new Worker(url, {
    name: 'large-work',
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    execArgv: ['--disable-warning=ExperimentalWarning'],
  });
}

const IDLE = new Error('nobody sends documents');

/** Bytes that are sent along with a stage. */
function bytesOf(job: StageJob): number {
  const sent = (value: object): number =>
    Object.values(value).reduce((sum: number, member: unknown) => {
      if (member instanceof Uint8Array) return sum + member.length;
      return typeof member === 'object' && member !== null && !Array.isArray(member) ? sum + sent(member) : sum;
    }, 0);
  return sent({ ...job, owners: undefined });
}

/** What may wait or be worked on at once: documents and their bytes, with a part for each owner. */
class Room {
  readonly #documents: BodyBudget;
  readonly #bytes: BodyBudget;
  readonly #held = new Map<Job, number>();

  constructor(documents: number, bytes: number) {
    this.#documents = new BodyBudget(documents);
    this.#bytes = new BodyBudget(bytes);
  }

  enter(job: Job): boolean {
    const { owner, bytes } = job;
    if (this.#documents.take(owner, 1) !== 'granted') return false;
    const isAlone = this.#held.size === 0;
    const held = this.#bytes.take(owner, bytes) === 'granted' ? bytes : 0;
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
