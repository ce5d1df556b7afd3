/**
 * Cluster IPs and node ports of Services (registry/core/service/storage/alloc.go). Upstream allocates in the registry;
 * here it is the last mutating plug-in, so that it sees what all others have made of the Service.
 */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { formatAddress, parseAddress } from '@coracle/apimachinery/meta/ip-address';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { ApiError, type FieldError, invalid } from '@coracle/apimachinery/meta/status';
import { type IpRange, isReadyCidr, rangeHolds, rangesOf } from '@coracle/apimachinery/types/service-cidrs';
import type { ServiceCIDR } from '@coracle/apimachinery/types/types';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { ObjectStore } from '../cache/object-store.ts';
import type { AdmissionAttributes, AdmissionPlugin } from './plugin.ts';

const SERVICES_PREFIX = '/services';
const RANGES_PREFIX = 'networking.k8s.io/servicecidrs';
const ADDRESSES_PREFIX = 'networking.k8s.io/ipaddresses';
const FIRST_NODE_PORT = 30_000;
const LAST_NODE_PORT = 32_767;
/** What was handed out and is not stored yet stays taken this long; a write that failed gives it back by then. */
const RESERVED_MS = 60_000;

interface ServicePort {
  protocol?: string;
  port?: number;
  nodePort?: number;
}

interface ServiceSpec {
  type?: string;
  clusterIP?: string;
  clusterIPs?: string[];
  ports?: ServicePort[];
  ipFamilies?: string[];
  ipFamilyPolicy?: string;
  externalTrafficPolicy?: string;
  internalTrafficPolicy?: string;
  healthCheckNodePort?: number;
  allocateLoadBalancerNodePorts?: boolean;
  [field: string]: unknown;
}

/** Handed out and perhaps not stored: whoever asked may ask again when the first try was refused. */
interface Reservation {
  readonly until: number;
  readonly owner: string;
}

/** Many may wait for a generated name at once, so they are not one owner. */
const isUnnamed = (owner: string): boolean => owner.endsWith('/');

const specOf = (object: Readonly<UnstructuredObject> | undefined): ServiceSpec | undefined =>
  isJsonObject(object?.['spec']) ? (object['spec'] as ServiceSpec) : undefined;

const wantsIp = (spec: ServiceSpec): boolean => spec.type !== 'ExternalName';
const wantsNodePorts = (spec: ServiceSpec): boolean =>
  spec.type === 'NodePort' || (spec.type === 'LoadBalancer' && spec.allocateLoadBalancerNodePorts !== false);
const wantsHealthPort = (spec: ServiceSpec): boolean =>
  spec.type === 'LoadBalancer' && spec.externalTrafficPolicy === 'Local';

/** The plug-in over this store's Services, the ranges they get addresses from and the addresses that are taken. */
export function serviceAllocation(store: Pick<ObjectStore, 'list' | 'peek'>, clock: Clock): AdmissionPlugin {
  const reserved = new Map<string, Reservation>();
  const isTaken = (ip: string): boolean =>
    store.peek({ prefix: ADDRESSES_PREFIX, namespace: '', name: ip }) !== undefined;
  /** Those of IPv4 that are ready. */
  const ranges = (): readonly IpRange[] =>
    store
      .list(RANGES_PREFIX)
      .items.map(({ object }) => object as ServiceCIDR)
      .filter(isReadyCidr)
      .flatMap(rangesOf)
      .filter(({ family }) => family === 4);

  /** Every address and port in use by Services other than this one. */
  const taken = (own: string): Set<string> => {
    const used = new Set<string>();
    for (const { namespace, name, object } of store.list(SERVICES_PREFIX).items) {
      if (`${namespace}/${name}` === own) continue;
      for (const key of keysOf(specOf(object))) used.add(key);
    }
    const now = clock.monotonic();
    for (const [key, { until, owner }] of reserved) {
      if (until <= now) reserved.delete(key);
      else if (owner !== own || isUnnamed(own)) used.add(key);
    }
    return used;
  };

  return {
    name: 'ServiceAllocation',
    matches: (operation, info, subresource) =>
      operation !== 'CONNECT' && info.resource === 'services' && info.group === '' && subresource === '',
    mutate(attributes) {
      const old = specOf(attributes.oldObject);
      // What is stored is found in the store: once it goes, nothing may hold it any longer.
      for (const key of keysOf(old)) reserved.delete(key);
      const spec = specOf(attributes.object);
      if (!spec) return;
      if (old) carryOver(spec, old);
      if (!wantsIp(spec)) dropInternalPolicy(spec);
      if (old && spec.type !== 'LoadBalancer') forgetBalancer(attributes.object!);
      if (!needs(spec, old)) return;
      const own = `${attributes.namespace}/${attributes.object!.metadata.name ?? ''}`;
      const before = new Set(keysOf(old));
      const given = new Allocation({ used: taken(own), isTaken, before, ranges: ranges(), attributes });
      given.fill(spec);
      if (attributes.dryRun) return;
      const until = clock.monotonic() + RESERVED_MS;
      for (const key of given.handedOut) reserved.set(key, { until, owner: own });
    },
  };
}

/** True when something has to be looked up at all: most updates of a Service change no address. */
function needs(spec: ServiceSpec, old: ServiceSpec | undefined): boolean {
  if (!old) return wantsIp(spec);
  return String(keysOf(spec)) !== String(keysOf(old)) || spec.type !== old.type || lacksPort(spec);
}

const lacksPort = (spec: ServiceSpec): boolean =>
  (wantsNodePorts(spec) && (spec.ports ?? []).some((port) => !port.nodePort)) ||
  (wantsHealthPort(spec) && !spec.healthCheckNodePort);

const portKey = (port: number, protocol = 'TCP'): string => `${protocol} ${port}`;

function keysOf(spec: ServiceSpec | undefined): string[] {
  if (!spec) return [];
  const keys: string[] = [];
  if (spec.clusterIP && spec.clusterIP !== 'None') keys.push(spec.clusterIP);
  for (const { nodePort, protocol } of spec.ports ?? []) if (nodePort) keys.push(portKey(nodePort, protocol));
  if (spec.healthCheckNodePort) keys.push(portKey(spec.healthCheckNodePort));
  return keys;
}

/** An update that leaves allocated values out keeps them; one that changes the type drops what no longer applies. */
function carryOver(spec: ServiceSpec, old: ServiceSpec): void {
  if (wantsIp(spec) && wantsIp(old)) {
    if (!spec.clusterIP && old.clusterIP) spec.clusterIP = old.clusterIP;
    if (!spec.clusterIPs?.length && old.clusterIPs && spec.clusterIP === old.clusterIP) {
      spec.clusterIPs = [...old.clusterIPs];
    }
  } else if (!wantsIp(spec) && wantsIp(old)) {
    dropAddress(spec, old);
  }
  const oldPorts = old.ports ?? [];
  if (wantsNodePorts(spec) && wantsNodePorts(old)) {
    const claimed = new Set((spec.ports ?? []).map((port) => port.nodePort));
    for (const port of spec.ports ?? []) {
      if (port.nodePort) continue;
      const known = oldPorts.find(
        (one) => one.port === port.port && (one.protocol ?? 'TCP') === (port.protocol ?? 'TCP'),
      );
      if (known?.nodePort && !claimed.has(known.nodePort)) port.nodePort = known.nodePort;
    }
  } else if (!wantsNodePorts(spec) && wantsNodePorts(old)) {
    const known = new Set(oldPorts.map((port) => port.nodePort));
    for (const port of spec.ports ?? []) if (known.has(port.nodePort)) delete port.nodePort;
  }
  if (wantsHealthPort(old)) {
    if (wantsHealthPort(spec)) spec.healthCheckNodePort ||= old.healthCheckNodePort ?? 0;
    else if (spec.healthCheckNodePort === old.healthCheckNodePort) delete spec.healthCheckNodePort;
  }
  const external = spec.type === 'NodePort' || spec.type === 'LoadBalancer';
  if (!external && spec.externalTrafficPolicy === old.externalTrafficPolicy && !Array.isArray(spec['externalIPs'])) {
    delete spec.externalTrafficPolicy;
  }
  if (spec.type === 'LoadBalancer' || old.type !== 'LoadBalancer') return;
  delete spec.allocateLoadBalancerNodePorts;
  if (spec['loadBalancerClass'] === old['loadBalancerClass']) delete spec['loadBalancerClass'];
}

/** Upstream stores it and leaves it out of what is read (defaultOnReadInternalTrafficPolicy); what is invalid is refused. */
function dropInternalPolicy(spec: ServiceSpec): void {
  const { internalTrafficPolicy: policy } = spec;
  if (policy === 'Cluster' || policy === 'Local') delete spec.internalTrafficPolicy;
}

/** What a balancer said of a Service that has none any more (dropTypeDependentFields). */
function forgetBalancer(object: UnstructuredObject): void {
  const status = object['status'];
  if (isJsonObject(status) && status['loadBalancer'] !== undefined) object['status'] = { ...status, loadBalancer: {} };
}

/** Of a Service that needs an address no longer: what was filled in and not changed (dropTypeDependentFields). */
function dropAddress(spec: ServiceSpec, old: ServiceSpec): void {
  const isSame = (field: string): boolean => spec[field] === undefined || deepEqual(spec[field], old[field]);
  // Clearing the one means the list as well (normalizeClusterIPs).
  if ((!spec.clusterIP || spec.clusterIP === old.clusterIP) && isSame('clusterIPs')) {
    delete spec.clusterIP;
    delete spec.clusterIPs;
  }
  for (const field of ['ipFamilies', 'ipFamilyPolicy']) if (isSame(field)) delete spec[field];
}

/** One Service's allocation. */
class Allocation {
  readonly handedOut: string[] = [];
  readonly #given;

  constructor(given: {
    readonly used: Set<string>;
    readonly before: ReadonlySet<string>;
    readonly isTaken: (ip: string) => boolean;
    readonly ranges: readonly IpRange[];
    readonly attributes: AdmissionAttributes;
  }) {
    this.#given = given;
  }

  /** Throws ApiError 422 when a value asked for is out of range or taken, 500 when nothing is free. */
  fill(spec: ServiceSpec): void {
    // Without a selector a headless Service may be about addresses of any family: none is allocated.
    const isFree = spec.clusterIP === 'None' && !isJsonObject(spec['selector']);
    if (wantsIp(spec) && !isFree) this.#families(spec);
    if (wantsIp(spec)) this.#ip(spec);
    const ports = spec.ports ?? [];
    // Requested ones first, so that nothing free-handed takes what another port of the same Service asks for.
    const own = new Set<string>();
    for (const [i, { nodePort, protocol }] of ports.entries()) {
      if (nodePort) this.#request(nodePort, { protocol, field: `spec.ports[${i}].nodePort`, own });
    }
    if (spec.healthCheckNodePort) {
      this.#request(spec.healthCheckNodePort, { protocol: 'TCP', field: 'spec.healthCheckNodePort', own });
    }
    if (wantsNodePorts(spec)) {
      for (const port of ports) {
        if (port.nodePort) continue;
        // One number for both protocols of one port: DNS over TCP and UDP is the common case.
        const twin = ports.find((one) => one.nodePort && one.port === port.port && one.protocol !== port.protocol);
        const free = twin && !this.#given.used.has(portKey(twin.nodePort!, port.protocol));
        port.nodePort = free ? twin.nodePort! : this.#freePort(port.protocol);
        this.#take(portKey(port.nodePort, port.protocol));
      }
    }
    if (wantsHealthPort(spec) && !spec.healthCheckNodePort) {
      spec.healthCheckNodePort = this.#freePort('TCP');
      this.#take(portKey(spec.healthCheckNodePort));
    }
  }

  /** There is one range, of IPv4 (alloc.go initIPFamilyFields). */
  #families(spec: ServiceSpec): void {
    if (spec.ipFamilyPolicy === 'RequireDualStack') {
      const detail = 'this cluster is not configured for dual-stack services';
      throw this.#refusal({ field: 'spec.ipFamilyPolicy', value: spec.ipFamilyPolicy, detail });
    }
    const at = (spec.ipFamilies ?? []).indexOf('IPv6');
    if (at < 0) return;
    throw this.#refusal({ field: `spec.ipFamilies[${at}]`, value: 'IPv6', detail: 'not configured on this cluster' });
  }

  #ip(spec: ServiceSpec): void {
    const asked = spec.clusterIP || spec.clusterIPs?.[0] || '';
    if (asked === '') {
      spec.clusterIP = this.#freeIp();
      this.#take(spec.clusterIP);
    } else {
      spec.clusterIP = asked;
      if (asked !== 'None' && !this.#given.before.has(asked)) this.#requestIp(asked);
    }
    if (!spec.clusterIPs?.length) spec.clusterIPs = [spec.clusterIP];
  }

  #requestIp(ip: string): void {
    if (parseAddress(ip) === undefined) return; // Validation says what is wrong with it.
    const refuse = (why: string): ApiError =>
      this.#refusal({ field: 'spec.clusterIPs', value: [ip], detail: `failed to allocate IP ${ip}: ${why}` });
    if (!this.#given.ranges.some((range) => rangeHolds(range, ip))) {
      throw refuse('the provided network does not match the current range');
    }
    if (this.#given.used.has(ip) || this.#given.isTaken(ip)) throw refuse('provided IP is already allocated');
    this.#take(ip);
  }

  #request(
    port: number,
    { protocol, field, own }: { protocol: string | undefined; field: string; own: Set<string> },
  ): void {
    const key = portKey(port, protocol);
    if (this.#given.before.has(key)) return;
    if (port < FIRST_NODE_PORT || port > LAST_NODE_PORT) {
      const detail = `provided port is not in the valid range. The range of valid ports is ${FIRST_NODE_PORT}-${LAST_NODE_PORT}`;
      throw this.#refusal({ field, value: port, detail });
    }
    if (this.#given.used.has(key) || own.has(key)) {
      throw this.#refusal({ field, value: port, detail: 'provided port is already allocated' });
    }
    own.add(key);
    this.#take(key);
  }

  #freeIp(): string {
    for (const { first, size } of this.#given.ranges) {
      for (const { from, count } of partsOf(Number(size))) {
        const start = randomBelow(Math.max(1, count));
        for (let i = 0; i < count; i++) {
          const ip = formatAddress({ family: 4, bits: first + BigInt(from + ((start + i) % count)) });
          if (!this.#given.used.has(ip) && !this.#given.isTaken(ip)) return ip;
        }
      }
    }
    throw exhausted('failed to allocate a serviceIP: range is full');
  }

  #freePort(protocol: string | undefined): number {
    const count = LAST_NODE_PORT - FIRST_NODE_PORT + 1;
    const start = randomBelow(count);
    for (let i = 0; i < count; i++) {
      const port = FIRST_NODE_PORT + ((start + i) % count);
      if (!this.#given.used.has(portKey(port, protocol))) return port;
    }
    throw exhausted('failed to allocate a nodePort: range is full');
  }

  #take(key: string): void {
    this.#given.used.add(key);
    this.handedOut.push(key);
  }

  #refusal(error: Omit<FieldError, 'type'>): ApiError {
    const { info, object } = this.#given.attributes;
    return invalid(info, object!.metadata.name ?? '', [{ type: 'FieldValueInvalid', ...error }]);
  }
}

const exhausted = (message: string): ApiError =>
  new ApiError({ code: 500, reason: 'InternalError', message: `Internal error occurred: ${message}` });

const randomBelow = (limit: number): number => crypto.getRandomValues(new Uint32Array(1))[0]! % limit;

/**
 * What is tried first of a range, and what then: neither the network's own address nor its broadcast address; the upper
 * part first, so that small requests stay free (KEP-3070; ranges of up to 16 addresses have no such part).
 */
function partsOf(size: number): { readonly from: number; readonly count: number }[] {
  const low = size <= 16 ? 0 : Math.min(256, Math.max(16, Math.floor(size / 16)));
  const upper = { from: 1 + low, count: size - 2 - low };
  return [upper, { from: 1, count: low }].filter(({ count }) => count > 0);
}
