/** Text and bits of IP addresses, as Go's net/netip reads and prints them. */

export interface Address {
  readonly family: 4 | 6;
  readonly bits: bigint;
}

/** Of eight groups, the last two as a dotted quad. */
const LONGEST_TEXT = 45;

/** Undefined when the text is no address. Zones are not accepted. */
export function parseAddress(text: string): Address | undefined {
  if (text.length > LONGEST_TEXT) return undefined;
  return text.includes(':') ? parseV6(text) : parseV4(text);
}

/** True for an IPv4 address that is written as one of IPv6 (`::ffff:1.2.3.4`). */
export const isMapped = ({ family, bits }: Address): boolean => family === 6 && bits >> 32n === 0xffffn;

type Prefix = readonly [bits: bigint, length: number];

function startsWith({ family, bits }: Address, four: Prefix, six: Prefix): boolean {
  const [prefix, length] = family === 4 ? four : six;
  return bits >> BigInt((family === 4 ? 32 : 128) - length) === prefix;
}

/** Addresses that are nobody's of their own, as Go's net/netip sees them. */
export const isUnspecified = ({ bits }: Address): boolean => bits === 0n;
export const isLoopback = (address: Address): boolean => startsWith(address, [127n, 8], [1n, 128]);
export const isLinkLocalUnicast = (address: Address): boolean =>
  startsWith(address, [0xa9fen, 16], [0xfe80n >> 6n, 10]);
export const isMulticast = (address: Address): boolean => startsWith(address, [0xen, 4], [0xffn, 8]);
/** Whatever flags those of IPv6 have. */
export const isLinkLocalMulticast = ({ family, bits }: Address): boolean =>
  family === 4 ? bits >> 8n === 0xe00000n : ((bits >> 112n) & 0xff0fn) === 0xff02n;

function parseV4(text: string): Address | undefined {
  const match = /^(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})$/.exec(text);
  if (match === null) return undefined;
  const parts = match.slice(1).map(Number);
  if (parts.some((part) => part > 255)) return undefined;
  return { family: 4, bits: parts.reduce((bits, part) => (bits << 8n) | BigInt(part), 0n) };
}

function parseV6(text: string): Address | undefined {
  const halves = text.split('::');
  if (halves.length > 2) return undefined;
  const head = groups(halves[0]!, halves.length === 1);
  const tail = halves.length === 2 ? groups(halves[1]!, true) : [];
  if (head === undefined || tail === undefined) return undefined;
  const missing = 8 - head.length - tail.length;
  if (halves.length === 1 ? missing !== 0 : missing < 1) return undefined;
  const all = [...head, ...new Array<number>(Math.max(missing, 0)).fill(0), ...tail];
  return { family: 6, bits: all.reduce((bits, group) => (bits << 16n) | BigInt(group), 0n) };
}

/** The 16-bit groups of a half; the last may be a dotted quad when `last` is set. */
function groups(text: string, last: boolean): number[] | undefined {
  if (text === '') return [];
  const result: number[] = [];
  const parts = text.split(':');
  for (const [i, part] of parts.entries()) {
    if (part.includes('.')) {
      const quad = last && i === parts.length - 1 ? parseV4(part) : undefined;
      if (quad === undefined) return undefined;
      result.push(Number(quad.bits >> 16n), Number(quad.bits & 0xffffn));
    } else {
      if (!/^[0-9a-fA-F]{1,4}$/.test(part)) return undefined;
      result.push(Number.parseInt(part, 16));
    }
  }
  return result;
}

/** The canonical text (RFC 5952). */
export function formatAddress({ family, bits }: Address): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => (bits >> shift) & 0xffn).join('.');
  const all = Array.from({ length: 8 }, (_, i) => Number((bits >> BigInt(112 - 16 * i)) & 0xffffn));
  let best = { start: -1, length: 1 };
  for (let start = 0; start < 8; start++) {
    let length = 0;
    while (start + length < 8 && all[start + length] === 0) length++;
    if (length > best.length) best = { start, length };
  }
  const hex = (part: readonly number[]): string => part.map((group) => group.toString(16)).join(':');
  if (best.start === -1) return hex(all);
  return `${hex(all.slice(0, best.start))}::${hex(all.slice(best.start + best.length))}`;
}
