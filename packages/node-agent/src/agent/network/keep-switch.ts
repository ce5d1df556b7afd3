/**
 * The switch of this node (`network/switch/switch-process.ts`), kept alive and given what it has to know. It goes on without
 * the agent; an agent that starts takes the one that is there.
 */
import { mkdir, readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { isRunning, type ProcessIdentity } from '@coracle/runtime/process/identity';
import { terminate } from '@coracle/runtime/process/terminate';
import { writeFileAtomic } from '../../image/atomic-file.ts';
import { readLines, writeLine } from '../../network/json-lines.ts';
import { type PeerIdentity, peerObstacle } from '../../network/peer.ts';
import { startProgram } from '../../network/start-program.ts';
import {
  type AgentMessage,
  SWITCH_FILES,
  SWITCH_VERSION,
  type SwitchMessage,
} from '../../network/switch/switch-files.ts';
import type { NetworkChange } from '../../network/switch/switch-state.ts';
import { connectUnix } from '../../qmp/unix-socket.ts';

const CONNECT_MS = 2000;
const FIRST_RETRY_MS = 50;
const MOST_RETRY_MS = 5000;
const END_MS = 1000;
const MAX_OUTPUT_BYTES = 64 * 1024;
/** Its tables are bounded; what it carries passes through. */
const HEAP_MIB = 256;

interface SwitchProcess {
  readonly version: number;
  readonly identity: ProcessIdentity;
}

export type PortProblem = Extract<SwitchMessage, { readonly type: 'port-problem' }>;

export interface SwitchKeeper {
  /** Starts the switch, once. */
  start(): void;
  /** Tells the switch, where it is connected: one that has just been connected gets the whole. */
  send(change: NetworkChange): void;
  /** The node proves its name anew. */
  identify(): void;
}

export interface SwitchOptions {
  readonly dataDir: string;
  /** Where the node listens for others. */
  readonly host: string;
  readonly peer?: PeerIdentity | undefined;
  /** All that a switch has to know which has just been connected. */
  readonly whole: () => NetworkChange;
  readonly onListening: (port: number) => void;
  readonly onPortProblem: (problem: PortProblem) => void;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** Makes it. */
export function keepSwitch(options: SwitchOptions): SwitchKeeper {
  const { clock, log, signal, peer } = options;
  const directory = join(options.dataDir, SWITCH_FILES.directory);
  let isStarted = false;
  let socket: Socket | undefined;
  const report = (message: AgentMessage): void => {
    if (socket) writeLine(socket, message);
  };
  const identify = (): void => {
    if (!peer || peerObstacle(peer) !== undefined) return;
    report({ type: 'identity', host: options.host, ...peer.pair(), ca: peer.ca });
  };
  const serve = (opened: Socket): Promise<void> => {
    socket = opened;
    const stop = (): void => void opened.destroy();
    signal.addEventListener('abort', stop, { once: true });
    readLines(opened, (message) => {
      const said = message as SwitchMessage;
      if (said.type === 'listening') options.onListening(said.port);
      else options.onPortProblem(said);
    });
    identify();
    report({ type: 'change', change: options.whole() });
    return new Promise((resolve) =>
      opened.once('close', () => {
        signal.removeEventListener('abort', stop);
        socket = undefined;
        resolve();
      }),
    );
  };
  const run = async (): Promise<void> => {
    let pause = FIRST_RETRY_MS;
    while (!signal.aborted) {
      try {
        await ensureSwitch(directory, options);
        const path = join(directory, SWITCH_FILES.control);
        const opened = await connectUnix(path, { clock, timeoutMs: CONNECT_MS, signal });
        pause = FIRST_RETRY_MS;
        await serve(opened);
        if (!signal.aborted) log.warn('the switch of the node has ended; it is started again');
      } catch (error) {
        if (!signal.aborted && pause > 1000)
          log.warn('the switch of the node cannot be reached', { error: (error as Error).message });
      }
      await clock.sleep(pause, signal).catch(() => {});
      pause = Math.min(2 * pause, MOST_RETRY_MS);
    }
  };
  return {
    start() {
      if (isStarted) return;
      isStarted = true;
      void run();
    },
    send: (change) => report({ type: 'change', change }),
    identify,
  };
}

/** Sees to it that a switch of our version runs. */
async function ensureSwitch(directory: string, { clock, signal }: SwitchOptions): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, SWITCH_FILES.process);
  const known = await readFile(path, 'utf8')
    .then((text) => JSON.parse(text) as SwitchProcess)
    .catch(() => undefined);
  if (known && (await isRunning(known.identity))) {
    if (known.version === SWITCH_VERSION) return;
    await terminate(known.identity, { clock, signal, graceMs: END_MS });
  }
  const child = await startProgram('switch-process', {
    cwd: directory,
    heapMiB: HEAP_MIB,
    outputFile: join(directory, SWITCH_FILES.output),
    maxOutputBytes: MAX_OUTPUT_BYTES,
  });
  const made: SwitchProcess = { version: SWITCH_VERSION, identity: child.identity };
  await writeFileAtomic(path, JSON.stringify(made));
}

/** Ends the switch of a node that has no guests any more, if there is one. */
export async function endSwitch(
  dataDir: string,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<void> {
  const path = join(dataDir, SWITCH_FILES.directory, SWITCH_FILES.process);
  const text = await readFile(path, 'utf8').catch(() => undefined);
  if (text === undefined) return;
  const { identity } = JSON.parse(text) as SwitchProcess;
  if (await isRunning(identity)) await terminate(identity, { clock, signal, graceMs: END_MS });
}
