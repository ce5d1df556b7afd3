/**
 * The tables of the switch, kept in step with the objects of the cluster: what an object changed is computed anew, and only
 * what that changed is sent. Bounded by the objects that there are. No I/O.
 */
import { isDeepStrictEqual } from 'node:util';
import type { DeepReadonly, KubeObject } from '@coracle/apimachinery/meta/object';
import type { EndpointSlice, Namespace, NetworkPolicy, Node, Pod, Service } from '@coracle/apimachinery/types/types';
import type { Change, IndexFunction, Store } from '@coracle/client/informer/store';
import { isExporter } from '@coracle/kubevirt/rules/export/exporter-pod';
import { FORWARDED_PORTS_ANNOTATION } from '@coracle/kubevirt/rules/machine/host-ports';
import {
  type LocalGuest,
  type NetworkCard,
  type NetworkChange,
  type NetworkListener,
  type NetworkProgram,
  TABLE_NAMES,
  TABLES,
  type TableChange,
  type TableName,
} from '../../network/switch/switch-state.ts';
import { POD_NETWORK_ANNOTATION } from '../registration/node-object.ts';
import { type PolicyRules, policyRules } from './network-policies.ts';
import {
  isOuter,
  type NetworkEntries,
  networkAddressOf,
  peerOf,
  podsOf,
  publishedPort,
  segmentsOf,
  serviceEntries,
  serviceOf,
} from './network-state.ts';

const BY_ADDRESS = 'network-address';
const BY_SEGMENT = 'network-segment';
const BY_SERVICE = 'network-service';
/** Of Pods that are programs of a node: that. */
export const BY_PROGRAM = 'network-program';

/** By which the view finds objects; each store of that name has to have them. */
export const NETWORK_INDEXES: {
  readonly pods: Readonly<Record<string, IndexFunction<Pod>>>;
  readonly slices: Readonly<Record<string, IndexFunction<EndpointSlice>>>;
} = {
  pods: {
    [BY_ADDRESS]: (pod) => [networkAddressOf(pod) ?? ''].filter((address) => address !== ''),
    [BY_SEGMENT]: segmentsOf,
    [BY_PROGRAM]: (pod) => (isExporter(pod) && networkAddressOf(pod) !== undefined ? [pod.spec.nodeName ?? ''] : []),
  },
  slices: {
    [BY_SERVICE]: (slice) => [serviceOf(slice) ?? ''].filter((service) => service !== ''),
    // A list that is empty may be null.
    [BY_ADDRESS]: ({ endpoints }) => [...new Set((endpoints ?? []).flatMap(({ addresses }) => addresses ?? []))],
  },
};

export interface NetworkStores {
  readonly pods: Store<Pod>;
  readonly nodes: Store<Node>;
  readonly services: Store<Service>;
  readonly slices: Store<EndpointSlice>;
  readonly namespaces: Store<Namespace>;
  readonly policies: Store<NetworkPolicy>;
}

export interface NetworkView {
  /** An object has changed, and its store shows it. */
  podChanged(change: Change<Pod>): void;
  nodeChanged(change: Change<Node>): void;
  serviceChanged(change: Change<Service>): void;
  sliceChanged(change: Change<EndpointSlice>): void;
  /** A Namespace or NetworkPolicy. */
  policiesChanged(): void;
  /** The guests and programs that are here now, and the cards on segments of those that have a process here. */
  setHere(here: LocalThings): void;
  /** Something may be different since `take` was called. */
  readonly isDirty: boolean;
  /** What is different since the last call; undefined where nothing is. */
  take(): NetworkChange | undefined;
  /** Everything. */
  whole(): NetworkChange;
  listeners(): readonly NetworkListener[];
}

export interface LocalThings {
  /** Programs among them. */
  readonly guests: readonly LocalGuest[];
  readonly cards: readonly NetworkCard[];
  readonly programs: readonly NetworkProgram[];
}

/** Which objects some entries are made of: each kind of source has a prefix, and an object or address behind it. */
const PODS = 'pods ';
const SERVICE = 'service ';
const SEGMENT = 'segment ';
const GUESTS = 'guests';
const PEERS = 'peers';
const RULES = 'rules';

type Held = Map<TableName, Map<string, unknown>>;

const keyOf = (table: TableName, entry: unknown): string => (TABLES[table] as (entry: unknown) => string)(entry);

function held(entries: NetworkEntries): Held {
  return new Map(
    TABLE_NAMES.flatMap((table) => {
      const list: readonly unknown[] = entries[table] ?? [];
      return list.length === 0 ? [] : [[table, new Map(list.map((entry) => [keyOf(table, entry), entry]))] as const];
    }),
  );
}

function addTo<T>(lists: Map<TableName, T[]>, table: TableName, item: T): void {
  const list = lists.get(table);
  if (list) list.push(item);
  else lists.set(table, [item]);
}

const textOf = (...values: readonly unknown[]): string => JSON.stringify(values);

/** What rules of policies read of a Pod. */
const policyText = (pod: DeepReadonly<Pod>): string =>
  textOf(
    networkAddressOf(pod),
    pod.metadata.labels,
    pod.spec.containers?.map(({ ports }) => ports),
  );
/** What its entry, and listeners, are made of. */
const placeText = (pod: DeepReadonly<Pod>): string =>
  textOf(
    networkAddressOf(pod),
    pod.spec.nodeName,
    pod.metadata.annotations?.[FORWARDED_PORTS_ANNOTATION],
    segmentsOf(pod),
  );
const zoneLabel = (node: DeepReadonly<Node> | undefined): string | undefined =>
  node?.metadata.labels?.['topology.kubernetes.io/zone'];
const nodeText = (node: DeepReadonly<Node>): string =>
  textOf(node.metadata.annotations?.[POD_NETWORK_ANNOTATION], node.status?.nodeInfo?.bootID, zoneLabel(node));

function differs<T extends KubeObject>(change: Change<T>, text: (object: DeepReadonly<T>) => string): boolean {
  return change.type !== 'modified' || text(change.object) !== text(change.previous);
}

/** A segment, where this node has Pods on it. */
function segmentEntries({ pods }: NetworkStores, name: string, node: string): NetworkEntries {
  const on = new Set(pods.byIndex(BY_SEGMENT, name).map(({ spec }) => spec.nodeName ?? ''));
  return on.has(node) ? { segments: [{ name, nodes: [...on].sort() }] } : {};
}

/** Everything that entries can be made of. */
const allSources = ({ pods, services }: NetworkStores): Set<string> =>
  new Set([
    PEERS,
    RULES,
    ...pods.list().flatMap((pod) => [PODS + networkAddressOf(pod), ...segmentsOf(pod).map((name) => SEGMENT + name)]),
    ...services.list().map(({ metadata }) => `${SERVICE}${metadata.namespace}/${metadata.name}`),
  ]);

/** Makes it of all that the stores hold now. `node`: which one it is, `address`: where its ports are opened. */
export function createNetworkView(
  stores: NetworkStores,
  { node, address }: { readonly node: string; readonly address: string },
): NetworkView {
  const { pods, nodes, services, slices, namespaces, policies } = stores;
  const sources = new Map<string, Held>();
  const dirty = allSources(stores);
  let here: LocalThings = { guests: [], cards: [], programs: [] };
  let rules: PolicyRules = { rules: [], of: new Map() };

  const bootOf = (name: string): string | undefined => nodes.get({ namespace: '', name })?.status?.nodeInfo?.bootID;
  const zoneOf = (name: string): string | undefined => zoneLabel(nodes.get({ namespace: '', name }));
  const isOfHost = (name: string): boolean => name === node || (bootOf(name) ?? '-') === bootOf(node);
  const published = (protocol: string, at: string, port: number) =>
    publishedPort(
      pods.byIndex(BY_ADDRESS, at).filter(({ spec }) => isOfHost(spec.nodeName ?? '')),
      { protocol, port },
    );

  const entriesOf = (source: string): NetworkEntries => {
    if (source === GUESTS) return { ...here };
    if (source === PEERS)
      return {
        peers: nodes
          .list()
          .flatMap(peerOf)
          .filter((peer) => peer.node !== node),
      };
    if (source === RULES) return { rules: rules.rules };
    if (source.startsWith(PODS)) {
      const found = podsOf(pods.byIndex(BY_ADDRESS, source.slice(PODS.length)));
      return { pods: found.map((pod) => ({ ...pod, ...rules.of.get(pod.address) })) };
    }
    if (source.startsWith(SEGMENT)) return segmentEntries(stores, source.slice(SEGMENT.length), node);
    const key = source.slice(SERVICE.length);
    const [namespace = '', name = ''] = key.split('/');
    const service = services.get({ namespace, name });
    return service
      ? serviceEntries(service, slices.byIndex(BY_SERVICE, key), { node, zoneOf, address, published })
      : {};
  };

  /** Policies are read as a whole: which Pods each is about is not known before. */
  const readPolicies = (): void => {
    const all = policies.list();
    if (all.length === 0 && rules.rules.length === 0 && rules.of.size === 0) return;
    const next = policyRules({
      pods: pods.list().filter((pod) => networkAddressOf(pod) !== undefined),
      namespaces: namespaces.list(),
      policies: all,
    });
    for (const at of new Set([...rules.of.keys(), ...next.of.keys()]))
      if (!isDeepStrictEqual(rules.of.get(at), next.of.get(at))) dirty.add(PODS + at);
    rules = next;
  };

  const take = (): NetworkChange | undefined => {
    if (dirty.has(RULES)) readPolicies();
    const removed = new Map<TableName, string[]>();
    const set = new Map<TableName, unknown[]>();
    for (const source of dirty) {
      const before = sources.get(source);
      const next = held(entriesOf(source));
      if (next.size > 0) sources.set(source, next);
      else sources.delete(source);
      for (const table of TABLE_NAMES) {
        const [was, is] = [before?.get(table), next.get(table)];
        for (const key of was?.keys() ?? []) if (!is?.has(key)) addTo(removed, table, key);
        for (const [key, entry] of is ?? [])
          if (!was?.has(key) || !isDeepStrictEqual(was.get(key), entry)) addTo(set, table, entry);
      }
    }
    dirty.clear();
    if (removed.size === 0 && set.size === 0) return undefined;
    const changes = TABLE_NAMES.flatMap((table): [TableName, TableChange<unknown>][] => {
      const [gone, now] = [removed.get(table), set.get(table)];
      return gone || now ? [[table, { ...(gone && { remove: gone }), ...(now && { set: now }) }]] : [];
    });
    return { node, ...Object.fromEntries(changes) };
  };

  const allOf = (table: TableName): unknown[] =>
    [...sources.values()].flatMap((source) => [...(source.get(table)?.values() ?? [])]);

  return {
    podChanged(change) {
      const both = change.previous ? [change.previous, change.object] : [change.object];
      if (differs(change, placeText)) {
        for (const segment of both.flatMap(segmentsOf)) dirty.add(SEGMENT + segment);
        for (const at of both.flatMap((pod) => networkAddressOf(pod) ?? [])) {
          dirty.add(PODS + at);
          for (const slice of slices.byIndex(BY_ADDRESS, at)) dirty.add(SERVICE + serviceOf(slice));
        }
      }
      if (policies.list().length > 0 && differs(change, policyText)) dirty.add(RULES);
    },
    nodeChanged(change) {
      if (!differs(change, nodeText)) return;
      dirty.add(PEERS);
      for (const service of services.list())
        if (isOuter(service) || service.spec?.trafficDistribution)
          dirty.add(`${SERVICE}${service.metadata.namespace}/${service.metadata.name}`);
    },
    serviceChanged: ({ object: { metadata } }) => void dirty.add(`${SERVICE}${metadata.namespace}/${metadata.name}`),
    sliceChanged({ object, previous }) {
      for (const slice of previous ? [previous, object] : [object]) dirty.add(SERVICE + serviceOf(slice));
    },
    policiesChanged: () => void dirty.add(RULES),
    setHere(now) {
      here = now;
      dirty.add(GUESTS);
    },
    get isDirty() {
      return dirty.size > 0;
    },
    take,
    whole() {
      take();
      const tables = TABLE_NAMES.map((table) => [table, { set: allOf(table) }] as const);
      return { node, whole: true, ...Object.fromEntries(tables) };
    },
    listeners: () => allOf('listeners') as NetworkListener[],
  };
}
