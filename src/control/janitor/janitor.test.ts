import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  CLUSTER_ROLES,
  CONFIG_MAPS,
  EVENTS,
  LEASES,
  NAMESPACES,
  NODES,
  POD_DISRUPTION_BUDGETS,
  PODS,
  REPLICA_SETS,
  SERVICE_ACCOUNTS,
} from '../../api/kinds/builtin/resource-types.ts';
import type { ConfigMap, Node, Pod, PodDisruptionBudget } from '../../api/kinds/builtin/types.ts';
import type { ResourceType } from '../../api/meta/gvk.ts';
import { formatMicroTime, formatTime } from '../../api/meta/object.ts';
import { createFakeClock } from '../../base/clock/fake-clock.ts';
import { createLogger, type LogRecord } from '../../base/log/log.ts';
import type { Runnable } from '../../client/controller/environment.ts';
import { createClient } from '../../client/create-client.ts';
import { createFakeApi } from '../../client/fake-api.fixture.ts';
import { createInformerSet } from '../../client/informer/informer-set.ts';
import { createClusterRoleAggregationController } from './cluster-role-aggregation-controller.ts';
import { budgetStatus, createDisruptionController } from './disruption-controller.ts';
import { createEventTtlController } from './event-ttl-controller.ts';
import { type JanitorOptions, janitorControllers } from './janitor-controllers.ts';
import { createNodeLifecycleController, wantedTaints } from './node-lifecycle-controller.ts';
import { createPodGcController } from './pod-gc-controller.ts';
import { createRootCaController } from './root-ca-controller.ts';
import { createServiceAccountController } from './service-account-controller.ts';

const TYPES = [
  CLUSTER_ROLES,
  CONFIG_MAPS,
  EVENTS,
  LEASES,
  NAMESPACES,
  NODES,
  POD_DISRUPTION_BUDGETS,
  PODS,
  REPLICA_SETS,
  SERVICE_ACCOUNTS,
] as ResourceType<never>[];

function harness(create: (options: JanitorOptions) => Runnable) {
  const clock = createFakeClock();
  const api = createFakeApi(TYPES);
  const client = createClient(api.handler);
  const informers = createInformerSet(client, { clock });
  const logged: LogRecord[] = [];
  const log = createLogger((record) => logged.push(record), 'error');
  const controller = create({ client, informers, clock, log, rootCa: 'PEM' });
  const stop = new AbortController();
  const run = Promise.all([informers.start(stop.signal), controller.start(stop.signal)]);
  return {
    clock,
    api,
    end: async (): Promise<void> => {
      stop.abort();
      await clock.advance(0);
      await run;
      assert.deepEqual(logged, []);
    },
  };
}

const namespace = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name },
  spec: { finalizers: ['kubernetes'] },
});

test('serviceaccount-controller: every active namespace has the account default, again after it was deleted', async () => {
  const h = harness(createServiceAccountController);
  h.api.put(namespace('a'));
  h.api.put({ ...namespace('leaving'), metadata: { name: 'leaving', deletionTimestamp: '2030-01-01T00:00:00Z' } });
  await h.clock.advance(1);
  assert.ok(h.api.get(SERVICE_ACCOUNTS, 'a', 'default'));
  assert.equal(h.api.get(SERVICE_ACCOUNTS, 'leaving', 'default'), undefined);
  h.api.remove(SERVICE_ACCOUNTS, 'a', 'default');
  await h.clock.advance(1);
  assert.ok(h.api.get(SERVICE_ACCOUNTS, 'a', 'default'));
  await h.end();
});

test('root-ca-certificate-publisher-controller: the ConfigMap is made, put back and mended', async () => {
  const h = harness(createRootCaController);
  h.api.put(namespace('a'));
  await h.clock.advance(1);
  const get = () => h.api.get(CONFIG_MAPS, 'a', 'kube-root-ca.crt') as unknown as ConfigMap;
  assert.deepEqual(get().data, { 'ca.crt': 'PEM' });
  h.api.put({ ...get(), data: { 'ca.crt': 'forged', more: 'x' } });
  await h.clock.advance(1);
  assert.deepEqual(get().data, { 'ca.crt': 'PEM' });
  h.api.remove(CONFIG_MAPS, 'a', 'kube-root-ca.crt');
  await h.clock.advance(1);
  assert.deepEqual(get().data, { 'ca.crt': 'PEM' });
  await h.end();
});

test('event-ttl-controller: an event goes an hour after it was last written', async () => {
  const h = harness(createEventTtlController);
  const event = { apiVersion: 'v1', kind: 'Event', metadata: { name: 'e', namespace: 'a' }, involvedObject: {} };
  h.api.put({ ...event, lastTimestamp: formatTime(h.clock.now()) });
  await h.clock.advance(1_800_000);
  h.api.put({ ...event, lastTimestamp: formatTime(h.clock.now()) });
  await h.clock.advance(3_599_000);
  assert.ok(h.api.get(EVENTS, 'a', 'e'));
  await h.clock.advance(2_000);
  assert.equal(h.api.get(EVENTS, 'a', 'e'), undefined);
  await h.end();
});

const readyNode = (name: string, status: 'True' | 'False' | 'Unknown' = 'True'): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name },
  status: { conditions: [{ type: 'Ready', status }] },
});
const taintsOf = (node: Node): string[] => wantedTaints(node, 0).map(({ key, effect }) => `${key}:${effect}`);

test('wantedTaints(): by condition, with those of others left in place', () => {
  const prefix = 'node.kubernetes.io/';
  assert.deepEqual(taintsOf(readyNode('n')), []);
  assert.deepEqual(taintsOf(readyNode('n', 'False')), [
    `${prefix}not-ready:NoSchedule`,
    `${prefix}not-ready:NoExecute`,
  ]);
  assert.deepEqual(taintsOf(readyNode('n', 'Unknown')), [
    `${prefix}unreachable:NoSchedule`,
    `${prefix}unreachable:NoExecute`,
  ]);
  assert.deepEqual(taintsOf({ ...readyNode('n'), status: {} }), [`${prefix}not-ready:NoSchedule`]);
  const busy: Node = {
    ...readyNode('n'),
    spec: {
      unschedulable: true,
      taints: [
        { key: 'mine', effect: 'NoExecute' },
        { key: `${prefix}not-ready`, effect: 'NoSchedule' },
      ],
    },
    status: {
      conditions: [
        { type: 'Ready', status: 'True' },
        { type: 'MemoryPressure', status: 'True' },
      ],
    },
  };
  assert.deepEqual(taintsOf(busy), [
    'mine:NoExecute',
    `${prefix}unschedulable:NoSchedule`,
    `${prefix}memory-pressure:NoSchedule`,
  ]);
});

test('node-lifecycle-controller: a node whose Lease stands still for 50 s becomes Unknown and unreachable, and recovers', async () => {
  const h = harness(createNodeLifecycleController);
  const lease = () => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'n', namespace: 'kube-node-lease' },
    spec: { renewTime: formatMicroTime(h.clock.now()) },
  });
  const node = () => h.api.get(NODES, '', 'n') as unknown as Node;
  const ready = () => node().status?.conditions?.find((one) => one.type === 'Ready');
  h.api.put(readyNode('n'));
  h.api.put(lease());
  for (let i = 0; i < 9; i++) {
    await h.clock.advance(10_000);
    h.api.put(lease());
  }
  assert.equal(ready()?.status, 'True', 'a Lease that moves keeps the node');
  await h.clock.advance(49_000);
  assert.equal(ready()?.status, 'True');
  await h.clock.advance(12_000);
  assert.equal(ready()?.status, 'Unknown');
  assert.equal(ready()?.reason, 'NodeStatusUnknown');
  assert.deepEqual(
    node().status?.conditions?.map((one) => one.type),
    ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'],
  );
  const unreachable = (node().spec?.taints ?? []).map(({ key, effect }) => `${key}:${effect}`);
  assert.deepEqual(unreachable, [
    'node.kubernetes.io/unreachable:NoSchedule',
    'node.kubernetes.io/unreachable:NoExecute',
  ]);

  h.api.put(lease());
  h.api.put({ ...readyNode('n'), spec: node().spec });
  await h.clock.advance(10_000);
  assert.equal(ready()?.status, 'True');
  assert.deepEqual(node().spec?.taints ?? [], []);
  await h.end();
});

const pod = (name: string, spec: object, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'a', ...metadata },
  spec: { containers: [], ...spec },
  status: { phase: 'Running' },
});

test('pod-garbage-collector-controller: pods of a node that is gone go after 40 s, marked as failed', async () => {
  const h = harness(createPodGcController);
  h.api.put(readyNode('n'));
  h.api.put(readyNode('m'));
  h.api.put(pod('on-n', { nodeName: 'n' }));
  h.api.put(pod('on-m', { nodeName: 'm' }));
  await h.clock.advance(60_000);
  assert.equal(h.api.all(PODS).length, 2);
  h.api.remove(NODES, '', 'n');
  await h.clock.advance(39_000);
  assert.equal(h.api.all(PODS).length, 2);
  await h.clock.advance(2_000);
  assert.deepEqual(
    (h.api.all(PODS) as unknown as Pod[]).map((one) => one.metadata.name),
    ['on-m'],
  );
  assert.ok(h.api.requests.includes('PATCH /api/v1/namespaces/a/pods/on-n/status'));
  await h.end();
});

test('pod-garbage-collector-controller: a node that comes back in time keeps its pods', async () => {
  const h = harness(createPodGcController);
  h.api.put(pod('p', { nodeName: 'n' }));
  await h.clock.advance(30_000);
  h.api.put(readyNode('n'));
  await h.clock.advance(30_000);
  h.api.remove(NODES, '', 'n');
  await h.clock.advance(30_000);
  assert.equal(h.api.all(PODS).length, 1);
  await h.end();
});

test('every janitor has its own name and rules that name no more than they must', () => {
  const names = janitorControllers.map((one) => one.name);
  assert.equal(new Set(names).size, names.length);
  // Only the two that act on every kind there is may ask for every kind there is.
  const wide = janitorControllers
    .filter(({ rules }) => rules.some((rule) => rule.resources?.includes('*')))
    .map((one) => one.name);
  assert.deepEqual(wide.sort(), ['garbage-collector-controller', 'namespace-controller']);
  for (const { name, rules } of janitorControllers) {
    // The one that collects rules grants what others hold.
    const mayEscalate = name === 'clusterrole-aggregation-controller';
    for (const rule of rules) {
      assert.ok(!rule.verbs.includes('*') && (mayEscalate || !rule.verbs.includes('escalate')), name);
    }
  }
});

/** A chain of writes, each noticed before the next: a few turns of the loop. */
async function settled(clock: { advance(ms: number): Promise<void> }): Promise<void> {
  for (let i = 0; i < 10; i++) await clock.advance(1);
}

test('clusterrole-aggregation-controller: the rules of selected roles are written down, once each, level by level', async () => {
  const h = harness(createClusterRoleAggregationController);
  const rule = (resource: string) => ({ apiGroups: [''], resources: [resource], verbs: ['get'] });
  const role = (name: string, labels: Record<string, string>, more: object) => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name, labels },
    ...more,
  });
  const collect = (label: string) => ({
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [label]: 'true' } }] },
    rules: [],
  });
  h.api.put(role('admin', {}, collect('to-admin')));
  h.api.put(role('edit', { 'to-admin': 'true' }, collect('to-edit')));
  h.api.put(role('b', { 'to-edit': 'true' }, { rules: [rule('pods')] }));
  h.api.put(role('a', { 'to-edit': 'true' }, { rules: [rule('secrets'), rule('pods')] }));
  h.api.put(role('other', {}, { rules: [rule('nodes')] }));
  await settled(h.clock);
  const rulesOf = (name: string) => (h.api.get(CLUSTER_ROLES, '', name) as { rules?: unknown }).rules;
  assert.deepEqual(rulesOf('edit'), [rule('secrets'), rule('pods')]);
  assert.deepEqual(rulesOf('admin'), [rule('secrets'), rule('pods')]);
  h.api.remove(CLUSTER_ROLES, '', 'a');
  await settled(h.clock);
  assert.deepEqual(rulesOf('admin'), [rule('pods')]);
  await h.end();
});

const NOW = Date.UTC(2030, 0, 1);
const budgetOf = (spec: object, status?: object): PodDisruptionBudget =>
  ({
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'b', namespace: 'n', generation: 2 },
    spec: { selector: { matchLabels: { a: 'b' } }, ...spec },
    ...(status && { status }),
  }) as PodDisruptionBudget;
const podOf = (name: string, ready = true, metadata: object = {}): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'n', labels: { a: 'b' }, ...metadata },
    spec: { containers: [] },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  }) as unknown as Pod;

test('budgetStatus(): how many pods may go', () => {
  const three = ['x', 'y', 'z'].map((name) => podOf(name));
  const gone = { deletionTimestamp: '2030-01-01T00:00:00Z' };
  const cases: [string, object, Pod[], number | undefined, [allowed: number, healthy: number, desired: number]][] = [
    ['a number', { minAvailable: 2 }, three, undefined, [1, 3, 2]],
    ['not enough', { minAvailable: 3 }, three, undefined, [0, 3, 3]],
    ['none at all', { minAvailable: 0 }, [], undefined, [0, 0, 0]],
    ['one is not ready', { minAvailable: 2 }, [...three.slice(1), podOf('w', false)], undefined, [0, 2, 2]],
    ['one is leaving', { minAvailable: 2 }, [...three.slice(1), podOf('w', true, gone)], undefined, [0, 2, 2]],
    ['a share, rounded up', { minAvailable: '50%' }, three, 3, [1, 3, 2]],
    ['a number that may miss', { maxUnavailable: 1 }, three, 3, [1, 3, 2]],
    ['a share that may miss', { maxUnavailable: '34%' }, three, 3, [2, 3, 1]],
    ['nobody says how many', { maxUnavailable: 1 }, three, undefined, [0, 3, 0]],
  ];
  for (const [name, spec, pods, expected, wanted] of cases) {
    const status = budgetStatus(budgetOf(spec), { pods, expected, now: NOW });
    assert.deepEqual([status.disruptionsAllowed, status.currentHealthy, status.desiredHealthy], wanted, name);
    assert.equal(status.observedGeneration, 2);
  }
  const since = (seconds: number): string => formatTime(NOW - seconds * 1000);
  const budget = budgetOf({ minAvailable: 1 }, { disruptedPods: { x: since(10), y: since(130), nobody: since(1) } });
  const { disruptedPods, disruptionsAllowed } = budgetStatus(budget, { pods: three, expected: undefined, now: NOW });
  assert.deepEqual(disruptedPods, { x: since(10) });
  assert.equal(disruptionsAllowed, 1);
});

test('disruption-controller: the status follows the pods', async () => {
  const h = harness(createDisruptionController);
  h.api.put(budgetOf({ minAvailable: 1 }));
  h.api.put(podOf('x'));
  h.api.put(podOf('y'));
  await h.clock.advance(1);
  const status = () => (h.api.get(POD_DISRUPTION_BUDGETS, 'n', 'b') as PodDisruptionBudget).status;
  assert.equal(status()?.disruptionsAllowed, 1);
  assert.equal(status()?.conditions?.[0]?.reason, 'SufficientPods');
  h.api.remove(PODS, 'n', 'x');
  await h.clock.advance(1);
  assert.equal(status()?.disruptionsAllowed, 0);
  assert.equal(status()?.conditions?.[0]?.reason, 'InsufficientPods');
  await h.end();
});
