/** `metrics.k8s.io`: what nodes and launcher Pods take, over a real port between the server and the agent. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { MeasuredPod } from '../../packages/node-agent/src/agent/requests/node-summary.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { identify } from '../../packages/runtime/src/process/identity.ts';
import { eventually } from '../testkit/eventually.ts';
import { GUEST_NODE, type GuestNode, startGuestNode } from '../testkit/guest-node.ts';
import { type InProcessControlPlane, startInProcess } from '../testkit/in-process-control-plane.ts';

const METRICS = '/apis/metrics.k8s.io/v1beta1';
const PODS = '/api/v1/namespaces/default/pods';
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';
const measured: MeasuredPod[] = [];

let node: GuestNode;
let board: InProcessControlPlane;

async function made(path: string, object: { kind: string; metadata: object }): Promise<MeasuredPod['pod']> {
  const { status, json } = await board.send('POST', path, object);
  assert.equal(status, 201, JSON.stringify(json));
  return json;
}

async function createPod(name: string, nodeName: string): Promise<MeasuredPod['pod']> {
  return made(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { guest: name } },
    spec: { nodeName, containers: [{ name: 'compute', image: 'i' }] },
  } as never);
}

before(async () => {
  node = await startGuestNode(() => measured);
  board = await startInProcess({ clock: systemClock, connectNode: node.connectNode });
  await made('/api/v1/namespaces/default/serviceaccounts', {
    kind: 'ServiceAccount',
    metadata: { name: 'default' },
  });
  for (const name of [GUEST_NODE, 'silent'])
    await made('/api/v1/nodes', { kind: 'Node', metadata: { name, labels: { named: name } } });
  // This process stands for a QEMU.
  measured.push({ pod: await createPod('guest', GUEST_NODE), process: await identify(process.pid) });
  measured.push({ pod: await createPod('ended', GUEST_NODE), process: undefined });
  await createPod('lost', 'silent');
});
after(async () => {
  await board.stop();
  await node.close();
});

const get = (target: string) => board.send('GET', `${METRICS}${target}`);
const namesIn = ({ json }: { json: { items: { metadata: { name: string } }[] } }) =>
  json.items.map(({ metadata }) => metadata.name);

// S-1230: `metrics.k8s.io/v1beta1` shows what launcher Pods and nodes take of processors and memory, as metrics-server
//   does; what has no sample is 404, and missing in lists.
// Compat Pods, nodes, drain, P1, yes: `metrics.k8s.io/v1beta1`, so that `kubectl top node` and `top pod` work
test('a Pod and its node', async () => {
  // What this process takes while it is measured.
  const busy = setInterval(() => JSON.stringify(Array.from({ length: 20_000 }, (_, at) => ({ at }))), 5);
  // A busy host may give it none for a while.
  const { status, json } = await eventually(
    () => get('/namespaces/default/pods/guest'),
    ({ json }) => json.containers?.[0].usage.cpu !== '0',
  ).finally(() => clearInterval(busy));
  assert.equal(status, 200, JSON.stringify(json));
  assert.deepEqual([json.kind, json.apiVersion], ['PodMetrics', 'metrics.k8s.io/v1beta1']);
  assert.deepEqual([json.metadata.namespace, json.metadata.labels], ['default', { guest: 'guest' }]);
  assert.match(json.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  assert.match(json.window, /^\d+(\.\d+)?s$/);
  const [{ name, usage }, ...more] = json.containers;
  assert.deepEqual([name, more], ['compute', []]);
  assert.match(usage.cpu, /^[1-9]\d*[num]$/);
  assert.match(usage.memory, /^[1-9]\d*[KM]i$/);

  const { json: host } = await get(`/nodes/${GUEST_NODE}`);
  assert.deepEqual([host.kind, host.metadata.labels.named], ['NodeMetrics', GUEST_NODE]);
  assert.match(host.usage.cpu, /^[1-9]\d*[num]?$/);
  assert.match(host.usage.memory, /^[1-9]\d*[KMG]i$/);
});

// S-1230
test('what has no sample is not found', async () => {
  for (const [target, message] of [
    ['/namespaces/default/pods/ended', 'podmetrics.metrics.k8s.io "default/ended" not found'],
    ['/namespaces/default/pods/lost', 'podmetrics.metrics.k8s.io "default/lost" not found'],
    ['/namespaces/default/pods/none', 'pods "none" not found'],
    ['/nodes/silent', 'nodemetrics.metrics.k8s.io "silent" not found'],
  ] as const) {
    const { status, json } = await get(target);
    assert.deepEqual([status, json.reason, json.message], [404, 'NotFound', message]);
  }
});

// S-1230
test('lists, selectors, tables, discovery', async () => {
  const all = await get('/pods');
  assert.deepEqual([all.json.kind, namesIn(all)], ['PodMetricsList', ['guest']]);
  assert.equal(all.json.items[0].kind, undefined);
  assert.deepEqual(namesIn(await get('/namespaces/default/pods?labelSelector=guest%3Dended')), []);
  assert.deepEqual(namesIn(await get('/namespaces/default/pods?labelSelector=guest')), ['guest']);
  assert.deepEqual(namesIn(await get('/pods?fieldSelector=metadata.name%3Dguest')), ['guest']);
  assert.deepEqual(namesIn(await get('/pods?fieldSelector=metadata.name!%3Dguest')), []);
  assert.deepEqual(namesIn(await get('/namespaces/other/pods')), []);
  assert.deepEqual(namesIn(await get('/nodes')), [GUEST_NODE]);
  assert.equal((await get('/pods?labelSelector=((')).status, 400);

  const { plane } = board;
  const table = await plane.handler({
    method: 'GET',
    path: `${METRICS}/pods`,
    query: '',
    headers: { accept: TABLE },
    body: new Uint8Array(),
    peer: {
      address: '192.0.2.1',
      certificate: { verified: true, commonName: 'admin', organizations: ['system:masters'], fingerprint: 'admin' },
    },
    signal: new AbortController().signal,
  });
  const body = Buffer.concat([table.body ?? []].flat() as Uint8Array[]).toString();
  const { columnDefinitions, rows } = JSON.parse(body);
  assert.deepEqual(
    columnDefinitions.map((column: { name: string }) => column.name),
    ['Name', 'cpu', 'memory', 'Window'],
  );
  assert.match(rows[0].cells.join(' '), /^guest \d+[num]? \d+[KM]i [\d.]+s$/);

  const { json } = await board.send('GET', METRICS);
  assert.deepEqual(
    json.resources.map((one: { name: string; kind: string; namespaced: boolean }) => [
      one.name,
      one.kind,
      one.namespaced,
    ]),
    [
      ['nodes', 'NodeMetrics', false],
      ['pods', 'PodMetrics', true],
    ],
  );
  assert.equal((await board.send('DELETE', `${METRICS}/nodes/${GUEST_NODE}`)).status, 405);
  assert.equal((await get('/deployments')).status, 404);
  const { json: service } = await board.send(
    'GET',
    '/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io',
  );
  assert.equal(service.status?.conditions[0].reason, 'Local', JSON.stringify(service));
});

// S-1231: Who may view a namespace may read the metrics of its Pods; metrics of others and of nodes take a right of their own.
test('rights', async () => {
  await made('/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings', {
    kind: 'RoleBinding',
    metadata: { name: 'v' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'viewer' }],
  } as never);
  const as = async (target: string) => (await board.sendAs(['viewer'], 'GET', `${METRICS}${target}`)).status;
  assert.equal(await as('/namespaces/default/pods/guest'), 200);
  assert.equal(await as('/namespaces/default/pods'), 200);
  assert.equal(await as('/namespaces/other/pods'), 403);
  assert.equal(await as('/pods'), 403);
  assert.equal(await as('/nodes'), 403);
});
