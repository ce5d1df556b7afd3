/** Which Pods stand behind a Service, as slices and as Endpoints: pure (staging/src/k8s.io/endpointslice, pkg/controller/endpoint). */

import { controllerReference } from '@coracle/apimachinery/meta/controller-reference';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { hasEnded, isConditionTrue, isDeleting } from '@coracle/apimachinery/meta/object-state';
import type {
  Endpoint,
  EndpointPort,
  EndpointSlice,
  EndpointSubset,
  Endpoints,
  Pod,
  Service,
} from '@coracle/apimachinery/types/types';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';

export const SERVICE_LABEL = 'kubernetes.io/service-name';
export const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by';
export const MANAGER = 'endpointslice-controller.k8s.io';
const HEADLESS = 'service.kubernetes.io/headless';
const ENDPOINTS_MANAGED_BY = 'endpoints.kubernetes.io/managed-by';
const ENDPOINTS_MANAGER = 'endpoint-controller';
/** Endpoints of one slice; addresses of one Endpoints object. As upstream's flags and limits. */
const MAX_PER_SLICE = 100;
const MAX_ADDRESSES = 1_000;
const OVER_CAPACITY = 'endpoints.kubernetes.io/over-capacity';

type Selected = DeepReadonly<Pod>;
type Fronted = DeepReadonly<Service>;

/** True when the Service is about Pods with these labels. One without a selector is about none. */
export function selectsLabels(service: Fronted, labels: Readonly<Record<string, string>> | undefined): boolean {
  const selector = Object.entries(service.spec?.selector ?? {});
  return selector.length > 0 && selector.every(([key, value]) => labels?.[key] === value);
}

/** True when Endpoints and slices of this Service are kept for it: it names Pods. */
export const isKept = (service: Fronted): boolean =>
  Object.keys(service.spec?.selector ?? {}).length > 0 && service.spec?.type !== 'ExternalName';

function portsFor(service: Fronted, pod: Selected): EndpointPort[] {
  return (service.spec?.ports ?? []).flatMap(({ name = '', targetPort, port, protocol = 'TCP', appProtocol }) => {
    const target = targetPort ?? port;
    const number = typeof target === 'number' ? target : namedPort(pod, target, protocol);
    if (number === undefined) return [];
    return [{ name, port: number, protocol, ...(appProtocol !== undefined && { appProtocol }) }];
  });
}

function namedPort(pod: Selected, name: string, protocol: string): number | undefined {
  const sidecars = (pod.spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  return [...pod.spec.containers, ...sidecars]
    .flatMap(({ ports }) => ports ?? [])
    .find((one) => one.name === name && (one.protocol ?? 'TCP') === protocol)?.containerPort;
}

interface EndpointFacts {
  readonly pods: readonly Selected[];
  /** Zone of a node, from its label. */
  readonly zoneOf: (node: string) => string | undefined;
}

function endpointOf(service: Fronted, pod: Selected, zoneOf: EndpointFacts['zoneOf']): Endpoint {
  const serving = isConditionTrue(pod, 'Ready');
  const terminating = isDeleting(pod);
  const ready = service.spec?.publishNotReadyAddresses === true || (serving && !terminating);
  const { nodeName = '', hostname = '' } = pod.spec;
  const subdomain = (pod.spec as { subdomain?: string }).subdomain ?? '';
  const named = hostname !== '' && subdomain === service.metadata.name;
  const zone = nodeName === '' ? undefined : zoneOf(nodeName);
  return {
    addresses: [pod.status?.podIP ?? ''],
    conditions: { ready, serving, terminating },
    ...(named && { hostname }),
    ...(nodeName !== '' && { nodeName }),
    targetRef: {
      kind: 'Pod',
      namespace: pod.metadata.namespace ?? '',
      name: pod.metadata.name ?? '',
      uid: pod.metadata.uid ?? '',
    },
    ...(zone !== undefined && { zone }),
  };
}

interface Group {
  readonly ports: EndpointPort[];
  readonly members: { readonly pod: Selected; readonly endpoint: Endpoint }[];
}

/** Pods that have an address, by the ports they are reached at, in order of their names. */
function groupsOf(service: Fronted, { pods, zoneOf }: EndpointFacts): Map<string, Group> {
  const groups = new Map<string, Group>();
  const placed = pods
    .filter((pod) => !hasEnded(pod) && (pod.status?.podIP ?? '') !== '')
    .sort((a, b) => ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1));
  for (const pod of placed) {
    const ports = portsFor(service, pod);
    const group = getOrInsert(groups, JSON.stringify(ports), () => ({ ports, members: [] }));
    group.members.push({ pod, endpoint: endpointOf(service, pod, zoneOf) });
  }
  return groups;
}

/** The slices a Service should have; one without endpoints when nothing stands behind it. */
export function wantedSlices(service: Fronted, facts: EndpointFacts): EndpointSlice[] {
  const wanted: EndpointSlice[] = [];
  for (const [key, { ports, members }] of groupsOf(service, facts)) {
    for (let from = 0; from < members.length; from += MAX_PER_SLICE) {
      const endpoints = members.slice(from, from + MAX_PER_SLICE).map(({ endpoint }) => endpoint);
      wanted.push(sliceOf(service, { name: `${key}${from}`, endpoints, ports }));
    }
  }
  return wanted.length > 0 ? wanted : [sliceOf(service, { name: '', endpoints: [], ports: [] })];
}

function sliceOf(
  service: Fronted,
  { name, endpoints, ports }: { name: string; endpoints: Endpoint[]; ports: EndpointPort[] },
): EndpointSlice {
  const { name: serviceName = '', namespace = '', uid = '' } = service.metadata;
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      // The same content has the same name: a pass that runs on an old copy cannot make a second one.
      name: `${serviceName}-${suffixOf(`${uid}${name}`)}`,
      namespace,
      labels: { ...ownLabels(service), [SERVICE_LABEL]: serviceName, [MANAGED_BY]: MANAGER },
      ownerReferences: [controllerReference({ ...service, apiVersion: 'v1', kind: 'Service' })],
    },
    addressType: 'IPv4',
    endpoints,
    ...(ports.length > 0 && { ports }),
  };
}

function ownLabels({ metadata, spec }: Fronted): Record<string, string> {
  const reserved = [HEADLESS, SERVICE_LABEL, MANAGED_BY];
  const labels = Object.entries(metadata.labels ?? {}).filter(([key]) => !reserved.includes(key));
  return { ...Object.fromEntries(labels), ...(spec?.clusterIP === 'None' && { [HEADLESS]: '' }) };
}

const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';

/** Five characters made of a text (FNV-1a), of the letters generated names are made of. */
function suffixOf(text: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0;
  let suffix = '';
  for (let i = 0; i < 5; i++) {
    suffix += ALPHABET[hash % ALPHABET.length];
    hash = Math.floor(hash / ALPHABET.length);
  }
  return suffix;
}

/** The Endpoints object of a Service: the older shape of the same, without Pods that are leaving. */
export function wantedEndpoints(service: Fronted, facts: EndpointFacts): Endpoints {
  const { name = '', namespace = '' } = service.metadata;
  const { publishNotReadyAddresses = false } = service.spec ?? {};
  const subsets: EndpointSubset[] = [];
  let left = MAX_ADDRESSES;
  let truncated = false;
  for (const { ports, members } of groupsOf(service, facts).values()) {
    const staying = members.filter(({ pod }) => publishNotReadyAddresses || !isDeleting(pod));
    truncated ||= staying.length > left;
    const taken = staying.slice(0, left).map(({ pod, endpoint }) => ({
      ready: endpoint.conditions?.ready === true,
      address: {
        ip: pod.status?.podIP ?? '',
        ...(endpoint.hostname !== undefined && { hostname: endpoint.hostname }),
        ...(endpoint.nodeName !== undefined && { nodeName: endpoint.nodeName }),
        targetRef: endpoint.targetRef!,
      },
    }));
    left -= taken.length;
    if (taken.length === 0) continue;
    const addressesOf = (isReady: boolean) =>
      taken.filter(({ ready }) => ready === isReady).map(({ address }) => address);
    const [addresses, notReadyAddresses] = [addressesOf(true), addressesOf(false)];
    subsets.push({
      ...(addresses.length > 0 && { addresses }),
      ...(notReadyAddresses.length > 0 && { notReadyAddresses }),
      ...(ports.length > 0 && {
        ports: ports.map(({ name: portName = '', port = 0, ...rest }) => ({
          ...(portName !== '' && { name: portName }),
          port,
          ...rest,
        })),
      }),
    });
  }
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: {
      name,
      namespace,
      labels: { ...ownLabels(service), [ENDPOINTS_MANAGED_BY]: ENDPOINTS_MANAGER },
      ...(truncated && { annotations: { [OVER_CAPACITY]: 'truncated' } }),
    },
    ...(subsets.length > 0 && { subsets }),
  };
}

/** True for Endpoints that this controller made: only those go with their Service. */
export const isOurs = (endpoints: DeepReadonly<Endpoints>): boolean =>
  endpoints.metadata.labels?.[ENDPOINTS_MANAGED_BY] === ENDPOINTS_MANAGER;
