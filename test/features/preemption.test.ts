/** Scheduling by priority on a whole control plane: classes by name, victims gracefully, topology spread, reasons. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';

const PODS = '/api/v1/namespaces/default/pods';
let plane: TestPlane;
before(async () => {
  plane = await startPlane();
  await plane.run(['scheduler', 'serviceaccount-controller'], { rootCa: 'PEM' });
  await eventually(async () => {
    const { status } = await plane.ask('GET /api/v1/namespaces/default/serviceaccounts/default', {
      as: ['admin', 'system:masters'],
    });
    return status === 200;
  });
  for (const [name, value, preemptionPolicy] of [
    ['low', 1, 'PreemptLowerPriority'],
    ['high', 1000, 'PreemptLowerPriority'],
    ['polite', 1000, 'Never'],
  ])
    await plane.admin('POST /apis/scheduling.k8s.io/v1/priorityclasses', {
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name },
      value,
      preemptionPolicy,
    });
});
after(() => plane.stop());

async function node(name: string, cpu: string, labels: object = {}): Promise<void> {
  await plane.admin('POST /api/v1/nodes', {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'kubernetes.io/hostname': name, ...labels } },
  });
  const status = {
    allocatable: { cpu, memory: '8Gi', pods: '110', 'vendor.example/gpu': '1' },
    capacity: { cpu, memory: '8Gi', pods: '110', 'vendor.example/gpu': '1' },
    conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }],
  };
  const known = await plane.admin(`GET /api/v1/nodes/${name}`);
  await plane.admin(`PUT /api/v1/nodes/${name}/status`, { ...known, status });
  const { taints: _initial, ...spec } = known.spec ?? {};
  const fresh = await plane.admin(`GET /api/v1/nodes/${name}`);
  await plane.admin(`PUT /api/v1/nodes/${name}`, { ...fresh, spec });
}

const pod = (name: string, cpu: string, spec: object = {}, metadata: object = {}) =>
  plane.admin(`POST ${PODS}`, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...metadata },
    spec: { containers: [{ name: 'c', image: 'i', resources: { requests: { cpu } } }], ...spec },
  });
const get = (name: string) => plane.admin(`GET ${PODS}/${name}`);
const events = async (name: string): Promise<string[]> =>
  (await plane.admin('GET /api/v1/namespaces/default/events')).items
    .filter((one: { involvedObject: { name: string } }) => one.involvedObject.name === name)
    .map((one: { type: string; reason: string; message: string }) => `${one.type} ${one.reason}: ${one.message}`);
const scheduled = (name: string) =>
  eventually(async () => ((await get(name)).spec.nodeName ?? '') !== '').then(
    async () => (await get(name)).spec.nodeName,
  );

// S-209: A Pod of a lower priority leaves, gracefully, for one that finds no room; Pods are spread as they ask.
test('a pod of a higher class takes the place of a lower one, which leaves gracefully', {
  timeout: 600_000,
}, async () => {
  await node('only', '2');
  await pod('first', '1500m', { priorityClassName: 'low' });
  assert.equal(await scheduled('first'), 'only');
  await plane.admin(`PUT ${PODS}/first/status`, {
    ...(await get('first')),
    status: { phase: 'Running' },
  });

  await pod('polite', '1500m', { priorityClassName: 'polite' });
  await eventually(async () => (await get('polite')).status.conditions?.[0]?.reason === 'Unschedulable');
  const says =
    '0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never.';
  assert.equal((await get('polite')).status.conditions[0].message, says);
  await eventually(async () => (await events('polite')).length > 0);
  assert.deepEqual(await events('polite'), [`Warning FailedScheduling: ${says}`]);
  await plane.admin(`DELETE ${PODS}/polite`);

  await pod('urgent', '1500m', { priorityClassName: 'high' });
  await eventually(async () => (await get('first')).metadata.deletionTimestamp !== undefined);
  const victim = await get('first');
  assert.equal(victim.metadata.deletionGracePeriodSeconds, 30);
  const target = victim.status.conditions.find((one: { type: string }) => one.type === 'DisruptionTarget');
  assert.equal(target.reason, 'PreemptionByScheduler');
  const urgent = await get('urgent');
  assert.equal(urgent.status.nominatedNodeName, 'only');
  assert.equal(urgent.spec.nodeName, undefined, 'not before the other has left');
  await eventually(async () =>
    (await events('first')).includes(`Normal Preempted: Preempted by pod ${urgent.metadata.uid} on node only`),
  );
  // The kubelet's word that it has ended.
  await plane.admin(`DELETE ${PODS}/first`, { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0 });
  assert.equal(await scheduled('urgent'), 'only');
  assert.equal((await get('urgent')).status.nominatedNodeName, undefined);
  await plane.admin(`DELETE ${PODS}/urgent`, { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0 });
});

// S-209
test('spread over zones, devices of which there is one, and what is said when nothing fits', {
  timeout: 600_000,
}, async () => {
  await node('west', '4', { zone: 'w' });
  await node('east', '4', { zone: 'e' });
  const topologySpreadConstraints = [
    {
      maxSkew: 1,
      topologyKey: 'zone',
      whenUnsatisfiable: 'DoNotSchedule',
      labelSelector: { matchLabels: { app: 's' } },
    },
  ];
  const labels = { labels: { app: 's' } };
  const zones: string[] = [];
  for (const name of ['s1', 's2', 's3', 's4']) {
    await pod(name, '10m', { topologySpreadConstraints }, labels);
    zones.push(await scheduled(name));
  }
  assert.deepEqual([...zones].sort(), ['east', 'east', 'west', 'west']);

  const device = { resources: { limits: { 'vendor.example/gpu': '1' } } };
  const containers = [{ name: 'c', image: 'i', ...device }];
  const places = new Set<string>();
  for (const name of ['g1', 'g2', 'g3']) {
    await pod(name, '0', { containers });
    places.add(await scheduled(name));
  }
  assert.equal(places.size, 3);
  await pod('g4', '0', { containers });
  await eventually(async () => (await get('g4')).status.conditions?.[0]?.reason === 'Unschedulable');
  assert.equal(
    (await get('g4')).status.conditions[0].message,
    '0/3 nodes are available: 3 Insufficient vendor.example/gpu. no new claims to deallocate, preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.',
  );
});
