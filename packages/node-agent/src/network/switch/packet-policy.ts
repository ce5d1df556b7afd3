/**
 * What NetworkPolicies let pass. A connection by TCP is decided on by its first segment, as the packet filter does it; of other
 * protocols it is remembered who was spoken to, so that the answer may come. Pure but for the clock that it is given.
 */
import { ICMP, type Ipv4Packet, numberOf, opensConnection, type portsOf, TCP, UDP } from '../ipv4-frame.ts';
import type { PassRule } from './switch-state.ts';

/** Exchanges of one guest; the one that was silent longest goes when there are too many. */
const MAX_EXCHANGES = 4096;
const REMEMBERED_MS = 180_000;
/** Destination unreachable, time exceeded, parameter problem: they belong to what somebody else sent. */
const ICMP_ERRORS: ReadonlySet<number> = new Set([3, 11, 12]);
const NUMBERS: Readonly<Record<'tcp' | 'udp' | 'sctp', number>> = { tcp: TCP, udp: UDP, sctp: 132 };

/** A rule as packets are held to. */
export interface PacketRuleSet {
  /** True when one of the rules lets `protocol` pass to or from `address`, to `port` of whoever is spoken to. */
  allows(address: number, protocol: number, port: number | undefined): boolean;
}

interface Block {
  readonly base: number;
  readonly mask: number;
}

function blockOf(cidr: string): Block | undefined {
  const [, address, bits] = /^(\d+\.\d+\.\d+\.\d+)\/(\d+)$/.exec(cidr) ?? [];
  if (address === undefined || bits === undefined) return undefined;
  const mask = bits === '0' ? 0 : (0xffffffff << (32 - Number(bits))) >>> 0;
  return { base: (numberOf(address) & mask) >>> 0, mask };
}

const isIn = ({ base, mask }: Block, address: number): boolean => (address & mask) >>> 0 === base;

function prepare({ addresses = [], blocks = [], anybody = false, ports }: PassRule) {
  const known = new Set(addresses.map(numberOf));
  const ranges = blocks.flatMap(({ cidr, except }) => {
    const block = blockOf(cidr);
    return block ? [{ block, except: except.flatMap((one) => blockOf(one) ?? []) }] : [];
  });
  return (address: number, protocol: number, port: number | undefined): boolean =>
    (anybody ||
      known.has(address) ||
      ranges.some(({ block, except }) => isIn(block, address) && !except.some((one) => isIn(one, address)))) &&
    (ports === undefined ||
      ports.some(
        (one) => NUMBERS[one.protocol] === protocol && port !== undefined && port >= one.from && port <= one.to,
      ));
}

/** Prepares rules; none lets nothing pass. */
export function ruleSet(rules: readonly PassRule[]): PacketRuleSet {
  const prepared = rules.map(prepare);
  return { allows: (address, protocol, port) => prepared.some((rule) => rule(address, protocol, port)) };
}

/** True for an ICMP error, which is let pass: it says what became of a packet that went the other way. */
export const isIcmpError = (frame: Uint8Array, { protocol, payload, isFirst }: Ipv4Packet): boolean =>
  protocol === ICMP && isFirst && ICMP_ERRORS.has(frame[payload] ?? 0);

/** True for what begins no exchange of its own: a segment of an open connection, a later part, an error. */
export const isContinued = (frame: Uint8Array, packet: Ipv4Packet): boolean =>
  !packet.isFirst || (packet.protocol === TCP && !opensConnection(frame, packet)) || isIcmpError(frame, packet);

export interface Exchanges {
  /** A packet passed between the guest and `address`. */
  saw(packet: Ipv4Packet, ports: ReturnType<typeof portsOf>, address: number, way: 'in' | 'out'): void;
  /** True when it answers one that passed the other way. */
  answers(packet: Ipv4Packet, ports: ReturnType<typeof portsOf>, address: number, way: 'in' | 'out'): boolean;
}

/** Makes the memory of one guest, for packets that are no TCP. */
export function createExchanges(now: () => number): Exchanges {
  const seen = new Map<string, number>();
  const keyOf = (
    { protocol }: Ipv4Packet,
    ports: ReturnType<typeof portsOf>,
    address: number,
    way: 'in' | 'out',
    began: 'in' | 'out',
  ): string => {
    const [own, other] = way === 'out' ? [ports?.source, ports?.destination] : [ports?.destination, ports?.source];
    return `${began}/${protocol}/${address}/${own}/${other}`;
  };
  return {
    saw(packet, ports, address, way) {
      const key = keyOf(packet, ports, address, way, way);
      seen.delete(key);
      seen.set(key, now());
      if (seen.size > MAX_EXCHANGES) seen.delete(seen.keys().next().value as string);
    },
    answers(packet, ports, address, way) {
      const at = seen.get(keyOf(packet, ports, address, way, way === 'in' ? 'out' : 'in'));
      return at !== undefined && now() - at < REMEMBERED_MS;
    },
  };
}
