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
function addressWarnings(address: string, path: string): string[] {
  const shown = JSON.stringify(address);
  const standard = standardForm(address);
  if (standard !== undefined) {
    const use = `will be considered invalid in a future Kubernetes release: use ${JSON.stringify(standard)}`;
    return [`${path}: non-standard IP address ${shown} ${use}`];
  }
  const parsed = parseAddress(address);
  const canonical = parsed?.family === 6 ? formatAddress(parsed) : address;
  return canonical === address ? [] : [`${path}: IPv6 address ${shown} ${shouldBe(canonical)}`];
}

const shouldBe = (canonical: string): string => `should be in RFC 5952 canonical format (${JSON.stringify(canonical)})`;

/** Upstream's GetWarningsForCIDR. */
function cidrWarnings(cidr: string, path: string): string[] {
  const [address = '', length = ''] = cidr.split('/');
  const parsed = parseAddress(address);
  if (parsed === undefined || !/^\d{1,3}$/.test(length)) return [];
  const width = parsed.family === 4 ? 32 : 128;
  const rest = BigInt(Math.max(width - Number(length), 0));
  const first = { family: parsed.family, bits: (parsed.bits >> rest) << rest };
  const canonical = `${formatAddress(first)}/${Number(length)}`;
  const shown = JSON.stringify(cidr);
  if (first.bits !== parsed.bits) {
    const choice = `${JSON.stringify(canonical)} or ${JSON.stringify(`${formatAddress(parsed)}/${width}`)}`;
    return [`${path}: CIDR value ${shown} is ambiguous in this context (should be ${choice}?)`];
  }
  const isCanonical = parsed.family === 4 || canonical === cidr;
  return isCanonical ? [] : [`${path}: IPv6 CIDR value ${shown} ${shouldBe(canonical)}`];
}

const TOPOLOGY_HINTS = 'service.kubernetes.io/topology-aware-hints';

/** pkg/api/service/warnings.go */
export function* serviceWarnings(service: JsonObject): Iterable<string> {
  const spec = objectAt(service, 'spec');
  const type = textAt(spec, 'type');
  const externalIps = textsAt(spec, 'externalIPs');
  const loadBalancerIp = textAt(spec, 'loadBalancerIP');
  if (Object.hasOwn(objectAt(service, 'metadata', 'annotations'), TOPOLOGY_HINTS)) {
    yield `annotation ${TOPOLOGY_HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead`;
  }
  yield* eachWarning(textsAt(spec, 'clusterIPs'), 'spec.clusterIPs', addressWarnings);
  if (type === 'ClusterIP' && textAt(spec, 'clusterIP') === 'None') {
    if (loadBalancerIp !== '') yield 'spec.loadBalancerIP is ignored for headless services';
    if (externalIps.length > 0) yield 'spec.externalIPs is ignored for headless services';
    if (textAt(spec, 'sessionAffinity') !== 'None') yield 'spec.SessionAffinity is ignored for headless services';
  }
  yield* eachWarning(externalIps, 'spec.externalIPs', addressWarnings);
  yield* addressWarnings(loadBalancerIp, 'spec.loadBalancerIP');
  yield* eachWarning(textsAt(spec, 'loadBalancerSourceRanges'), 'spec.loadBalancerSourceRanges', cidrWarnings);
  if (type === 'ExternalName') {
    if (externalIps.length > 0) yield 'spec.externalIPs is ignored when spec.type is "ExternalName"';
  } else if (textAt(spec, 'externalName') !== '') {
    yield 'spec.externalName is ignored when spec.type is not "ExternalName"';
  }
  if (textAt(spec, 'trafficDistribution') === 'PreferClose') {
    yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"';
  }
}

const eachWarning = (
  texts: readonly string[],
  path: string,
  warn: (text: string, path: string) => string[],
): string[] => texts.flatMap((text, i) => warn(text, `${path}[${i}]`));

const PEERS = { ingress: 'from', egress: 'to' };

/** registry/networking/networkpolicy/strategy.go */
export function* networkPolicyWarnings(policy: JsonObject): Iterable<string> {
  for (const [direction, peers] of Object.entries(PEERS)) {
    for (const [i, rule] of objectsAt(policy, 'spec', direction).entries()) {
      for (const [j, peer] of objectsAt(rule, peers).entries()) {
        const block = valueAt(peer, 'ipBlock');
        if (!isObject(block)) continue;
        const path = `spec.${direction}[${i}].${peers}[${j}].ipBlock`;
        yield* cidrWarnings(textAt(block, 'cidr'), `${path}.cidr`);
        yield* eachWarning(textsAt(block, 'except'), `${path}.except`, cidrWarnings);
      }
    }
  }
}

const OWN_SLICES = ['endpointslice-controller.k8s.io', 'endpointslicemirroring-controller.k8s.io'];

/** registry/discovery/endpointslice/strategy.go; the controllers of slices are not reported what they know. */
export function* sliceWarnings(slice: JsonObject, old?: JsonObject): Iterable<string> {
  if (old === undefined && textAt(slice, 'addressType') === 'FQDN') {
    yield 'spec.addressType: FQDN endpoints are deprecated';
  }
  if (OWN_SLICES.includes(textAt(slice, 'metadata', 'labels', 'endpointslice.kubernetes.io/managed-by'))) return;
  for (const [i, endpoint] of objectsAt(slice, 'endpoints').entries()) {
    yield* eachWarning(textsAt(endpoint, 'addresses'), `endpoints[${i}].addresses`, addressWarnings);
  }
}

/** registry/core/endpoint/strategy.go */
export function* subsetWarnings(endpoints: JsonObject): Iterable<string> {
  const owner = textAt(endpoints, 'metadata', 'labels', 'endpoints.kubernetes.io/managed-by');
  if (owner === 'endpoint-controller') return;
  for (const [i, subset] of objectsAt(endpoints, 'subsets').entries()) {
    yield* listedWarnings(subset, `subsets[${i}]`, ['addresses', 'notReadyAddresses']);
  }
}

/** Of the addresses in the status of a Pod. */
export const podAddressWarnings = (pod: JsonObject): string[] =>
  listedWarnings(valueAt(pod, 'status'), 'status', ['podIPs', 'hostIPs']);

/** Of lists of objects with an `ip`. */
const listedWarnings = (holder: unknown, path: string, lists: readonly string[]): string[] =>
  lists.flatMap((list) =>
    objectsAt(holder, list).flatMap((one, i) => addressWarnings(textAt(one, 'ip'), `${path}.${list}[${i}].ip`)),
  );
