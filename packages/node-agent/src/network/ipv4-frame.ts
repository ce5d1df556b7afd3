/** Ethernet frames that hold IPv4: what stands in them, and how it is changed in place with its checksums. Pure. */

export const ETHERNET = 14;
export const ARP = 0x0806;
export const IPV4 = 0x0800;
export const ICMP = 1;
export const TCP = 6;
export const UDP = 17;
/** FIN, SYN, RST, ACK and URG: a segment that has SYN alone of them opens a connection. */
const OPENING_FLAGS = 0x37;
const SYN = 0x02;
/** ICMP messages that quote the packet they are about: RFC 792. */
const ICMP_ERRORS: ReadonlySet<number> = new Set([3, 4, 5, 11, 12]);
const ICMP_HEADER = 8;

/** `10.0.2.2` as a number. */
export const numberOf = (address: string): number =>
  address.split('.').reduce((sum, octet) => ((sum << 8) | Number(octet)) >>> 0, 0);

/** A number as `10.0.2.2`. */
export const textOf = (address: number): string => [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join('.');

export const u16 = (bytes: Uint8Array, at: number): number => ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
export const u32 = (bytes: Uint8Array, at: number): number => ((u16(bytes, at) << 16) | u16(bytes, at + 2)) >>> 0;

export function put16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 8;
  bytes[at + 1] = value & 255;
}

export function put32(bytes: Uint8Array, at: number, value: number): void {
  put16(bytes, at, value >>> 16);
  put16(bytes, at + 2, value & 0xffff);
}

export interface Ipv4Packet {
  readonly protocol: number;
  readonly source: number;
  readonly destination: number;
  /** A part of a packet: more follow, or some went before. */
  readonly isPart: boolean;
  /** The first part, or a whole packet: it has the header of its protocol. */
  readonly isFirst: boolean;
  /** Where in the frame the header of the protocol begins. */
  readonly payload: number;
  /** Where in the frame the packet ends; what is behind it is padding. */
  readonly end: number;
}

/** What an IPv4 frame holds; undefined when it is none, or is cut off. */
export function ipv4Of(frame: Uint8Array): Ipv4Packet | undefined {
  if (frame.length < ETHERNET + 20 || u16(frame, 12) !== IPV4) return undefined;
  const first = frame[ETHERNET] ?? 0;
  const header = (first & 15) * 4;
  if (first >> 4 !== 4 || header < 20) return undefined;
  const part = u16(frame, ETHERNET + 6);
  return {
    protocol: frame[ETHERNET + 9] ?? 0,
    source: u32(frame, ETHERNET + 12),
    destination: u32(frame, ETHERNET + 16),
    isPart: (part & 0x3fff) !== 0,
    isFirst: (part & 0x1fff) === 0,
    payload: ETHERNET + header,
    end: Math.min(frame.length, ETHERNET + u16(frame, ETHERNET + 2)),
  };
}

/** True when a TCP segment asks for a connection. */
export const opensConnection = (frame: Uint8Array, { payload }: Ipv4Packet): boolean =>
  ((frame[payload + 13] ?? 0) & OPENING_FLAGS) === SYN;

/** The ports of a TCP or UDP packet that has its header; undefined for everything else. */
export function portsOf(
  frame: Uint8Array,
  packet: Ipv4Packet,
): { readonly source: number; readonly destination: number } | undefined {
  const { protocol, payload, isFirst, end } = packet;
  if (!isFirst || (protocol !== TCP && protocol !== UDP) || end < payload + (protocol === TCP ? 20 : 8))
    return undefined;
  return { source: u16(frame, payload), destination: u16(frame, payload + 2) };
}

/** The sum of a run of bytes as the checksum of IPv4, ICMP, UDP and TCP has it (RFC 1071), over `start`. */
export function checksum(bytes: Uint8Array, from: number, to: number, start = 0): number {
  let sum = start;
  for (let at = from; at < to - 1; at += 2) sum += u16(bytes, at);
  if ((to - from) % 2 === 1) sum += (bytes[to - 1] ?? 0) << 8;
  while (sum > 0xffff) sum = (sum & 0xffff) + Math.floor(sum / 0x10000);
  return ~sum & 0xffff;
}

/** Makes the checksum at `at` fit when 16 of the bits it is over change (RFC 1624). */
function adjust(bytes: Uint8Array, at: number, before: number, after: number): void {
  let sum = (~u16(bytes, at) & 0xffff) + (~before & 0xffff) + after;
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  put16(bytes, at, ~sum & 0xffff);
}

/** Where the checksum of the protocol is that is over the addresses too; undefined where there is none. */
function pseudoSumAt(frame: Uint8Array, packet: Ipv4Packet): number | undefined {
  const { protocol, payload, isFirst, end } = packet;
  if (!isFirst) return undefined;
  if (protocol === TCP && end >= payload + 20) return payload + 16;
  // Zero: the sender made none.
  return protocol === UDP && end >= payload + 8 && u16(frame, payload + 6) !== 0 ? payload + 6 : undefined;
}

function change32(frame: Uint8Array, at: number, value: number, sums: readonly number[]): void {
  for (const sum of sums) {
    adjust(frame, sum, u16(frame, at), value >>> 16);
    adjust(frame, sum, u16(frame, at + 2), value & 0xffff);
  }
  put32(frame, at, value);
}

const notZero = (frame: Uint8Array, { protocol }: Ipv4Packet, at: number | undefined): void => {
  // A sum that comes out as zero is sent as its other form (RFC 768).
  if (protocol === UDP && at !== undefined && u16(frame, at) === 0) put16(frame, at, 0xffff);
};

/**
 * Gives a packet another source or destination, and another port on that side where `port` is given. Of an ICMP error the
 * quoted packet, which went the other way, is changed as well where it names the address of before.
 */
export function translate(
  frame: Uint8Array,
  packet: Ipv4Packet,
  side: 'source' | 'destination',
  to: { readonly address: number; readonly port?: number },
): void {
  const sum = pseudoSumAt(frame, packet);
  const at = ETHERNET + (side === 'source' ? 12 : 16);
  const before = u32(frame, at);
  change32(frame, at, to.address, [ETHERNET + 10, ...(sum === undefined ? [] : [sum])]);
  if (to.port !== undefined) {
    const portAt = packet.payload + (side === 'source' ? 0 : 2);
    if (sum !== undefined) adjust(frame, sum, u16(frame, portAt), to.port);
    put16(frame, portAt, to.port);
  }
  notZero(frame, packet, sum);
  if (packet.protocol !== ICMP || !packet.isFirst || !ICMP_ERRORS.has(frame[packet.payload] ?? 0)) return;
  const quoted = packet.payload + ICMP_HEADER;
  if (packet.end < quoted + 20) return;
  const quotedAt = quoted + (side === 'source' ? 16 : 12);
  // The checksum of the quoted header takes the change in, so that the sum over both, ICMP's, stays as it is.
  if (u32(frame, quotedAt) === before) change32(frame, quotedAt, to.address, [quoted + 10]);
}

/** Takes one from the packet's time to live; false when it has none left. */
export function countHop(frame: Uint8Array): boolean {
  const at = ETHERNET + 8;
  const left = frame[at] ?? 0;
  if (left <= 1) return false;
  adjust(frame, ETHERNET + 10, u16(frame, at), u16(frame, at) - 0x100);
  frame[at] = left - 1;
  return true;
}

export interface NewPacket {
  readonly protocol: number;
  readonly source: number;
  readonly destination: number;
  /** Header of the protocol and what is behind it; its checksum is filled in. */
  readonly payload: Uint8Array;
}

const CHECKSUM_AT: Readonly<Record<number, number>> = { [ICMP]: 2, [TCP]: 16, [UDP]: 6 };
const FIRST_TTL = 64;

/** A frame that holds a packet of ours; its Ethernet addresses are left open. */
export function makeFrame({ protocol, source, destination, payload }: NewPacket): Uint8Array {
  const frame = new Uint8Array(ETHERNET + 20 + payload.length);
  put16(frame, 12, IPV4);
  frame[ETHERNET] = 0x45;
  put16(frame, ETHERNET + 2, 20 + payload.length);
  // Not to be cut into parts.
  put16(frame, ETHERNET + 6, 0x4000);
  frame[ETHERNET + 8] = FIRST_TTL;
  frame[ETHERNET + 9] = protocol;
  put32(frame, ETHERNET + 12, source);
  put32(frame, ETHERNET + 16, destination);
  put16(frame, ETHERNET + 10, checksum(frame, ETHERNET, ETHERNET + 20));
  const at = ETHERNET + 20;
  frame.set(payload, at);
  const sumAt = CHECKSUM_AT[protocol];
  if (sumAt === undefined) return frame;
  put16(frame, at + sumAt, 0);
  const pseudo =
    protocol === ICMP
      ? 0
      : (source >>> 16) + (source & 0xffff) + (destination >>> 16) + (destination & 0xffff) + protocol + payload.length;
  const sum = checksum(frame, at, frame.length, pseudo);
  put16(frame, at + sumAt, protocol === UDP && sum === 0 ? 0xffff : sum);
  return frame;
}
