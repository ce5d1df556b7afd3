/** ServiceCIDRs and IPAddresses: the ranges that Services get addresses from, and what is taken of them. Pure. */
import { formatAddress, parseAddress } from '../meta/ip-address.ts';
import type { DeepReadonly, KubeObject, UnstructuredObject } from '../meta/object.ts';
import type { IPAddress, ServiceCIDR } from './types.ts';

/** Range of cluster IPs when none is asked for. */
export const DEFAULT_SERVICE_CIDR = '10.96.0.0/16';
/** Who made an IPAddress: the allocator of cluster IPs. */
export const IP_ALLOCATOR = 'ipallocator.k8s.io';
const MANAGED_BY = 'ipaddress.kubernetes.io/managed-by';
const IP_FAMILY = 'ipaddress.kubernetes.io/ip-family';

/** A network: its own address, and how many it has. */
export interface IpRange {
  readonly family: 4 | 6;
  readonly first: bigint;
  readonly size: bigint;
}

/** Undefined when the text is no network. Host bits are cut off. */
export function parseIpRange(cidr: string): IpRange | undefined {
  const match = /^([^/]+)\/(0|[1-9][0-9]{0,2})$/.exec(cidr);
  const address = match && parseAddress(match[1]!);
  if (!address) return undefined;
  const free = (address.family === 4 ? 32 : 128) - Number(match[2]);
  if (free < 0) return undefined;
  const size = 1n << BigInt(free);
  return { family: address.family, first: address.bits - (address.bits % size), size };
}

/** The one way to write the network. */
export const formatIpRange = ({ family, first, size }: IpRange): string =>
  `${formatAddress({ family, bits: first })}/${(family === 4 ? 32 : 128) - (size.toString(2).length - 1)}`;

/** The first address for a Service: that of the `kubernetes` Service. Throws TypeError when the text is no network. */
export function firstServiceIp(cidr: string): string {
  const range = parseIpRange(cidr);
  if (!range) throw new TypeError(`${cidr} is not a network`);
  return formatAddress({ family: range.family, bits: range.first + 1n });
}

/** True for an address that a Service may have: not the network's own, and of IPv4 not the broadcast address. */
export function rangeHolds(range: IpRange, ip: string): boolean {
  const address = parseAddress(ip);
  if (!address || address.family !== range.family) return false;
  const at = address.bits - range.first;
  return at > 0n && at < (range.family === 4 ? range.size - 1n : range.size);
}

/** True when every address of `inner` is one of `outer`. */
export const rangeContains = (outer: IpRange, inner: IpRange): boolean =>
  outer.family === inner.family && inner.first >= outer.first && inner.first + inner.size <= outer.first + outer.size;

/** True when the two have an address in common. */
export const rangesOverlap = (a: IpRange, b: IpRange): boolean => rangeContains(a, b) || rangeContains(b, a);

/** The networks of a ServiceCIDR. */
export const rangesOf = (cidr: DeepReadonly<ServiceCIDR>): IpRange[] =>
  (cidr.spec?.cidrs ?? []).map(parseIpRange).filter((range) => range !== undefined);

/** True while addresses may be given out; one without the condition has no controller and is ready. */
export const isReadyCidr = ({ metadata, status }: DeepReadonly<ServiceCIDR>): boolean =>
  metadata.deletionTimestamp === undefined &&
  (status?.conditions?.find(({ type }) => type === 'Ready')?.status ?? 'True') === 'True';

/** True for an IPAddress that was made together with a Service. */
export const isAllocatedAddress = ({ metadata }: DeepReadonly<KubeObject>): boolean =>
  metadata.labels?.[MANAGED_BY] === IP_ALLOCATOR;

/** The addresses of a Service in use: none of a headless one. */
export function clusterIpsOf(service: DeepReadonly<KubeObject> | undefined): string[] {
  const spec = (service as { spec?: { type?: string; clusterIP?: string; clusterIPs?: readonly string[] } } | undefined)
    ?.spec;
  if (!spec || spec.type === 'ExternalName') return [];
  const ips = spec.clusterIPs?.length ? spec.clusterIPs : [spec.clusterIP ?? ''];
  return ips.filter((ip) => parseAddress(ip) !== undefined);
}

/** The IPAddress of a Service's address. */
export const addressOf = (ip: string, service: { readonly namespace: string; readonly name: string }) =>
  ({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'IPAddress',
    metadata: { name: ip, labels: { [IP_FAMILY]: ip.includes(':') ? 'IPv6' : 'IPv4', [MANAGED_BY]: IP_ALLOCATOR } },
    spec: { parentRef: { resource: 'services', namespace: service.namespace, name: service.name } },
  }) satisfies UnstructuredObject & IPAddress;

/** True when the IPAddress is what `addressOf` makes of this Service and address. */
export function belongsTo(
  address: DeepReadonly<IPAddress>,
  service: { readonly namespace: string; readonly name: string },
): boolean {
  const { group = '', resource, namespace, name } = address.spec?.parentRef ?? {};
  const family = address.metadata.labels?.[IP_FAMILY];
  return (
    isAllocatedAddress(address) &&
    family === (address.metadata.name?.includes(':') ? 'IPv6' : 'IPv4') &&
    group === '' &&
    resource === 'services' &&
    namespace === service.namespace &&
    name === service.name
  );
}

/**
 * True when a ServiceCIDR may go: each of its networks lies in another one, or no address of the allocator is left
 * without one (canDeleteCIDR of pkg/controller/servicecidrs). `all` has the ServiceCIDR itself among them.
 */
export function canDeleteCidr(
  cidr: DeepReadonly<ServiceCIDR>,
  existing: {
    readonly all: readonly DeepReadonly<ServiceCIDR>[];
    readonly addresses: readonly DeepReadonly<KubeObject>[];
  },
): boolean {
  const own = rangesOf(cidr);
  const others = existing.all.filter(({ metadata }) => metadata.name !== cidr.metadata.name).flatMap(rangesOf);
  if (own.every((range) => others.some((other) => rangeContains(other, range)))) return true;
  return !existing.addresses.some((address) => {
    const ip = address.metadata.name ?? '';
    return (
      isAllocatedAddress(address) &&
      own.some((range) => rangeHolds(range, ip)) &&
      !others.some((other) => rangeHolds(other, ip))
    );
  });
}
