/**
 * One QMP connection. Every call has a limit: a stopped QEMU answers nothing and never closes its socket. A peer that
 * sends garbage or an endless line loses the connection, nothing else.
 */
import type { Socket } from 'node:net';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { QmpCommand, QmpCommands, QmpEvent } from './commands.ts';
import { createLineReader } from './line-reader.ts';
import { connectUnix } from './unix-socket.ts';

/** Longest line accepted from QEMU (query-qmp-schema is about 1 MiB). */
export const MAX_QMP_LINE = 8 * 1024 * 1024;
/** QEMU holds at most 8 commands in flight per monitor; more only wait in its buffer. */
const MAX_IN_FLIGHT = 64;
export const QMP_TIMEOUT_MS = 5000;

/** 'timeout': no answer in time. 'closed': the connection is gone. 'refused': QEMU answered with an error. */
export type QmpFailure = 'timeout' | 'closed' | 'refused' | 'protocol';

export class QmpError extends Error {
  readonly failure: QmpFailure;
  /** QEMU's error class for 'refused' (`GenericError`, `CommandNotFound`, ...). */
  readonly errorClass: string;
  constructor(failure: QmpFailure, message: string, errorClass = '') {
    super(message);
    this.name = 'QmpError';
    this.failure = failure;
    this.errorClass = errorClass;
  }
}

export interface QmpOptions {
  readonly clock: Clock;
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
const own = (record: Record<string, unknown>, key: string): unknown =>
  Object.hasOwn(record, key) ? record[key] : undefined;

/** Connects, reads the greeting and leaves negotiation mode. Throws QmpError or the socket's error. */
export async function connectQmp(path: string, options: QmpOptions): Promise<QmpConnection> {
  const timeoutMs = options.timeoutMs ?? QMP_TIMEOUT_MS;
  const socket = await connectUnix(path, { clock: options.clock, timeoutMs, signal: options.signal });
  return attachQmp(socket, { ...options, timeoutMs });
}

/** The same over a socket that is already connected. */
export async function attachQmp(socket: Socket, options: QmpOptions): Promise<QmpConnection> {
  const { clock } = options;
  const defaultTimeout = options.timeoutMs ?? QMP_TIMEOUT_MS;
  const waiting = new Map<number, Waiting>();
  let nextId = 1;
  let gone: string | undefined;
  let greet: (() => void) | undefined;
  const greeted = new Promise<void>((resolve) => {
    greet = resolve;
  });
  let announce: (reason: string) => void = () => {};
  const closed = new Promise<string>((resolve) => {
    announce = resolve;
  });

  const shut = (reason: string): void => {
    if (gone !== undefined) return;
    gone = reason;
    options.signal.removeEventListener('abort', onAbort);
    socket.destroy();
    for (const call of waiting.values()) {
      call.cancel();
      call.reject(new QmpError('closed', `${call.command}: connection closed: ${reason}`));
    }
    waiting.clear();
    announce(reason);
  };
  const onAbort = (): void => shut('cancelled');

  const onLine = (line: string): void => {
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch {
      shut('the peer sent a line that is not JSON');
      return;
    }
    if (!isRecord(message)) {
      shut('the peer sent JSON that is not an object');
      return;
    }
    if (Object.hasOwn(message, 'QMP')) {
      greet?.();
      return;
    }
    const event = own(message, 'event');
    if (typeof event === 'string') {
      const data = own(message, 'data');
      const stamp = own(message, 'timestamp');
      const record = isRecord(stamp) ? stamp : {};
      options.onEvent?.({
        event,
        data: isRecord(data) ? data : {},
        timestamp: {
          seconds: Number(own(record, 'seconds') ?? 0),
          microseconds: Number(own(record, 'microseconds') ?? 0),
        },
      });
      return;
    }
    const id = own(message, 'id');
    const call = typeof id === 'number' ? waiting.get(id) : undefined;
    // An answer that came after its limit: the caller has gone.
    if (!call) return;
    waiting.delete(id as number);
    call.cancel();
    const error = own(message, 'error');
    if (isRecord(error))
      call.reject(
        new QmpError('refused', `${call.command}: ${String(own(error, 'desc'))}`, String(own(error, 'class') ?? '')),
      );
    else call.resolve(own(message, 'return'));
  };
  const reader = createLineReader(MAX_QMP_LINE, onLine);
  socket.on('data', (chunk: Buffer) => {
    if (gone !== undefined) return;
    try {
      reader.push(chunk);
    } catch (error) {
      shut(error instanceof Error ? error.message : 'protocol error');
    }
  });
  socket.on('error', (error) => shut(error.message));
  socket.on('close', () => shut('closed by the peer'));
  options.signal.addEventListener('abort', onAbort, { once: true });
  if (options.signal.aborted) onAbort();

  const send = (command: string, args: unknown, timeoutMs: number): Promise<unknown> =>
    new Promise((resolve, reject) => {
      if (gone !== undefined) return reject(new QmpError('closed', `${command}: connection closed: ${gone}`));
      if (waiting.size >= MAX_IN_FLIGHT)
        return reject(new QmpError('timeout', `${command}: ${waiting.size} commands are still unanswered`));
      const id = nextId++;
      const cancel = clock.schedule(timeoutMs, () => {
        waiting.delete(id);
        reject(new QmpError('timeout', `${command}: no answer within ${timeoutMs} ms`));
      });
      waiting.set(id, { resolve, reject, command, cancel });
      socket.write(`${JSON.stringify({ execute: command, id, ...(args !== undefined && { arguments: args }) })}\n`);
    });

  const limit = clock.schedule(defaultTimeout, () => shut(`no greeting within ${defaultTimeout} ms`));
  const first = await Promise.race([greeted.then(() => undefined), closed]);
  limit();
  if (first !== undefined) throw new QmpError(first.startsWith('no greeting') ? 'timeout' : 'closed', `QMP: ${first}`);
  try {
    await send('qmp_capabilities', undefined, defaultTimeout);
  } catch (error) {
    shut('negotiation failed');
    throw error;
  }
  return {
    execute: ((command: string, args?: unknown, callOptions?: { timeoutMs?: number }) =>
      send(command, args, callOptions?.timeoutMs ?? defaultTimeout)) as QmpConnection['execute'],
    closed,
    close: () => shut('closed by us'),
  };
}
