import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { ensureBootstrapObjects } from '../../packages/apiserver/src/registry/bootstrap-objects.ts';
import { keepServiceAddresses } from '../../packages/apiserver/src/registry/keep-service-addresses.ts';
import { createServiceCidrController } from '../../packages/kube-controllers/src/controllers/service-cidr-controller.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { createFakeClock } from '../../packages/runtime/src/clock/fake-clock.fixture.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { eventually } from '../testkit/eventually.ts';
import { type Answer, type InProcessServer, startServer } from '../testkit/in-process-server.ts';
import { runControllers } from '../testkit/run-controllers.ts';

const NETWORKING = '/apis/networking.k8s.io/v1';
const SERVICES = '/api/v1/namespaces/default/services';
const serviceOf = (name: string, spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name },
  spec: { ports: [{ port: 80 }], ...spec },
});

/** What tests ask one server. */
const clientOf = (server: InProcessServer) => ({
  create: (name: string, spec: object = {}, query = ''): Promise<Answer> =>
    server.request('POST', `${SERVICES}${query}`, { body: serviceOf(name, spec) }),
  remove: (name: string) => server.request('DELETE', `${SERVICES}/${name}`),
  address: (ip: string) => server.request('GET', `${NETWORKING}/ipaddresses/${ip}`),
  makeAddress: (ip: string, labels: Record<string, string> = {}) =>
    server.request('POST', `${NETWORKING}/ipaddresses`, {
      body: {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'IPAddress',
        metadata: { name: ip, labels },
        spec: { parentRef: { group: 'example.com', resource: 'gateways', name: 'mine' } },
      },
    }),
  range: (name: string) => server.request('GET', `${NETWORKING}/servicecidrs/${name}`),
  makeRange: (name: string, ...cidrs: string[]) =>
    server.request('POST', `${NETWORKING}/servicecidrs`, {
      body: { apiVersion: 'networking.k8s.io/v1', kind: 'ServiceCIDR', metadata: { name }, spec: { cidrs } },
    }),
});

describe('addresses of Services', () => {
  let server: InProcessServer;
  let api: ReturnType<typeof clientOf>;
  before(async () => {
    server = await startServer({ defaultAdmission: true });
    api = clientOf(server);
  });
  after(() => server.stop());

  // S-278: Each cluster IP has an IPAddress that comes and goes in the commit of its Service; what a user does to one
  //   by hand is respected or corrected.
  // Compat Bootstrap objects, controllers, events, leases, P2, yes: each cluster IP has an IPAddress, made and removed
  //   in the commit of its Service
  test('an IPAddress comes and goes with its Service', async () => {
    const { json } = await api.create('one');
    const ip = json.spec.clusterIP as string;
    const address = (await api.address(ip)).json;
    assert.deepEqual(address.metadata.labels, {
      'ipaddress.kubernetes.io/ip-family': 'IPv4',
      'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io',
    });
    assert.deepEqual(address.spec, { parentRef: { resource: 'services', namespace: 'default', name: 'one' } });
    assert.equal(address.metadata.managedFields[0].manager, 'kube-apiserver');
    assert.equal(
      Number(address.metadata.resourceVersion),
      Number(json.metadata.resourceVersion) + 1,
      'nothing can come between the two',
    );
    await api.remove('one');
    assert.equal((await api.address(ip)).status, 404);
  });

  // S-278
  test('a change of type takes and gives it back', async () => {
    await api.create('turning', { type: 'ExternalName', externalName: 'example.com', ports: [] });
    const patch = (spec: object) => server.request('PATCH', `${SERVICES}/turning`, { body: { spec } });
    const ip = (await patch({ type: 'ClusterIP', externalName: null, ports: [{ port: 80 }] })).json.spec.clusterIP;
    assert.equal((await api.address(ip)).status, 200);
    await patch({ type: 'ExternalName', externalName: 'example.com' });
    assert.equal((await api.address(ip)).status, 404);
  });

  test('a Service that waits for a finalizer keeps it', async () => {
    const body = { ...serviceOf('held'), metadata: { name: 'held', finalizers: ['example.com/hold'] } };
    const ip = (await server.request('POST', SERVICES, { body })).json.spec.clusterIP;
    await api.remove('held');
    assert.equal((await api.address(ip)).status, 200);
    await server.request('PATCH', `${SERVICES}/held`, { body: { metadata: { finalizers: null } } });
    assert.equal((await api.address(ip)).status, 404);
  });

  test('headless Services and dry runs take none', async () => {
    const count = async () => (await server.request('GET', `${NETWORKING}/ipaddresses`)).json.items.length;
    const before = await count();
    assert.equal((await api.create('headless', { clusterIP: 'None' })).status, 201);
    assert.equal((await api.create('dry', {}, '?dryRun=All')).status, 201);
    assert.equal(await count(), before);
  });

  // S-278
  test('an address that somebody has made by hand is not given out', async () => {
    assert.equal((await api.makeAddress('10.96.4.4')).status, 201);
    for (const query of ['', '?dryRun=All']) {
      const { status, json } = await api.create('wants', { clusterIP: '10.96.4.4' }, query);
      assert.equal(status, 422);
      assert.match(json.message, /failed to allocate IP 10\.96\.4\.4: provided IP is already allocated/);
    }
    assert.equal((await server.request('GET', `${SERVICES}/wants`)).status, 404);
    await server.request('DELETE', `${NETWORKING}/ipaddresses/10.96.4.4`);
    assert.equal((await api.create('wants', { clusterIP: '10.96.4.4' })).status, 201);
    assert.equal((await api.makeAddress('10.96.4.4')).status, 409);
  });

  // S-278
  test('of a Service and an address made at the same time one is refused', async () => {
    for (let i = 10; i < 30; i++) {
      const ip = `10.96.4.${i}`;
      const [service, address] = await Promise.all([api.create(`race-${i}`, { clusterIP: ip }), api.makeAddress(ip)]);
      assert.deepEqual([service.status === 201, address.status === 201].sort(), [false, true], ip);
    }
  });

  // S-278
  // Compat Bootstrap objects, controllers, events, leases, P2, yes: an IPAddress made by hand is not given out; one
  //   that is deleted by hand comes back
  test('an address that is deleted by hand comes back', async () => {
    const stop = keepServiceAddresses(server.server.registry, silentLogger);
    const ip = (await api.create('kept')).json.spec.clusterIP;
    const { uid } = (await api.address(ip)).json.metadata;
    await server.request('DELETE', `${NETWORKING}/ipaddresses/${ip}`);
    await eventually(async () => (await api.address(ip)).status === 200);
    assert.notEqual((await api.address(ip)).json.metadata.uid, uid);
    await api.remove('kept');
    assert.equal((await api.address(ip)).status, 404);
    stop();
  });

  // S-278
  // Compat Bootstrap objects, controllers, events, leases, P2, yes: an IPAddress labelled as the allocator's that is no
  //   Service's goes after a minute, at a start at once
  test("an address that says it was allocated and is no Service's goes after a minute", async () => {
    const clock = createFakeClock(Date.now());
    const stop = keepServiceAddresses({ ...server.server.registry, clock }, silentLogger);
    const labels = { 'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io' };
    assert.equal((await api.makeAddress('10.96.6.6', labels)).status, 201);
    assert.equal((await api.makeAddress('10.96.6.7')).status, 201);
    const ip = (await api.create('settled')).json.spec.clusterIP;
    await clock.advance(59_000);
    assert.equal((await api.address('10.96.6.6')).status, 200);
    await clock.advance(62_000);
    await eventually(async () => (await api.address('10.96.6.6')).status === 404);
    assert.equal((await api.address('10.96.6.7')).status, 200);
    assert.equal((await api.address(ip)).status, 200);
    stop();
  });

  // S-278
  test('state of a time without IPAddresses is put right at the start', async () => {
    const old = { ...serviceOf('old', { clusterIP: '10.96.5.5', clusterIPs: ['10.96.5.5'], type: 'ClusterIP' }) };
    const object = { ...old, metadata: { name: 'old', namespace: 'default', uid: crypto.randomUUID() } };
    const key = { prefix: '/services', namespace: 'default', name: 'old' };
    await server.store.write(key, () => ({ type: 'put', object }));
    await api.makeAddress('10.96.5.6', { 'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io' });
    await api.makeAddress('10.96.5.7');
    const start = () => ensureBootstrapObjects(server.server.registry, { resources: server.catalog });
    await start();
    assert.equal((await api.address('10.96.5.5')).json.spec.parentRef.name, 'old');
    assert.equal((await api.address('10.96.5.6')).status, 404, 'nobody has it');
    assert.equal((await api.address('10.96.5.7')).status, 200, "a user's own");
    const revision = server.store.revision();
    await start();
    assert.equal(server.store.revision(), revision);
  });
});

describe('ranges of cluster IPs', () => {
  const started = async (serviceCidr: string) => {
    const server = await startServer({ defaultAdmission: true, ready: false });
    const start = (cidr: string) =>
      ensureBootstrapObjects(server.server.registry, { resources: server.catalog, serviceCidr: cidr });
    await start(serviceCidr);
    server.server.setReady();
    return { server, start, api: clientOf(server) };
  };

  // S-279: Services get addresses from every range that is ready, also from one that the server was newly started with;
  //   a range stays while Services have addresses of it.
  // Compat Bootstrap objects, controllers, events, leases, P2, yes: cluster IPs come from every ServiceCIDR for IPv4
  //   that is Ready; IPv6 ones are stored and give nothing
  test('Services are allocated from every range that is ready', async (t) => {
    const { server, api } = await started('192.168.0.0/29');
    t.after(() => server.stop());
    assert.equal((await server.request('GET', `${SERVICES}/kubernetes`)).json.spec.clusterIP, '192.168.0.1');
    assert.deepEqual((await api.range('kubernetes')).json.spec.cidrs, ['192.168.0.0/29']);
    for (let i = 0; i < 5; i++) assert.equal((await api.create(`svc-${i}`)).status, 201);
    const full = await api.create('more');
    assert.equal(full.status, 500);
    assert.match(full.json.message, /failed to allocate a serviceIP: range is full/);
    const far = { clusterIP: '192.168.9.3' };
    assert.match((await api.create('far', far)).json.message, /the provided network does not match the current range/);
    assert.equal((await api.makeRange('second', '192.168.9.0/29', '2001:db8::/64')).status, 201);
    assert.equal((await api.create('far', far)).status, 201);
    assert.match((await api.create('more')).json.spec.clusterIP, /^192\.168\.9\.[1-6]$/);
    for (const edge of ['192.168.9.0', '192.168.9.7']) {
      assert.equal((await api.create('edge', { clusterIP: edge })).status, 422, edge);
    }
    await server.request('PATCH', `${NETWORKING}/servicecidrs/second/status`, {
      body: { status: { conditions: [notReady] } },
    });
    assert.equal((await api.create('later')).status, 500, 'no longer ready');
  });

  // S-279
  test('a server that starts with another range gives out of that, and leaves what it gave before', async (t) => {
    const { server, start, api } = await started('192.168.0.0/29');
    t.after(() => server.stop());
    const before = (await api.create('before')).json.spec.clusterIP;
    await start('192.168.1.0/24');
    assert.deepEqual((await api.range('kubernetes')).json.spec.cidrs, ['192.168.1.0/24']);
    assert.equal((await api.address(before)).status, 200);
    assert.match((await api.create('behind')).json.spec.clusterIP, /^192\.168\.1\./);
    const touched = await server.request('PATCH', `${SERVICES}/before`, { body: { metadata: { labels: { a: 'b' } } } });
    assert.deepEqual([touched.status, touched.json.spec.clusterIP], [200, before]);
  });

  // S-279
  // Compat Bootstrap objects, controllers, events, leases, P2, yes: a deleted ServiceCIDR stays while Services have
  //   addresses of it
  test('a ServiceCIDR is kept while Services have addresses of it', async (t) => {
    const { server, api } = await started('192.168.0.0/24');
    // Far enough ahead that the ten seconds after a delete are over at once.
    const clock = { ...systemClock, now: () => systemClock.now() + 60_000 };
    const controllers = runControllers(server, (environment) => [
      createServiceCidrController({ ...environment, clock }),
    ]);
    t.after(() => controllers.stop());
    const ready = async (name: string) =>
      (await api.range(name)).json.status?.conditions?.find(({ type }: { type: string }) => type === 'Ready');
    const isReady = async (name: string) => (await ready(name))?.message === 'Kubernetes Service CIDR is ready';

    await api.makeRange('used', '10.7.0.0/28');
    await eventually(() => isReady('used'));
    await eventually(() => isReady('kubernetes'));
    const { json } = await api.range('used');
    assert.deepEqual(json.metadata.finalizers, ['networking.k8s.io/service-cidr-finalizer']);
    assert.deepEqual([(await ready('used')).status, (await ready('used')).reason], ['True', '']);

    await api.create('user', { clusterIP: '10.7.0.5' });
    await server.request('DELETE', `${NETWORKING}/servicecidrs/used`);
    await eventually(async () => (await ready('used')).status === 'False');
    const { reason, message } = await ready('used');
    assert.deepEqual(
      [reason, message],
      [
        'Terminating',
        'There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR',
      ],
    );
    assert.equal((await api.create('late', { clusterIP: '10.7.0.6' })).status, 422, 'nothing new is given out of it');

    await t.test('until another range covers them', async () => {
      await api.makeRange('wide', '10.7.0.0/24');
      await eventually(async () => (await api.range('used')).status === 404);
      assert.equal((await api.address('10.7.0.5')).status, 200);
    });
    await t.test('or the last of them is gone', async () => {
      await eventually(() => isReady('wide'));
      await server.request('DELETE', `${NETWORKING}/servicecidrs/wide`);
      await eventually(async () => (await ready('wide')).status === 'False');
      await api.remove('user');
      await eventually(async () => (await api.range('wide')).status === 404);
    });
  });
});

const notReady = {
  type: 'Ready',
  status: 'False',
  reason: 'Terminating',
  message: 'not now',
  lastTransitionTime: '2026-01-01T00:00:00Z',
};
