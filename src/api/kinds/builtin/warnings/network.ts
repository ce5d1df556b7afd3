/** Addresses in another form than the one everybody prints, and fields of a Service that do nothing. */
import { formatAddress, parseAddress } from '../../../cel/libraries/ip-address.ts';
import { isObject, type JsonObject, objectAt, objectsAt, textAt, textsAt, valueAt } from '../read-value.ts';

/** Upstream's GetWarningsForIP; what is no address at all was refused before. */
export function addressWarnings(address: string, path: string): string[] {
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
  const spec = objectAt(service, 'spec');
  const type = textAt(spec, 'type');
  const isExternal = type === 'ExternalName';
  const externalIps = textsAt(spec, 'externalIPs');
  const loadBalancerIp = textAt(spec, 'loadBalancerIP');
  const isHeadless = type === 'ClusterIP' && textAt(spec, 'clusterIP') === 'None';
  const ignored = (field: string, isSet: boolean): string[] =>
    isHeadless && isSet ? [`spec.${field} is ignored for headless services`] : [];
  return [
    ...(Object.hasOwn(objectAt(service, 'metadata', 'annotations'), TOPOLOGY_HINTS)
      ? [`annotation ${TOPOLOGY_HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead`]
      : []),
    ...textsAt(spec, 'clusterIPs').flatMap((ip, i) => addressWarnings(ip, `spec.clusterIPs[${i}]`)),
    ...ignored('loadBalancerIP', loadBalancerIp !== ''),
    ...ignored('externalIPs', externalIps.length > 0),
    ...ignored('SessionAffinity', textAt(spec, 'sessionAffinity') !== 'None'),
    ...externalIps.flatMap((ip, i) => addressWarnings(ip, `spec.externalIPs[${i}]`)),
    ...addressWarnings(loadBalancerIp, 'spec.loadBalancerIP'),
    ...textsAt(spec, 'loadBalancerSourceRanges').flatMap((cidr, i) =>
      cidrWarnings(cidr, `spec.loadBalancerSourceRanges[${i}]`),
    ),
    ...(isExternal && externalIps.length > 0 ? ['spec.externalIPs is ignored when spec.type is "ExternalName"'] : []),
    ...(!isExternal && textAt(spec, 'externalName') !== ''
      ? ['spec.externalName is ignored when spec.type is not "ExternalName"']
      : []),
    ...(textAt(spec, 'trafficDistribution') === 'PreferClose'
      ? ['spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"']
      : []),
  ];
}

/** registry/networking/networkpolicy/strategy.go */
export const networkPolicyWarnings = (policy: JsonObject): string[] =>
  (['ingress', 'egress'] as const).flatMap((direction) =>
    objectsAt(policy, 'spec', direction).flatMap((rule, i) =>
      objectsAt(rule, direction === 'ingress' ? 'from' : 'to').flatMap((peer, j) => {
        const path = `spec.${direction}[${i}].${direction === 'ingress' ? 'from' : 'to'}[${j}].ipBlock`;
        if (!isObject(valueAt(peer, 'ipBlock'))) return [];
        return [
          ...cidrWarnings(textAt(peer, 'ipBlock', 'cidr'), `${path}.cidr`),
          ...textsAt(peer, 'ipBlock', 'except').flatMap((cidr, k) => cidrWarnings(cidr, `${path}.except[${k}]`)),
        ];
      }),
    ),
  );

const OWN_SLICES = ['endpointslice-controller.k8s.io', 'endpointslicemirroring-controller.k8s.io'];

/** registry/discovery/endpointslice/strategy.go, of a slice that is created */
export const addressTypeWarnings = (slice: JsonObject): string[] =>
  textAt(slice, 'addressType') === 'FQDN' ? ['spec.addressType: FQDN endpoints are deprecated'] : [];

/** Those of the addresses; the controllers of slices are not told what they know. */
export function endpointWarnings(slice: JsonObject): string[] {
  const owner = textAt(slice, 'metadata', 'labels', 'endpointslice.kubernetes.io/managed-by');
  if (OWN_SLICES.includes(owner)) return [];
  return objectsAt(slice, 'endpoints').flatMap((endpoint, i) =>
    textsAt(endpoint, 'addresses').flatMap((address, j) => addressWarnings(address, `endpoints[${i}].addresses[${j}]`)),
  );
}

/** registry/core/endpoint/strategy.go */
export function subsetWarnings(endpoints: JsonObject): string[] {
  if (textAt(endpoints, 'metadata', 'labels', 'endpoints.kubernetes.io/managed-by') === 'endpoint-controller')
    return [];
  return objectsAt(endpoints, 'subsets').flatMap((subset, i) =>
    ['addresses', 'notReadyAddresses'].flatMap((list) =>
      objectsAt(subset, list).flatMap((address, j) =>
        addressWarnings(textAt(address, 'ip'), `subsets[${i}].${list}[${j}].ip`),
      ),
    ),
  );
}

const INGRESS_CLASS = 'kubernetes.io/ingress.class';

/** registry/networking/ingress/strategy.go */
export const ingressWarnings = (ingress: JsonObject): string[] =>
  Object.hasOwn(objectAt(ingress, 'metadata', 'annotations'), INGRESS_CLASS) &&
  typeof valueAt(ingress, 'spec', 'ingressClassName') !== 'string'
    ? [`annotation "${INGRESS_CLASS}" is deprecated, please use 'spec.ingressClassName' instead`]
    : [];
