import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EndpointSlice, Namespace, Node, Pod, Service } from '../../../../apimachinery/src/types/types.ts';
import { hostAddressOf, isPodAddress, podAddressOf } from '../../../../kubevirt/src/rules/launcher/pod-address.ts';
import type { NetworkPolicy } from './network-policies.ts';
import { networkState } from './network-state.ts';

const pod = (name: string, podIP: string, labels: Record<string, string> = {}, namespace = 'default'): Pod =>
  ({
    metadata: { name, namespace, labels },
    spec: { nodeName: 'one', containers: [{ name: 'compute', ports: [{ name: 'http', containerPort: 8080 }] }] },
    status: { podIP, phase: 'Running' },
  }) as unknown as Pod;
const [A, B, C] = ['100.64.0.1', '100.64.0.2', '100.64.0.3'] as const;
const NOTHING = {
  address: '127.0.0.1',
  node: 'one',
  pods: [],
  nodes: [],
  services: [],
  slices: [],
  guests: [],
  namespaces: [],
  policies: [],
};

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
    ...NOTHING,
    pods: [pod('a', A), moving, { ...moving, spec: { ...moving.spec, nodeName: 'two' } }, pod('old', '10.1.1.1')],
    nodes: [
      { metadata: { name: 'one', annotations: { 'coracle.dev/pod-network': '127.0.0.1:1' } } },
      { metadata: { name: 'two', annotations: { 'coracle.dev/pod-network': '127.0.0.1:4711' } } },
      { metadata: { name: 'three' } },
    ] as unknown as Node[],
    services: [
      service('web', { clusterIP: '10.96.0.7', ports: [{ name: 'http', port: 80 }], sessionAffinity: 'ClientIP' }),
      service('bare', { clusterIP: 'None', ports: [{ name: 'http', port: 8080 }] }),
      service('far', { type: 'ExternalName', externalName: 'example.com' }),
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
  assert.deepEqual(state.services, [{ address: '10.96.0.7', protocol: 'tcp', port: 80, sticky: true, targets }]);
  assert.deepEqual(state.names, {
    'web.default.svc': { addresses: ['10.96.0.7'] },
    '_http._tcp.web.default.svc': { addresses: [], services: [{ port: 80, target: 'web.default.svc' }] },
    'bare.default.svc': { addresses: [A, C] },
    'host-a.bare.default.svc': { addresses: [A] },
    '100-64-0-3.bare.default.svc': { addresses: [C] },
    '_http._tcp.bare.default.svc': {
      addresses: [],
      services: [
        { port: 8080, target: 'host-a.bare.default.svc' },
        { port: 8080, target: '100-64-0-3.bare.default.svc' },
      ],
    },
  });
});

test('networkState() makes rules of NetworkPolicies: by labels, namespaces, blocks and ports, also by name', () => {
  const policy = (spec: NetworkPolicy['spec']): NetworkPolicy =>
    ({ metadata: { name: 'p', namespace: 'default' }, spec }) as NetworkPolicy;
  const pods = [pod('a', A, { app: 'a' }), pod('b', B, { app: 'b' }), pod('c', C, { app: 'c' }, 'other')];
  const namespaces = [
    { metadata: { name: 'default', labels: {} } },
    { metadata: { name: 'other', labels: { team: 'x' } } },
  ] as unknown as Namespace[];
  const of = (spec: NetworkPolicy['spec']) => networkState({ ...NOTHING, pods, namespaces, policies: [policy(spec)] });

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
  assert.deepEqual(open.pods[0]?.ingress, [0, 1, 2, 3]);
  assert.deepEqual(open.rules, [
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
  assert.deepEqual(out.pods[1], { address: B, nodes: ['one'], egress: [0, 1] });
  assert.deepEqual(out.rules, [
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
  const state = networkState({ ...NOTHING, services, slices, pods: odd });
  assert.deepEqual(
    state.services.map(({ address, targets }) => [address, targets]),
    [['10.96.0.7', []]],
  );
  assert.deepEqual(state.names['none.default.svc'], { addresses: [] });
});
