/** What a switch has to know of the cluster, made of its objects: pure. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { isFinal } from '@coracle/apimachinery/meta/object-state';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { Endpoint, EndpointSlice, Node, Pod, Service } from '@coracle/apimachinery/types/types';
import { definitionsOf } from '@coracle/kubevirt/rules/launcher/network-attachments';
import { isPodAddress } from '@coracle/kubevirt/rules/launcher/pod-address';
import {
  FORWARDED_PORTS_ANNOTATION,
  type PublishedPort,
  usualHostPort,
} from '@coracle/kubevirt/rules/machine/host-ports';
import type {
  Entry,
  ListenerTarget,
  NetworkListener,
  NetworkName,
  NetworkPeer,
  NetworkPod,
  NetworkService,
  TableName,
} from '../../network/switch/switch-state.ts';
import type { VmRecord } from '../launcher/vm-record.ts';
import { POD_NETWORK_ANNOTATION } from '../registration/node-object.ts';

const SERVICE_LABEL = 'kubernetes.io/service-name';

type ReadonlyPod = DeepReadonly<Pod>;
type ReadonlyService = DeepReadonly<Service>;
type Slices = readonly DeepReadonly<EndpointSlice>[];

/** What one object, or a few together, say: entries of some tables. */
export type NetworkEntries = { readonly [T in TableName]?: readonly Entry<T>[] };

/** True while packets for the guest are this node's to give it: before it has left, and from its taking over on. */
export function isHere({ process, result, migration }: VmRecord): boolean {
  if (!process || result) return false;
  switch (migration?.phase) {
    case undefined:
    case 'sending':
    case 'sent':
    case 'handing-over':
    case 'handed-over':
      return true;
    case 'feeding':
    case 'left':
    case 'receiving':
      return false;
    default:
      return migration satisfies never;
  }
}

/** The Service that endpoints belong to, `NAMESPACE/NAME`; undefined for those of IPv6 and of none. */
export function serviceOf({ metadata, addressType }: DeepReadonly<EndpointSlice>): string | undefined {
  const name = metadata.labels?.[SERVICE_LABEL];
  return addressType === 'IPv4' && name !== undefined ? `${metadata.namespace}/${name}` : undefined;
}

/** The address of a Pod that is on the network of Pods, and has not ended. */
export function networkAddressOf({ status }: ReadonlyPod): string | undefined {
  const { podIP = '', phase } = status ?? {};
  return isPodAddress(podIP) && !isFinal(phase) ? podIP : undefined;
}

/** The networks beside that of Pods that a Pod of some node is to be on. */
export const segmentsOf = ({ metadata, spec, status }: ReadonlyPod): string[] =>
  spec.nodeName && !isFinal(status?.phase) ? definitionsOf(metadata.annotations) : [];

/** The Pods of one address: two while a guest moves. */
export function podsOf(pods: readonly ReadonlyPod[]): NetworkPod[] {
  const address = pods[0] && networkAddressOf(pods[0]);
  return address === undefined ? [] : [{ address, nodes: pods.map(({ spec }) => spec.nodeName ?? '').sort() }];
}

/** Those that are ready; where none is, those that serve on while they end (KEP-1669). */
function readyOf(slices: Slices): DeepReadonly<Endpoint>[] {
  // A list that is empty may be null, which flatMap would keep.
  const all = slices.flatMap(({ endpoints }) => endpoints ?? []);
  const ready = all.filter(({ conditions }) => conditions?.ready !== false);
  return ready.length > 0
    ? ready
    : all.filter(({ conditions }) => conditions?.serving === true && conditions.terminating === true);
}

/** Upstream's default: three hours. */
const AFFINITY_SECONDS = 10_800;
const affinityOf = (spec: ReadonlyService['spec']): Pick<NetworkService, 'affinitySeconds'> =>
  spec?.sessionAffinity === 'ClientIP'
    ? { affinitySeconds: spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? AFFINITY_SECONDS }
    : {};

function servicesOf({ spec }: ReadonlyService, slices: Slices): NetworkService[] {
  const { clusterIP = '', ports } = spec ?? {};
  if (clusterIP === '' || clusterIP === 'None' || clusterIP.includes(':')) return [];
  return (ports ?? []).flatMap(({ name = '', port, protocol = 'TCP' }) => {
    if (protocol === 'SCTP') return [];
    const targets = readyTargets(slices, name, protocol).map(({ address, port: at }) => ({ address, port: at }));
    const common = { protocol: protocol === 'UDP' ? ('udp' as const) : ('tcp' as const), ...affinityOf(spec) };
    return [{ address: clusterIP, port, ...common, targets }];
  });
}

/** Where a port of a Pod is forwarded on this host; undefined where it is not, or the Pod is elsewhere. */
export type Published = (protocol: string, address: string, port: number) => ListenerTarget['at'];

/** Finds it among the Pods of an address that are on this host. */
export function publishedPort(
  pods: readonly ReadonlyPod[],
  { protocol, port }: { readonly protocol: string; readonly port: number },
): ListenerTarget['at'] {
  for (const { metadata } of pods)
    for (const one of forwardedPorts(metadata.annotations))
      if (one.protocol === protocol && one.containerPort === port) return { host: one.hostIP, port: one.hostPort };
  return undefined;
}

/** A Service that ports of this host may stand for. */
export const isOuter = ({ spec }: ReadonlyService): boolean =>
  spec?.type === 'NodePort' || spec?.type === 'LoadBalancer';

/** The node that a Service is served on: its name, and where it opens node ports. */
interface ServingNode {
  readonly node: string;
  /** The zone of a node, where that is known. */
  readonly zoneOf: (node: string) => string | undefined;
  readonly address: string;
  readonly published: Published;
}

/** What a Service and its endpoints say. */
export function serviceEntries(service: ReadonlyService, slices: Slices, at: ServingNode): NetworkEntries {
  const isLocal = service.spec?.internalTrafficPolicy === 'Local';
  return {
    services: servicesOf(service, isLocal ? localOf(slices, at.node) : nearOf(service, slices, at)),
    names: namesOf(service, slices),
    listeners: isOuter(service) ? listenersOf(service, slices, at) : [],
  };
}

type Choice = (endpoint: DeepReadonly<Endpoint>) => boolean;

const only = (slices: Slices, isChosen: Choice): Slices =>
  slices.map((slice) => ({ ...slice, endpoints: (slice.endpoints ?? []).filter(isChosen) }));
/** The endpoints of one node. */
const localOf = (slices: Slices, node: string): Slices => only(slices, ({ nodeName }) => nodeName === node);

/**
 * The endpoints that `trafficDistribution` prefers: those of the node, or else of its zone; all where it asks for none of
 * these, none of these is ready, or the zone of one is not known.
 */
function nearOf({ spec }: ReadonlyService, slices: Slices, { node, zoneOf }: ServingNode): Slices {
  if (!spec?.trafficDistribution) return slices;
  const ready = readyOf(slices);
  const isHere: Choice = ({ nodeName }) => nodeName === node;
  const zoneAt: (endpoint: DeepReadonly<Endpoint>) => string | undefined = ({ nodeName = '' }) => zoneOf(nodeName);
  const isOfZone: Choice = (endpoint) => zoneAt(endpoint) === zoneOf(node);
  const choices = [
    ...(spec.trafficDistribution === 'PreferSameNode' ? [isHere] : []),
    ...(ready.every((endpoint) => zoneAt(endpoint) !== undefined) ? [isOfZone] : []),
  ];
  const chosen = choices.find((choice) => ready.some(choice));
  return chosen ? only(slices, chosen) : slices;
}

/**
 * Node ports on the address of the node, with `externalTrafficPolicy: Local` for its own Pods alone or for those near it, and ports of load
 * balancers, which find the nodes that have some, on their address where it is one of this host's loopback.
 */
function listenersOf(service: ReadonlyService, slices: Slices, at: ServingNode): NetworkListener[] {
  const { metadata, spec = {}, status } = service;
  const { node, address, published } = at;
  const ingress = (status?.loadBalancer?.ingress ?? []).map(({ ip = '' }) => ip).filter((ip) => ip.startsWith('127.'));
  return (spec.ports ?? []).flatMap(({ name = '', port, nodePort, protocol = 'TCP' }): NetworkListener[] => {
    if (protocol === 'SCTP') return [];
    const targetsOf = (some: Slices): ListenerTarget[] =>
      readyTargets(some, name, protocol).map((target) => {
        const here = published(protocol, target.address, target.port);
        return { ...target, ...(here && { at: here }) };
      });
    const isLocal = spec.externalTrafficPolicy === 'Local';
    const ofNode = targetsOf(isLocal ? localOf(slices, node) : nearOf(service, slices, at));
    const common = {
      protocol: protocol === 'UDP' ? ('udp' as const) : ('tcp' as const),
      service: `${metadata.namespace}/${metadata.name}`,
      ...affinityOf(spec),
      targets: targetsOf(slices),
    };
    return [
      ...(nodePort === undefined ? [] : [{ ...common, host: address, port: nodePort, targets: ofNode }]),
      ...ingress.flatMap((host) => [
        { ...common, host, port },
        ...(port < 1024 ? [{ ...common, host, port: usualHostPort(port) }] : []),
      ]),
    ];
  });
}

function forwardedPorts(annotations: Readonly<Record<string, string>> | undefined): readonly PublishedPort[] {
  try {
    const read: unknown = JSON.parse(annotations?.[FORWARDED_PORTS_ANNOTATION] ?? '[]');
    return Array.isArray(read) ? (read.filter(isJsonObject) as unknown as PublishedPort[]) : [];
  } catch {
    return [];
  }
}

/** Endpoints of one port of a Service that are ready; others than Pods cannot be reached, and get no connections. */
function readyTargets(slices: Slices, name: string, protocol: string): Omit<ListenerTarget, 'at'>[] {
  const ready = new Set(readyOf(slices));
  return slices.flatMap((slice) => {
    const target = slice.ports?.find((one) => (one.name ?? '') === name && (one.protocol ?? 'TCP') === protocol);
    if (target?.port === undefined) return [];
    const number = target.port;
    return (slice.endpoints ?? [])
      .filter((endpoint) => ready.has(endpoint))
      .flatMap(({ addresses, nodeName = '' }) =>
        (addresses ?? [])
          .slice(0, 1)
          .filter(isPodAddress)
          .map((one) => ({ address: one, port: number, node: nodeName })),
      );
  });
}

/** What a message can carry: RFC 1035, 3.1. */
const NAME = /^[^.]{1,63}(\.[^.]{1,63})*$/;
const MAX_NAME = 253;

/** `web.default.svc`, `_http._tcp.web.default.svc`, and of a headless Service `HOSTNAME.web.default.svc`. */
function namesOf({ metadata, spec }: ReadonlyService, slices: Slices): NetworkName[] {
  const { clusterIP = '', ports, type, externalName = '' } = spec ?? {};
  const base = `${metadata.name}.${metadata.namespace}.svc`;
  if (type === 'ExternalName') {
    const alias = externalName.toLowerCase().replace(/\.$/, '');
    return NAME.test(alias) && alias.length <= MAX_NAME ? [{ name: base, addresses: [], alias }] : [];
  }
  if (clusterIP.includes(':')) return [];
  const portName = (name: string, protocol: string): string => `_${name}._${protocol.toLowerCase()}.${base}`;
  if (clusterIP !== 'None')
    return [
      { name: base, addresses: clusterIP === '' ? [] : [clusterIP], isOwn: true },
      ...(ports ?? [])
        .filter(({ name = '' }) => name !== '')
        .map(({ name = '', port, protocol = 'TCP' }) => ({
          name: portName(name, protocol),
          addresses: [],
          services: [{ port, target: base }],
        })),
    ];
  const hosts = readyOf(slices).flatMap(({ addresses, hostname }) => {
    const [address] = addresses ?? [];
    return address === undefined ? [] : [{ address, name: `${hostname ?? address.replaceAll('.', '-')}.${base}` }];
  });
  return [
    { name: base, addresses: hosts.map(({ address }) => address) },
    ...[...Map.groupBy(hosts, ({ name }) => name)].map(([name, same]) => ({
      name,
      addresses: same.map(({ address }) => address),
      isOwn: true,
    })),
    ...slices.flatMap((slice) =>
      (slice.ports ?? []).flatMap(({ name = '', port, protocol = 'TCP' }): NetworkName[] =>
        name === '' || port === undefined
          ? []
          : [
              {
                name: portName(name, protocol),
                addresses: [],
                services: hosts.map((host) => ({ port, target: host.name })),
              },
            ],
      ),
    ),
  ];
}

/** Where the switch of a node is found by others. */
export function peerOf({ metadata }: DeepReadonly<Node>): NetworkPeer[] {
  const [, host = '', port = ''] = /^(.+):(\d+)$/.exec(metadata.annotations?.[POD_NETWORK_ANNOTATION] ?? '') ?? [];
  return host === '' ? [] : [{ node: metadata.name ?? '', host, port: Number(port) }];
}
