/** Which kind of network an address lies in: what a registry may send a client to depends on it. */
import { BlockList, isIPv4, isIPv6 } from 'node:net';

export type AddressRange = 'public' | 'private' | 'loopback' | 'link-local' | 'reserved';

const RANGES: readonly (readonly [AddressRange, string, number, 'ipv4' | 'ipv6'])[] = [
  ['loopback', '127.0.0.0', 8, 'ipv4'],
  ['loopback', '::1', 128, 'ipv6'],
  ['link-local', '169.254.0.0', 16, 'ipv4'],
  ['link-local', 'fe80::', 10, 'ipv6'],
  ['private', '10.0.0.0', 8, 'ipv4'],
  ['private', '172.16.0.0', 12, 'ipv4'],
  ['private', '192.168.0.0', 16, 'ipv4'],
  // Shared address space of providers (RFC 6598), and unique local addresses (RFC 4193).
  ['private', '100.64.0.0', 10, 'ipv4'],
  ['private', 'fc00::', 7, 'ipv6'],
  // Site-local, long deprecated and still routed by some.
  ['private', 'fec0::', 10, 'ipv6'],
  // What is no host of the Internet (RFC 6890): this network, protocols, documentation, benchmarks, groups, the future.
  ['reserved', '0.0.0.0', 8, 'ipv4'],
  ['reserved', '192.0.0.0', 24, 'ipv4'],
  ['reserved', '192.0.2.0', 24, 'ipv4'],
  ['reserved', '198.18.0.0', 15, 'ipv4'],
  ['reserved', '198.51.100.0', 24, 'ipv4'],
  ['reserved', '203.0.113.0', 24, 'ipv4'],
  ['reserved', '224.0.0.0', 3, 'ipv4'],
  ['reserved', '::', 128, 'ipv6'],
  ['reserved', '2001:db8::', 32, 'ipv6'],
  ['reserved', '100::', 64, 'ipv6'],
  ['reserved', 'ff00::', 8, 'ipv6'],
  // Addresses that carry an IPv4 address for somebody to unpack: NAT64 of one's own, 6to4, Teredo.
  ['reserved', '64:ff9b:1::', 48, 'ipv6'],
  ['reserved', '2002::', 16, 'ipv6'],
  ['reserved', '2001::', 32, 'ipv6'],
];

const LISTS = RANGES.map(([range, network, prefix, family]) => {
  const list = new BlockList();
  list.addSubnet(network, prefix, family);
  return { range, list, family };
});

/** The range of an address in any notation; 'reserved' for text that is none. */
export function addressRange(address: string): AddressRange {
  const text = address.replace(/%.*$/, '');
  if (isIPv4(text)) return rangeIn(text, 'ipv4');
  if (!isIPv6(text)) return 'reserved';
  const inner = carriedIPv4(text);
  return inner === undefined ? rangeIn(text, 'ipv6') : rangeIn(inner, 'ipv4');
}

function rangeIn(text: string, family: 'ipv4' | 'ipv6'): AddressRange {
  return LISTS.find((one) => one.family === family && one.list.check(text, family))?.range ?? 'public';
}

/** The IPv4 address within an IPv4-mapped (::ffff:0:0/96), IPv4-compatible (::/96) or NAT64 (64:ff9b::/96) one. */
function carriedIPv4(text: string): string | undefined {
  // The URL parser writes an address in its one canonical form, in hexadecimal groups.
  const host = URL.parse(`http://[${text}]/`)?.hostname.slice(1, -1);
  const groups = /^(?:::ffff:|64:ff9b::|::)([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(host ?? '');
  if (!groups) return undefined;
  const [high, low] = [Number.parseInt(groups[1]!, 16), Number.parseInt(groups[2]!, 16)];
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}
