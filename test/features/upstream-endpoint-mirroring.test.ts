/** Endpoints that a user writes for a Service without a selector are shown as EndpointSlices, and go with them. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createEndpointSliceMirroringController } from '../../src/control/kube-controllers/endpoint-slice-mirroring-controller.ts';
import { eventually } from '../testkit/eventually.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';
import { type RunningControllers, runControllers } from '../testkit/run-controllers.ts';

let server: InProcessServer;
let controllers: RunningControllers;

before(async () => {
  server = await startServer();
  controllers = runControllers(server, (environment) => [createEndpointSliceMirroringController(environment)]);
});
after(() => controllers.stop());

const ROOT = '/api/v1/namespaces/default';
const SLICES = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';
// biome-ignore lint/suspicious/noExplicitAny: slices are walked as the open JSON they are.
const slicesOf = async (service: string): Promise<any[]> =>
  (await server.request('GET', `${SLICES}?labelSelector=kubernetes.io/service-name=${service}`)).json.items;

const service = (name: string, spec: object = {}) =>
  server.create(`${ROOT}/services`, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { ports: [{ name: 'a', port: 80 }], ...spec },
  } as object);
const endpoints = (name: string, subsets: object[], metadata: object = {}) =>
  server.create(`${ROOT}/endpoints`, {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name, ...metadata },
    subsets,
  } as object);

// S-206: Endpoints that users write are mirrored as slices; metrics of admission count what checks came to.
// Compat Bootstrap objects, controllers, events, leases, P1, yes: Endpoints of a Service without a selector are
//   mirrored as EndpointSlices
test('Endpoints are mirrored through create, update and delete', async () => {
  await service('custom');
  await endpoints('custom', [{ addresses: [{ ip: '10.1.2.3' }], ports: [{ port: 80 }] }], {
    labels: { team: 'a' },
    annotations: { note: 'kept', 'kubectl.kubernetes.io/last-applied-configuration': '{}' },
  });
  const [slice] = await eventually(
    () => slicesOf('custom'),
    (found) => found.length === 1,
  );
  assert.deepEqual(slice.endpoints, [{ addresses: ['10.1.2.3'], conditions: { ready: true } }]);
  assert.deepEqual(slice.ports, [{ name: '', port: 80, protocol: 'TCP' }]);
  assert.equal(slice.addressType, 'IPv4');
  assert.deepEqual(slice.metadata.labels, {
    team: 'a',
    'kubernetes.io/service-name': 'custom',
    'endpointslice.kubernetes.io/managed-by': 'endpointslicemirroring-controller.k8s.io',
  });
  assert.deepEqual(slice.metadata.annotations, { note: 'kept' });
  assert.equal(slice.metadata.ownerReferences[0].kind, 'Endpoints');

  const subsets = [{ addresses: [{ ip: '10.2.3.4' }], notReadyAddresses: [{ ip: '10.2.3.5' }], ports: [{ port: 80 }] }];
  await server.request('PUT', `${ROOT}/endpoints/custom`, { body: { metadata: { name: 'custom' }, subsets } });
  const [updated] = await eventually(
    () => slicesOf('custom'),
    ([one]) => one?.endpoints.length === 2,
  );
  assert.deepEqual(
    updated.endpoints.map((one: { addresses: string[]; conditions: object }) => [one.addresses[0], one.conditions]),
    [
      ['10.2.3.4', { ready: true }],
      ['10.2.3.5', { ready: false }],
    ],
  );

  await server.request('DELETE', `${ROOT}/endpoints/custom`);
  await eventually(
    () => slicesOf('custom'),
    (found) => found.length === 0,
  );
});

test('there is one slice for each set of ports and each family of addresses', async () => {
  await service('many');
  const ports = (port: number) => [{ name: `port${port}`, port }];
  await endpoints('many', [
    { addresses: [{ ip: '10.0.0.1' }], ports: ports(80) },
    { addresses: [{ ip: '10.0.0.1' }], ports: ports(81) },
    { addresses: [{ ip: '2001:db8::1' }], ports: ports(80) },
  ]);
  const found = await eventually(
    () => slicesOf('many'),
    ({ length }) => length === 3,
  );
  const shown = found.map(({ addressType, ports: [port] }) => `${addressType} ${port.name}`);
  assert.deepEqual(shown.sort(), ['IPv4 port80', 'IPv4 port81', 'IPv6 port80']);
});

// S-358: Ports that the same addresses offer share a mirrored EndpointSlice.
// Compat Bootstrap objects, controllers, events, leases, P1, yes: Mirrored Endpoints: ports that the same addresses
//   offer share a slice, however the subsets were cut
test('ports that the same addresses offer share a slice, however the subsets were cut', async () => {
  const ports = (...numbers: number[]) => numbers.map((port) => ({ name: `port${port}`, port }));
  const shown = async (name: string, length: number) => {
    const found = await eventually(
      () => slicesOf(name),
      (slices) => slices.length === length,
    );
    return found
      .map((slice) => [
        (slice.ports ?? []).map((port: { name: string }) => port.name).join(),
        ...slice.endpoints.map((one: { addresses: string[]; conditions: { ready: boolean } }) => [
          ...one.addresses,
          one.conditions.ready,
        ]),
      ])
      .sort();
  };
  await service('cut');
  await endpoints('cut', [
    { addresses: [{ ip: '10.0.0.1' }], notReadyAddresses: [{ ip: '10.0.0.2' }], ports: ports(80) },
    { addresses: [{ ip: '10.0.0.1' }], ports: ports(81) },
    { notReadyAddresses: [{ ip: '10.0.0.2' }], ports: ports(81) },
    // Not the same: here it is ready.
    { addresses: [{ ip: '10.0.0.1' }, { ip: '10.0.0.2' }], ports: ports(82) },
  ]);
  assert.deepEqual(await shown('cut', 2), [
    ['port80,port81', ['10.0.0.1', true], ['10.0.0.2', false]],
    ['port82', ['10.0.0.1', true], ['10.0.0.2', true]],
  ]);
  // Not ready anywhere is not ready; addresses without a port are kept.
  await service('portless');
  await endpoints('portless', [
    { addresses: [{ ip: '10.0.0.1' }], ports: ports(80) },
    { notReadyAddresses: [{ ip: '10.0.0.1' }], ports: ports(80) },
    { addresses: [{ ip: '10.0.0.3' }] },
  ]);
  assert.deepEqual(await shown('portless', 2), [
    ['', ['10.0.0.3', true]],
    ['port80', ['10.0.0.1', false]],
  ]);
});

test('Endpoints of Services with a selector, of election locks, and those that ask for it are left alone', async () => {
  const subset = { addresses: [{ ip: '10.0.0.9' }], ports: [{ port: 80 }] };
  await service('selecting', { selector: { a: 'b' } });
  await endpoints('selecting', [subset]);
  await service('lock');
  await endpoints('lock', [subset], { annotations: { 'control-plane.alpha.kubernetes.io/leader': '{}' } });
  await service('skipped');
  await endpoints('skipped', [subset], { labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } });
  // What comes last has been mirrored when the others have been looked at.
  await service('last');
  await endpoints('last', [subset]);
  await eventually(
    () => slicesOf('last'),
    (found) => found.length === 1,
  );
  for (const name of ['selecting', 'lock', 'skipped']) assert.deepEqual(await slicesOf(name), [], name);
});
