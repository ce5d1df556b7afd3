/** What a switch has to know of the cluster, made of its objects: pure. */
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { EndpointSlice, Namespace, Node, Pod, Service } from '@coracle/apimachinery/types/types';
import { isPodAddress } from '@coracle/kubevirt/rules/launcher/pod-address';
import {
  FORWARDED_PORTS_ANNOTATION,
  type PublishedPort,
  usualHostPort,
} from '@coracle/kubevirt/rules/machine/host-ports';
import type {
  ListenerTarget,
  LocalGuest,
  NetworkListener,
  NetworkPeer,
  NetworkPod,
  NetworkService,
  NetworkState,
} from '../../network/switch/switch-state.ts';
import type { VmRecord } from '../launcher/vm-record.ts';
import { POD_NETWORK_ANNOTATION } from '../registration/node-object.ts';
import { type NetworkPolicy, policyRules } from './network-policies.ts';

const SERVICE_LABEL = 'kubernetes.io/service-name';

export interface NetworkObjects {
  readonly node: string;
  /** Of the node. */
  readonly address: string;
  readonly pods: readonly DeepReadonly<Pod>[];
  readonly nodes: readonly DeepReadonly<Node>[];
  readonly services: readonly DeepReadonly<Service>[];
  readonly slices: readonly DeepReadonly<EndpointSlice>[];
  readonly guests: readonly LocalGuest[];
  readonly namespaces: readonly DeepReadonly<Namespace>[];
  readonly policies: readonly DeepReadonly<NetworkPolicy>[];
}

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

/** Puts the whole of it together. */
export function networkState(objects: NetworkObjects): NetworkState {
  const slices = Map.groupBy(
    objects.slices.filter(({ addressType }) => addressType === 'IPv4'),
    ({ metadata }) => `${metadata.namespace}/${metadata.labels?.[SERVICE_LABEL]}`,
  );
  const slicesOf = ({ metadata }: DeepReadonly<Service>): readonly DeepReadonly<EndpointSlice>[] =>
    slices.get(`${metadata.namespace}/${metadata.name}`) ?? [];
  const pods = objects.pods.filter(
    ({ status }) => isPodAddress(status?.podIP ?? '') && status?.phase !== 'Succeeded' && status?.phase !== 'Failed',
  );
  const { rules, of } = policyRules({ pods, namespaces: objects.namespaces, policies: objects.policies });
  return {
    node: objects.node,
    pods: podsOf(pods).map((pod) => ({ ...pod, ...of.get(pod.address) })),
    rules,
    services: objects.services.flatMap((service) => servicesOf(service, slicesOf(service))),
    names: Object.fromEntries(objects.services.flatMap((service) => namesOf(service, slicesOf(service)))),
    guests: objects.guests,
    listeners: listenersOf(objects, slicesOf),
    peers: objects.nodes.flatMap(peerOf).filter(({ node }) => node !== objects.node),
  };
}

function podsOf(pods: readonly DeepReadonly<Pod>[]): NetworkPod[] {
  const nodes = new Map<string, string[]>();
  for (const { spec, status } of pods) {
    const { podIP = '' } = status ?? {};
    nodes.set(podIP, [...(nodes.get(podIP) ?? []), spec.nodeName ?? '']);
  }
  return [...nodes].map(([address, names]) => ({ address, nodes: names }));
}

type Slices = readonly DeepReadonly<EndpointSlice>[];
type Endpoint = DeepReadonly<EndpointSlice['endpoints'][number]>;

/** Those that are ready; where none is, those that serve on while they end (KEP-1669). */
function readyOf(slices: Slices): Endpoint[] {
  // A list that is empty may be null, which flatMap would keep.
  const all = slices.flatMap(({ endpoints }) => endpoints ?? []);
  const ready = all.filter(({ conditions }) => conditions?.ready !== false);
  return ready.length > 0
    ? ready
    : all.filter(({ conditions }) => conditions?.serving === true && conditions.terminating === true);
}

function servicesOf({ spec }: DeepReadonly<Service>, slices: Slices): NetworkService[] {
  const { clusterIP = '', ports, sessionAffinity } = spec ?? {};
  if (clusterIP === '' || clusterIP === 'None' || clusterIP.includes(':')) return [];
  return (ports ?? []).flatMap(({ name = '', port, protocol = 'TCP' }) => {
    if (protocol === 'SCTP') return [];
    const targets = readyTargets(slices, name, protocol).map(({ address, port: at }) => ({ address, port: at }));
    const sticky = sessionAffinity === 'ClientIP';
    return [
      { address: clusterIP, protocol: protocol === 'UDP' ? ('udp' as const) : ('tcp' as const), port, sticky, targets },
    ];
  });
}

/** Node ports on the address of the node, and ports of load balancers on theirs where it is one of this host's loopback. */
function listenersOf(
  { node, address, nodes, pods, services }: NetworkObjects,
  slicesFor: (service: DeepReadonly<Service>) => Slices,
): NetworkListener[] {
  const bootOf = new Map(nodes.map(({ metadata, status }) => [metadata.name, status?.nodeInfo?.bootID]));
  const isHere = (name: string): boolean => name === node || (bootOf.get(name) ?? '-') === bootOf.get(node);
  const published = new Map(
    pods
      .filter(({ spec }) => isHere(spec.nodeName ?? ''))
      .flatMap(({ metadata, status }) =>
        forwardedPorts(metadata.annotations).map(
          ({ protocol, containerPort, hostIP, hostPort }) =>
            [`${protocol}/${status?.podIP}/${containerPort}`, { host: hostIP, port: hostPort }] as const,
        ),
      ),
  );
  return services.flatMap((service) => {
    const { metadata, spec = {}, status } = service;
    if (spec.type !== 'NodePort' && spec.type !== 'LoadBalancer') return [];
    const ingress = (status?.loadBalancer?.ingress ?? [])
      .map(({ ip = '' }) => ip)
      .filter((ip) => ip.startsWith('127.'));
    return (spec.ports ?? []).flatMap(({ name = '', port, nodePort, protocol = 'TCP' }): NetworkListener[] => {
      if (protocol === 'SCTP') return [];
      const targets = readyTargets(slicesFor(service), name, protocol).map((target) => {
        const at = published.get(`${protocol}/${target.address}/${target.port}`);
        return { ...target, ...(at && { at }) };
      });
      const common = {
        protocol: protocol === 'UDP' ? ('udp' as const) : ('tcp' as const),
        service: `${metadata.namespace}/${metadata.name}`,
        sticky: spec.sessionAffinity === 'ClientIP',
        targets,
      };
      return [
        ...(nodePort === undefined ? [] : [{ ...common, host: address, port: nodePort }]),
        ...ingress.flatMap((host) => [
          { ...common, host, port },
          ...(port < 1024 ? [{ ...common, host, port: usualHostPort(port) }] : []),
        ]),
      ];
    });
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

type Names = [string, NetworkState['names'][string]][];

/** `web.default.svc`, `_http._tcp.web.default.svc`, and of a headless Service `HOSTNAME.web.default.svc`. */
function namesOf({ metadata, spec }: DeepReadonly<Service>, slices: Slices): Names {
  const { clusterIP = '', ports, type } = spec ?? {};
  const base = `${metadata.name}.${metadata.namespace}.svc`;
  if (type === 'ExternalName' || clusterIP.includes(':')) return [];
  if (clusterIP !== 'None')
    return [
      [base, { addresses: [clusterIP] }],
      ...(ports ?? []).flatMap(
        ({ name = '', port, protocol = 'TCP' }): Names =>
          name === ''
            ? []
            : [[`_${name}._${protocol.toLowerCase()}.${base}`, { addresses: [], services: [{ port, target: base }] }]],
      ),
    ];
  const ready = readyOf(slices);
  const hosts = ready.flatMap(({ addresses, hostname }) => {
    const [address] = addresses ?? [];
    return address === undefined ? [] : [{ address, name: `${hostname ?? address.replaceAll('.', '-')}.${base}` }];
  });
  return [
    [base, { addresses: hosts.map(({ address }) => address) }],
    ...[...Map.groupBy(hosts, ({ name }) => name)].map(([name, same]): Names[number] => [
      name,
      { addresses: same.map(({ address }) => address) },
    ]),
    ...slices.flatMap((slice) =>
      (slice.ports ?? []).flatMap(
        ({ name = '', port, protocol = 'TCP' }): Names =>
          name === '' || port === undefined
            ? []
            : [
                [
                  `_${name}._${protocol.toLowerCase()}.${base}`,
                  { addresses: [], services: hosts.map((host) => ({ port, target: host.name })) },
                ],
              ],
      ),
    ),
  ];
}

function peerOf({ metadata }: DeepReadonly<Node>): NetworkPeer[] {
  const [, host = '', port = ''] = /^(.+):(\d+)$/.exec(metadata.annotations?.[POD_NETWORK_ANNOTATION] ?? '') ?? [];
  return host === '' ? [] : [{ node: metadata.name ?? '', host, port: Number(port) }];
}
