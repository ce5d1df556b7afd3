/** Ports of guests from here, through the API: joined to a connection or to standard input and output, or asked for an answer. */

import type { Readable, Writable } from 'node:stream';
import type { ObjectKey } from '@coracle/apimachinery/meta/object';
import { systemClock } from '@coracle/runtime/clock/clock';
import type { MessageSocket } from '@coracle/runtime/http/seam';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import type { Cluster } from '../../config/cluster.ts';
import { CommandError } from '../command.ts';
import { askForStream, openMachineStream } from '../machine-stream.ts';

/** How long one attempt waits for the guest's first word. What is sent before the guest listens is lost. */
const ATTEMPT_MS = 3_000;
/** Another attempt begins this long after the last one, at most so many at a time. */
const NEXT_MS = 250;
const MOST_ATTEMPTS = 3;

/** Which port of which machine. */
export interface GuestPort {
  readonly cluster: Pick<Cluster, 'handler' | 'client'>;
  readonly key: ObjectKey;
  readonly port: number;
  readonly signal: AbortSignal;
}

const subresourceOf = (port: number): string => `portforward/${port}/tcp`;

/** Joins a socket to the port until either ends. Throws CommandError when the server refuses. */
export async function joinGuestPort({ cluster, key, port, signal }: GuestPort, socket: MessageSocket): Promise<void> {
  (await askForStream(cluster, key, { subresource: subresourceOf(port), signal }))(socket);
}

/**
 * Waits until a server behind the port says something, as SSH servers do to whoever connects. Throws CommandError when none
 * does within `seconds`.
 */
export async function awaitGuestPort(at: GuestPort, seconds: number): Promise<void> {
  const { port, key, signal } = at;
  const life = createLinkedController(signal);
  const stop = systemClock.schedule(seconds * 1000, () => life.abort(new DOMException('no answer', 'TimeoutError')));
  const attempts = new Set<Promise<boolean>>();
  try {
    while (!life.signal.aborted) {
      if (attempts.size < MOST_ATTEMPTS) {
        const attempt: Promise<boolean> = speaks({ ...at, signal: life.signal }, ATTEMPT_MS).finally(() =>
          attempts.delete(attempt),
        );
        attempt.catch(() => {}); // heard below
        attempts.add(attempt);
      }
      const pause = systemClock.sleep(NEXT_MS, life.signal).then(
        () => false,
        () => false,
      );
      if (await Promise.race([...[...attempts].map(answered), pause])) return;
    }
    signal.throwIfAborted();
    throw new CommandError(
      `nothing answers at port ${port} of ${key.namespace}/${key.name} after ${seconds} s: the guest may have no SSH server, or still start (coracle logs ${key.name} -n ${key.namespace})`,
    );
  } finally {
    stop();
    life.abort(new DOMException('over', 'AbortError'));
    life.release();
  }
}

/** Resolves when it has; an attempt in vain says nothing, one that was refused fails. */
const answered = (attempt: Promise<boolean>): Promise<boolean> =>
  attempt.then((isThere) => (isThere ? true : new Promise<boolean>(() => {})));

async function speaks({ cluster, key, port, signal }: GuestPort, ms: number): Promise<boolean> {
  const attempt = createLinkedController(signal);
  const cancel = systemClock.schedule(ms, () => attempt.abort(new DOMException('no answer', 'AbortError')));
  try {
    const socket = await openMachineStream(cluster, key, { subresource: subresourceOf(port), signal: attempt.signal });
    return await new Promise<boolean>((resolve) => {
      socket.onMessage(() => resolve(true));
      socket.onClose(() => resolve(false));
      attempt.signal.addEventListener('abort', () => resolve(false), { once: true });
    }).finally(() => socket.close());
  } catch (error) {
    if (attempt.signal.aborted) return false; // whoever asked looks at their own signal
    throw error;
  } finally {
    cancel();
    attempt.release();
  }
}

/**
 * Input and output as a socket. The end of the input is not the end: what the far end still has to say comes, until it
 * closes.
 */
export function streamsSocket(input: Readable, output: Writable): MessageSocket {
  let closed = false;
  let tell = (_code: number, _reason: string): void => {};
  const end = (code: number): void => {
    if (closed) return;
    closed = true;
    input.destroy();
    output.end(() => tell(code, ''));
  };
  output.on('error', () => end(1006));
  return {
    protocol: '',
    send: (data) => void (closed || output.write(data)),
    get buffered() {
      return output.writableLength;
    },
    close: () => end(1000),
    pause: () => void input.pause(),
    resume: () => void input.resume(),
    onMessage(listener) {
      input.on('data', (chunk: Buffer) => listener(chunk, true));
    },
    onClose(listener) {
      tell = listener;
    },
  };
}
