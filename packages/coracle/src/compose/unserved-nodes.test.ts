import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { formatMicroTime } from '../../../apimachinery/src/meta/object.ts';
import { LEASES, NAMESPACES, NODES, PODS } from '../../../apimachinery/src/types/resource-types.ts';
import type { Node, Pod } from '../../../apimachinery/src/types/types.ts';
import { createClient } from '../../../client/src/create-client.ts';
import { createFakeApi } from '../../../client/src/fake-api.fixture.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { NEVER } from '../../../runtime/src/http/seam.ts';
import { silentLogger } from '../../../runtime/src/log/log.ts';
import { clearUnservedNodes } from './unserved-nodes.ts';

const OWN = '00000000-0000-4000-8000-000000000001';
const OTHER = '00000000-0000-4000-8000-000000000002';

const node = (name: string, agent: string): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, annotations: { 'coracle.dev/agent-id': agent } },
  spec: {},
  status: { conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: '' }] },
});

const pod = (name: string, nodeName: string, change: { phase?: string; deleting?: boolean } = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name,
    namespace: 'default',
    ...(change.deleting && { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 30 }),
  },
  spec: { nodeName, containers: [{ name: 'compute', image: 'i' }] },
  status: { phase: (change.phase ?? 'Pending') as 'Pending' },
});

async function setUp(t: TestContext) {
  const nodesDirectory = await mkdtemp(join(tmpdir(), 'unserved-nodes-'));
  t.after(() => rm(nodesDirectory, { recursive: true }));
  for (const name of ['vm', 'vm-2']) {
    await mkdir(join(nodesDirectory, name));
    await writeFile(join(nodesDirectory, name, 'agent.id'), OWN);
  }
  const clock = createFakeClock();
  const api = createFakeApi([NODES, PODS, LEASES, NAMESPACES]);
  const client = createClient(api.handler);
  const lease = (name: string, age: number): unknown => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: 'kube-node-lease' },
    spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime: formatMicroTime(clock.now() - age * 1000) },
  });
  for (const [name, agent, age] of [
    ['vm', OWN, 300],
    ['vm-2', OWN, 5],
    ['far-lively', OTHER, 5],
    ['far-silent', OTHER, 300],
  ] as const) {
    api.put(node(name, agent));
    api.put(lease(name, age) as never);
  }
  api.put(node('far-new', OTHER));
  const clear = () =>
    clearUnservedNodes({ client, nodesDirectory, served: ['vm'], clock, log: silentLogger, signal: NEVER });
  return { api, client, clear };
}

// S-362: A start removes the nodes of its own data directory that it does not serve and that have no guests, ends the
//   Pods on them, and says so; nodes of other agents whose Lease has lapsed are Unknown at once, until they are heard
//   of.
test('a start removes its own nodes that it does not serve, and ends the Pods on them', async (t) => {
  const { api, client, clear } = await setUp(t);
  for (const one of [
    pod('stuck', 'vm-2', { deleting: true, phase: 'Running' }),
    pod('waiting', 'vm-2'),
    pod('done', 'vm-2', { phase: 'Succeeded' }),
    pod('served', 'vm'),
  ])
    api.put(one);
  assert.deepEqual((await clear()).removed, ['vm-2']);
  const names = (await client.list(NODES, {})).items.map(({ metadata }) => metadata.name);
  assert.deepEqual(names.sort(), ['far-lively', 'far-new', 'far-silent', 'vm']);
  const pods = (await client.list(PODS, {})).items.map(({ metadata }) => metadata.name);
  assert.deepEqual(pods.sort(), ['done', 'served']);
  assert.deepEqual((await clear()).removed, [], 'it is done once');
});

// S-362
test('a start holds nodes of other agents whose Lease has lapsed for Unknown, and nothing is scheduled there', async (t) => {
  const { client, clear } = await setUp(t);
  assert.deepEqual((await clear()).silent, ['far-new', 'far-silent']);
  for (const name of ['far-new', 'far-silent', 'far-lively', 'vm']) {
    const { spec, status } = await client.get(NODES, { namespace: '', name });
    const isSilent = name === 'far-new' || name === 'far-silent';
    assert.equal(status?.conditions?.[0]?.status, isSilent ? 'Unknown' : 'True', name);
    const taints = (spec?.taints ?? []).map(({ key, effect }) => `${key}:${effect}`);
    assert.deepEqual(taints, isSilent ? ['node.kubernetes.io/unreachable:NoSchedule'] : [], name);
  }
  assert.deepEqual((await clear()).silent, [], 'what is Unknown stays so');
});
