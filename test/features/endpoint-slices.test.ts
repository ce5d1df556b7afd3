import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createEndpointSliceController } from '../../packages/kube-controllers/src/controllers/endpoint-slice-controller.ts';
import { createGarbageCollectorController } from '../../packages/kube-controllers/src/controllers/garbage-collector-controller.ts';
import { eventually } from '../testkit/eventually.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';
import { type RunningControllers, runControllers } from '../testkit/run-controllers.ts';

let server: InProcessServer;
let controllers: RunningControllers;

before(async () => {
  server = await startServer();
  controllers = runControllers(server, (environment) => [
    createEndpointSliceController(environment),
    createGarbageCollectorController(environment),
  ]);
});
after(() => controllers.stop());

const PATH = '/api/v1/namespaces/default';
const SLICES = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';
const slicesOf = async (service: string) =>
  (await server.request('GET', `${SLICES}?labelSelector=kubernetes.io/service-name=${service}`)).json.items;

interface PodState {
  readonly ready?: boolean;
  readonly port?: number;
  readonly phase?: string;
}
async function pod(
  name: string,
  app: string,
  ip: string,
  { ready = true, port = 8080, phase = 'Running' }: PodState = {},
) {
  await server.create(`${PATH}/pods`, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app } },
    spec: {
      nodeName: 'node1',
      containers: [{ name: 'c', image: 'i', ports: [{ name: 'web', containerPort: port }] }],
    },
  });
  const status = {
    phase,
    podIP: ip,
    podIPs: [{ ip }],
    conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }],
  };
  await server.request('PATCH', `${PATH}/pods/${name}/status`, { body: { status } });
}
const service = (name: string, spec: object) =>
  server.create(`${PATH}/services`, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, labels: { tier: 'front' } },
    spec: { selector: { app: name }, ports: [{ name: 'http', port: 80, targetPort: 'web' }], ...spec },
  });

// S-169: Services have EndpointSlices, and Endpoints, that follow their Pods.
test('a Service has a slice, and Endpoints, that follow its Pods', async () => {
  await service('web', {});
  await eventually(async () => (await slicesOf('web')).length === 1);
  assert.equal((await slicesOf('web'))[0].endpoints, null);
  await pod('a', 'web', '10.0.0.1');
  await pod('b', 'web', '10.0.0.2', { ready: false });
  await pod('other', 'elsewhere', '10.0.0.3');
  await eventually(async () => (await slicesOf('web'))[0]?.endpoints?.length === 2);
  await eventually(async () => (await slicesOf('web'))[0].endpoints[0].conditions.ready);
  const [slice] = await slicesOf('web');
  assert.deepEqual(slice.ports, [{ name: 'http', port: 8080, protocol: 'TCP' }]);
  assert.deepEqual(slice.metadata.labels, {
    'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
    'kubernetes.io/service-name': 'web',
    tier: 'front',
  });
  assert.equal(slice.metadata.ownerReferences[0].kind, 'Service');
  assert.deepEqual(
    slice.endpoints.map((one: { addresses: string[]; conditions: object; nodeName: string }) => [
      one.addresses,
      one.conditions,
      one.nodeName,
    ]),
    [
      [['10.0.0.1'], { ready: true, serving: true, terminating: false }, 'node1'],
      [['10.0.0.2'], { ready: false, serving: false, terminating: false }, 'node1'],
    ],
  );
  await eventually(
    async () => (await server.request('GET', `${PATH}/endpoints/web`)).json.subsets?.[0]?.addresses !== undefined,
  );
  const { subsets } = (await server.request('GET', `${PATH}/endpoints/web`)).json;
  assert.deepEqual(
    [subsets[0].addresses[0].ip, subsets[0].notReadyAddresses[0].ip, subsets[0].ports],
    ['10.0.0.1', '10.0.0.2', [{ name: 'http', port: 8080, protocol: 'TCP' }]],
  );
  await server.request('PATCH', `${PATH}/pods/a/status`, { body: { status: { phase: 'Succeeded' } } });
  await eventually(async () => (await slicesOf('web'))[0].endpoints.length === 1);
  await server.request('PATCH', `${PATH}/pods/b`, { body: { metadata: { labels: { app: 'gone' } } } });
  await eventually(async () =>
    (await slicesOf('web')).every((one: { endpoints: unknown[] | null }) => one.endpoints === null),
  );
});

test('Pods that call the port by another number are in a slice of their own', async () => {
  await service('mixed', { clusterIP: 'None', publishNotReadyAddresses: true });
  await pod('m1', 'mixed', '10.0.1.1', { port: 8080 });
  await pod('m2', 'mixed', '10.0.1.2', { port: 9090, ready: false });
  await eventually(async () => {
    const ports = (await slicesOf('mixed')).map((one: { ports?: { port: number }[] }) => one.ports?.[0]?.port);
    return JSON.stringify(ports.sort()) === '[8080,9090]';
  });
  for (const slice of await slicesOf('mixed')) {
    assert.equal(slice.metadata.labels['service.kubernetes.io/headless'], '');
    assert.equal(slice.endpoints[0].conditions.ready, true);
  }
});

// S-169
test('everything goes with the Service; what somebody else made stays', async () => {
  await service('leaving', {});
  await eventually(async () => (await server.request('GET', `${PATH}/endpoints/leaving`)).status === 200);
  await server.create(`${PATH}/endpoints`, {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name: 'by-hand' },
    subsets: [{ addresses: [{ ip: '10.9.9.9' }], ports: [{ port: 1 }] }],
  });
  await server.create(`${PATH}/services`, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'by-hand' },
    spec: { ports: [{ port: 1 }] },
  });
  await server.request('DELETE', `${PATH}/services/leaving`);
  await server.request('DELETE', `${PATH}/services/by-hand`);
  await eventually(async () => (await server.request('GET', `${PATH}/endpoints/leaving`)).status === 404);
  await eventually(async () => (await slicesOf('leaving')).length === 0);
  assert.equal((await server.request('GET', `${PATH}/endpoints/by-hand`)).status, 200);
});
