/** Addresses and networks that may be written in one way only: IsValidIP and IsValidCIDR of apimachinery's validation. */
import {
  formatAddress,
  isLinkLocalMulticast,
  isLinkLocalUnicast,
  isLoopback,
  isMapped,
  isUnspecified,
  parseAddress,
} from '@coracle/apimachinery/meta/ip-address';
import { formatIpRange, parseIpRange } from '@coracle/apimachinery/types/service-cidrs';

export const IP_RULE = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
export const CIDR_RULE = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';

export const DNS_NOT_IP = 'must be a DNS name, not an IP address';

/** True for the text of an address of either version. */
export const isIp = (text: string): boolean => parseAddress(text) !== undefined;

/** What is wrong with the text of an address; undefined when nothing is. */
export function addressProblem(text: string): string | undefined {
  const address = parseAddress(text);
  return legacyAddressProblem(text) ?? (address && differs(text, formatAddress(address)));
}

/** What is wrong with the text of a network; undefined when nothing is. */
export function networkProblem(text: string): string | undefined {
  const range = parseIpRange(text);
  return legacyNetworkProblem(text) ?? (range && differs(text, formatIpRange(range)));
}

/** The same of a field that older releases were laxer about: it need not be in canonical form, but mean one thing. */
export function legacyAddressProblem(text: string): string | undefined {
  const address = parseAddress(text);
  if (!address) return isSloppyIpv4(text) ? 'must not have leading 0s' : IP_RULE;
  return isMapped(address) ? 'must not be an IPv4-mapped IPv6 address' : undefined;
}

/** The same of a field that older releases were laxer about: it need not be in canonical form, but mean one thing. */
export function legacyNetworkProblem(text: string): string | undefined {
  const [ip = '', bits = '', ...more] = text.split('/');
  const address = parseAddress(ip);
  const width = ip.includes(':') ? 128 : 32;
  if (more.length > 0 || !(address || isSloppyIpv4(ip)) || !/^[0-9]+$/.test(bits) || Number(bits) > width) {
    return CIDR_RULE;
  }
  const range = parseIpRange(text);
  if (!address || !range) return 'must not have leading 0s in IP or prefix length';
  if (isMapped(address)) return 'must not have an IPv4-mapped IPv6 address';
  return range.first === address.bits ? undefined : 'must not have bits set beyond the prefix length';
}

const differs = (text: string, canonical: string): string | undefined =>
  text === canonical ? undefined : `must be in canonical form (${JSON.stringify(canonical)})`;

/** With zeros in front, which older releases took. */
const isSloppyIpv4 = (text: string): boolean =>
  /^[0-9]+(\.[0-9]+){3}$/.test(text) && text.split('.').every((part) => Number(part) <= 255);

/** What is wrong with an address as one of somebody: it is none, or one of the link or, where it is asked, of the host. */
export function specialAddressProblem(ip: string, { loopback }: { readonly loopback: boolean }): string | undefined {
  const address = parseAddress(ip);
  if (address === undefined) return undefined;
  if (isUnspecified(address)) return `may not be unspecified (${ip})`;
  if (loopback && isLoopback(address)) return 'may not be in the loopback range (127.0.0.0/8, ::1/128)';
  if (isLinkLocalUnicast(address)) return 'may not be in the link-local range (169.254.0.0/16, fe80::/10)';
  if (!isLinkLocalMulticast(address)) return undefined;
  return 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)';
}
