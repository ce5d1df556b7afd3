/**
 * Port forwarding into one guest, over QMP. Rules live in QEMU, so they survive a restart of the agent; `load` reads
 * them back.
 */
import type { ForwardedPort } from '../../domain/machine/machine-plan.ts';
import type { QmpConnection } from '../qmp/qmp-connection.ts';
import { freePort, probeBind } from './bind-probe.ts';

export interface ForwardProblem {
  readonly port: ForwardedPort;
  readonly why: 'in-use' | 'denied' | 'other';
  /** A sentence for an event. */
  readonly message: string;
}

export interface Forwarder {
  /** Reads the rules QEMU has. */
  load(): Promise<void>;
  /** Takes every rule away, so that another QEMU of this host can have the ports. */
  removeAll(): Promise<void>;
  /** Forwards the ports, each under its own number; those that are forwarded stay. Returns those that could not be. */
  addAll(ports: readonly ForwardedPort[]): Promise<ForwardProblem[]>;
  /** Where a TCP port of the guest can be dialled; forwards it first when it is not yet. Throws when that fails. */
  endpoint(guestPort: number): Promise<{ readonly host: string; readonly port: number }>;
}

export interface ForwarderOptions {
  readonly qmp: () => QmpConnection;
  /** `net-0` */
  readonly netdev: string;
  /** The VM's loopback address. */
  readonly address: string;
}

/** Ports asked for through `portforward` that one guest may have open beside those of its spec. */
const MAX_EXTRA = 256;
const EXTRA_TRIES = 5;

/** Rules of `info usernet`: protocol, host address, host port, guest port. */
export function parseUsernet(text: string): {
  readonly protocol: 'tcp' | 'udp';
  readonly host: string;
  readonly hostPort: number;
  readonly guestPort: number;
}[] {
  const rules = [];
  for (const match of text.matchAll(/^\s*(TCP|UDP)\[HOST_FORWARD\]\s+\d+\s+(\S+)\s+(\d+)\s+(\S+)\s+(\d+)/gm))
    rules.push({
      protocol: match[1] === 'UDP' ? ('udp' as const) : ('tcp' as const),
      host: match[2] ?? '',
      hostPort: Number(match[3]),
      guestPort: Number(match[5]),
    });
  return rules;
}

/** Makes the forwarder of one interface. */
export function createForwarder(options: ForwarderOptions): Forwarder {
  const { address, netdev } = options;
  /** TCP: guest port -> host port. */
  const open = new Map<number, number>();
  const openUdp = new Set<number>();
  let extra = 0;

  /** True when QEMU took the rule; it says nothing then, and a sentence otherwise. */
  const add = async (protocol: 'tcp' | 'udp', hostPort: number, guestPort: number): Promise<boolean> => {
    const rule = `${protocol}:${address}:${hostPort}-:${guestPort}`;
    const answer = await options
      .qmp()
      .execute('human-monitor-command', { 'command-line': `hostfwd_add ${netdev} ${rule}` });
    if (answer.trim() !== '') return false;
    if (protocol === 'tcp') open.set(guestPort, hostPort);
    else openUdp.add(guestPort);
    return true;
  };

  const load = async (): Promise<ReturnType<typeof parseUsernet>> => {
    const text = await options.qmp().execute('human-monitor-command', { 'command-line': 'info usernet' });
    const rules = parseUsernet(text).filter(({ host }) => host === address);
    open.clear();
    openUdp.clear();
    for (const { protocol, guestPort, hostPort } of rules) {
      if (protocol === 'tcp') open.set(guestPort, hostPort);
      else openUdp.add(guestPort);
    }
    return rules;
  };

  return {
    async load() {
      await load();
    },
    async removeAll() {
      for (const { protocol, hostPort } of await load())
        await options.qmp().execute('human-monitor-command', {
          'command-line': `hostfwd_remove ${netdev} ${protocol}:${address}:${hostPort}`,
        });
      open.clear();
      openUdp.clear();
    },
    async addAll(ports) {
      const problems: ForwardProblem[] = [];
      for (const port of ports) {
        if (port.protocol === 'tcp' ? open.get(port.port) === port.port : openUdp.has(port.port)) continue;
        if (await add(port.protocol, port.port, port.port)) continue;
        const verdict = await probeBind(port.protocol, address, port.port);
        const why = verdict === 'free' ? 'other' : verdict;
        const name = `${port.protocol.toUpperCase()} port ${port.port} of ${address}`;
        const reason =
          why === 'in-use'
            ? 'is taken by another program'
            : why === 'denied'
              ? 'needs a privilege (ports below net.ipv4.ip_unprivileged_port_start); use virtctl port-forward, or lower that setting'
              : 'could not be bound';
        problems.push({ port, why, message: `${name} ${reason}; it is not forwarded` });
      }
      return problems;
    },
    async endpoint(guestPort) {
      const known = open.get(guestPort);
      if (known !== undefined) return { host: address, port: known };
      if (extra >= MAX_EXTRA) throw new Error(`more than ${MAX_EXTRA} ports are forwarded to this guest`);
      for (let i = 0; i < EXTRA_TRIES; i++) {
        const hostPort = await freePort(address);
        if (!(await add('tcp', hostPort, guestPort))) continue;
        extra++;
        return { host: address, port: hostPort };
      }
      throw new Error(`port ${guestPort} could not be forwarded to the guest`);
    },
  };
}
