import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { partly } from '../../../../../test/testkit/partly.ts';
import type { KubeObject } from '../../../../apimachinery/src/meta/object.ts';
import type {
  EndpointSlice,
  Namespace,
  NetworkPolicy,
  Node,
  Pod,
  Service,
} from '../../../../apimachinery/src/types/types.ts';
import { type Change, StoreWriter } from '../../../../client/src/informer/store.ts';
import { hostAddressOf, isPodAddress, podAddressOf } from '../../../../kubevirt/src/rules/launcher/pod-address.ts';
import {
  type Entry,
  type NetworkChange,
  TABLE_NAMES,
  TABLES,
  type TableName,
} from '../../network/switch/switch-state.ts';
import { createNetworkView, NETWORK_INDEXES, type NetworkView } from './network-view.ts';

const pod = (name: string, podIP: string, labels: Record<string, string> = {}, namespace = 'default'): Pod =>
  ({
    metadata: { name, namespace, labels },
    spec: { nodeName: 'one', containers: [{ name: 'compute', ports: [{ name: 'http', containerPort: 8080 }] }] },
    status: { podIP, phase: 'Running' },
  }) as unknown as Pod;
const [A, B, C] = ['100.64.0.1', '100.64.0.2', '100.64.0.3'] as const;

interface Objects {
  readonly pods?: readonly Pod[];
  readonly nodes?: readonly Node[];
  readonly services?: readonly Service[];
  readonly slices?: readonly EndpointSlice[];
  readonly namespaces?: readonly Namespace[];
  readonly policies?: readonly NetworkPolicy[];
}

/** Stores as informers have them. */
function storesOf({ pods = [], nodes = [], services = [], slices = [], namespaces = [], policies = [] }: Objects) {
  const filled = <T extends KubeObject>(store: StoreWriter<T>, objects: readonly T[]): StoreWriter<T> => {
    for (const object of objects) [...store.take({ type: 'apply', object })];
    return store;
  };
  return {
    pods: filled(new StoreWriter<Pod>(NETWORK_INDEXES.pods), pods),
    nodes: filled(new StoreWriter<Node>(), nodes),
    services: filled(new StoreWriter<Service>(), services),
    slices: filled(new StoreWriter<EndpointSlice>(NETWORK_INDEXES.slices), slices),
    namespaces: filled(new StoreWriter<Namespace>(), namespaces),
    policies: filled(new StoreWriter<NetworkPolicy>(), policies),
  };
}

/** All tables, as lists. */
function networkState(objects: Objects) {
  const change = createNetworkView(storesOf(objects), { node: 'one', address: '127.0.0.1' }).whole();
  const setOf = <T extends TableName>(table: T): readonly Entry<T>[] => change[table]?.set ?? [];
  return {
    pods: setOf('pods'),
    rules: setOf('rules'),
    services: setOf('services'),
    names: setOf('names'),
    peers: setOf('peers'),
    listeners: setOf('listeners'),
  };
}

test('a Pod address and the loopback address of its host are the same place of two ranges', () => {
  assert.equal(podAddressOf('127.64.3.4'), '100.64.3.4');
  assert.equal(hostAddressOf(podAddressOf('127.127.255.1')), '127.127.255.1');
  assert.deepEqual(['100.64.0.0', '100.127.1.1', '100.128.0.1', '127.64.0.1', ''].map(isPodAddress), [
    true,
    true,
    false,
    false,
    false,
  ]);
});

test('networkState() gives Services their ready endpoints, and names to what can be reached', () => {
  const service = (name: string, spec: Service['spec']): Service =>
    ({ metadata: { name, namespace: 'default' }, spec }) as Service;
  const endpoint = (address: string, ready: boolean, hostname?: string) => ({
    addresses: [address],
    conditions: { ready, serving: ready, terminating: false },
    ...(hostname !== undefined && { hostname }),
  });
  const slice = (of: string, endpoints: EndpointSlice['endpoints']): EndpointSlice =>
    ({
      metadata: { name: `${of}-x`, namespace: 'default', labels: { 'kubernetes.io/service-name': of } },
      addressType: 'IPv4',
      endpoints,
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    }) as unknown as EndpointSlice;
  const moving = pod('c', C);
  const state = networkState({
    pods: [
      pod('a', A),
      moving,
      { ...pod('c-moved', C), spec: { ...moving.spec, nodeName: 'two' } },
      pod('old', '10.1.1.1'),
    ],
    nodes: [
      { metadata: { name: 'one', annotations: { 'coracle.dev/pod-network': '127.0.0.1:1' } } },
      { metadata: { name: 'two', annotations: { 'coracle.dev/pod-network': '127.0.0.1:4711' } } },
      { metadata: { name: 'three' } },
    ] as unknown as Node[],
    services: [
      service('web', { clusterIP: '10.96.0.7', ports: [{ name: 'http', port: 80 }], sessionAffinity: 'ClientIP' }),
      service('bare', { clusterIP: 'None', ports: [{ name: 'http', port: 8080 }] }),
      service('far', { type: 'ExternalName', externalName: 'Example.com.' }),
    ],
    slices: [
      slice('web', [endpoint(A, true), endpoint(B, false), endpoint('192.0.2.1', true)]),
      slice('bare', [endpoint(A, true, 'host-a'), endpoint(B, false, 'host-b'), endpoint(C, true)]),
    ],
  });
  assert.deepEqual(state.pods, [
    { address: A, nodes: ['one'] },
    { address: C, nodes: ['one', 'two'] },
  ]);
  assert.deepEqual(state.peers, [{ node: 'two', host: '127.0.0.1', port: 4711 }]);
  const targets = [{ address: A, port: 8080 }];
  assert.deepEqual(state.services, [
    { address: '10.96.0.7', protocol: 'tcp', port: 80, affinitySeconds: 10_800, targets },
  ]);
  assert.deepEqual(state.names, [
    { name: 'web.default.svc', addresses: ['10.96.0.7'], isOwn: true },
    { name: '_http._tcp.web.default.svc', addresses: [], services: [{ port: 80, target: 'web.default.svc' }] },
    { name: 'bare.default.svc', addresses: [A, C] },
    { name: 'host-a.bare.default.svc', addresses: [A], isOwn: true },
    { name: '100-64-0-3.bare.default.svc', addresses: [C], isOwn: true },
    {
      name: '_http._tcp.bare.default.svc',
      addresses: [],
      services: [
        { port: 8080, target: 'host-a.bare.default.svc' },
        { port: 8080, target: '100-64-0-3.bare.default.svc' },
      ],
    },
    { name: 'far.default.svc', addresses: [], alias: 'example.com' },
  ]);
});

// S-1653: `internalTrafficPolicy: Local` gives the guests of a node the Pods of that node alone, `externalTrafficPolicy: Local`
//   its node port; a load balancer finds them on all nodes. `trafficDistribution: PreferSameNode` holds while there are some.
test('networkState() keeps connections on the node where a Service asks for it', () => {
  const endpoint = (address: string, nodeName: string, terminating = false) => ({
    addresses: [address],
    nodeName,
    conditions: { ready: !terminating, serving: true, terminating },
  });
  const service = (spec: Service['spec']): Service =>
    partly<Service>({
      metadata: { name: 'web', namespace: 'default' },
      spec: { clusterIP: '10.96.0.7', ports: [{ port: 80, nodePort: 30080 }], ...spec },
      status: { loadBalancer: { ingress: [{ ip: '127.32.0.1' }] } },
    });
  const stateOf = (spec: Service['spec'], endpoints: EndpointSlice['endpoints']) => {
    const metadata = { name: 'web-x', namespace: 'default', labels: { 'kubernetes.io/service-name': 'web' } };
    const slice = partly<EndpointSlice>({ metadata, addressType: 'IPv4', endpoints, ports: [{ port: 8080 }] });
    const { services, listeners } = networkState({ services: [service(spec)], slices: [slice] });
    const reached = (targets: readonly { readonly address: string }[] = []) => targets.map(({ address }) => address);
    return [
      reached(services[0]?.targets),
      ...listeners.filter(({ port }) => port !== 40_080).map(({ host, targets }) => [host, ...reached(targets)]),
    ];
  };
  const both = [endpoint(A, 'one'), endpoint(B, 'two')];
  assert.deepEqual(stateOf({ internalTrafficPolicy: 'Local' }, both), [[A]]);
  assert.deepEqual(stateOf({ internalTrafficPolicy: 'Local' }, [endpoint(A, 'one', true), endpoint(B, 'two')]), [[A]]);
  assert.deepEqual(stateOf({ internalTrafficPolicy: 'Local' }, [endpoint(B, 'two')]), [[]]);
  const near = { trafficDistribution: 'PreferSameNode' };
  assert.deepEqual([...stateOf(near, both), ...stateOf(near, [endpoint(B, 'two')])], [[A], [B]]);
  assert.deepEqual(stateOf({ type: 'LoadBalancer', externalTrafficPolicy: 'Local' }, both), [
    [A, B],
    ['127.0.0.1', A],
    ['127.32.0.1', A, B],
  ]);
});

// S-1670: `trafficDistribution: PreferSameZone` (and `PreferClose`) leads guests and node ports to endpoints of the zone of their
//   node while there are some, `PreferSameNode` where its node has none; where a zone is not known, to all.
test('networkState() keeps connections in a zone where a Service asks for it', () => {
  const endpoint = (address: string, nodeName: string) => ({
    addresses: [address],
    nodeName,
    conditions: { ready: true },
  });
  const node = ([name, zone]: readonly string[]): Node =>
    partly<Node>({ metadata: { name, labels: { 'topology.kubernetes.io/zone': zone } } });
  const ZONES = { one: 'north', two: 'north', three: 'south' };
  const reached = (
    trafficDistribution: string,
    endpoints: EndpointSlice['endpoints'],
    zones: Readonly<Record<string, string>> = ZONES,
  ): string[] => {
    const metadata = { name: 'web-x', namespace: 'default', labels: { 'kubernetes.io/service-name': 'web' } };
    const spec: Service['spec'] = {
      clusterIP: '10.96.0.7',
      type: 'NodePort',
      ports: [{ port: 80, nodePort: 30080 }],
      trafficDistribution,
    };
    const { services, listeners } = networkState({
      nodes: Object.entries(zones).map(node),
      services: [partly<Service>({ metadata: { name: 'web', namespace: 'default' }, spec })],
      slices: [partly<EndpointSlice>({ metadata, addressType: 'IPv4', endpoints, ports: [{ port: 8080 }] })],
    });
    const [inside = [], outside] = [services[0]?.targets, listeners[0]?.targets].map((targets) =>
      targets?.map(({ address }) => address),
    );
    assert.deepEqual(inside, outside);
    return inside;
  };
  const all = [endpoint(A, 'two'), endpoint(B, 'three'), endpoint(C, 'one')];
  assert.deepEqual(reached('PreferSameZone', all), [A, C]);
  assert.deepEqual(reached('PreferClose', all), [A, C]);
  assert.deepEqual(reached('PreferSameNode', all), [C]);
  assert.deepEqual(reached('PreferSameNode', all.slice(0, 2)), [A]);
  assert.deepEqual(reached('PreferSameZone', all.slice(1, 2)), [B]);
  assert.deepEqual(reached('PreferSameZone', [...all, endpoint('100.64.0.9', 'four')]), [A, B, C, '100.64.0.9']);
  assert.deepEqual(reached('PreferSameZone', all, {}), [A, B, C]);
});

test('networkState() makes rules of NetworkPolicies: by labels, namespaces, blocks and ports, also by name', () => {
  const policy = (spec: NetworkPolicy['spec']): NetworkPolicy =>
    ({ metadata: { name: 'p', namespace: 'default' }, spec }) as NetworkPolicy;
  const pods = [pod('a', A, { app: 'a' }), pod('b', B, { app: 'b' }), pod('c', C, { app: 'c' }, 'other')];
  const namespaces = [
    { metadata: { name: 'default', labels: {} } },
    { metadata: { name: 'other', labels: { team: 'x' } } },
  ] as unknown as Namespace[];
  const of = (spec: NetworkPolicy['spec']) => networkState({ pods, namespaces, policies: [policy(spec)] });

  const ids = (rules: readonly Entry<'rules'>[]): string[] => rules.map(({ id }) => id);
  const bare = (rules: readonly Entry<'rules'>[]) => rules.map(({ id: _, ...rule }) => rule);

  const closed = of({ podSelector: {} });
  assert.deepEqual(
    closed.pods.map(({ ingress, egress }) => [ingress, egress]),
    [
      [[], undefined],
      [[], undefined],
      [undefined, undefined],
    ],
  );
  const open = of({
    podSelector: { matchLabels: { app: 'a' } },
    ingress: [
      { from: [{ podSelector: { matchLabels: { app: 'b' } } }], ports: [{ port: 'http' }] },
      { from: [{ namespaceSelector: { matchLabels: { team: 'x' } } }] },
      {
        from: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] } }],
        ports: [{ protocol: 'UDP', port: 1, endPort: 9 }],
      },
      {},
    ],
  });
  assert.deepEqual(open.pods[0]?.ingress, ids(open.rules));
  assert.deepEqual(bare(open.rules), [
    { addresses: [B], ports: [{ protocol: 'tcp', from: 8080, to: 8080 }] },
    { addresses: [C] },
    {
      addresses: [],
      blocks: [{ cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] }],
      ports: [{ protocol: 'udp', from: 1, to: 9 }],
    },
    { anybody: true },
  ]);
  const out = of({
    podSelector: { matchLabels: { app: 'b' } },
    policyTypes: ['Egress'],
    egress: [{ to: [{ podSelector: {} }], ports: [{ port: 'http' }, { port: 53, protocol: 'UDP' }] }],
  });
  assert.deepEqual(out.pods[1], { address: B, nodes: ['one'], egress: ids(out.rules) });
  assert.deepEqual(bare(out.rules), [
    { addresses: [A, B], ports: [{ protocol: 'udp', from: 53, to: 53 }] },
    { addresses: [A, B], ports: [{ protocol: 'tcp', from: 8080, to: 8080 }] },
  ]);
});

test('networkState() takes empty lists that are null, and annotations that say nothing', () => {
  const of = (name: string) => ({ name, namespace: 'default' });
  const services = [
    { metadata: of('web'), spec: { clusterIP: '10.96.0.7', type: 'NodePort', ports: [{ port: 80, nodePort: 30080 }] } },
    { metadata: of('none'), spec: { clusterIP: 'None', ports: null } },
    { metadata: of('bare'), spec: { clusterIP: '10.96.0.8', ports: null } },
  ] as unknown as Service[];
  const slices = ['web', 'none', 'bare'].flatMap((name) =>
    [null, [{ addresses: null, conditions: null }]].map((endpoints) => ({
      metadata: { ...of(name), labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      endpoints,
      ports: name === 'web' ? [{ port: 80, protocol: 'TCP' }] : null,
    })),
  ) as unknown as EndpointSlice[];
  const odd = ['null', '{}', '[null, 1]', 'no JSON'].map((text, at) => {
    const { metadata, ...rest } = pod(`odd-${at}`, A);
    return { ...rest, metadata: { ...metadata, annotations: { 'coracle.dev/forwarded-ports': text } } };
  });
  const state = networkState({ services, slices, pods: odd });
  assert.deepEqual(
    state.services.map(({ address, targets }) => [address, targets]),
    [['10.96.0.7', []]],
  );
  assert.deepEqual(
    state.names.find(({ name }) => name === 'none.default.svc'),
    { name: 'none.default.svc', addresses: [] },
  );
});

type Tables = Map<TableName, Map<string, unknown>>;
const keyOf = (table: TableName, entry: unknown): string => (TABLES[table] as (entry: unknown) => string)(entry);

/** A switch that only keeps what it is sent. */
function tell(tables: Tables, change: NetworkChange): void {
  if (change.whole) tables.clear();
  for (const name of TABLE_NAMES) {
    const table = tables.get(name) ?? new Map<string, unknown>();
    tables.set(name, table);
    for (const key of change[name]?.remove ?? []) assert.ok(table.delete(key), `${name} ${key} was not there`);
    for (const entry of change[name]?.set ?? []) table.set(keyOf(name, entry), entry);
  }
}

const sorted = (tables: Tables): unknown =>
  TABLE_NAMES.map((name) => [name, [...(tables.get(name) ?? [])].sort(([a], [b]) => (a < b ? -1 : 1))]);

const pick = <const T>(...values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values);
const named = (name: string, labels: Record<string, string> = {}) => ({
  metadata: { name, namespace: 'default', labels },
});

type Stores = ReturnType<typeof storesOf>;
/** Writes an object, or takes it away. */
type Write = (stores: Stores, view: NetworkView, isGone: boolean) => void;

const write =
  <T extends KubeObject>(
    object: T,
    storeIn: (stores: Stores) => StoreWriter<T>,
    hear: (view: NetworkView, change: Change<T>) => void,
  ): Write =>
  (stores, view, isGone) => {
    for (const change of storeIn(stores).take({ type: isGone ? 'delete' : 'apply', object }))
      if (change) hear(view, change);
  };

/** Any object that the view reads, of so few names that they meet. */
const ANY_WRITE: fc.Arbitrary<Write> = fc.oneof(
  fc
    .record({
      name: pick('p', 'q', 'r'),
      podIP: pick(A, B, C, '', '10.1.1.1'),
      phase: pick('Running', 'Pending', 'Succeeded'),
      nodeName: pick('one', 'two', 'three'),
      app: pick('a', 'b'),
      hostPort: pick(0, 4711),
      network: pick('blue', 'red'),
    })
    .map(({ name, podIP, phase, nodeName, app, hostPort, network }) => {
      const forwarded = [{ protocol: 'TCP', containerPort: 8080, hostIP: '127.0.0.1', hostPort }];
      const annotations = {
        'coracle.dev/forwarded-ports': JSON.stringify(hostPort === 0 ? [] : forwarded),
        'k8s.v1.cni.cncf.io/networks': JSON.stringify([{ namespace: 'default', name: network }]),
      };
      const containers = [{ name: 'compute', ports: [{ name: 'http', containerPort: 8080 }] }];
      const metadata = { ...named(name, { app }).metadata, annotations };
      return write(
        partly<Pod>({ metadata, spec: { nodeName, containers }, status: { podIP, phase } }),
        ({ pods }) => pods,
        (view, change) => view.podChanged(change),
      );
    }),
  fc.record({ name: pick('one', 'two'), bootID: pick('x', 'y'), port: pick(0, 1, 2) }).map(({ name, bootID, port }) => {
    const annotations: Record<string, string> = port === 0 ? {} : { 'coracle.dev/pod-network': `127.0.0.1:${port}` };
    return write(
      partly<Node>({ metadata: { name, annotations }, status: { nodeInfo: { bootID } } }),
      ({ nodes }) => nodes,
      (view, change) => view.nodeChanged(change),
    );
  }),
  fc
    .record({
      name: pick('s', 't'),
      clusterIP: pick('', 'None'),
      type: pick('ClusterIP', 'NodePort', 'ExternalName'),
    })
    .map(({ name, clusterIP, type }) => {
      const ports = [{ name: 'http', port: 80, nodePort: 30_080 }];
      // No two Services have one address.
      const address = clusterIP || `10.96.0.${name.charCodeAt(0)}`;
      return write(
        partly<Service>({ ...named(name), spec: { clusterIP: address, type, externalName: 'example.com', ports } }),
        ({ services }) => services,
        (view, change) => view.serviceChanged(change),
      );
    }),
  fc
    .record({ name: pick('e', 'f'), service: pick('s', 't'), addresses: fc.subarray([A, B, C]), ready: fc.boolean() })
    .map(({ name, service, addresses, ready }) => {
      const endpoints = addresses.map((address) => ({ addresses: [address], nodeName: 'one', conditions: { ready } }));
      const ports = [{ name: 'http', port: 8080 }];
      const { metadata } = named(name, { 'kubernetes.io/service-name': service });
      return write(
        partly<EndpointSlice>({ metadata, addressType: 'IPv4', endpoints, ports }),
        ({ slices }) => slices,
        (view, change) => view.sliceChanged(change),
      );
    }),
  pick('x', 'y').map((team) =>
    write(
      partly<Namespace>({ metadata: { name: 'default', labels: { team } } }),
      ({ namespaces }) => namespaces,
      (view) => view.policiesChanged(),
    ),
  ),
  fc.record({ name: pick('k', 'l'), app: pick('a', 'b'), team: pick('x', 'y') }).map(({ name, app, team }) => {
    const from = [{ namespaceSelector: { matchLabels: { team } }, podSelector: { matchLabels: { app } } }];
    const spec = { podSelector: { matchLabels: { app } }, ingress: [{ from, ports: [{ port: 'http' }] }] };
    return write(
      partly<NetworkPolicy>({ ...named(name), spec }),
      ({ policies }) => policies,
      (view) => view.policiesChanged(),
    );
  }),
);

// S-1326: A switch is sent what changed in the cluster, and nothing for a change that says nothing of the network; that comes
//   to the same as the whole.
test('what a view sends change by change is the whole, however objects come, change and go', () => {
  const step = fc.record({
    change: ANY_WRITE,
    isGone: fc.boolean(),
    isSent: fc.boolean(),
    guests: pick([], [A], [A, B]),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const stores = storesOf({});
      const place = { node: 'one', address: '127.0.0.1' };
      const view = createNetworkView(stores, place);
      const tables: Tables = new Map();
      tell(tables, view.whole());
      for (const { change, isGone, isSent, guests } of steps) {
        change(stores, view, isGone);
        const here = guests.map((address) => ({ address, since: 1 }));
        view.setHere({ guests: here, cards: [], programs: [] });
        if (!isSent) continue;
        const news = view.take();
        if (news) tell(tables, news);
        const fresh = createNetworkView(stores, place);
        fresh.setHere({ guests: here, cards: [], programs: [] });
        const whole: Tables = new Map();
        tell(whole, fresh.whole());
        assert.deepEqual(sorted(tables), sorted(whole));
      }
    }),
  );
});

test('a report that says nothing of the network is nothing to send', () => {
  const stores = storesOf({ pods: [pod('a', A)], nodes: [partly<Node>({ metadata: { name: 'one' } })] });
  const view = createNetworkView(stores, { node: 'one', address: '127.0.0.1' });
  view.whole();
  const report = pod('a', A);
  const beat = partly<Node>({ metadata: { name: 'one', resourceVersion: '9' } });
  write(
    partly<Pod>({ ...report, status: { ...report.status, message: 'well' } }),
    ({ pods }) => pods,
    (held, change) => held.podChanged(change),
  )(stores, view, false);
  write(
    beat,
    ({ nodes }) => nodes,
    (held, change) => held.nodeChanged(change),
  )(stores, view, false);
  assert.equal(view.isDirty, false);
  write(
    pod('b', B),
    ({ pods }) => pods,
    (held, change) => held.podChanged(change),
  )(stores, view, false);
  assert.deepEqual(view.take(), { node: 'one', pods: { set: [{ address: B, nodes: ['one'] }] } });
  assert.equal(view.take(), undefined);
});
