/**
 * A live QEMU as the launcher sees it: its run state kept fresh by QMP events and queries, its console, its forwarded
 * ports. Closing a guest lets go of it; it runs on.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { MachinePlan } from '@coracle/kubevirt/rules/machine/machine-plan';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { isRunning, type ProcessIdentity } from '@coracle/runtime/process/identity';
import type { Exit } from '@coracle/runtime/process/spawn-detached';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import { keepLogShort } from '../../disk/cut-log.ts';
import { createForwarder, type Forwarder } from '../../network/forwarder.ts';
import { HOT_MEMORY, netdevId, VM_FILES } from '../../qemu/argv.ts';
import type { QmpEvent, RunState } from '../../qmp/commands.ts';
import { createGuestAgent, type GuestAgent } from '../../qmp/guest-agent.ts';
import { keepQmp } from '../../qmp/keep-qmp.ts';
import { type QmpConnection, QmpError } from '../../qmp/qmp-connection.ts';
import { sameJson } from '../launcher/pod-status.ts';
import { type GuestAgentFacts, watchGuestAgent } from './guest-agent-watch.ts';
import { openSerialConsole, type SerialConsole } from './serial-console.ts';

export interface GuestOptions {
  readonly directory: string;
  readonly plan: MachinePlan;
  readonly address: string;
  readonly identity: ProcessIdentity;
  /** Present when QEMU is our child. */
  readonly exited?: Promise<Exit>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Something of the state below has changed. */
  readonly onChange: () => void;
}

export interface GuestState {
  /** True once QMP answered and the UUID was ours. */
  readonly connected: boolean;
  /** Another machine answers on the socket: nothing is done to it. */
  readonly foreign: boolean;
  readonly runState: RunState | 'unknown';
  /** Reason of the last SHUTDOWN event. */
  readonly shutdownReason?: string;
  readonly agentConnected: boolean;
  /** What the guest agent answered last; absent as long as it is not connected, or has answered nothing. */
  readonly agentFacts?: GuestAgentFacts;
  /** Why the guest is paused by an I/O error, if it is. */
  readonly ioError?: 'nospace' | 'failed';
  /** Bytes of pluggable memory the guest has taken; absent where it is not known. */
  readonly pluggedBytes?: number;
  readonly exit?: Exit | 'gone';
  /** The last connection failed, with this text. */
  readonly trouble?: string;
}

export interface Guest {
  readonly state: GuestState;
  /** Aborted when the guest is closed, or the agent ends. */
  readonly signal: AbortSignal;
  readonly console: SerialConsole | undefined;
  /** True when there is a display, and with it a VNC socket. */
  readonly hasScreen: boolean;
  readonly forwarder: Forwarder | undefined;
  /** The QEMU guest agent's port; whether somebody answers there, `state.agentConnected` tells. */
  readonly agent: GuestAgent;
  /** The connection as it is now; where there is none its commands are refused with QmpError 'closed'. */
  qmp(): QmpConnection;
  /** Calls back with each QMP event until the returned function is called. Events between two connections are lost. */
  onEvent(listener: (event: QmpEvent) => void): () => void;
  /** Asks the guest agent again, soon. */
  refreshAgent(): void;
  /** Asks QEMU for everything again. */
  refresh(): Promise<void>;
  /** Resolves when connected or ended; rejects when the signal aborts. */
  ready(timeoutMs: number): Promise<void>;
  /** Last lines QEMU wrote. */
  output(): Promise<string>;
  close(): void;
}

/** An adopted process has no parent to tell of its end. */
const POLL_MS = 1000;
/** A stopped or stuck QEMU keeps its socket open: only asking tells. */
const HEALTH_MS = 5000;
const OUTPUT_TAIL = 1000;

/** A command to it fails as on a connection that was lost: by its promise, and not before there is one. */
function noConnection(trouble: string | undefined): QmpConnection {
  const reason = `no connection to QEMU${trouble ? `: ${trouble}` : ''}`;
  return {
    execute: () => Promise.reject(new QmpError('closed', reason)),
    closed: Promise.resolve(reason),
    close: () => {},
  };
}

/** Attaches to a running QEMU. */
export function openGuest(options: GuestOptions): Guest {
  const { clock, directory, plan, identity } = options;
  const linked = createLinkedController(options.signal);
  let state: GuestState = { connected: false, foreign: false, runState: 'unknown', agentConnected: false };
  let connection: QmpConnection | undefined;
  const waiters = new Set<() => void>();
  const listeners = new Set<(event: QmpEvent) => void>();

  const agent = createGuestAgent(join(directory, VM_FILES.guestAgent), { clock, signal: linked.signal });
  let agentWatch: ReturnType<typeof createLinkedController> | undefined;
  const stopWatching = (): void => {
    agentWatch?.abort(new DOMException('the guest agent is not watched any more', 'AbortError'));
    agentWatch?.release();
    agentWatch = undefined;
  };
  const followAgent = (connected: boolean): void => {
    if (connected === (agentWatch !== undefined)) return;
    if (connected) {
      agentWatch = createLinkedController(linked.signal);
      void watchGuestAgent({
        agent,
        clock,
        log: options.log,
        signal: agentWatch.signal,
        isRunning: () => state.runState === 'running',
        before: state.agentFacts,
        onFacts: (agentFacts) => {
          if (!sameJson(state.agentFacts, agentFacts)) set({ agentFacts });
        },
      });
    } else {
      stopWatching();
      const { agentFacts: _, ...rest } = state;
      state = rest;
    }
  };
  const set = (change: Partial<GuestState>): void => {
    state = { ...state, ...change };
    followAgent(state.agentConnected && !linked.signal.aborted);
    for (const waiter of waiters) waiter();
    options.onChange();
  };
  const qmp = (): QmpConnection => connection ?? noConnection(state.trouble);

  const refresh = async (): Promise<void> => {
    const qemu = qmp();
    const status = await qemu.execute('query-status');
    const chardevs = await qemu.execute('query-chardev');
    let ioError: GuestState['ioError'];
    if (status.status === 'io-error') {
      const blocks = await qemu.execute('query-block');
      ioError = blocks.some((block) => block['io-status'] === 'nospace') ? 'nospace' : 'failed';
    }
    const memory = plan.hotMemory ? await qemu.execute('query-memory-devices') : [];
    const pluggedBytes = memory.find(({ data }) => data.id === HOT_MEMORY.device)?.data.size;
    const { ioError: before, trouble: _, ...rest } = state;
    const agentConnected = chardevs.find((chardev) => chardev.label === 'agent0')?.['frontend-open'] === true;
    const same =
      state.connected &&
      state.runState === status.status &&
      state.agentConnected === agentConnected &&
      state.pluggedBytes === pluggedBytes &&
      before === ioError;
    if (same) return;
    state = rest;
    set({
      connected: true,
      runState: status.status,
      agentConnected,
      ...(pluggedBytes !== undefined && { pluggedBytes }),
      ...(ioError && { ioError }),
    });
  };

  const onEvent = (received: QmpEvent): void => {
    const { event, data } = received;
    for (const listener of listeners) listener(received);
    switch (event) {
      case 'SHUTDOWN':
        set({ shutdownReason: String(data['reason'] ?? '') });
        break;
      case 'VSERPORT_CHANGE':
        if (data['id'] === 'agent-port0') set({ agentConnected: data['open'] === true });
        return;
      case 'MEMORY_DEVICE_SIZE_CHANGE':
        if (data['id'] === HOT_MEMORY.device) set({ pluggedBytes: Number(data['size']) });
        return;
      case 'STOP':
      case 'RESUME':
      case 'RESET':
      case 'SUSPEND':
      case 'WAKEUP':
      case 'GUEST_PANICKED':
      case 'BLOCK_IO_ERROR':
        break;
      default:
        return;
    }
    refresh().catch((error: Error) => options.log.debug('guest state not refreshed', { error: error.message }));
  };

  void keepQmp(join(directory, VM_FILES.qmp), {
    clock,
    signal: linked.signal,
    onEvent,
    onConnected: (fresh) => {
      fresh
        .execute('query-uuid')
        .then(async ({ UUID }) => {
          if (UUID.toLowerCase() !== plan.uuid) {
            set({ foreign: true, trouble: `the machine on the socket has UUID ${UUID}, not ${plan.uuid}` });
            fresh.close();
            return;
          }
          connection = fresh;
          await refresh();
        })
        .catch((error: Error) => {
          set({ trouble: error.message });
          fresh.close();
        });
    },
    onLost: (reason) => {
      connection = undefined;
      if (state.connected || state.trouble !== reason) set({ connected: false, trouble: reason });
    },
  });

  const ended = (exit: Exit | 'gone'): void => {
    if (state.exit === undefined) set({ exit, connected: false });
  };
  if (options.exited) void options.exited.then(ended);
  else
    void (async () => {
      while (!linked.signal.aborted) {
        if (!(await isRunning(identity))) {
          ended('gone');
          return;
        }
        await clock.sleep(POLL_MS, linked.signal).catch(() => {});
      }
    })();

  void (async () => {
    while (!linked.signal.aborted) {
      await clock.sleep(HEALTH_MS, linked.signal).catch(() => {});
      if (linked.signal.aborted || !connection) continue;
      await refresh().catch((error: Error) => {
        // The run state stays what it was last; nothing is concluded from silence.
        if (error instanceof QmpError && error.failure === 'timeout' && state.connected)
          set({ connected: false, trouble: error.message });
      });
    }
  })();

  // One that an earlier version started has its log as it comes, and one without a network has no filter that would do it.
  keepLogShort(join(directory, VM_FILES.output), { clock, signal: linked.signal });
  if (plan.serial?.log) keepLogShort(join(directory, VM_FILES.serialLog), { clock, signal: linked.signal });
  const console = plan.serial
    ? openSerialConsole(directory, { clock, signal: linked.signal, log: plan.serial.log })
    : undefined;
  const forwarder =
    plan.interfaces.length > 0 ? createForwarder({ qmp, netdev: netdevId(0), address: options.address }) : undefined;

  return {
    get state() {
      return state;
    },
    signal: linked.signal,
    console,
    hasScreen: plan.graphics,
    forwarder,
    agent,
    qmp,
    onEvent(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    refreshAgent() {
      if (!agentWatch) return;
      stopWatching();
      followAgent(true);
    },
    refresh,
    ready(timeoutMs) {
      return new Promise((resolve, reject) => {
        const finish = (error?: unknown): void => {
          waiters.delete(check);
          cancel();
          options.signal.removeEventListener('abort', onAbort);
          if (error === undefined) resolve();
          else reject(error as Error);
        };
        const check = (): void => {
          if (state.connected || state.exit !== undefined || state.foreign) finish();
        };
        const onAbort = (): void => finish(options.signal.reason);
        const cancel = clock.schedule(timeoutMs, () =>
          finish(new Error(`QEMU did not answer within ${timeoutMs} ms: ${state.trouble ?? 'silent'}`)),
        );
        waiters.add(check);
        options.signal.addEventListener('abort', onAbort, { once: true });
        if (options.signal.aborted) onAbort();
        else check();
      });
    },
    async output() {
      const text = await readFile(join(directory, VM_FILES.output), 'utf8').catch(() => '');
      return text.trim().slice(-OUTPUT_TAIL);
    },
    close() {
      linked.abort(new DOMException('the agent lets go of the guest', 'AbortError'));
      followAgent(false);
      linked.release();
      connection = undefined;
    },
  };
}
