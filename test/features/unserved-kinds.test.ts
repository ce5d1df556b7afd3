/** Objects that nothing here acts on say so when they are made. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessControlPlane, startInProcess } from '../testkit/in-process-control-plane.ts';

let board: InProcessControlPlane;
before(async () => {
  board = await startInProcess();
});
after(() => board.stop());

const pods = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } };
const selector = { matchLabels: { a: 'b' } };
const CASES: readonly [path: string, kind: string, apiVersion: string, spec: object, expected: RegExp][] = [
  ['apps/v1', 'Deployment', 'apps/v1', { selector, template: pods }, /nothing acts on this Deployment yet/],
  ['apps/v1', 'StatefulSet', 'apps/v1', { selector, serviceName: 's', template: pods }, /this StatefulSet yet/],
  ['apps/v1', 'DaemonSet', 'apps/v1', { selector, template: pods }, /this DaemonSet yet/],
  ['batch/v1', 'Job', 'batch/v1', { template: { spec: { ...pods.spec, restartPolicy: 'Never' } } }, /this Job yet/],
  [
    'autoscaling/v2',
    'HorizontalPodAutoscaler',
    'autoscaling/v2',
    { maxReplicas: 2, scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' } },
    /this HorizontalPodAutoscaler yet.*nothing is scaled/,
  ],
  [
    'networking.k8s.io/v1',
    'Ingress',
    'networking.k8s.io/v1',
    { defaultBackend: { service: { name: 's', port: { number: 80 } } } },
    /this Ingress yet.*no traffic/,
  ],
];
const make = (path: string, kind: string, apiVersion: string, spec: object, name: string) =>
  board.send('POST', `/apis/${path}/namespaces/default/${kind.toLowerCase()}${kind.endsWith('s') ? 'es' : 's'}`, {
    apiVersion,
    kind,
    metadata: { name },
    spec,
  });
const events = async (name: string): Promise<{ message: string; involvedObject: { kind: string } }[]> => {
  const { json } = await board.send('GET', '/api/v1/namespaces/default/events');
  return json.items.filter((event: { involvedObject: { name: string } }) => event.involvedObject.name === name);
};

for (const [path, kind, apiVersion, spec, expected] of CASES) {
  // S-443: What is stored and nothing acts on says so at its creation, by a warning and an event; not where another's
  //   controller does.
  test(`a ${kind} that nothing acts on is answered with a warning and has an event`, async () => {
    const name = `a-${kind.toLowerCase()}`;
    const { status, warnings, json } = await make(path, kind, apiVersion, spec, name);
    assert.equal(status, 201, JSON.stringify(json));
    assert.match(warnings, expected);
    const [event, ...more] = await events(name);
    assert.match(event?.message ?? '', expected);
    assert.equal(event?.involvedObject.kind, kind);
    assert.equal(more.length, 0);
  });
}

// S-443
test('a ReplicationController that nothing acts on is answered with a warning and has an event', async () => {
  const { status, warnings, json } = await board.send('POST', '/api/v1/namespaces/default/replicationcontrollers', {
    apiVersion: 'v1',
    kind: 'ReplicationController',
    metadata: { name: 'rc' },
    spec: { selector: { a: 'b' }, template: pods },
  });
  assert.equal(status, 201, JSON.stringify(json));
  assert.match(warnings, /nothing acts on this ReplicationController yet/);
  assert.match((await events('rc'))[0]?.message ?? '', /this ReplicationController yet/);
});

// S-443
test('nothing is reported where an external controller holds its Lease', async () => {
  const renewTime = '2030-01-01T00:00:00.000000Z';
  const { status, json } = await board.send('POST', '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases', {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'kube-controller-manager' },
    spec: { holderIdentity: 'somebody', leaseDurationSeconds: 15, renewTime },
  });
  assert.equal(status, 201, JSON.stringify(json));
  const [path, kind, apiVersion, spec] = CASES[0]!;
  const made = await make(path, kind, apiVersion, spec, 'led');
  assert.equal(made.warnings, '');
  assert.deepEqual(await events('led'), []);
});

// S-1234: An Ingress is reported while no IngressClass says that somebody acts on it.
test('an Ingress is not reported where there is an IngressClass', async () => {
  const { status } = await board.send('POST', '/apis/networking.k8s.io/v1/ingressclasses', {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'IngressClass',
    metadata: { name: 'somebody' },
    spec: { controller: 'example.com/somebody' },
  });
  assert.equal(status, 201);
  const [path, kind, apiVersion, spec] = CASES.at(-1)!;
  assert.equal((await make(path, kind, apiVersion, spec, 'classed')).warnings, '');
});

// S-1654: Fields of Services that nothing here acts on are answered with a warning, at each write.
test('a Service whose fields are not followed says so', async () => {
  const service = (spec: object) => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 's' },
    spec: { ports: [{ port: 80 }], ...spec },
  });
  const path = '/api/v1/namespaces/default/services';
  const made = await board.send('POST', path, service({}));
  assert.deepEqual([made.status, made.warnings], [201, '']);
  const changed = await board.send(
    'PATCH',
    `${path}/s`,
    { spec: { type: 'LoadBalancer', externalIPs: ['192.0.2.7'], loadBalancerSourceRanges: ['192.0.2.0/24'] } },
    'application/merge-patch+json',
  );
  assert.equal(changed.status, 200, JSON.stringify(changed.json));
  assert.match(changed.warnings, /spec\.externalIPs is not served.*spec\.loadBalancerSourceRanges has no effect/);
  const zones = async (mode: string): Promise<string> => {
    const metadata = { annotations: { 'service.kubernetes.io/topology-mode': mode } };
    return (await board.send('PATCH', `${path}/s`, { metadata }, 'application/merge-patch+json')).warnings;
  };
  assert.match(await zones('Auto'), /topology-mode has no effect: .*spec\.trafficDistribution: PreferSameZone keeps/);
  assert.doesNotMatch(await zones('Disabled'), /topology-mode/);
});

// S-1651: A new Pod of containers is answered with a warning while no node runs any; that of a launcher is not.
test('a Pod of containers is reported while all nodes run machines only', async () => {
  const node = (name: string, containerRuntimeVersion: string) =>
    board.send('POST', '/api/v1/nodes', {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name },
      status: { nodeInfo: { ...NODE_INFO, containerRuntimeVersion } },
    });
  const warningsOf = async (name: string, metadata: object = {}) => {
    const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name, ...metadata }, spec: pods.spec };
    const { status, warnings, json } = await board.send('POST', '/api/v1/namespaces/default/pods', body);
    assert.equal(status, 201, JSON.stringify(json));
    return warnings;
  };
  // Pods wait for it.
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
  assert.equal((await board.send('POST', '/api/v1/namespaces/default/serviceaccounts', account)).status, 201);
  assert.equal(await warningsOf('no-node'), '');
  assert.equal((await node('ours', 'qemu://10.1.0')).status, 201);
  assert.match(await warningsOf('alone'), /no node here runs containers: this Pod is stored, and stays Pending/);
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: 'v', uid: 'u', controller: true };
  assert.equal(await warningsOf('owned', { ownerReferences: [owner] }), '');
  assert.equal((await node('theirs', 'containerd://2.1.0')).status, 201);
  assert.equal(await warningsOf('with-a-kubelet'), '');
});

const NODE_INFO = {
  ...Object.fromEntries(
    ['machineID', 'systemUUID', 'bootID', 'kernelVersion', 'osImage', 'kubeletVersion', 'kubeProxyVersion'].map(
      (field) => [field, 'x'],
    ),
  ),
  operatingSystem: 'linux',
  architecture: 'amd64',
};
