/**
 * Port forwarding into one guest, over QMP. Rules live in QEMU, so they survive a restart of the agent; `load` reads
 * them back. Each port of the guest is at a high port of the VM's address (`usualHostPort`); under its own number it is
 * only where that is asked for, because what listens on one address of the host keeps the number from everybody who wants
 * it on all addresses.
 */
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import { type AskedPort, type PublishedPort, usualHostPort } from '@coracle/kubevirt/rules/machine/host-ports';
import type { ForwardedPort } from '@coracle/kubevirt/rules/machine/machine-plan';
import type { QmpConnection } from '../qmp/qmp-connection.ts';

export type GuestPort = Pick<ForwardedPort, 'protocol' | 'port'>;

interface ForwardProblem {
  /** False for a port that nobody named: failing to have it is no news. */
  readonly declared: boolean;
  readonly why: 'in-use' | 'denied' | 'other';
  /** A sentence for an event. */
  readonly message: string;
}

/** Where ports are that a user wants on this host by a number of their own choice. */
const LOOPBACK = '127.0.0.1';

/** Ports asked for through `portforward` that one guest may have open beside those of its spec. */
const MAX_EXTRA = 256;

/** A rule of `info usernet`. */
interface ForwardRule {
  readonly protocol: 'tcp' | 'udp';
  readonly host: string;
  readonly hostPort: number;
  readonly guestPort: number;
}

/** Rules of `info usernet`: protocol, host address, host port, guest port. */
export function parseUsernet(text: string): ForwardRule[] {
  const lines = text.matchAll(/^\s*(TCP|UDP)\[HOST_FORWARD\]\s+\d+\s+(\S+)\s+(\d+)\s+\S+\s+(\d+)/gm);
  return [...lines].map(([, protocol, host = '', hostPort, guestPort]) => ({
    protocol: protocol === 'UDP' ? 'udp' : 'tcp',
    host,
    hostPort: Number(hostPort),
    guestPort: Number(guestPort),
  }));
}

/** The states of TCP connections that came in for one port of the guest, in `info usernet`: the address is where they were dialled. */
export const parseStates = (text: string, address: string, guestPort: number): string[] =>
  [...text.matchAll(/^\s*TCP\[(\w+)\]\s+\d+\s+(\S+)\s+\d+\s+\S+\s+(\d+)/gm)]
    .filter(([, state, host, port]) => state !== 'HOST_FORWARD' && host === address && Number(port) === guestPort)
    .map(([, state = '']) => state);

const nameOf = ({ protocol, port }: GuestPort): string => `${protocol}/${port}`;
const isOnLoopback = ({ host }: ForwardRule): boolean => host === LOOPBACK;
const isByNumber = (rule: ForwardRule): boolean =>
  !isOnLoopback(rule) && rule.hostPort === rule.guestPort && rule.hostPort !== usualHostPort(rule.guestPort);
/** True for the rule that gives the port where it is asked for. */
const fulfils = (rule: ForwardRule, { protocol, port, hostPort }: AskedPort): boolean =>
  rule.protocol === protocol &&
  rule.guestPort === port &&
  (hostPort === undefined ? isByNumber(rule) : isOnLoopback(rule) && rule.hostPort === hostPort);

/** Makes the forwarder of one interface (`netdev`) at the VM's loopback address. */
export function createForwarder({
  qmp,
  netdev,
  address,
}: {
  readonly qmp: () => QmpConnection;
  readonly netdev: string;
  readonly address: string;
}) {
  let rules: readonly ForwardRule[] = [];
  let extra = 0;

  const order = (line: string): Promise<string> => qmp().execute('human-monitor-command', { 'command-line': line });
  /** Reads the rules QEMU has. */
  const load = async (): Promise<void> => {
    rules = parseUsernet(await order('info usernet')).filter(({ host }) => host === address || host === LOOPBACK);
  };
  /** True when QEMU took the rule; it says nothing then, and a sentence otherwise. */
  const add = async ({ protocol, port }: GuestPort, hostPort: number, host = address): Promise<boolean> =>
    (await order(`hostfwd_add ${netdev} ${protocol}:${host}:${hostPort}-:${port}`)).trim() === '';
  const remove = ({ protocol, host, hostPort }: ForwardRule): Promise<string> =>
    order(`hostfwd_remove ${netdev} ${protocol}:${host}:${hostPort}`);
  const rulesOf = ({ protocol, port }: GuestPort): ForwardRule[] =>
    rules.filter((rule) => !isOnLoopback(rule) && rule.protocol === protocol && rule.guestPort === port);
  const highRule = (port: GuestPort): ForwardRule | undefined => rulesOf(port).find((rule) => !isByNumber(rule));
  /** Port 0 lets the kernel choose. */
  const addHigh = async (port: GuestPort): Promise<boolean> =>
    (await add(port, usualHostPort(port.port))) || (await add(port, 0));

  return {
    load,
    /** Takes every rule away, so that another QEMU of this host can have the ports. */
    async removeAll(): Promise<void> {
      await load();
      for (const rule of rules) await remove(rule);
      rules = [];
    },
    /**
     * Forwards the ports, and those of `asked` where their user wants them too, under their own number or on 127.0.0.1; no
     * other port is there. Those that are forwarded stay. Returns those that could not be.
     */
    async forward(ports: readonly ForwardedPort[], asked: readonly AskedPort[]): Promise<ForwardProblem[]> {
      const problems: ForwardProblem[] = [];
      let changed = false;
      const declared = new Map(ports.map((port) => [nameOf(port), port.declared]));
      for (const port of new Map([...asked, ...ports].map((one) => [nameOf(one), one])).values()) {
        if (highRule(port)) continue;
        changed = true;
        if (await addHigh(port)) continue;
        const name = `${port.protocol.toUpperCase()} port ${port.port} of the guest`;
        const message = `${name} could not be forwarded: ${address} has no port for it`;
        problems.push({ declared: declared.get(nameOf(port)) ?? true, why: 'other', message });
      }
      for (const rule of rules.filter((one) => isByNumber(one) || isOnLoopback(one))) {
        if (asked.some((port) => fulfils(rule, port))) continue;
        await remove(rule);
        changed = true;
      }
      for (const port of asked) {
        if (rules.some((rule) => fulfils(rule, port))) continue;
        changed = true;
        const { hostPort = port.port } = port;
        const host = port.hostPort === undefined ? address : LOOPBACK;
        if (!(await add(port, hostPort, host))) problems.push(await problemOf(port, { host, hostPort }));
      }
      if (changed) await load();
      return problems;
    },
    /** Ports that are forwarded under their own number. */
    byNumber: (): readonly GuestPort[] =>
      rules.filter(isByNumber).map(({ protocol, guestPort }) => ({ protocol, port: guestPort })),
    /** Where each forwarded port is: TCP before UDP, by number. */
    published: (): readonly PublishedPort[] =>
      rules
        .map(({ protocol, host, hostPort, guestPort }) => ({
          containerPort: guestPort,
          protocol: protocol === 'tcp' ? ('TCP' as const) : ('UDP' as const),
          hostIP: host,
          hostPort,
        }))
        .sort(
          (a, b) =>
            a.protocol.localeCompare(b.protocol) || a.containerPort - b.containerPort || a.hostPort - b.hostPort,
        ),
    /** How far each connection to a TCP port of the guest has come with it: `SYN_SENT`, `ESTABLISHED`. */
    states: async (guestPort: number): Promise<readonly string[]> =>
      parseStates(await order('info usernet'), address, guestPort),
    /** Where a TCP port of the guest can be dialled; forwards it first when it is not yet. Throws when that fails. */
    async endpoint(guestPort: number): Promise<{ readonly host: string; readonly port: number }> {
      const port: GuestPort = { protocol: 'tcp', port: guestPort };
      const known = highRule(port) ?? rulesOf(port)[0];
      if (known) return { host: address, port: known.hostPort };
      if (extra >= MAX_EXTRA) throw new Error(`more than ${MAX_EXTRA} ports are forwarded to this guest`);
      if (await addHigh(port)) await load();
      const made = highRule(port);
      if (!made) throw new Error(`port ${guestPort} could not be forwarded to the guest`);
      extra++;
      return { host: address, port: made.hostPort };
    },
  };
}

export type Forwarder = ReturnType<typeof createForwarder>;

/** Why a port could not be had where its user wants it. */
async function problemOf(
  port: GuestPort,
  { host, hostPort }: { readonly host: string; readonly hostPort: number },
): Promise<ForwardProblem> {
  const result = await probeBind(port.protocol, host, hostPort);
  const why = result === 'free' ? 'other' : result;
  const name = `${port.protocol.toUpperCase()} port ${hostPort} of ${host}`;
  const reason =
    why === 'in-use'
      ? 'is taken by another program'
      : why === 'denied'
        ? 'needs a privilege (ports below net.ipv4.ip_unprivileged_port_start); use virtctl port-forward, or lower that setting'
        : 'could not be bound';
  return { declared: true, why, message: `${name} ${reason}; it is not forwarded` };
}

type BindResult = 'free' | 'in-use' | 'denied' | 'other';

const resultOf = (error: NodeJS.ErrnoException): BindResult =>
  error.code === 'EADDRINUSE' ? 'in-use' : error.code === 'EACCES' || error.code === 'EPERM' ? 'denied' : 'other';

/** Whether a port can be bound, and if not, why: QEMU only says that it could not. Binds and lets go at once. */
export function probeBind(protocol: 'tcp' | 'udp', address: string, port: number): Promise<BindResult> {
  return new Promise((resolve) => {
    if (protocol === 'udp') {
      const socket = createSocket('udp4');
      socket.once('error', (error) => {
        socket.close();
        resolve(resultOf(error));
      });
      socket.bind({ address, port, exclusive: true }, () => socket.close(() => resolve('free')));
      return;
    }
    const server = createServer();
    server.once('error', (error) => resolve(resultOf(error)));
    server.listen({ host: address, port, exclusive: true }, () => server.close(() => resolve('free')));
  });
}
