/** A guest as its switch sees it. */
import { withLength } from '../frame-stream.ts';
import { numberOf, TCP, UDP } from '../ipv4-frame.ts';
import { createExchanges, type Exchanges } from './packet-policy.ts';
import { createServiceConnections, type ServiceConnections } from './service-connections.ts';
import type { GuestHello, NameResolvers } from './switch-state.ts';

/** Takes whole frames, each with its length; drops what it has no room for. */
export interface Line {
  write(bytes: Uint8Array): void;
}

/** One end of a line: what comes from there. */
export interface LineEnd {
  /** Throws when it is no frame. */
  take(bytes: Uint8Array): void;
  /** The line is gone. */
  close(): void;
}

export interface GuestPort {
  /** On the network of Pods. */
  readonly address: number;
  /** By which the guest knows itself. */
  readonly inside: number;
  readonly dns: number;
  /** Ethernet header of every frame to the guest. */
  readonly header: Uint8Array;
  /** `6/80` for each port that others may reach; undefined: all. */
  readonly open: ReadonlySet<string> | undefined;
  /** Who answers for names; undefined: the cluster, for its own. */
  readonly resolvers: NameResolvers | undefined;
  readonly connections: ServiceConnections;
  readonly exchanges: Exchanges;
  readonly line: Line;
  /** What its filter knows of where it may go. */
  knownEgress: string;
  /** Gives the guest a frame of ours. */
  answer(frame: Uint8Array): void;
}

/** The bytes of a hardware address in text. */
export const macBytes = (mac: string): number[] => mac.split(':').map((part) => Number.parseInt(part, 16));

/** Makes it of what its filter says. */
export function createGuestPort(hello: GuestHello, line: Line, now: () => number): GuestPort {
  const gateway = numberOf(hello.gateway);
  const numbers: Readonly<Record<'tcp' | 'udp', number>> = { tcp: TCP, udp: UDP };
  // The gateway's address on the link is the one that libslirp makes of its IPv4 address.
  const gatewayMac = [0x52, 0x55, ...[24, 16, 8, 0].map((shift) => (gateway >>> shift) & 255)];
  const header = Uint8Array.from([...macBytes(hello.mac), ...gatewayMac, 0x08, 0x00]);
  return {
    address: numberOf(hello.address),
    inside: numberOf(hello.inside),
    dns: numberOf(hello.dns),
    header,
    open: hello.ports && new Set(hello.ports.map(({ protocol, port }) => `${numbers[protocol]}/${port}`)),
    resolvers: hello.resolvers,
    connections: createServiceConnections(now),
    exchanges: createExchanges(now),
    line,
    knownEgress: '',
    answer(frame) {
      frame.set(header);
      line.write(withLength(frame));
    },
  };
}
