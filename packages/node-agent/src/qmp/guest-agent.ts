/**
 * A client of the QEMU guest agent: JSON lines over the guest's virtio port. The other end is a program inside the guest,
 * so nothing it says is trusted: every answer has a limit in time and size, and an old answer is never taken for a new one
 * (each conversation begins with `guest-sync-delimited`).
 */
import type { Socket } from 'node:net';
import type { Clock } from '@coracle/runtime/clock/clock';
import { createLineReader } from './line-reader.ts';
import { QmpError } from './qmp-connection.ts';
import { connectUnix } from './unix-socket.ts';

/** Longest line accepted from a guest. */
const MAX_LINE = 1024 * 1024;
/** Lines between a question and its answer: an agent says one, and what an earlier client did not read. */
const MAX_LINES = 64;
/** Bytes of one conversation, empty lines among them. */
const MAX_BYTES = 16 * 1024 * 1024;
const CONNECT_MS = 2000;
const GUEST_AGENT_TIMEOUT_MS = 5000;
/** Conversations that may wait for the one that goes on: QEMU serves one client of the port at a time. */
const MAX_WAITING = 16;
/** The agent answers it, so what follows is an answer to us; on the wire 0xFF, which is no UTF-8. */
const DELIMITER = Uint8Array.of(0xff);

/** Sends one command. Throws QmpError. */
export type AskGuestAgent = (
  command: string,
  args?: Readonly<Record<string, unknown>>,
  options?: { readonly timeoutMs?: number },
) => Promise<unknown>;

export interface GuestAgent {
  /** Runs one conversation; the next begins when it has ended. Throws QmpError, or what `talk` throws. */
  converse<T>(talk: (ask: AskGuestAgent) => Promise<T>): Promise<T>;
}

/** The agent behind the socket at `path`. Nothing is opened before the first conversation. */
export function createGuestAgent(
  path: string,
  options: { readonly clock: Clock; readonly signal: AbortSignal },
): GuestAgent {
  const { clock, signal } = options;
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  // Differs from run to run, so that an answer to an earlier client is not taken for ours.
  let nextSync = clock.now() % 0x4000_0000;

  const conversation = async <T>(talk: (ask: AskGuestAgent) => Promise<T>): Promise<T> => {
    let socket: Socket;
    try {
      socket = await connectUnix(path, { clock, timeoutMs: CONNECT_MS, signal });
    } catch (error) {
      throw new QmpError('closed', `guest agent: ${error instanceof Error ? error.message : String(error)}`);
    }
    const line = openLine(socket, clock, signal);
    try {
      const id = nextSync++;
      line.send(DELIMITER);
      line.send({ execute: 'guest-sync-delimited', arguments: { id } });
      const limit = clock.monotonic() + GUEST_AGENT_TIMEOUT_MS;
      for (;;) {
        const answer = await line.next('guest-sync-delimited', Math.max(0, limit - clock.monotonic()));
        if (answer['return'] === id) break;
      }
      return await talk(async (command, args, { timeoutMs = GUEST_AGENT_TIMEOUT_MS } = {}) => {
        line.send({ execute: command, ...(args && { arguments: args }) });
        const answer = await line.next(command, timeoutMs);
        const { error } = answer as { error?: { desc?: unknown } };
        if (error) throw new QmpError('refused', `${command}: ${String(error.desc)}`);
        return answer['return'];
      });
    } finally {
      line.close();
    }
  };

  return {
    converse(talk) {
      if (waiting >= MAX_WAITING)
        throw new QmpError('timeout', `guest agent: ${waiting} requests are still unanswered`);
      waiting++;
      const turn = last.then(() => conversation(talk)).finally(() => waiting--);
      last = turn.catch(() => {});
      return turn;
    },
  };
}

type Answer = Readonly<Record<string, unknown>>;

function parsed(text: string): Answer | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Answer) : undefined;
  } catch {
    return undefined;
  }
}

/** The open port: one question at a time, so the next line is its answer. */
function openLine(socket: Socket, clock: Clock, signal: AbortSignal) {
  const answers: Answer[] = [];
  let failure: QmpError | undefined;
  let wake: () => void = () => {};
  const fail = (message: string): void => {
    failure ??= new QmpError('closed', `guest agent: ${message}`);
    wake();
  };
  const onAbort = (): void => fail('cancelled');
  let lines = 0;
  let bytes = 0;
  const reader = createLineReader(MAX_LINE, (text) => {
    if (++lines > MAX_LINES) throw new Error(`more than ${MAX_LINES} lines for one answer`);
    // What stands before the delimiter (read as U+FFFD) is the rest of an answer to somebody else.
    const begins = text.lastIndexOf('\uFFFD{') + 1;
    const value = parsed(begins > 0 ? text.slice(begins) : text) ?? (begins > 0 ? parsed(text) : undefined);
    if (value) answers.push(value);
    wake();
  });
  socket.on('data', (chunk: Buffer) => {
    try {
      if (failure) return;
      bytes += chunk.length;
      if (bytes > MAX_BYTES) throw new Error(`more than ${MAX_BYTES} bytes in one conversation`);
      reader(chunk);
    } catch (error) {
      fail(error instanceof Error ? error.message : 'protocol error');
      // Not one more byte is taken from a guest that talks like this.
      socket.destroy();
    }
  });
  socket.on('error', (error) => fail(error.message));
  socket.on('close', () => fail('the port was closed'));
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();

  return {
    send(what: Uint8Array | object): void {
      lines = 0;
      answers.length = 0;
      socket.write(what instanceof Uint8Array ? what : `${JSON.stringify(what)}\n`);
    },
    async next(command: string, timeoutMs: number): Promise<Answer> {
      let late = false;
      const cancel = clock.schedule(timeoutMs, () => {
        late = true;
        wake();
      });
      try {
        for (;;) {
          const answer = answers.shift();
          if (answer) return answer;
          if (failure) throw failure;
          if (late) throw new QmpError('timeout', `${command}: no answer within ${Math.round(timeoutMs)} ms`);
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      } finally {
        cancel();
      }
    },
    close(): void {
      signal.removeEventListener('abort', onAbort);
      socket.destroy();
    },
  };
}
