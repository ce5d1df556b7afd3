/**
 * One QMP connection, or one that is kept open. Every call has a limit: a stopped QEMU answers nothing and never closes
 * its socket. A peer that sends garbage or an endless line loses the connection, nothing else.
 */
import type { Clock } from '@coracle/runtime/clock/clock';
import { createDeferred } from '@coracle/runtime/signal/deferred';
import type { QmpCommand, QmpCommands, QmpEvent } from './commands.ts';
import { createLineReader } from './line-reader.ts';
import { connectUnix } from './unix-socket.ts';

/** Longest line accepted from QEMU (query-qmp-schema is about 1 MiB). */
const MAX_QMP_LINE = 8 * 1024 * 1024;
/** QEMU holds at most 8 commands in flight per monitor; more only wait in its buffer. */
const MAX_IN_FLIGHT = 64;
const QMP_TIMEOUT_MS = 5000;
const FIRST_PAUSE_MS = 20;
/** A QEMU that starts listens after a tenth of a second: until then the pause does not grow. */
const STARTING_MS = 1000;
const MAX_PAUSE_MS = 2000;

export class QmpError extends Error {
  /** 'timeout': no answer in time. 'closed': the connection is gone. 'refused': QEMU answered with an error. */
  readonly failure: 'timeout' | 'closed' | 'refused';
  constructor(failure: QmpError['failure'], message: string) {
    super(message);
    this.name = 'QmpError';
    this.failure = failure;
  }
}

interface QmpOptions {
  readonly clock: Clock;
  /** Ends the connection. */
  readonly signal: AbortSignal;
  /** For the greeting and for each command unless it names its own. Default 5000 ms. */
  readonly timeoutMs?: number;
  readonly onEvent?: (event: QmpEvent) => void;
}

export interface QmpConnection {
  /** Sends one command. Throws QmpError. */
  execute<C extends QmpCommand>(
    command: C,
    ...rest: QmpCommands[C]['args'] extends undefined
      ? [args?: undefined, options?: { readonly timeoutMs?: number }]
      : [args: QmpCommands[C]['args'], options?: { readonly timeoutMs?: number }]
  ): Promise<QmpCommands[C]['result']>;
  /** Resolves with the reason once the connection is gone. */
  readonly closed: Promise<string>;
  close(): void;
}

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: QmpError) => void;
  readonly command: string;
  readonly cancel: () => void;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function eventOf(event: string, { data, timestamp }: Record<string, unknown>): QmpEvent {
  const { seconds = 0, microseconds = 0 } = isRecord(timestamp) ? timestamp : {};
  const at = { seconds: Number(seconds), microseconds: Number(microseconds) };
  return { event, data: isRecord(data) ? data : {}, timestamp: at };
}

/** Connects, reads the greeting and leaves negotiation mode. Throws QmpError or the socket's error. */
export async function connectQmp(path: string, options: QmpOptions): Promise<QmpConnection> {
  const { clock, signal, timeoutMs = QMP_TIMEOUT_MS } = options;
  const socket = await connectUnix(path, { clock, timeoutMs, signal });
  const waiting = new Map<number, Waiting>();
  const greeted = createDeferred();
  const closed = createDeferred<string>();
  let nextId = 1;
  let gone: string | undefined;

  const shut = (reason: string): void => {
    if (gone !== undefined) return;
    gone = reason;
    signal.removeEventListener('abort', onAbort);
    socket.destroy();
    for (const call of waiting.values()) {
      call.cancel();
      call.reject(new QmpError('closed', `${call.command}: connection closed: ${reason}`));
    }
    waiting.clear();
    closed.resolve(reason);
  };
  const onAbort = (): void => shut('cancelled');

  const onLine = (line: string) => {
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch {
      return shut('the peer sent a line that is not JSON');
    }
    if (!isRecord(message)) return shut('the peer sent JSON that is not an object');
    if ('QMP' in message) return greeted.resolve();
    const { event, id, error } = message;
    if (typeof event === 'string') return options.onEvent?.(eventOf(event, message));
    const call = typeof id === 'number' ? waiting.get(id) : undefined;
    // An answer that came after its limit: the caller has gone.
    if (!call) return;
    waiting.delete(id as number);
    call.cancel();
    if (isRecord(error)) call.reject(new QmpError('refused', `${call.command}: ${String(error['desc'])}`));
    else call.resolve(message['return']);
  };
  const reader = createLineReader(MAX_QMP_LINE, onLine);
  socket.on('data', (chunk: Buffer) => {
    if (gone !== undefined) return;
    try {
      reader(chunk);
    } catch (error) {
      shut(error instanceof Error ? error.message : 'protocol error');
    }
  });
  socket.on('error', (error) => shut(error.message));
  socket.on('close', () => shut('closed by the peer'));
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();

  const send = (command: string, args: unknown, limitMs: number): Promise<unknown> =>
    new Promise((resolve, reject) => {
      if (gone !== undefined) return reject(new QmpError('closed', `${command}: connection closed: ${gone}`));
      if (waiting.size >= MAX_IN_FLIGHT)
        return reject(new QmpError('timeout', `${command}: ${waiting.size} commands are still unanswered`));
      const id = nextId++;
      const cancel = clock.schedule(limitMs, () => {
        waiting.delete(id);
        reject(new QmpError('timeout', `${command}: no answer within ${limitMs} ms`));
      });
      waiting.set(id, { resolve, reject, command, cancel });
      socket.write(`${JSON.stringify({ execute: command, id, ...(args !== undefined && { arguments: args }) })}\n`);
    });

  const limit = clock.schedule(timeoutMs, () => shut(`no greeting within ${timeoutMs} ms`));
  const lost = await Promise.race([greeted.promise.then(() => undefined), closed.promise]);
  limit();
  if (lost !== undefined) throw new QmpError(lost.startsWith('no greeting') ? 'timeout' : 'closed', `QMP: ${lost}`);
  try {
    await send('qmp_capabilities', undefined, timeoutMs);
  } catch (error) {
    shut('negotiation failed');
    throw error;
  }
  return {
    execute: ((command: string, args?: unknown, call?: { timeoutMs?: number }) =>
      send(command, args, call?.timeoutMs ?? timeoutMs)) as QmpConnection['execute'],
    closed: closed.promise,
    close: () => shut('closed by us'),
  };
}

/**
 * Keeps a connection open until the signal fires: reconnects, after its first second with a growing pause. Events between
 * two connections are lost. Never rejects.
 */
export async function keepQmp(
  path: string,
  options: QmpOptions & {
    /** A fresh connection: query everything again. */
    readonly onConnected: (connection: QmpConnection) => void;
    /** The connection, or an attempt, failed. */
    readonly onLost: (reason: string) => void;
  },
): Promise<void> {
  const { clock, signal, onConnected, onLost } = options;
  const began = clock.monotonic();
  let pause = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    try {
      const connection = await connectQmp(path, options);
      pause = FIRST_PAUSE_MS;
      onConnected(connection);
      onLost(await connection.closed);
    } catch (error) {
      if (signal.aborted) return;
      onLost(error instanceof Error ? error.message : String(error));
    }
    await clock.sleep(pause, signal).catch(() => {});
    if (clock.monotonic() - began >= STARTING_MS) pause = Math.min(pause * 2, MAX_PAUSE_MS);
  }
}
