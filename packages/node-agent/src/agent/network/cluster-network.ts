/** Looks at the cluster for the switch of this node: Pods, Nodes, Services and their endpoints, and which guests are here. */
import {
  ENDPOINT_SLICES,
  NAMESPACES,
  NETWORK_POLICIES,
  NODES,
  PODS,
  SERVICES,
} from '@coracle/apimachinery/types/resource-types';
import type { EndpointSlice, Node, Pod, Service } from '@coracle/apimachinery/types/types';
import { createInformer } from '@coracle/client/informer/informer';
import type { Change } from '@coracle/client/informer/store';
import { EXPORTER_PORT, isExporter } from '@coracle/kubevirt/rules/export/exporter-pod';
import { hostAddressOf, podAddressOf } from '@coracle/kubevirt/rules/launcher/pod-address';
import { usualHostPort } from '@coracle/kubevirt/rules/machine/host-ports';
import type { ListenerTarget, NetworkCard } from '../../network/switch/switch-state.ts';
import { segmentSocket } from '../../qemu/cards.ts';
import type { AgentEnvironment } from '../environment.ts';
import type { VmRecord } from '../launcher/vm-record.ts';
import { POD_NETWORK_ANNOTATION } from '../registration/node-object.ts';
import { keepSwitch, type PortProblem } from './keep-switch.ts';
import { isHere, isOuter, networkAddressOf } from './network-state.ts';
import { BY_PROGRAM, createNetworkView, NETWORK_INDEXES, type NetworkView } from './network-view.ts';
import { createExportsSocket } from './serve-exports.ts';

/** Changes come in bursts; a guest that moves waits for no more than this. */
const SETTLE_MS = 10;
/** Until a port of a guest is asked for again that could not be forwarded. */
const FORWARD_RETRY_MS = 1000;

export interface ClusterNetwork {
  /** Something about the guests of this node has changed. */
  guestsChanged(): void;
  /** The node proves its name anew, or can again. */
  identify(): void;
  /** Where other nodes find this one's switch, `HOST:PORT`; undefined before it listens. */
  readonly endpoint: string | undefined;
  /** Settles with the signal. */
  readonly done: Promise<unknown>;
}

export interface ClusterNetworkOptions {
  readonly dataDir: string;
  readonly records: () => readonly (VmRecord | undefined)[];
  /** Forwards a TCP port of the guest that has this loopback address. */
  readonly forward: (hostAddress: string, port: number) => Promise<void>;
}

/** Begins to look; the switch is started when the first guest is here. */
export function createClusterNetwork(environment: AgentEnvironment, options: ClusterNetworkOptions): ClusterNetwork {
  const { dataDir, records } = options;
  const { client, clock, log, signal, nodeName, hostIP } = environment;
  const { stores, informers, hear } = networkInformers(environment);
  const { nodes, services, pods } = stores;
  const exportsSocket = createExportsSocket(environment, dataDir);
  let endpoint: string | undefined;
  let isSynced = false;
  /** What the switch knows; there is none while this node serves nobody. */
  let view: NetworkView | undefined;
  let cancel: (() => void) | undefined;

  const publish = (port: number): void => {
    endpoint = `${hostIP}:${port}`;
    const body = { metadata: { annotations: { [POD_NETWORK_ANNOTATION]: endpoint } } };
    // The next heartbeat writes it too.
    client
      .patch(NODES, { namespace: '', name: nodeName }, { type: 'merge', body }, { signal })
      .catch((error: Error) => log.debug('where the switch listens is not known yet', { error: error.message }));
  };
  const onPortProblem = ({ service, host, port, code }: PortProblem): void => {
    const [namespace = '', name = ''] = service.split('/');
    const found = services.get({ namespace, name });
    // Another node of this host has it, and serves the endpoints of all.
    if (!found || (code === 'EADDRINUSE' && host === hostIP && nodes.list().length > 1)) return;
    environment.events.event(found, 'Warning', 'PortNotServed', `Port ${port} of ${host} ${whyOf(code, port)}.`);
  };
  const keeper = keepSwitch({
    dataDir,
    host: hostIP,
    peer: environment.peer,
    whole: () => view?.whole() ?? { node: nodeName, whole: true },
    onListening: publish,
    onPortProblem,
    clock,
    log,
    signal,
  });

  /** Endpoints of Services that a port of the host stands for; asked for once, until that fails. */
  const asked = new Set<string>();
  const forward = ({ address, port }: ListenerTarget): void => {
    const name = `${address}/${port}`;
    if (asked.has(name)) return;
    asked.add(name);
    options.forward(hostAddressOf(address), port).catch((error: Error) => {
      asked.delete(name);
      log.debug('a port of a guest is not forwarded yet', { address, port, error: error.message });
      clock.schedule(FORWARD_RETRY_MS, changed);
    });
  };
  const isOwn = ({ node }: ListenerTarget): boolean => node === nodeName;

  /** The objects are of others, who may write what is not expected here: the switch goes on with what it knows. */
  const send = (): void => {
    cancel = undefined;
    if (signal.aborted || !isSynced) return;
    try {
      sendChange();
    } catch (error) {
      log.error('the network of Pods is not brought up to date', { error: (error as Error).message });
    }
  };
  const sendChange = (): void => {
    const held = records().filter((record) => record && record.plan.interfaces.length > 0);
    // A guest that is still received counts: the switch is there when it runs.
    const programs = pods.byIndex(BY_PROGRAM, nodeName).map((pod) => ({
      guest: { address: networkAddressOf(pod) ?? '', since: Date.parse(pod.status?.startTime ?? '') },
      program: { address: networkAddressOf(pod) ?? '', port: EXPORTER_PORT },
    }));
    const isNeeded = held.length > 0 || programs.length > 0 || services.list().some(isOuter);
    if (!isNeeded && !view) return;
    const isNew = view === undefined;
    view ??= createNetworkView(stores, { node: nodeName, address: hostIP });
    const guests = held.flatMap((record) =>
      record && isHere(record) ? [{ address: podAddressOf(record.address), since: record.startedAt }] : [],
    );
    const cards = held.flatMap((record) => (record?.process && !record.result ? cardsOf(record) : []));
    view.setHere({
      guests: [...guests, ...programs.map(({ guest }) => guest)],
      cards,
      programs: programs.map(({ program }) => program),
    });
    if (programs.length > 0) exportsSocket.open();
    const here = new Set(guests.map(({ address }) => address));
    for (const name of asked) if (!here.has(name.split('/')[0] ?? '')) asked.delete(name);
    const change = isNew ? view.whole() : view.take();
    for (const { protocol, targets } of view.listeners())
      for (const target of targets) if (protocol === 'tcp' && !target.at && isOwn(target)) forward(target);
    keeper.start();
    if (change) keeper.send(change);
    if (!isNeeded) view = undefined;
  };
  const changed = (): void => {
    cancel ??= clock.schedule(SETTLE_MS, send);
  };
  hear(() => view, changed);
  pods.onChange(({ object }) => {
    if (isExporter(object) && object.spec.nodeName === nodeName) changed();
  });
  signal.addEventListener('abort', () => cancel?.(), { once: true });
  const done = Promise.allSettled(informers.map((informer) => informer.start(signal)));
  Promise.all(informers.map((informer) => informer.synced(signal))).then(
    () => {
      isSynced = true;
      changed();
    },
    () => {},
  );
  return {
    guestsChanged: changed,
    identify: keeper.identify,
    get endpoint() {
      return endpoint;
    },
    done,
  };
}

/** Both ends of a migration have them: who says something last is who is reached. */
const cardsOf = ({ vmiUid, plan }: VmRecord): NetworkCard[] =>
  plan.interfaces.flatMap(({ segment, mac, checksAddress }) => {
    if (!segment) return [];
    const socket = `../vms/${vmiUid}/${segmentSocket(segment)}`;
    return [{ socket, segment: segment.definition, ...(checksAddress && { mac }) }];
  });

/** Informers of all that the network is made of. `hear` tells the view of their changes, and calls back where they may matter. */
function networkInformers({ client, clock, log }: AgentEnvironment) {
  const how = { clock, log };
  const pods = createInformer(client, PODS, { ...how, indexes: NETWORK_INDEXES.pods });
  const nodes = createInformer(client, NODES, how);
  const services = createInformer(client, SERVICES, how);
  const slices = createInformer(client, ENDPOINT_SLICES, { ...how, indexes: NETWORK_INDEXES.slices });
  const namespaces = createInformer(client, NAMESPACES, how);
  const policies = createInformer(client, NETWORK_POLICIES, how);
  return {
    stores: { pods, nodes, services, slices, namespaces, policies },
    informers: [pods, nodes, services, slices, namespaces, policies],
    hear(current: () => NetworkView | undefined, changed: () => void): void {
      /** Most changes are reports that say nothing of the network: they wake nobody. */
      const heard =
        <C>(take: (view: NetworkView, change: C) => void) =>
        (change: C): void => {
          const view = current();
          if (view) take(view, change);
          if (view?.isDirty) changed();
        };
      pods.onChange(heard((view, change: Change<Pod>) => view.podChanged(change)));
      nodes.onChange(heard((view, change: Change<Node>) => view.nodeChanged(change)));
      slices.onChange(heard((view, change: Change<EndpointSlice>) => view.sliceChanged(change)));
      for (const informer of [namespaces, policies]) informer.onChange(heard((view) => view.policiesChanged()));
      services.onChange((change: Change<Service>) => {
        current()?.serviceChanged(change);
        // It may be the first that this node opens a port for.
        if (current() || isOuter(change.object)) changed();
      });
    },
  };
}

const whyOf = (code: string, port: number): string =>
  code === 'EACCES'
    ? `needs a privilege; use port ${usualHostPort(port)} of that address, or the node port`
    : code === 'EADDRINUSE'
      ? 'is taken by another program, or by another node of this host'
      : `could not be had (${code})`;
