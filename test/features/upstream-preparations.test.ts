/** What becomes of objects on their way to the store, as upstream's strategies have it; first seen in its e2e tests. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createFakeClock } from '../../packages/runtime/src/clock/fake-clock.fixture.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const CORE = '/api/v1/namespaces/default';
const clock = createFakeClock();
let server: InProcessServer;
before(async () => {
  server = await startServer({ clock });
});
after(() => server.stop());

const send = async (method: string, path: string, body?: object, status = method === 'POST' ? 201 : 200) => {
  const answer = await server.request(method, path, { ...(body && { body }) });
  assert.equal(answer.status, status, answer.text);
  return answer.json;
};
const stamp = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;
const pod = (name: string, spec: object, metadata: object = {}) => ({
  metadata: { name, ...metadata },
  spec: { containers: [{ name: 'c', image: 'x' }], ...spec },
});

// S-342: Objects are prepared and validated as upstream's strategies do it where a typed client can tell.
// Compat Writing, P1, yes: what strategies prepare: the time of a volume's phase, both sources of a claim, gates, label
//   keys of Pods, secrets of service accounts
test('a volume says since when it is in its phase', async () => {
  const made = await send('POST', '/api/v1/persistentvolumes', {
    metadata: { name: 'v' },
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/tmp' } },
  });
  const first = stamp(clock.now());
  assert.deepEqual(made.status, { phase: 'Pending', lastPhaseTransitionTime: first });
  await clock.advance(5000);
  const path = '/api/v1/persistentvolumes/v/status';
  assert.equal((await send('PATCH', path, { status: { message: 'm' } })).status.lastPhaseTransitionTime, first);
  const moved = await send('PATCH', path, { status: { phase: 'Available' } });
  assert.equal(moved.status.lastPhaseTransitionTime, stamp(clock.now()));
  const [, owner] = moved.metadata.managedFields;
  assert.deepEqual(Object.keys(owner.fieldsV1['f:status']).sort(), ['f:message', 'f:phase']);
  const own = { phase: 'Released', lastPhaseTransitionTime: '2020-01-01T00:00:00Z' };
  assert.equal((await send('PATCH', path, { status: own })).status.lastPhaseTransitionTime, '2020-01-01T00:00:00Z');
});

// S-342
test('the source of a claim is in both its fields', async () => {
  const claim = async (name: string, source: object) => {
    const { spec } = await send('POST', `${CORE}/persistentvolumeclaims`, {
      metadata: { name },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...source },
    });
    return [spec.dataSource, spec.dataSourceRef];
  };
  const clone = { apiGroup: null, kind: 'PersistentVolumeClaim', name: 'o' };
  assert.deepEqual(await claim('old', { dataSource: { kind: clone.kind, name: 'o' } }), [clone, clone]);
  const filler = { apiGroup: 'cdi.kubevirt.io', kind: 'VolumeImportSource', name: 'i' };
  assert.deepEqual(await claim('new', { dataSourceRef: filler }), [filler, filler]);
  assert.deepEqual(await claim('neither', { dataSource: filler }), [undefined, undefined]);
  assert.deepEqual(await claim('far', { dataSourceRef: { ...filler, namespace: 'x' } }), [undefined, undefined]);
  // An old client sends back what it knows.
  const live = await send('GET', `${CORE}/persistentvolumeclaims/new`);
  delete live.spec.dataSourceRef;
  live.metadata.labels = { a: 'b' };
  assert.deepEqual((await send('PUT', `${CORE}/persistentvolumeclaims/new`, live)).spec.dataSourceRef, filler);
});

// S-342
test('a Pod with gates is born with the condition of one', async () => {
  const { status } = await send('POST', `${CORE}/pods`, pod('gated', { schedulingGates: [{ name: 'a.b/c' }] }));
  assert.deepEqual(status.conditions, [
    {
      type: 'PodScheduled',
      status: 'False',
      lastProbeTime: null,
      lastTransitionTime: stamp(clock.now()),
      reason: 'SchedulingGated',
      message: 'Scheduling is blocked due to non-empty scheduling gates',
    },
  ]);
});

// S-342
test('label keys are merged into the selectors that they stand beside', async () => {
  const labelSelector = { matchLabels: { a: 'b' } };
  const spread = { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule', matchLabelKeys: ['h', 'no'] };
  const term = { topologyKey: 'zone', labelSelector, matchLabelKeys: ['h'], mismatchLabelKeys: ['a'] };
  const preferred = [{ weight: 1, podAffinityTerm: term }];
  const { spec } = await send(
    'POST',
    `${CORE}/pods`,
    pod(
      'keys',
      {
        topologySpreadConstraints: [
          { ...spread, labelSelector },
          { ...spread, topologyKey: 'b' },
        ],
        affinity: {
          podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] },
          podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred },
        },
      },
      { labels: { a: 'b', h: '1' } },
    ),
  );
  const same = { key: 'h', operator: 'In', values: ['1'] };
  const other = { key: 'a', operator: 'NotIn', values: ['b'] };
  const [first, second] = spec.topologySpreadConstraints;
  assert.deepEqual(first.labelSelector, { ...labelSelector, matchExpressions: [same] });
  assert.equal(second.labelSelector, undefined);
  const merged = { ...labelSelector, matchExpressions: [same, other] };
  const { podAffinity, podAntiAffinity } = spec.affinity;
  assert.deepEqual(podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector, merged);
  assert.deepEqual(
    podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector,
    merged,
  );
});

// S-342
test('what an old agent leaves out of a status it has observed stays', async () => {
  await send('POST', `${CORE}/pods`, pod('observed', {}));
  const path = `${CORE}/pods/observed/status`;
  const ready = { type: 'Ready', status: 'True' };
  await send('PATCH', path, { status: { observedGeneration: 1, conditions: [{ ...ready, observedGeneration: 1 }] } });
  const live = await send('GET', `${CORE}/pods/observed`);
  live.status = { phase: 'Running', conditions: [ready, { type: 'Other', status: 'True' }] };
  const { status } = await send('PUT', path, live);
  assert.equal(status.observedGeneration, 1);
  assert.equal(status.qosClass, 'BestEffort');
  const generations = status.conditions.map((one: { observedGeneration?: number }) => one.observedGeneration);
  assert.deepEqual(generations, [1, undefined]);
});

// S-342
test('a service account names its secrets and says no more of them', async () => {
  const made = await send('POST', `${CORE}/serviceaccounts`, {
    metadata: { name: 's' },
    secrets: [{ kind: 'Secret', namespace: 'x', name: 'a' }],
  });
  assert.deepEqual(made.secrets, [{ name: 'a' }]);
  const put = await send('PATCH', `${CORE}/serviceaccounts/s`, { secrets: [{ name: 'b', uid: 'u' }] });
  assert.deepEqual(put.secrets, [{ name: 'b' }]);
});

// S-342
test('a LimitRange need not be named', async () => {
  const made = await send('POST', `${CORE}/limitranges`, { spec: { limits: [{ type: 'Pod', max: { cpu: '1' } }] } });
  assert.match(made.metadata.name, /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/);
});

// S-342
test('topology of an EndpointSlice is not taken in v1', async () => {
  const { endpoints } = await send('POST', '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', {
    metadata: { name: 't' },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['1.2.3.4'], deprecatedTopology: { 'kubernetes.io/hostname': 'n' } }],
  });
  assert.deepEqual(endpoints, [{ addresses: ['1.2.3.4'], conditions: {} }]);
});

// S-342
test('an APIService that no other server stands behind is available at once', async () => {
  const made = await send('POST', '/apis/apiregistration.k8s.io/v1/apiservices', {
    metadata: { name: 'v1.local.example.com' },
    spec: { group: 'local.example.com', version: 'v1', groupPriorityMinimum: 100, versionPriority: 100 },
  });
  const [{ type, status, reason }] = made.status.conditions;
  assert.deepEqual([type, status, reason], ['Available', 'True', 'Local']);
  const remote = await send('POST', '/apis/apiregistration.k8s.io/v1/apiservices', {
    metadata: { name: 'v1.remote.example.com' },
    spec: { ...made.spec, group: 'remote.example.com', service: { name: 's', namespace: 'n' }, caBundle: 'eA==' },
  });
  assert.deepEqual(remote.status, {});
});

// S-342
// Compat Writing, P1, yes: addresses of load balancers: their mode, and only where `spec.type` asks for one
test('addresses of a load balancer have a mode, and only a load balancer has them', async () => {
  const ports = [{ port: 80 }];
  await send('POST', `${CORE}/services`, { metadata: { name: 'lb' }, spec: { type: 'LoadBalancer', ports } });
  await send('POST', `${CORE}/services`, { metadata: { name: 'no-lb' }, spec: { ports } });
  const put = (name: string, ingress: object, status?: number) =>
    send('PATCH', `${CORE}/services/${name}/status`, { status: { loadBalancer: { ingress: [ingress] } } }, status);
  const balanced = await put('lb', { ip: '192.0.2.1' });
  assert.deepEqual(balanced.status.loadBalancer.ingress, [{ ip: '192.0.2.1', ipMode: 'VIP' }]);
  const causes = async (...sent: Parameters<typeof put>) =>
    (await put(...sent)).details.causes.map(({ message }: { message: string }) => message);
  assert.deepEqual(await causes('no-lb', { ip: '192.0.2.1' }, 422), [
    "Forbidden: may only be used when `spec.type` is 'LoadBalancer'",
  ]);
  assert.deepEqual(await causes('lb', { hostname: 'a.b', ipMode: 'VIP' }, 422), [
    'Forbidden: may not be specified when `ip` is not set',
  ]);
  assert.deepEqual(await causes('lb', { hostname: '192.0.2.1' }, 422), [
    'Invalid value: "192.0.2.1": must be a DNS name, not an IP address',
  ]);
});

// S-342
test('the one range of a node is the first of its ranges, and the one address of a Pod the first of its addresses', async () => {
  await send('POST', '/api/v1/nodes', { metadata: { name: 'n' }, spec: { podCIDR: '10.0.0.0/24' } });
  assert.deepEqual((await send('GET', '/api/v1/nodes/n')).spec.podCIDRs, ['10.0.0.0/24']);
  const many = { metadata: { name: 'm' }, spec: { podCIDRs: ['10.1.0.0/24'] } };
  assert.equal((await send('POST', '/api/v1/nodes', many)).spec.podCIDR, '10.1.0.0/24');
  await send('POST', `${CORE}/pods`, pod('address', {}));
  const path = `${CORE}/pods/address/status`;
  assert.equal((await send('PATCH', path, { status: { podIPs: [{ ip: '192.0.2.1' }] } })).status.podIP, '192.0.2.1');
  const { status } = await send('PATCH', path, { status: { podIP: '192.0.2.2' } });
  assert.deepEqual(status.podIPs, [{ ip: '192.0.2.2' }]);
});
