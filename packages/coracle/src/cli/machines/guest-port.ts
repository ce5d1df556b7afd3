/** Ports of guests from here, through the API: joined to a connection or to standard input and output, or asked for an answer. */

import type { Readable, Writable } from 'node:stream';
import type { ObjectKey } from '@coracle/apimachinery/meta/object';
import { systemClock } from '@coracle/runtime/clock/clock';
import type { MessageSocket } from '@coracle/runtime/http/seam';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import type { Cluster } from '../../config/cluster.ts';
import { CommandError } from '../command.ts';
import { askForStream, openMachineStream } from '../machine-stream.ts';

/**
 * How long one attempt waits for the guest's first word. What is sent before the guest has a network reaches it late, as a
 * connection that nobody wants any more; servers bound those of one address, so there is one attempt at a time.
 */
const ATTEMPT_MS = 1_000;
const PAUSE_MS = 100;

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
  const { signal } = at;
  const deadline = systemClock.monotonic() + seconds * 1000;
  for (;;) {
    const left = deadline - systemClock.monotonic();
    if (left <= 0) throw new CommandError(noAnswer(at, seconds));
    if (await speaks(at, Math.min(ATTEMPT_MS, left))) return;
    signal.throwIfAborted();
    await systemClock.sleep(PAUSE_MS, signal);
  }
}

const noAnswer = ({ port, key }: GuestPort, seconds: number): string =>
  `nothing answers at port ${port} of ${key.namespace}/${key.name} after ${seconds} s: the guest may have no SSH server, or still start (coracle logs ${key.name} -n ${key.namespace})`;

/**
 * Joins input and output to the port once the server behind it says something; what comes by the input waits until then. A
 * connection that ends, or stays silent, before that is made again, for `seconds`. Resolves at the end of the one that spoke.
 */
export async function joinSpeakingPort(
  at: GuestPort,
  { input, output }: { readonly input: Readable; readonly output: Writable },
  seconds: number,
): Promise<void> {
  const deadline = systemClock.monotonic() + seconds * 1000;
  const near = streamsSocket(input, output);
  // Whoever gave the input is gone.
  input.once('end', () => near.close());
  for (;;) {
    const left = deadline - systemClock.monotonic();
    if (left <= 0) throw new CommandError(noAnswer(at, seconds));
    const attempt = createLinkedController(at.signal);
    const cancel = systemClock.schedule(Math.min(ATTEMPT_MS, left), () =>
      attempt.abort(new DOMException('no answer', 'AbortError')),
    );
    let spoke = false;
    try {
      const over = Promise.withResolvers<void>();
      attempt.signal.addEventListener('abort', () => over.resolve(), { once: true });
      let listen = (): void => {};
      await joinGuestPort(
        { ...at, signal: attempt.signal },
        {
          protocol: near.protocol,
          get buffered() {
            return near.buffered;
          },
          send(data) {
            near.send(data);
            if (spoke) return;
            spoke = true;
            cancel();
            listen();
          },
          close() {
            if (spoke) near.close();
            over.resolve();
          },
          pause: () => near.pause?.(),
          resume: () => (spoke ? near.resume?.() : undefined),
          onMessage: (listener) => {
            listen = () => near.onMessage(listener);
          },
          onClose: (listener) => near.onClose(listener),
        },
      );
      await over.promise;
    } catch (error) {
      if (!attempt.signal.aborted) throw error;
    } finally {
      cancel();
      attempt.abort(new DOMException('over', 'AbortError'));
      attempt.release();
    }
    if (spoke) return;
    at.signal.throwIfAborted();
    await systemClock.sleep(PAUSE_MS, at.signal);
  }
}

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
