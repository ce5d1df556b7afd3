/** Looks at the cluster for the switch of this node: Pods, Nodes, Services and their endpoints, and which guests are here. */
import {
  ENDPOINT_SLICES,
  NAMESPACES,
  NETWORK_POLICIES,
  NODES,
  PODS,
  SERVICES,
} from '@coracle/apimachinery/types/resource-types';
import { createInformer } from '@coracle/client/informer/informer';
import { hostAddressOf, podAddressOf } from '@coracle/kubevirt/rules/launcher/pod-address';
import { usualHostPort } from '@coracle/kubevirt/rules/machine/host-ports';
import type { ListenerTarget } from '../../network/switch/switch-state.ts';
import type { AgentEnvironment } from '../environment.ts';
import type { VmRecord } from '../launcher/vm-record.ts';
import { POD_NETWORK_ANNOTATION } from '../registration/node-object.ts';
import { keepSwitch, type PortProblem } from './keep-switch.ts';
import { isHere, networkState } from './network-state.ts';

/** Changes come in bursts; a guest that moves waits for no more than this. */
const SETTLE_MS = 10;

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
  const how = { clock, log };
  const pods = createInformer(client, PODS, how);
  const nodes = createInformer(client, NODES, how);
  const services = createInformer(client, SERVICES, how);
  const slices = createInformer(client, ENDPOINT_SLICES, how);
  const namespaces = createInformer(client, NAMESPACES, how);
  const policies = createInformer(client, NETWORK_POLICIES, how);
  const informers = [pods, nodes, services, slices, namespaces, policies];
  let endpoint: string | undefined;
  let isSynced = false;
  let isStarted = false;
  let cancel: (() => void) | undefined;
  let sent = '';

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
    });
  };
  const isOwn = ({ node }: ListenerTarget): boolean => node === nodeName;

  /** The objects are of others, who may write what is not expected here: the switch goes on with what it knows. */
  const send = (): void => {
    cancel = undefined;
    if (signal.aborted || !isSynced) return;
    try {
      sendState();
    } catch (error) {
      log.error('the network of Pods is not brought up to date', { error: (error as Error).message });
    }
  };
  const sendState = (): void => {
    const guests = records().flatMap((record) =>
      record && record.plan.interfaces.length > 0 && isHere(record)
        ? [{ address: podAddressOf(record.address), since: record.startedAt }]
        : [],
    );
    const state = networkState({
      node: nodeName,
      address: hostIP,
      pods: pods.list(),
      nodes: nodes.list(),
      services: services.list(),
      slices: slices.list(),
      namespaces: namespaces.list(),
      policies: policies.list(),
      guests,
    });
    const here = new Set(guests.map(({ address }) => address));
    for (const name of asked) if (!here.has(name.split('/')[0] ?? '')) asked.delete(name);
    isStarted ||= guests.length > 0 || state.listeners.length > 0;
    if (!isStarted) return;
    for (const { protocol, targets } of state.listeners)
      for (const target of targets) if (protocol === 'tcp' && !target.at && isOwn(target)) forward(target);
    const text = JSON.stringify(state);
    if (text === sent) return;
    sent = text;
    keeper.send(state);
  };
  const changed = (): void => {
    cancel ??= clock.schedule(SETTLE_MS, send);
  };
  for (const informer of informers) informer.onChange(changed);
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

const whyOf = (code: string, port: number): string =>
  code === 'EACCES'
    ? `needs a privilege; use port ${usualHostPort(port)} of that address, or the node port`
    : code === 'EADDRINUSE'
      ? 'is taken by another program, or by another node of this host'
      : `could not be had (${code})`;
