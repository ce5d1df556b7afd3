/**
 * Connections of one guest to Services: to which Pod each goes, so that its packets go on there and the answers come back
 * under the Service's address. A guest may use one port of its own for a Service and for a Pod behind it: the Pod sees
 * another port for the later of the two, or it would take both for one connection. Pure but for the clock that it is given.
 */
import { numberOf, TCP, textOf, UDP } from '../ipv4-frame.ts';
import { createClientAffinity } from './client-affinity.ts';
import type { NetworkService, ServiceTarget } from './switch-state.ts';

/** Of one guest, to Services and straight to Pods each; the oldest goes when there are too many. */
const MAX_CONNECTIONS = 4096;
/** Ports that a Pod sees instead of the guest's own: those that Linux gives clients, far more than connections. */
const FIRST_PORT = 32_768;
const PORTS = 28_232;
/** As long as Linux remembers them (nf_conntrack: datagrams that were answered; half of its 5 days would be no bound). */
const IDLE_MS = { tcp: 3_600_000, udp: 180_000 } as const;

export interface ServiceConnection {
  readonly protocol: number;
  /** The guest's. */
  readonly ownPort: number;
  /** Of the Service; of the Pod itself where the guest speaks to that. */
  readonly address: number;
  readonly port: number;
  readonly target: { readonly address: number; readonly port: number };
  /** What the Pod sees instead of the guest's port, where that is taken there. */
  readonly seenPort?: number;
}

/** From a port of the guest to an address. */
export type Flow = Omit<ServiceConnection, 'target' | 'seenPort'>;

export interface ServiceConnections {
  /** The connection of a packet to a Service, if it is known. */
  to(protocol: number, ownPort: number, address: number, port: number): ServiceConnection | undefined;
  /** The connection of a packet straight to a Pod, if the Pod sees another port. `opens`: it may be a new connection. */
  straight(flow: Flow, opens: boolean): ServiceConnection | undefined;
  /** The connection of a packet from a Pod to the port that it sees, if it came by a Service or sees another port. */
  from(protocol: number, seenPort: number, address: number, port: number): ServiceConnection | undefined;
  /** The endpoint that the guest stays with, where the Service asks for that. */
  lastTarget(service: NetworkService): ServiceTarget | undefined;
  /** Returns it with the port that the Pod is to see. */
  add(connection: ServiceConnection): ServiceConnection;
  /** For the node that the guest moves to. */
  list(): ServiceConnection[];
}

const keyOf = (protocol: number, ownPort: number, address: number, port: number): string =>
  `${protocol}/${ownPort}/${address}/${port}`;

const keyOfFlow = ({ protocol, ownPort, address, port }: Flow): string => keyOf(protocol, ownPort, address, port);
const seenPortOf = ({ ownPort, seenPort = ownPort }: ServiceConnection): number => seenPort;
const keyOfService = (protocol: number, address: number, port: number): string => `${protocol}/${address}/${port}`;
const isStraight = ({ address, port, target }: ServiceConnection): boolean =>
  address === target.address && port === target.port;

/** Makes the table of one guest. */
export function createServiceConnections(now: () => number): ServiceConnections {
  /** In the order of their last use. */
  const outward = new Map<string, { readonly connection: ServiceConnection; at: number }>();
  /** By what the Pod sees. */
  const inward = new Map<string, string>();
  /** Straight to Pods, which see the guest's own port: in the order in which they were opened. */
  const straight = new Map<string, ServiceConnection>();
  const affinity = createClientAffinity(now);
  /** Of `outward`, those straight to Pods. */
  let replaced = 0;
  const keyOfSeen = (connection: ServiceConnection, seenPort = seenPortOf(connection)): string =>
    keyOf(connection.protocol, seenPort, connection.target.address, connection.target.port);
  const forget = (key: string): void => {
    const { connection } = outward.get(key) ?? {};
    outward.delete(key);
    if (!connection) return;
    inward.delete(keyOfSeen(connection));
    if (isStraight(connection)) replaced--;
  };
  const use = (key: string): ServiceConnection | undefined => {
    const found = outward.get(key);
    if (!found) return undefined;
    const idle = found.connection.protocol === TCP ? IDLE_MS.tcp : IDLE_MS.udp;
    const at = now();
    if (at - found.at > idle) {
      forget(key);
      return undefined;
    }
    found.at = at;
    outward.delete(key);
    outward.set(key, found);
    return found.connection;
  };
  const withFreePort = (connection: ServiceConnection): ServiceConnection => {
    let seenPort = seenPortOf(connection);
    for (let turn = hashOf(keyOfFlow(connection)); ; turn++) {
      const seen = keyOfSeen(connection, seenPort);
      if (!inward.has(seen) && !straight.has(seen)) break;
      seenPort = FIRST_PORT + (turn % PORTS);
    }
    return seenPort === connection.ownPort ? connection : { ...connection, seenPort };
  };
  const noteStraight = (connection: ServiceConnection): void => {
    const key = keyOfFlow(connection);
    straight.delete(key);
    straight.set(key, connection);
    if (straight.size > MAX_CONNECTIONS) straight.delete(straight.keys().next().value as string);
  };
  const add = (wanted: ServiceConnection): ServiceConnection => {
    const key = keyOfFlow(wanted);
    forget(key);
    const connection = withFreePort(wanted);
    outward.set(key, { connection, at: now() });
    inward.set(keyOfSeen(connection), key);
    const { protocol, address, port, target } = connection;
    if (isStraight(connection)) replaced++;
    else affinity.note(keyOfService(protocol, address, port), { address: textOf(target.address), port: target.port });
    if (outward.size > MAX_CONNECTIONS) forget(outward.keys().next().value as string);
    return connection;
  };
  return {
    to: (protocol, ownPort, address, port) => use(keyOf(protocol, ownPort, address, port)),
    straight(flow, opens) {
      if (replaced === 0 && !opens) return undefined;
      const key = keyOfFlow(flow);
      const known = use(key);
      if (known || !opens) return known;
      const { address, port } = flow;
      const connection = { ...flow, target: { address, port } };
      if (inward.has(key)) return add(connection);
      noteStraight(connection);
      return undefined;
    },
    from(protocol, seenPort, address, port) {
      if (inward.size === 0) return undefined;
      const key = inward.get(keyOf(protocol, seenPort, address, port));
      return key === undefined ? undefined : use(key);
    },
    lastTarget: (service) =>
      affinity.find(
        keyOfService(service.protocol === 'tcp' ? TCP : UDP, numberOf(service.address), service.port),
        service,
      ),
    add(connection) {
      if (!isStraight(connection) || connection.seenPort !== undefined) return add(connection);
      noteStraight(connection);
      return connection;
    },
    list: () => [...straight.values(), ...[...outward.values()].map(({ connection }) => connection)],
  };
}

/** FNV-1a, with its bits mixed once more: names that differ in one letter shall lie far apart. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/**
 * Which endpoint of a Service a connection goes to: the same on every node, so that one whose guest has moved goes on, and
 * the same for most when endpoints come and go (rendezvous hashing). Undefined where none is ready.
 */
export function chooseTarget<T extends ServiceTarget>(
  { targets, affinitySeconds }: { readonly targets: readonly T[]; readonly affinitySeconds?: number },
  address: string,
  port?: number,
): T | undefined {
  const who = affinitySeconds !== undefined ? address : `${address}:${port}`;
  let best: T | undefined;
  let most = -1;
  for (const target of targets) {
    const weight = hashOf(`${who}>${target.address}:${target.port}`);
    if (weight <= most) continue;
    most = weight;
    best = target;
  }
  return best;
}
