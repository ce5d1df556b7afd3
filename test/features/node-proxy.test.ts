/** `nodes/{name}/proxy`: what a node answers of itself through the API server, over a real port between the two. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { readWhole } from '../../packages/apiserver/src/outbound/read-whole.ts';
import type { MeasuredPod } from '../../packages/node-agent/src/agent/requests/node-summary.ts';
import { NEVER, NO_BYTES } from '../../packages/runtime/src/http/seam.ts';
import { identify } from '../../packages/runtime/src/process/identity.ts';
import { GUEST_NODE, type GuestNode, startGuestNode } from '../testkit/guest-node.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const NODES = '/api/v1/nodes';
const PROXY = `${NODES}/${GUEST_NODE}/proxy`;
const pod = (name: string): MeasuredPod['pod'] => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default', uid: `uid-of-${name}` },
  spec: { nodeName: GUEST_NODE, containers: [{ name: 'compute' }] },
  status: { phase: 'Running', startTime: '2026-01-02T03:04:05Z' },
});

let node: GuestNode;
let server: InProcessServer;
/** What the user may not do: `verb resource/subresource`. */
let refused = '';
before(async () => {
  // This process stands for a QEMU.
  const own = await identify(process.pid);
  const pods: MeasuredPod[] = [
    { pod: pod('guest'), process: own },
    { pod: pod('ended'), process: undefined },
  ];
  node = await startGuestNode(() => pods);
  server = await startServer({
    connectNode: node.connectNode,
    authorize: (_user, attributes) => ({
      allowed:
        attributes.type !== 'resource' ||
        `${attributes.verb} ${attributes.resource}/${attributes.subresource}` !== refused,
      reason: '',
    }),
  });
  for (const name of [GUEST_NODE, 'silent']) {
    await server.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name } });
    await server.request('PATCH', `${NODES}/${name}/status`, {
      body: { status: { daemonEndpoints: { kubeletEndpoint: { Port: 10250 } } } },
    });
  }
});
after(async () => {
  await server.stop();
  await node.close();
});

/** The whole answer: what comes from a node streams. */
async function ask(method: string, target: string) {
  const [path = '', query = ''] = target.split('?');
  const request = { method, path, query, headers: {}, body: NO_BYTES, peer: { address: '' }, signal: NEVER };
  const answer = await server.handler(request);
  const text = new TextDecoder().decode(await readWhole(answer, { limit: 1024 * 1024, signal: NEVER }));
  const isJson = answer.headers['content-type'] === 'application/json';
  return { status: answer.status, headers: answer.headers, text, json: isJson ? JSON.parse(text) : undefined };
}
const get = (path: string, at = PROXY) => ask('GET', `${at}${path}`);

test('health, in a word or check by check', async () => {
  const health = await get('/healthz');
  assert.deepEqual([health.status, health.text], [200, 'ok']);
  assert.equal(health.headers['content-type'], 'text/plain; charset=utf-8');
  assert.equal(health.headers['x-content-type-options'], 'nosniff');
  assert.equal(health.headers['coracle-proxied'], undefined);
  for (const check of ['ping', 'log', 'syncloop']) assert.equal((await get(`/healthz/${check}`)).text, 'ok');
  assert.equal((await get('/healthz?verbose')).text, '[+]ping ok\n[+]log ok\n[+]syncloop ok\nhealthz check passed\n');
  for (const id of [`${GUEST_NODE}:10250`, `https:${GUEST_NODE}:10250`, `https:${GUEST_NODE}:`]) {
    assert.equal((await get('/healthz', `${NODES}/${id}/proxy`)).text, 'ok', id);
  }
});

test('its Pods, as a list whose items do not say what they are', async () => {
  const { status, headers, json } = await get('/pods');
  assert.deepEqual([status, headers['content-type']], [200, 'application/json']);
  assert.deepEqual([json.kind, json.apiVersion, json.metadata], ['PodList', 'v1', {}]);
  assert.deepEqual(
    json.items.map(({ kind, metadata }: { kind?: string; metadata: { name: string } }) => [kind, metadata.name]),
    [
      [undefined, 'guest'],
      [undefined, 'ended'],
    ],
  );
  assert.deepEqual((await get('/pods/')).json, json);
});

// S-293: Of itself a node serves health, Pods and figures through `nodes/proxy`, and nothing else.
// Compat Pods, nodes, drain, P2, yes: kubelet's healthz, pods, metrics, stats/summary through `nodes/proxy`
test('what the node and its guests take', async () => {
  const { json } = await get('/stats/summary');
  assert.equal(json.node.nodeName, GUEST_NODE);
  for (const name of ['cpu', 'memory', 'fs']) assert.ok(json.node[name].time, name);
  assert.ok(json.node.cpu.usageCoreNanoSeconds > 0 && json.node.memory.availableBytes > 0);
  const { capacityBytes, availableBytes, usedBytes } = json.node.fs;
  assert.equal(capacityBytes, availableBytes + usedBytes);
  assert.equal(json.pods.length, 1, 'the one that runs');
  const [{ podRef, startTime, containers, memory }] = json.pods;
  assert.deepEqual(podRef, { name: 'guest', namespace: 'default', uid: 'uid-of-guest' });
  assert.equal(startTime, '2026-01-02T03:04:05Z');
  assert.deepEqual([containers[0].name, containers[0].memory], ['compute', memory]);
  assert.ok(memory.workingSetBytes > 1_000_000);
  assert.equal((await get('/stats/summary?only_cpu_and_memory=true')).json.node.fs, undefined);

  const { text, headers } = await get('/metrics/resource');
  assert.match(headers['content-type']!, /^text\/plain; version=0\.0\.4/);
  assert.match(
    text,
    /^container_cpu_usage_seconds_total\{container="compute",namespace="default",pod="guest"\} [\d.]+$/m,
  );
  assert.match(text, /^pod_memory_working_set_bytes\{namespace="default",pod="guest"\} \d+$/m);
  assert.match(text, /^node_cpu_usage_seconds_total [\d.e+]+$/m);
  assert.match(text, /^resource_scrape_error 0$/m);
  assert.equal((await get('/metrics')).status, 200);
});

// S-293
test('nothing else is there, and nothing can be changed', async () => {
  const paths = [
    '/',
    '/logs/',
    '/configz',
    '/run/default/guest/compute',
    '/healthz/../v1/x',
    '/nodeProxy',
    '/runningpods/',
  ];
  for (const path of paths) {
    const { status, text } = await get(path);
    assert.deepEqual([status, text], [404, '404 page not found\n'], path);
  }
  // What the agent serves to its virt-api is not reached this way.
  const { status } = await get('/v1/namespaces/default/virtualmachineinstances/guest/console');
  assert.equal(status, 404);
  const posted = await ask('POST', `${PROXY}/pods`);
  assert.deepEqual([posted.status, posted.text], [405, '405: Method Not Allowed']);
  const bare = await get('');
  assert.deepEqual([bare.status, bare.headers['location']], [301, `${PROXY}/`]);
});

// S-293
test('the right asked for is the verb on nodes/proxy', async () => {
  refused = 'get nodes/proxy';
  const before = node.seen.length;
  const { status, json } = await get('/healthz');
  refused = '';
  assert.equal(status, 403);
  assert.match(json.message, /cannot get resource "nodes\/proxy" in API group "" at the cluster scope$/);
  assert.equal(node.seen.length, before);
});

test('a node that cannot be asked says why', async () => {
  const silent = await get('/healthz', `${NODES}/silent/proxy`);
  assert.equal(silent.status, 503);
  assert.match(
    silent.json.message,
    /^error trying to reach service: error dialing backend: node silent names no endpoint/,
  );
  const other = await get('/', `${NODES}/${GUEST_NODE}:22/proxy`);
  assert.deepEqual([other.status, other.json.reason], [503, 'ServiceUnavailable']);
  assert.match(other.json.message, /^error trying to reach service: node "n1" serves nothing on port 22$/);
});
