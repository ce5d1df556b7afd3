import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ResourceType } from '../../../apimachinery/src/meta/gvk.ts';
import { ApiError, conflict } from '../../../apimachinery/src/meta/status.ts';
import {
  EVENTS,
  NAMESPACES,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  POD_DISRUPTION_BUDGETS,
  PODS,
  STORAGE_CLASSES,
} from '../../../apimachinery/src/types/resource-types.ts';
import type { Event, Pod } from '../../../apimachinery/src/types/types.ts';
import { createClient } from '../../../client/src/create-client.ts';
import { createFakeApi } from '../../../client/src/fake-api.fixture.ts';
import { createInformerSet } from '../../../client/src/informer/informer-set.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { createLogger, type LogRecord } from '../../../runtime/src/log/log.ts';
import { createScheduler } from './scheduler.ts';

const TOO_SMALL =
  '0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.';

function harness() {
  const clock = createFakeClock();
  const api = createFakeApi([
    PODS,
    NODES,
    NAMESPACES,
    EVENTS,
    POD_DISRUPTION_BUDGETS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
  ] as ResourceType<never>[]);
  const client = createClient(api.handler);
  const informers = createInformerSet(client, { clock });
  const logged: LogRecord[] = [];
  const log = createLogger((record) => logged.push(record), 'info');
  const scheduler = createScheduler({ client, informers, clock, log });
  const stop = new AbortController();
  const run = Promise.all([informers.start(stop.signal), scheduler.start(stop.signal)]);
  return {
    clock,
    api,
    logged,
    /** Moves time on in small steps and lets everything that is ready run. */
    pass: async (ms: number): Promise<void> => {
      for (let i = 0; i < 10; i++) {
        await clock.advance(ms / 10);
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
    node: (name: string, cpu: string, spec: object = {}) =>
      api.put({
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name },
        spec,
        status: {
          allocatable: { cpu, memory: '8Gi', pods: '110' },
          conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }],
        },
      }),
    pod: (name: string, cpu: string, spec: object = {}) =>
      api.put({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace: 'ns' },
        spec: {
          containers: [{ name: 'c', resources: { requests: { cpu } } }],
          schedulerName: 'default-scheduler',
          ...spec,
        },
      }),
    get: (name: string) => api.get(PODS, 'ns', name) as unknown as Pod | undefined,
    events: () =>
      (api.all(EVENTS) as unknown as Event[]).map(({ type, reason, message }) => `${type} ${reason}: ${message}`),
    end: async (): Promise<void> => {
      stop.abort();
      await clock.advance(0);
      await run;
    },
  };
}

test('a pod is bound to a node with room, and an event says so', async () => {
  const h = harness();
  h.node('n1', '1');
  h.node('n2', '4');
  h.pod('p', '2');
  await h.clock.advance(10);
  assert.equal(h.get('p')?.spec.nodeName, 'n2');
  assert.deepEqual(h.events(), ['Normal Scheduled: Successfully assigned ns/p to n2']);
  await h.end();
});

// S-046: The scheduler honours resources, node selectors, affinity and taints, says why a Pod has no place, and never
//   overfills a node.
test('a pod without a place says why, once, and is bound when a node makes room', async () => {
  const h = harness();
  h.node('n1', '1');
  h.pod('p', '2');
  await h.clock.advance(10);
  const [condition] = h.get('p')?.status?.conditions ?? [];
  assert.deepEqual(
    [condition?.type, condition?.status, condition?.reason, condition?.message],
    ['PodScheduled', 'False', 'Unschedulable', TOO_SMALL],
  );
  await h.clock.advance(200_000);
  assert.deepEqual(h.events(), [`Warning FailedScheduling: ${TOO_SMALL}`]);
  assert.equal(h.api.requests.filter((one) => one.startsWith('PATCH /api/v1/namespaces/ns/pods')).length, 1);
  h.node('n1', '4');
  await h.clock.advance(100);
  assert.equal(h.get('p')?.spec.nodeName, 'n1');
  await h.end();
});

test('a pod that leaves makes room for one that waits', async () => {
  const h = harness();
  h.node('n1', '1');
  h.pod('first', '1');
  await h.clock.advance(10);
  h.pod('second', '1');
  await h.clock.advance(10);
  assert.equal(h.get('second')?.spec.nodeName, undefined);
  h.api.remove(PODS, 'ns', 'first');
  await h.clock.advance(100);
  assert.equal(h.get('second')?.spec.nodeName, 'n1');
  await h.end();
});

test('a hundred pods at once are spread without overfilling, before any watch shows a binding', async () => {
  const h = harness();
  for (const name of ['n1', 'n2', 'n3']) h.node(name, '20');
  for (let i = 0; i < 100; i++) h.pod(`p${i}`, '1');
  await h.pass(10);
  const perNode = new Map<string, number>();
  for (let i = 0; i < 100; i++) {
    const name = h.get(`p${i}`)?.spec.nodeName ?? 'none';
    perNode.set(name, (perNode.get(name) ?? 0) + 1);
  }
  assert.deepEqual(Object.fromEntries([...perNode].sort()), { n1: 20, n2: 20, n3: 20, none: 40 });
  await h.end();
});

test('other schedulers, terminating and gated pods are left alone; gates are reported', async () => {
  const h = harness();
  h.node('n1', '4');
  h.pod('other', '1', { schedulerName: 'mine' });
  h.pod('gated', '1', { schedulingGates: [{ name: 'wait' }] });
  h.pod('unnamed', '1', { schedulerName: '' });
  await h.clock.advance(10);
  assert.equal(h.get('other')?.spec.nodeName, undefined);
  assert.equal(h.get('gated')?.spec.nodeName, undefined);
  assert.equal(h.get('gated')?.status?.conditions?.[0]?.reason, 'SchedulingGated');
  assert.equal(h.get('unnamed')?.spec.nodeName, 'n1');
  h.pod('gated', '1');
  await h.clock.advance(10);
  assert.equal(h.get('gated')?.spec.nodeName, 'n1');
  await h.end();
});

test('a binding that fails gives its room back and is tried again', async () => {
  const h = harness();
  h.node('n1', '1');
  let failures = 2;
  h.api.intercept = ({ method, path }) => {
    if (method !== 'POST' || !path.endsWith('/binding') || failures === 0) return;
    failures--;
    if (failures === 1) throw conflict({ group: '', resource: 'pods' }, 'p');
    throw new ApiError({ code: 500, reason: 'InternalError', message: 'no' });
  };
  h.pod('p', '1');
  await h.pass(1000);
  assert.equal(h.get('p')?.spec.nodeName, 'n1');
  assert.equal(h.logged.filter((one) => one.level === 'error').length, 1, 'the conflict is quiet, the failure is not');
  await h.end();
});

test('a binding refused because the namespace ends is neither an error nor tried again; its room is free', async () => {
  const h = harness();
  h.node('n1', '1');
  let refused = 0;
  h.api.intercept = ({ method, path }) => {
    if (method !== 'POST' || !path.endsWith('/p/binding')) return;
    refused++;
    throw new ApiError({
      code: 403,
      reason: 'Forbidden',
      message: 'unable to create new content in namespace ns because it is being terminated',
      details: { name: 'p', kind: 'pods', causes: [{ reason: 'NamespaceTerminating', message: 'it ends' }] },
    });
  };
  h.pod('p', '1');
  await h.pass(60_000);
  assert.equal(refused, 1);
  assert.deepEqual(
    h.logged.filter(({ level }) => level === 'error' || level === 'warn'),
    [],
  );
  h.pod('q', '1');
  await h.pass(1000);
  assert.equal(h.get('q')?.spec.nodeName, 'n1');
  await h.end();
});

test('heartbeats of nodes do not try waiting pods again', async () => {
  const h = harness();
  h.node('n1', '1');
  h.pod('p', '2');
  await h.clock.advance(10);
  const before = h.api.requests.length;
  for (let i = 0; i < 5; i++) {
    h.api.put({ ...h.api.get(NODES, '', 'n1'), metadata: { name: 'n1', annotations: { beat: String(i) } } });
    await h.clock.advance(100);
  }
  assert.equal(h.api.requests.length, before);
  await h.end();
});

// S-209
test('preemption: the less important pod is asked to leave, and its room is kept for the one that asked', async () => {
  const h = harness();
  h.node('n1', '1');
  h.pod('low', '1', { priority: 1 });
  await h.clock.advance(10);
  h.pod('high', '1', { priority: 10 });
  let asked = 0;
  h.api.intercept = ({ method, path }) => {
    if (method !== 'DELETE') return;
    assert.equal(path, '/api/v1/namespaces/ns/pods/low');
    asked++;
    // The node lets it go later: its guest shuts down first.
    throw new ApiError({ code: 404, reason: 'NotFound', message: '' });
  };
  await h.clock.advance(10);
  assert.equal(h.get('high')?.status?.nominatedNodeName, 'n1');
  assert.equal(h.get('high')?.status?.conditions?.[0]?.message, '0/1 nodes are available: 1 Insufficient cpu.');
  const target = h.get('low')?.status?.conditions?.find(({ type }) => type === 'DisruptionTarget');
  assert.equal(target?.reason, 'PreemptionByScheduler');
  assert.equal(target?.message, 'default-scheduler: preempting to accommodate a higher priority pod');
  assert.equal(asked, 1);
  const uid = h.get('high')?.metadata.uid;
  assert.ok(h.events().includes(`Normal Preempted: Preempted by pod ${uid} on node n1`));
  h.pod('middle', '1', { priority: 5 });
  h.api.intercept = () => {};
  h.api.remove(PODS, 'ns', 'low');
  await h.pass(200);
  assert.equal(h.get('high')?.spec.nodeName, 'n1');
  assert.equal(h.get('middle')?.spec.nodeName, undefined);
  await h.end();
});

test('a pod is not said to fit nowhere while a fresh node is about to report', async () => {
  const h = harness();
  h.pod('early', '1');
  await h.clock.advance(500);
  assert.equal(h.get('early')?.status?.conditions, undefined);
  h.api.put({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' }, status: {} });
  await h.clock.advance(500);
  assert.equal(h.get('early')?.status?.conditions, undefined);
  h.node('n1', '4');
  await h.clock.advance(100);
  assert.equal(h.get('early')?.spec.nodeName, 'n1');
  assert.deepEqual(h.events(), ['Normal Scheduled: Successfully assigned ns/early to n1']);
  await h.end();
});

test('a pod is reported to have no nodes when none came in time', async () => {
  const h = harness();
  h.pod('early', '1');
  await h.clock.advance(10_100);
  assert.deepEqual(h.events(), ['Warning FailedScheduling: no nodes available to schedule pods']);
  await h.end();
});
