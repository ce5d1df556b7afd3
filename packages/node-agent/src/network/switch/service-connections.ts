/**
 * Connections of one guest to Services: to which Pod each goes, so that its packets go on there and the answers come back
 * under the Service's address. Pure but for the clock that it is given.
 */
import { TCP } from '../ipv4-frame.ts';
import type { NetworkService, ServiceTarget } from './switch-state.ts';

/** Of one guest; the one that was silent longest goes when there are too many. */
const MAX_CONNECTIONS = 4096;
/** As long as Linux remembers them (nf_conntrack: datagrams that were answered; half of its 5 days would be no bound). */
const IDLE_MS = { tcp: 3_600_000, udp: 180_000 } as const;

export interface ServiceConnection {
  readonly protocol: number;
  /** The guest's. */
  readonly ownPort: number;
  /** Of the Service. */
  readonly address: number;
  readonly port: number;
  readonly target: { readonly address: number; readonly port: number };
}

export interface ServiceConnections {
  /** The connection of a packet to a Service, if it is known. */
  to(protocol: number, ownPort: number, address: number, port: number): ServiceConnection | undefined;
  /** The connection of a packet from a Pod, if it came by a Service. */
  from(protocol: number, ownPort: number, address: number, port: number): ServiceConnection | undefined;
  add(connection: ServiceConnection): void;
  /** For the node that the guest moves to. */
  list(): ServiceConnection[];
}

const keyOf = (protocol: number, ownPort: number, address: number, port: number): string =>
  `${protocol}/${ownPort}/${address}/${port}`;

/** Makes the table of one guest. */
export function createServiceConnections(now: () => number): ServiceConnections {
  /** In the order of their last use. */
  const outward = new Map<string, { readonly connection: ServiceConnection; at: number }>();
  const inward = new Map<string, string>();
  const forget = (key: string): void => {
    const { connection } = outward.get(key) ?? {};
    outward.delete(key);
    if (!connection) return;
    const { protocol, ownPort, target } = connection;
    inward.delete(keyOf(protocol, ownPort, target.address, target.port));
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
  return {
    to: (protocol, ownPort, address, port) => use(keyOf(protocol, ownPort, address, port)),
    from(protocol, ownPort, address, port) {
      if (inward.size === 0) return undefined;
      const key = inward.get(keyOf(protocol, ownPort, address, port));
      return key === undefined ? undefined : use(key);
    },
    add(connection) {
      const { protocol, ownPort, address, port, target } = connection;
      const key = keyOf(protocol, ownPort, address, port);
      forget(key);
      outward.set(key, { connection, at: now() });
      inward.set(keyOf(protocol, ownPort, target.address, target.port), key);
      if (outward.size > MAX_CONNECTIONS) forget(outward.keys().next().value as string);
    },
    list: () => [...outward.values()].map(({ connection }) => connection),
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
export function chooseTarget(
  service: NetworkService,
  client: { readonly address: string; readonly port: number },
): ServiceTarget | undefined {
  const who = service.sticky ? client.address : `${client.address}:${client.port}`;
  let best: ServiceTarget | undefined;
  let most = -1;
  for (const target of service.targets) {
    const weight = hashOf(`${who}>${target.address}:${target.port}`);
    if (weight <= most) continue;
    most = weight;
    best = target;
  }
  return best;
}
