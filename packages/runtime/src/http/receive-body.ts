/** The body of a request off the wire, read when its handler asks for it and on the account of whoever sends it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ServerHttp2Stream } from 'node:http2';
import type { BodyBudget } from './body-budget.ts';
import type { BodyOutcome } from './seam.ts';

export interface BodySource {
  readonly source: IncomingMessage | ServerHttp2Stream;
  /** As the headers say; undefined when they do not. */
  readonly length: number | undefined;
  /** Bytes at which it is cut, plus one. */
  readonly limit: number;
  readonly budget: BodyBudget;
  /** Tells a client that waits for it to go on. */
  readonly goOn?: (() => void) | undefined;
}

/** A client that says no length is taken at its word for so many bytes at a time. */
const STEP = 64 * 1024;

/** One body on its way. What it takes of the budget it holds until `release`. */
export class IncomingBody {
  readonly #from: BodySource;
  #owner = '';
  #taken = 0;
  #size = 0;
  #chunks: Buffer[] = [];
  #over = false;

  constructor(from: BodySource) {
    this.#from = from;
  }

  /** Resolves when all of it is there, or with the reason why it is not read. `done` gets it before that. */
  receive(owner: string, done: (body: Uint8Array) => void): Promise<BodyOutcome> {
    const { source, length, limit, goOn } = this.#from;
    this.#owner = owner;
    const granted = this.#take(Math.min(length ?? STEP, limit + 1));
    if (granted !== 'granted') return Promise.resolve(granted);
    if (source.destroyed) return Promise.resolve('gone');
    return new Promise((resolve) => {
      const finish = (outcome: BodyOutcome, body?: Uint8Array): void => {
        if (this.#over) return;
        this.#over = true;
        this.#chunks = [];
        if (body) done(body);
        resolve(outcome);
      };
      source.on('data', (chunk: Buffer) => {
        if (this.#over) return;
        this.#chunks.push(chunk);
        this.#size += chunk.length;
        if (this.#size > limit) return finish('here', Buffer.concat(this.#chunks).subarray(0, limit + 1));
        if (this.#size <= this.#taken) return;
        const more = this.#take(Math.min(Math.max(STEP, this.#size - this.#taken), limit + 1 - this.#taken));
        if (more !== 'granted') finish(more);
      });
      source.on('end', () =>
        finish('here', this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks)),
      );
      source.on('error', () => finish('gone'));
      source.on('close', () => finish('gone'));
      goOn?.();
    });
  }

  /** The request is over: its bytes are free. */
  release(): void {
    this.#over = true;
    this.#chunks = [];
    if (this.#taken > 0) this.#from.budget.give(this.#owner, this.#taken);
    this.#taken = 0;
  }

  #take(bytes: number): BodyOutcome | 'granted' {
    const granted = this.#from.budget.take(this.#owner, bytes);
    if (granted === 'granted') this.#taken += bytes;
    return granted;
  }
}

/** The length that headers promise, where it is one. */
export function declaredLength(text: string | undefined): number | undefined {
  const length = text === undefined ? Number.NaN : Number(text);
  return Number.isSafeInteger(length) && length >= 0 ? length : undefined;
}

/**
 * Before an answer to a request whose body is not all here: a short rest of known length is thrown away as it comes, and
 * the connection can be used again; any other ends with the answer, so that the rest is not read as the next request.
 */
export function leaveRest(
  request: IncomingMessage,
  response: ServerResponse,
  { limit, waits }: { readonly limit: number; readonly waits: boolean },
): void {
  if (request.complete) return;
  const length = declaredLength(request.headers['content-length']);
  if (waits || length === undefined || length > limit) response.shouldKeepAlive = false;
  request.resume();
}
