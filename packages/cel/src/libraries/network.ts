/** IP addresses and networks. */
import { goQuote } from '@coracle/apimachinery/meta/go-text';
import {
  type Address,
  formatAddress,
  isLinkLocalMulticast,
  isLinkLocalUnicast,
  isLoopback,
  isMapped,
  isMulticast,
  isUnspecified,
  parseAddress,
} from '@coracle/apimachinery/meta/ip-address';
import { containsModel, ONE, TRAVERSE_ONLY, TRAVERSE_TWICE } from '../cost-models.ts';
import { type Overload, overload } from '../declarations.ts';
import { defineEquality } from '../equality.ts';
import { fail, isReadable } from '../errors.ts';
import { CelOpaque } from '../values.ts';

const IP = 'net.IP';
const CIDR = 'net.CIDR';

interface Network {
  readonly address: Address;
  readonly prefix: number;
}

type BoxedIp = CelOpaque<Address>;
type BoxedCidr = CelOpaque<Network>;

// Their sizes are bytes: of an address, and of the part of it that a network fixes.
const boxIp = (address: Address): BoxedIp => new CelOpaque(IP, address, width(address) / 8);
const boxCidr = (network: Network): BoxedCidr => new CelOpaque(CIDR, network, Math.ceil(network.prefix / 8));
const sameAddress = (a: Address, b: Address): boolean => a.bits === b.bits && a.family === b.family;

defineEquality(IP, (a, b) => sameAddress(a as Address, b as Address));
defineEquality(CIDR, (a, b) => {
  const [x, y] = [a as Network, b as Network];
  return sameAddress(x.address, y.address) && x.prefix === y.prefix;
});

const isAddress = (text: string): boolean => parseAddress(text) !== undefined;

/** @throws CelEvaluationError with the reason upstream gives */
function ip(text: string): Address {
  const zone = text.indexOf('%');
  const zoned = zone > 0 && zone < text.length - 1 && text.includes(':') && isAddress(text.slice(0, zone));
  if (zoned) fail(`IP address ${goQuote(text)} with zone value is not allowed`);
  const address = parseAddress(text);
  if (address === undefined) {
    return fail(`IP Address ${goQuote(text)} parse error during conversion from string: not an IP address`);
  }
  if (isMapped(address)) fail(`IPv4-mapped IPv6 address ${goQuote(text)} is not allowed`);
  return address;
}

const NO_NETWORK = 'network address parse error during conversion from string: ';

function cidr(text: string): Network {
  const match = /^(.*)\/(0|[1-9][0-9]{0,2})$/s.exec(text);
  const address = match === null ? undefined : parseAddress(match[1]!);
  const prefix = Number(match?.[2]);
  if (address === undefined || prefix > width(address)) {
    return fail(`${NO_NETWORK}${goQuote(text)} is not an address, a slash and a prefix length`);
  }
  if (isMapped(address)) fail(`${NO_NETWORK}IPv4-mapped IPv6 address ${goQuote(text)} is not allowed`);
  return { address, prefix };
}

const width = ({ family }: Address): number => (family === 4 ? 32 : 128);
function mask({ address, prefix }: Network): bigint {
  const free = BigInt(width(address) - prefix);
  return (address.bits >> free) << free;
}

function contains(network: Network, address: Address): boolean {
  if (network.address.family !== address.family) return false;
  return mask(network) === mask({ address, prefix: network.prefix });
}

const containsNetwork = (outer: Network, inner: Network): boolean =>
  inner.prefix >= outer.prefix && contains(outer, inner.address);

// Upstream does not say what is wrong with the address.
const containsText = (network: Network, text: string): boolean =>
  isReadable(ip, text) ? contains(network, ip(text)) : fail('no such overload');

const TESTS: Readonly<Record<string, (address: Address) => boolean>> = {
  isUnspecified,
  isLoopback,
  isLinkLocalMulticast,
  isLinkLocalUnicast,
  isGlobalUnicast: (address) =>
    !(address.family === 4 && address.bits === 0xffff_ffffn) &&
    ![isUnspecified, isLoopback, isMulticast, isLinkLocalUnicast].some((test) => test(address)),
};

const cidrText = ({ address, prefix }: Network): string => `${formatAddress(address)}/${prefix}`;

export const NETWORK: readonly Overload[] = [
  overload('ip', `(string): ${IP}`, (text: string) => boxIp(ip(text)), TRAVERSE_ONLY),
  overload('isIP', '(string): bool', (text: string) => isReadable(ip, text), TRAVERSE_ONLY),
  overload('ip.isCanonical', '(string): bool', (text: string) => formatAddress(ip(text)) === text, TRAVERSE_TWICE),
  overload('family', `${IP}.(): int`, ({ value }: BoxedIp) => value.family, ONE),
  ...Object.entries(TESTS).map(([name, test]) =>
    overload(name, `${IP}.(): bool`, ({ value }: BoxedIp) => test(value), ONE),
  ),
  overload('string', `(${IP}): string`, ({ value }: BoxedIp) => formatAddress(value), ONE),
  overload('cidr', `(string): ${CIDR}`, (text: string) => boxCidr(cidr(text)), TRAVERSE_ONLY),
  overload('isCIDR', '(string): bool', (text: string) => isReadable(cidr, text), TRAVERSE_ONLY),
  overload(
    'containsIP',
    `${CIDR}.(${IP}): bool`,
    (a: BoxedCidr, b: BoxedIp) => contains(a.value, b.value),
    containsModel(false, false),
  ),
  overload(
    'containsIP',
    `${CIDR}.(string): bool`,
    (a: BoxedCidr, b: string) => containsText(a.value, b),
    containsModel(false, true),
  ),
  overload(
    'containsCIDR',
    `${CIDR}.(${CIDR}): bool`,
    (a: BoxedCidr, b: BoxedCidr) => containsNetwork(a.value, b.value),
    containsModel(true, false),
  ),
  overload(
    'containsCIDR',
    `${CIDR}.(string): bool`,
    (a: BoxedCidr, b: string) => containsNetwork(a.value, cidr(b)),
    containsModel(true, true),
  ),
  overload('ip', `${CIDR}.(): ${IP}`, ({ value }: BoxedCidr) => boxIp(value.address), ONE),
  overload(
    'masked',
    `${CIDR}.(): ${CIDR}`,
    ({ value }: BoxedCidr) => boxCidr({ ...value, address: { ...value.address, bits: mask(value) } }),
    ONE,
  ),
  overload('prefixLength', `${CIDR}.(): int`, ({ value }: BoxedCidr) => value.prefix, ONE),
  overload('string', `(${CIDR}): string`, ({ value }: BoxedCidr) => cidrText(value), ONE),
];
