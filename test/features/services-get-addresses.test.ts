import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer({ defaultAdmission: true });
});
after(() => server.stop());

const SERVICES = '/api/v1/namespaces/default/services';
const create = (name: string, spec: object, query = '') =>
  server.request('POST', `${SERVICES}${query}`, {
    body: { apiVersion: 'v1', kind: 'Service', metadata: { name }, spec: { ports: [{ port: 80 }], ...spec } },
  });
const patch = (name: string, spec: object) => server.request('PATCH', `${SERVICES}/${name}`, { body: { spec } });

// S-129: Services get addresses and node ports, each given once and kept.
test('a Service gets an address of its own from the range', async () => {
  const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => create(`many-${i}`, {})));
  const addresses = answers.map(({ json }) => json.spec.clusterIP as string);
  assert.equal(new Set(addresses).size, 50);
  for (const address of addresses) assert.match(address, /^10\.96\.\d+\.\d+$/);
  assert.deepEqual(answers[0]!.json.spec.clusterIPs, [addresses[0]]);
});

test('headless and external Services get none', async () => {
  assert.deepEqual((await create('headless', { clusterIP: 'None' })).json.spec.clusterIPs, ['None']);
  const external = await create('external', { type: 'ExternalName', externalName: 'example.com', ports: [] });
  assert.equal(external.json.spec.clusterIP, undefined);
});

// Compat Bootstrap objects, controllers, events, leases, P1, yes: IPv6 and `RequireDualStack` are refused: not
//   configured
test('families and stacks that are not there are refused', async (t) => {
  const cases: [string, object, string][] = [
    [
      'dual stack',
      { ipFamilyPolicy: 'RequireDualStack' },
      'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services',
    ],
    ['IPv6', { ipFamilies: ['IPv6'] }, 'spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster'],
  ];
  for (const [name, spec, message] of cases) {
    await t.test(name, async () => {
      const { status, json } = await create('stacked', spec, '?dryRun=All');
      assert.deepEqual([status, json.message], [422, `Service "stacked" is invalid: ${message}`]);
    });
  }
  assert.equal((await create('prefers', { ipFamilyPolicy: 'PreferDualStack' }, '?dryRun=All')).status, 201);
  const free = { clusterIP: 'None', ipFamilies: ['IPv6', 'IPv4'], ipFamilyPolicy: 'RequireDualStack' };
  assert.equal((await create('free', free, '?dryRun=All')).status, 201, 'about any addresses, allocates none');
});

test('the class of a balancer goes with its type', async () => {
  await create('was-balanced', { type: 'LoadBalancer', loadBalancerClass: 'example.com/lb' });
  const { status, json } = await patch('was-balanced', { type: 'ClusterIP' });
  assert.deepEqual([status, json.spec.loadBalancerClass], [200, undefined]);
});

// S-129
test('an address or port that was asked for is given once', async (t) => {
  assert.equal((await create('asked', { clusterIP: '10.96.3.3' })).json.spec.clusterIP, '10.96.3.3');
  const first = await create('port', { type: 'NodePort', ports: [{ port: 80, nodePort: 30_080 }] });
  assert.equal(first.json.spec.ports[0].nodePort, 30_080);
  const cases: [string, object, string][] = [
    ['taken address', { clusterIP: '10.96.3.3' }, 'failed to allocate IP 10.96.3.3: provided IP is already allocated'],
    ['foreign address', { clusterIP: '1.2.3.4' }, 'the provided network does not match the current range'],
    ['taken port', { type: 'NodePort', ports: [{ port: 1, nodePort: 30_080 }] }, 'provided port is already allocated'],
    ['low port', { type: 'NodePort', ports: [{ port: 1, nodePort: 80 }] }, 'The range of valid ports is 30000-32767'],
  ];
  for (const [name, spec, message] of cases) {
    await t.test(name, async () => {
      const { status, json } = await create('refused', spec);
      assert.equal(status, 422);
      assert.ok(json.message.includes(message), json.message);
    });
  }
  await server.request('DELETE', `${SERVICES}/asked`);
});

// S-129
test('what was allocated stays through updates that leave it out', async () => {
  const { json } = await create('kept', { type: 'NodePort' });
  const { clusterIP, ports } = json.spec;
  const body = { ...json, spec: { type: 'NodePort', ports: [{ port: 80 }] } };
  const updated = await server.request('PUT', `${SERVICES}/kept`, { body });
  assert.equal(updated.status, 200, updated.text);
  assert.equal(updated.json.spec.clusterIP, clusterIP);
  assert.equal(updated.json.spec.ports[0].nodePort, ports[0].nodePort);
});

test('a change of type gives and takes addresses', async () => {
  const { json } = await create('turning', { type: 'ExternalName', externalName: 'example.com' });
  assert.equal(json.spec.clusterIP, undefined);
  const inside = (await patch('turning', { type: 'ClusterIP', externalName: null })).json.spec;
  assert.match(inside.clusterIP, /^10\.96\./);
  const exposed = (await patch('turning', { type: 'NodePort' })).json.spec;
  assert.equal(exposed.clusterIP, inside.clusterIP);
  assert.ok(exposed.ports[0].nodePort >= 30_000);
  const back = (await patch('turning', { type: 'ClusterIP' })).json.spec;
  assert.equal(back.ports[0].nodePort, undefined);
  assert.equal(back.externalTrafficPolicy, undefined);
  const out = (await patch('turning', { type: 'ExternalName', externalName: 'example.com' })).json.spec;
  assert.equal(out.clusterIP, undefined);
});

// S-309: A Service that turns external loses its address, named or not; what a balancer said goes with the type.
// Compat Bootstrap objects, controllers, events, leases, P1, yes: a Service that turns ExternalName loses its address,
//   families and policy, each that was not changed; one without a balancer loses its balancer's status
test('a Service that turns external may say so with or without its address', async (t) => {
  const external = { type: 'ExternalName', externalName: 'example.com' };
  for (const [what, without] of [
    ['as it was', {}],
    ['without the address', { clusterIP: null }],
    ['without any', { clusterIP: null, clusterIPs: null }],
    ['without the list', { clusterIPs: null }],
  ] as const) {
    await t.test(what, async () => {
      const name = `external-${what.replaceAll(' ', '-')}`;
      await create(name, { ipFamilyPolicy: 'SingleStack' });
      const { status, json } = await patch(name, { ...external, ...without });
      assert.equal(status, 200, json.message);
      for (const field of ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy'])
        assert.equal(json.spec[field], undefined, field);
    });
  }
  await create('external-other', {});
  assert.equal((await patch('external-other', { ...external, clusterIP: '10.96.7.8' })).status, 422);
});

// Compat Bootstrap objects, controllers, events, leases, P1, yes: Services of type ExternalName show no
//   `internalTrafficPolicy`
test('an ExternalName shows no internalTrafficPolicy, made so or turned so', async () => {
  const external = { type: 'ExternalName', externalName: 'example.com', ports: [] };
  const made = await create('policy-made', { ...external, internalTrafficPolicy: 'Cluster' });
  assert.deepEqual([made.status, made.json.spec.internalTrafficPolicy], [201, undefined]);
  assert.equal((await create('policy-turned', {})).json.spec.internalTrafficPolicy, 'Cluster');
  const turned = await patch('policy-turned', external);
  assert.deepEqual([turned.status, turned.json.spec.internalTrafficPolicy], [200, undefined]);
  const back = await patch('policy-turned', { type: 'ClusterIP', externalName: null, ports: [{ port: 80 }] });
  assert.equal(back.json.spec.internalTrafficPolicy, 'Cluster');
  assert.equal((await create('policy-wrong', { ...external, internalTrafficPolicy: 'None' })).status, 422);
});

// S-309
test('what a balancer said goes with the type', async () => {
  await create('left-balancer', { type: 'LoadBalancer' });
  const said = { status: { loadBalancer: { ingress: [{ ip: '203.0.113.1' }] } } };
  const { json } = await server.request('PATCH', `${SERVICES}/left-balancer/status`, { body: said });
  assert.equal(json.status.loadBalancer.ingress[0].ip, '203.0.113.1');
  assert.equal((await patch('left-balancer', { selector: { a: 'b' } })).json.status.loadBalancer.ingress.length, 1);
  assert.deepEqual((await patch('left-balancer', { type: 'NodePort' })).json.status, { loadBalancer: {} });
  assert.deepEqual((await server.request('GET', `${SERVICES}/left-balancer`)).json.status, { loadBalancer: {} });
});

test('an address stays once it is set', async () => {
  await create('fixed', {});
  const { status, json } = await patch('fixed', { clusterIP: '10.96.7.7' });
  assert.equal(status, 422);
  assert.match(json.message, /spec\.clusterIPs\[0\]: Invalid value: "10\.96\.7\.7": may not change once set/);
});

test('a dry run keeps no address', async () => {
  const dry = await create('dry', { clusterIP: '10.96.8.8' }, '?dryRun=All');
  assert.equal(dry.status, 201);
  assert.equal((await create('wet', { clusterIP: '10.96.8.8' })).status, 201);
});

// S-263: A cluster IP or node port is free as soon as nobody has it.
// Compat Bootstrap objects, controllers, events, leases, P1, yes: cluster IPs and node ports are free at once after a
//   deletion, a change of type or a refused create
test('an address is free again as soon as nobody has it', async (t) => {
  const address = '10.96.9.9';
  const ports = [{ port: 80, nodePort: 30_099 }];
  const path = (name: string): string => `${SERVICES}/${name}`;
  const cases: [string, () => Promise<unknown>][] = [
    ['after a delete', () => server.request('DELETE', path('first'))],
    ['after deleting all', () => server.request('DELETE', `${SERVICES}?fieldSelector=metadata.name%3Dfirst`)],
  ];
  for (const [name, free] of cases) {
    await t.test(name, async () => {
      const spec = { type: 'NodePort', clusterIP: address, ports };
      assert.equal((await create('first', spec)).status, 201);
      await free();
      const second = await create('second', spec);
      assert.equal(second.status, 201, second.text);
      await server.request('DELETE', path('second'));
    });
  }
  await t.test('a port after a change of type', async () => {
    await create('first', { type: 'NodePort', ports });
    await patch('first', { type: 'ClusterIP', ports: null });
    await patch('first', { type: 'ClusterIP', ports: [{ port: 80 }] });
    const second = await create('second', { type: 'NodePort', ports });
    assert.equal(second.status, 201, second.text);
  });
  await t.test('when the same name tries once more', async () => {
    const refused = await create('again', { clusterIP: '10.96.9.10', sessionAffinity: 'No' });
    assert.equal(refused.status, 422);
    assert.doesNotMatch(refused.json.message, /allocated/);
    const answer = await create('again', { clusterIP: '10.96.9.10' });
    assert.equal(answer.status, 201, answer.text);
  });
});
