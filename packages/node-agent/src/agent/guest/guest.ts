/**
 * A live QEMU as the launcher sees it: its run state kept fresh by QMP events and queries, its console, its forwarded
 * ports. Closing a guest lets go of it; it runs on.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { podCard } from '@coracle/kubevirt/rules/machine/interfaces';
import type { MachinePlan } from '@coracle/kubevirt/rules/machine/machine-plan';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { isRunning, type ProcessIdentity } from '@coracle/runtime/process/identity';
import type { Exit } from '@coracle/runtime/process/spawn-detached';
import { abortable } from '@coracle/runtime/signal/abortable';
import { createDeferred } from '@coracle/runtime/signal/deferred';
import { createLinkedController, type LinkedController } from '@coracle/runtime/signal/linked-controller';
import { keepLogShort } from '../../disk/cut-log.ts';
import { createForwarder, type Forwarder } from '../../network/forwarder.ts';
import { HOT_MEMORY, VM_FILES } from '../../qemu/argv.ts';
import { POD_NETDEV } from '../../qemu/cards.ts';
import type { QmpEvent, RunState } from '../../qmp/commands.ts';
import { createGuestAgent, type GuestAgent } from '../../qmp/guest-agent.ts';
import { keepQmp, type QmpConnection, QmpError } from '../../qmp/qmp-connection.ts';
import { createAgentFollower, type GuestAgentFacts } from './guest-agent-watch.ts';
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

/** An adopted process has no parent to tell of its end. */
const POLL_MS = 1000;
/** A stopped or stuck QEMU keeps its socket open: only asking tells. */
const HEALTH_MS = 5000;
const OUTPUT_TAIL = 1000;
/** An agent that moved with its guest is connected soon after the guest runs; no guest boots in this time. */
const MOVED_AGENT_MS = 2000;

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
export const openGuest = (options: GuestOptions): Guest => new AttachedGuest(options);

export type Guest = Pick<AttachedGuest, keyof AttachedGuest>;

class AttachedGuest {
  readonly console: SerialConsole | undefined;
  readonly forwarder: Forwarder | undefined;
  /** The QEMU guest agent's port; whether somebody answers there, `state.agentConnected` tells. */
  readonly agent: GuestAgent;
  readonly #options: GuestOptions;
  readonly #linked: LinkedController;
  readonly #follower: ReturnType<typeof createAgentFollower>;
  readonly #waiters = new Set<() => void>();
  readonly #listeners = new Set<(event: QmpEvent) => void>();
  #state: GuestState = { connected: false, foreign: false, runState: 'unknown', agentConnected: false };
  #connection: QmpConnection | undefined;
  /** When it last began to run, as its QEMU tells. */
  #resumedAt = Number.NEGATIVE_INFINITY;

  constructor(options: GuestOptions) {
    const { clock, log, directory, plan } = options;
    this.#options = options;
    this.#linked = createLinkedController(options.signal);
    const { signal } = this.#linked;
    this.agent = createGuestAgent(join(directory, VM_FILES.guestAgent), { clock, signal });
    this.#follower = createAgentFollower({
      agent: this.agent,
      clock,
      log,
      signal,
      isRunning: () => this.#state.runState === 'running',
      known: () => this.#state.agentFacts,
      onFacts: (agentFacts) => {
        if (!deepEqual(this.#state.agentFacts, agentFacts)) this.#set({ agentFacts });
      },
    });
    void keepQmp(join(directory, VM_FILES.qmp), {
      clock,
      signal,
      onEvent: (event) => this.#onEvent(event),
      onConnected: (fresh) => this.#greet(fresh),
      onLost: (reason) => {
        this.#connection = undefined;
        const { connected, trouble } = this.#state;
        if (connected || trouble !== reason) this.#set({ connected: false, trouble: reason });
      },
    });
    void this.#noticeEnd();
    void this.#askRegularly();
    // One that an earlier version started has its log as it comes, and one without a network has no filter that would do it.
    keepLogShort(join(directory, VM_FILES.output), { clock, signal });
    if (plan.serial?.log) keepLogShort(join(directory, VM_FILES.serialLog), { clock, signal });
    this.console = plan.serial && openSerialConsole(directory, { clock, signal, log: plan.serial.log });
    if (podCard(plan))
      this.forwarder = createForwarder({ qmp: () => this.qmp(), netdev: POD_NETDEV, address: options.address });
  }

  get state(): GuestState {
    return this.#state;
  }
  /** Aborted when the guest is closed, or the agent ends. */
  get signal(): AbortSignal {
    return this.#linked.signal;
  }
  /** True when there is a display, and with it a VNC socket. */
  get hasScreen(): boolean {
    return this.#options.plan.graphics;
  }

  /** The connection as it is now; where there is none its commands are refused with QmpError 'closed'. */
  qmp(): QmpConnection {
    return this.#connection ?? noConnection(this.#state.trouble);
  }

  #set(change: Partial<GuestState>): void {
    this.#state = { ...this.#state, ...change };
    this.#followAgent(this.#state.agentConnected && !this.signal.aborted);
    for (const waiter of this.#waiters) waiter();
    this.#options.onChange();
  }

  #followAgent(connected: boolean): void {
    if (!this.#follower.follow(connected)) return;
    // What it said is not known to be so any more.
    const { agentFacts: _, ...rest } = this.#state;
    this.#state = rest;
  }

  /** Asks QEMU for everything again. */
  async refresh(): Promise<void> {
    const found = await askRunState(this.qmp(), this.#options.plan);
    const { ioError, trouble: _, ...rest } = this.#state;
    const { runState, agentConnected, pluggedBytes } = rest;
    const known = { runState, agentConnected, pluggedBytes, ioError };
    if (rest.connected && deepEqual(known, found)) return;
    this.#state = rest;
    this.#set({ connected: true, ...found });
  }

  /** Whoever answers on a new connection has to be the machine of the plan. */
  #greet(fresh: QmpConnection): void {
    const { uuid } = this.#options.plan;
    fresh
      .execute('query-uuid')
      .then(async ({ UUID }) => {
        if (UUID.toLowerCase() !== uuid) {
          this.#set({ foreign: true, trouble: `the machine on the socket has UUID ${UUID}, not ${uuid}` });
          fresh.close();
          return;
        }
        this.#connection = fresh;
        await this.refresh();
      })
      .catch((error: Error) => {
        this.#set({ trouble: error.message });
        fresh.close();
      });
  }

  #onEvent(received: QmpEvent): void {
    const { event, data } = received;
    for (const listener of this.#listeners) listener(received);
    switch (event) {
      case 'SHUTDOWN':
        this.#set({ shutdownReason: String(data['reason'] ?? '') });
        break;
      case 'VSERPORT_CHANGE':
        if (data['id'] !== 'agent-port0') return;
        this.#set({ agentConnected: data['open'] === true });
        if (this.#options.clock.monotonic() - this.#resumedAt < MOVED_AGENT_MS) void this.#giveTime();
        return;
      case 'MEMORY_DEVICE_SIZE_CHANGE':
        if (data['id'] === HOT_MEMORY.device) this.#set({ pluggedBytes: Number(data['size']) });
        return;
      case 'RESUME':
        this.#resumedAt = this.#options.clock.monotonic();
        void this.#giveTime();
        break;
      case 'STOP':
      case 'RESET':
      case 'SUSPEND':
      case 'WAKEUP':
      case 'GUEST_PANICKED':
      case 'BLOCK_IO_ERROR':
        break;
      default:
        return;
    }
    this.refresh().catch((error: Error) =>
      this.#options.log.debug('guest state not refreshed', { error: error.message }),
    );
  }

  /** A guest that stood still, or moved, has missed time: its agent sets its clock. */
  async #giveTime(): Promise<void> {
    if (!this.#state.agentConnected) return;
    const { clock, log } = this.#options;
    try {
      await this.agent.converse((ask) => ask('guest-set-time', { time: clock.now() * 1e6 }));
    } catch (error) {
      log.debug('the clock of the guest is not set', { error: (error as Error).message });
    }
  }

  async #noticeEnd(): Promise<void> {
    const { exited, identity, clock } = this.#options;
    const ended = (exit: Exit | 'gone'): void => {
      if (this.#state.exit === undefined) this.#set({ exit, connected: false });
    };
    if (exited) return void exited.then(ended);
    while (!this.signal.aborted) {
      if (!(await isRunning(identity))) return ended('gone');
      await clock.sleep(POLL_MS, this.signal).catch(() => {});
    }
  }

  async #askRegularly(): Promise<void> {
    while (!this.signal.aborted) {
      await this.#options.clock.sleep(HEALTH_MS, this.signal).catch(() => {});
      if (this.signal.aborted || !this.#connection) continue;
      await this.refresh().catch((error: Error) => {
        // The run state stays what it was last; nothing is concluded from silence.
        if (error instanceof QmpError && error.failure === 'timeout' && this.#state.connected)
          this.#set({ connected: false, trouble: error.message });
      });
    }
  }

  /** Calls back with each QMP event until the returned function is called. Events between two connections are lost. */
  onEvent(listener: (event: QmpEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Asks the guest agent again, soon. */
  refreshAgent(): void {
    this.#follower.again();
  }

  /** Resolves when connected or ended; rejects when the signal aborts. */
  async ready(timeoutMs: number): Promise<void> {
    const { clock, signal } = this.#options;
    const { promise, resolve, reject } = createDeferred();
    const check = (): void => {
      const { connected, exit, foreign } = this.#state;
      if (connected || exit !== undefined || foreign) resolve();
    };
    const cancel = clock.schedule(timeoutMs, () =>
      reject(new Error(`QEMU did not answer within ${timeoutMs} ms: ${this.#state.trouble ?? 'silent'}`)),
    );
    this.#waiters.add(check);
    check();
    try {
      await abortable(promise, signal);
    } finally {
      this.#waiters.delete(check);
      cancel();
    }
  }

  /** Last lines QEMU wrote. */
  async output(): Promise<string> {
    const text = await readFile(join(this.#options.directory, VM_FILES.output), 'utf8').catch(() => '');
    return text.trim().slice(-OUTPUT_TAIL);
  }

  close(): void {
    this.#linked.abort(new DOMException('the agent releases the guest', 'AbortError'));
    this.#followAgent(false);
    this.#linked.release();
    this.#connection = undefined;
  }
}

/** What QEMU says of the machine now. */
async function askRunState(
  qemu: QmpConnection,
  plan: MachinePlan,
): Promise<Pick<GuestState, 'runState' | 'agentConnected' | 'pluggedBytes' | 'ioError'>> {
  const status = await qemu.execute('query-status');
  const chardevs = await qemu.execute('query-chardev');
  const agentConnected = chardevs.find((chardev) => chardev.label === 'agent0')?.['frontend-open'] === true;
  let ioError: GuestState['ioError'];
  if (status.status === 'io-error') {
    const blocks = await qemu.execute('query-block');
    ioError = blocks.some((block) => block['io-status'] === 'nospace') ? 'nospace' : 'failed';
  }
  const memory = plan.hotMemory ? await qemu.execute('query-memory-devices') : [];
  const pluggedBytes = memory.find(({ data }) => data.id === HOT_MEMORY.device)?.data.size;
  return {
    runState: status.status,
    agentConnected,
    ...(pluggedBytes !== undefined && { pluggedBytes }),
    ...(ioError && { ioError }),
  };
}
