/**
 * What is said over connections between two agents. Each connection begins with one line that says what it is for, then
 * carries bytes as they are, or (control) one JSON message a line.
 */
import type { Duplex } from 'node:stream';
import type { MachinePlan } from '@coracle/kubevirt/rules/machine/machine-plan';
import type { Clock } from '@coracle/runtime/clock/clock';
import { createDeferred } from '@coracle/runtime/signal/deferred';
import { readLines, writeLine } from '../../network/json-lines.ts';

/** First line of a connection. */
export type ChannelHeader =
  | { readonly channel: 'control' | 'memory' | 'disk'; readonly migration: string }
  | { readonly channel: 'file'; readonly migration: string; readonly name: string; readonly size: number };

/** One disk of the guest, as the source has it. */
export interface DiskOffer {
  /** Number of its block node. */
  readonly index: number;
  readonly virtualSize: number;
  /**
   * How the content gets to the target: mirrored while the guest runs, copied before, or there already, as one file of
   * both nodes ('shared') or as what each of them makes of the same source and the guest cannot change ('same').
   */
  readonly move: 'mirror' | 'copy' | 'shared' | 'same';
  /** A writable image is copied first and mirrored then. */
  readonly mirrorToo?: boolean;
  /** What a shared file looks like from here. */
  readonly shared?: FileMark;
}

/** Tells whether two paths lead to one file. */
export interface FileMark {
  readonly dev: number;
  readonly ino: number;
  readonly size: number;
}

export interface Hello {
  readonly type: 'hello';
  readonly vmiUid: string;
  readonly plan: MachinePlan;
  readonly imageIds: Readonly<Record<string, string>>;
  readonly disks: readonly DiskOffer[];
  readonly wasRunning: boolean;
  readonly autoConverge: boolean;
  /** The source would go on to post-copy if the memory does not come to an end. */
  readonly postCopy?: boolean;
  /** Where the source is, to tell whether both are on one host. */
  readonly bootId: string;
  readonly address: string;
  readonly addressesDirectory: string;
}

export type SourceMessage =
  | Hello
  | { readonly type: 'start' }
  /**
   * The source is stopped for good: the target may take over. `stoppedAt`: ms since the epoch. `postCopy`: of the memory
   * not all is there; the rest comes once the target has taken over.
   */
  | { readonly type: 'sent'; readonly stoppedAt: number; readonly postCopy?: boolean }
  | { readonly type: 'cancel'; readonly reason: string };

export type TargetMessage =
  | { readonly type: 'accepted'; readonly sharesAddress: boolean }
  /** `postCopyObstacle`: why the target cannot take post-copy, where it was requested. */
  | { readonly type: 'ready'; readonly postCopyObstacle?: string }
  /** It is the target's: the API has said so. */
  | { readonly type: 'handed-over' }
  /** The target's QEMU is gone, and it has not tried to take over. */
  | { readonly type: 'released'; readonly reason: string };

/** Longest line: a plan with hundreds of disks is far below. */
const MAX_LINE = 1024 * 1024;
const MAX_HEADER = 4096;
const HEADER_MS = 5000;
/** Messages not yet taken; more is a broken peer. */
const MAX_WAITING = 64;

/** Reads the first line of a connection and leaves the rest in the stream. Rejects on anything else. */
export function readHeader(socket: Duplex, options: { readonly clock: Clock }): Promise<ChannelHeader> {
  const { promise, resolve, reject } = createDeferred<ChannelHeader>();
  let held = Buffer.alloc(0);
  const stop = (): void => {
    cancel();
    socket.removeListener('data', onData);
    socket.removeListener('close', onClose);
    socket.pause();
  };
  const onClose = (): void => {
    stop();
    reject(new Error('the connection ended before it said what it is for'));
  };
  const onData = (chunk: Buffer): void => {
    held = Buffer.concat([held, chunk]);
    const end = held.indexOf(10);
    if (end < 0 && held.length <= MAX_HEADER) return;
    stop();
    try {
      if (end < 0 || end > MAX_HEADER) throw new Error('the first line is too long');
      const rest = held.subarray(end + 1);
      if (rest.length > 0) socket.unshift(rest);
      resolve(JSON.parse(held.subarray(0, end).toString('utf8')) as ChannelHeader);
    } catch (error) {
      reject(error as Error);
    }
  };
  const cancel = options.clock.schedule(HEADER_MS, () => {
    stop();
    reject(new Error(`nothing was said within ${HEADER_MS} ms`));
  });
  socket.on('data', onData);
  socket.once('close', onClose);
  return promise;
}

export const writeHeader = (socket: Duplex, header: ChannelHeader): void => writeLine(socket, header);

/** JSON messages, one a line, both ways, over a connection whose header is done. */
export function controlChannel<In, Out>(socket: Duplex) {
  const waiting: In[] = [];
  const takers: ((message: In | undefined) => void)[] = [];
  const closed = createDeferred();
  let open = true;
  const end = (): void => {
    if (!open) return;
    open = false;
    socket.destroy();
    for (const take of takers.splice(0)) take(undefined);
    closed.resolve();
  };
  const receive = (message: unknown): void => {
    if (!open) return;
    const take = takers.shift();
    if (take) take(message as In);
    else if (waiting.push(message as In) > MAX_WAITING) end();
  };
  readLines(socket, receive, MAX_LINE);
  for (const event of ['error', 'end', 'close']) socket.on(event, end);
  socket.resume();
  return {
    send(message: Out): void {
      if (open) writeLine(socket, message);
    },
    /** The next message; undefined once the connection is gone. */
    next(): Promise<In | undefined> {
      const message = waiting.shift();
      if (message !== undefined) return Promise.resolve(message);
      if (!open) return Promise.resolve(undefined);
      return new Promise((resolve) => takers.push(resolve));
    },
    get open(): boolean {
      return open;
    },
    closed: closed.promise,
    close: end,
  };
}

export type ControlChannel<In, Out> = ReturnType<typeof controlChannel<In, Out>>;
