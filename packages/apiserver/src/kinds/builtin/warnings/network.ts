/** Addresses in another form than the one everybody prints, and fields of a Service that do nothing. */
import { formatAddress, parseAddress } from '@coracle/apimachinery/meta/ip-address';
import {
  isObject,
  type JsonObject,
  objectAt,
  objectsAt,
  textAt,
  textsAt,
  valueAt,
} from '@coracle/apimachinery/types/read-value';
import { add, warnEach } from './collect.ts';

const FOUR = /^\d{1,3}(?:\.\d{1,3}){3}$/;
const MAPPED = /^::ffff:(?:([\d.]+)|([\da-f]{1,4}):([\da-f]{1,4}))$/i;

/** An address with zeros in front, or one of IPv4 in the dress of IPv6, as it is written today. */
function standardForm(address: string): string | undefined {
  const [, four = address, high, low] = MAPPED.exec(address) ?? [];
  if (high !== undefined && low !== undefined) {
    const bits = Number.parseInt(high, 16) * 0x10000 + Number.parseInt(low, 16);
    return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 0xff).join('.');
  }
  if (!FOUR.test(four)) return undefined;
  const plain = four.split('.').map(Number).join('.');
  return plain === address ? undefined : plain;
}

/** Upstream's GetWarningsForIP; what is no address at all was refused before, and so was what is new and odd. */
export function addressWarnings(address: string, path: string): string[] {
  const standard = standardForm(address);
  if (standard !== undefined) {
    const reported = `non-standard IP address ${JSON.stringify(address)} will be considered invalid`;
    return [`${path}: ${reported} in a future Kubernetes release: use ${JSON.stringify(standard)}`];
  }
  const parsed = parseAddress(address);
  if (parsed?.family !== 6) return [];
  const canonical = formatAddress(parsed);
  if (canonical === address) return [];
  return [
    `${path}: IPv6 address ${JSON.stringify(address)} should be in RFC 5952 canonical format (${JSON.stringify(canonical)})`,
  ];
}

/** Upstream's GetWarningsForCIDR. */
export function cidrWarnings(cidr: string, path: string): string[] {
  const [address = '', length = ''] = cidr.split('/');
  const parsed = parseAddress(address);
  if (parsed === undefined || !/^\d{1,3}$/.test(length)) return [];
  const width = parsed.family === 4 ? 32 : 128;
  const rest = BigInt(Math.max(width - Number(length), 0));
  const first = { family: parsed.family, bits: (parsed.bits >> rest) << rest };
  const canonical = `${formatAddress(first)}/${Number(length)}`;
  const shown = JSON.stringify(cidr);
  if (first.bits !== parsed.bits) {
    const single = JSON.stringify(`${formatAddress(parsed)}/${width}`);
    return [
      `${path}: CIDR value ${shown} is ambiguous in this context (should be ${JSON.stringify(canonical)} or ${single}?)`,
    ];
  }
  if (parsed.family === 4 || canonical === cidr) return [];
  return [`${path}: IPv6 CIDR value ${shown} should be in RFC 5952 canonical format (${JSON.stringify(canonical)})`];
}

const TOPOLOGY_HINTS = 'service.kubernetes.io/topology-aware-hints';

/** pkg/api/service/warnings.go */
export function serviceWarnings(service: JsonObject): string[] {
  const found: string[] = [];
  const spec = objectAt(service, 'spec');
  const type = textAt(spec, 'type');
  const isExternal = type === 'ExternalName';
  const externalIps = textsAt(spec, 'externalIPs');
  const loadBalancerIp = textAt(spec, 'loadBalancerIP');
  const isHeadless = type === 'ClusterIP' && textAt(spec, 'clusterIP') === 'None';
  const ignored = (field: string, isSet: boolean): void => {
    if (isHeadless && isSet) found.push(`spec.${field} is ignored for headless services`);
  };
  if (Object.hasOwn(objectAt(service, 'metadata', 'annotations'), TOPOLOGY_HINTS)) {
    found.push(`annotation ${TOPOLOGY_HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead`);
  }
  warnEach(found, textsAt(spec, 'clusterIPs'), (ip, i) => addressWarnings(ip, `spec.clusterIPs[${i}]`));
  ignored('loadBalancerIP', loadBalancerIp !== '');
  ignored('externalIPs', externalIps.length > 0);
  ignored('SessionAffinity', textAt(spec, 'sessionAffinity') !== 'None');
  warnEach(found, externalIps, (ip, i) => addressWarnings(ip, `spec.externalIPs[${i}]`));
  add(found, addressWarnings(loadBalancerIp, 'spec.loadBalancerIP'));
  const ofRange = (cidr: string, i: number): string[] => cidrWarnings(cidr, `spec.loadBalancerSourceRanges[${i}]`);
  warnEach(found, textsAt(spec, 'loadBalancerSourceRanges'), ofRange);
  if (isExternal && externalIps.length > 0) {
    found.push('spec.externalIPs is ignored when spec.type is "ExternalName"');
  }
  if (!isExternal && textAt(spec, 'externalName') !== '') {
    found.push('spec.externalName is ignored when spec.type is not "ExternalName"');
  }
  if (textAt(spec, 'trafficDistribution') === 'PreferClose') {
    found.push('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"');
  }
  return found;
}

/** registry/networking/networkpolicy/strategy.go */
export function networkPolicyWarnings(policy: JsonObject): string[] {
  const found: string[] = [];
  for (const [direction, peers] of [
    ['ingress', 'from'],
    ['egress', 'to'],
  ] as const) {
    for (const [i, rule] of objectsAt(policy, 'spec', direction).entries()) {
      for (const [j, peer] of objectsAt(rule, peers).entries()) {
        blockWarnings(found, peer, `spec.${direction}[${i}].${peers}[${j}].ipBlock`);
      }
    }
  }
  return found;
}

function blockWarnings(found: string[], peer: JsonObject, path: string): void {
  const block = valueAt(peer, 'ipBlock');
  if (!isObject(block)) return;
  add(found, cidrWarnings(textAt(block, 'cidr'), `${path}.cidr`));
  warnEach(found, textsAt(block, 'except'), (cidr, k) => cidrWarnings(cidr, `${path}.except[${k}]`));
}

const OWN_SLICES = ['endpointslice-controller.k8s.io', 'endpointslicemirroring-controller.k8s.io'];

/** registry/discovery/endpointslice/strategy.go, of a slice that is created */
export const addressTypeWarnings = (slice: JsonObject): string[] =>
  textAt(slice, 'addressType') === 'FQDN' ? ['spec.addressType: FQDN endpoints are deprecated'] : [];

/** Those of the addresses; the controllers of slices are not reported what they know. */
export function endpointWarnings(slice: JsonObject): string[] {
  const found: string[] = [];
  const owner = textAt(slice, 'metadata', 'labels', 'endpointslice.kubernetes.io/managed-by');
  if (OWN_SLICES.includes(owner)) return found;
  for (const [i, endpoint] of objectsAt(slice, 'endpoints').entries()) {
    const warn = (address: string, j: number): string[] => addressWarnings(address, `endpoints[${i}].addresses[${j}]`);
    warnEach(found, textsAt(endpoint, 'addresses'), warn);
  }
  return found;
}

/** registry/core/endpoint/strategy.go */
export function subsetWarnings(endpoints: JsonObject): string[] {
  const found: string[] = [];
  const owner = textAt(endpoints, 'metadata', 'labels', 'endpoints.kubernetes.io/managed-by');
  if (owner === 'endpoint-controller') return found;
  for (const [i, subset] of objectsAt(endpoints, 'subsets').entries()) {
    for (const list of ['addresses', 'notReadyAddresses']) {
      const warn = (address: JsonObject, j: number): string[] =>
        addressWarnings(textAt(address, 'ip'), `subsets[${i}].${list}[${j}].ip`);
      warnEach(found, objectsAt(subset, list), warn);
    }
  }
  return found;
}

/** Of the addresses in the status of a Pod. */
export const podAddressWarnings = (pod: JsonObject): string[] =>
  ['podIPs', 'hostIPs'].flatMap((list) =>
    objectsAt(pod, 'status', list).flatMap((entry, i) =>
      addressWarnings(textAt(entry, 'ip'), `status.${list}[${i}].ip`),
    ),
  );
