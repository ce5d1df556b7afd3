import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ResourceType } from '../../../apimachinery/src/meta/gvk.ts';
import { formatMicroTime, formatTime } from '../../../apimachinery/src/meta/object.ts';
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
} from '../../../apimachinery/src/types/resource-types.ts';
import type { ConfigMap, Node, Pod, PodDisruptionBudget } from '../../../apimachinery/src/types/types.ts';
import type { Runnable } from '../../../client/src/controller/environment.ts';
import { createClient } from '../../../client/src/create-client.ts';
import { createFakeApi } from '../../../client/src/fake-api.fixture.ts';
import { createInformerSet } from '../../../client/src/informer/informer-set.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { createLogger, type LogRecord } from '../../../runtime/src/log/log.ts';
import { aggregatedRules, createClusterRoleAggregationController } from './cluster-role-aggregation-controller.ts';
import { budgetStatus, createDisruptionController } from './disruption-controller.ts';
import { createEventTtlController } from './event-ttl-controller.ts';
import { type KubeControllerOptions, kubeControllers } from './kube-controllers.ts';
import { createNodeLifecycleController, wantedTaints } from './node-lifecycle-controller.ts';
import { createPodGcController } from './pod-gc-controller.ts';
import { createRootCaController } from './root-ca-controller.ts';
import { createServiceAccountController } from './service-account-controller.ts';
import { staleAt } from './stale-disruption-controller.ts';
import { createTaintEvictionController, toleratedFor } from './taint-eviction-controller.ts';

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

function harness(create: (options: KubeControllerOptions) => Runnable) {
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

// S-047: Every namespace has its default service account and `kube-root-ca.crt`; events end after an hour.
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

// S-047
test('root-ca-certificate-publisher-controller: the ConfigMap is made, put back and corrected', async () => {
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

// S-047
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

const pod = (name: string, spec: object, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'a', ...metadata },
  spec: { containers: [], ...spec },
  status: { phase: 'Running' },
});

// S-048: A node whose Lease stands still becomes Unknown and tainted, and recovers.
// Compat Pods, nodes, drain, P1, yes: node life cycle and its taints
test('node-lifecycle-controller: a node whose Lease stands still for 50 s becomes Unknown and unreachable, and recovers', async () => {
  const h = harness(createNodeLifecycleController);
  const lease = (name = 'n') => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: 'kube-node-lease' },
    spec: { renewTime: formatMicroTime(h.clock.now()) },
  });
  const node = () => h.api.get(NODES, '', 'n') as unknown as Node;
  const ready = () => node().status?.conditions?.find((one) => one.type === 'Ready');
  /** Time passes in which the other node renews its Lease. */
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 1000) {
      h.api.put(lease('other'));
      await h.clock.advance(1000);
    }
  };
  h.api.put(readyNode('other'));
  h.api.put(readyNode('n'));
  h.api.put(lease());
  h.api.put({
    ...pod('p', { nodeName: 'n' }),
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  });
  const podReady = () =>
    (h.api.get(PODS, 'a', 'p') as unknown as Pod).status?.conditions?.find((one) => one.type === 'Ready');
  for (let i = 0; i < 9; i++) {
    await pass(10_000);
    h.api.put(lease());
  }
  assert.equal(ready()?.status, 'True', 'a Lease that moves keeps the node');
  assert.equal(podReady()?.status, 'True');
  await pass(49_000);
  assert.equal(ready()?.status, 'True');
  await pass(12_000);
  assert.equal(ready()?.status, 'Unknown');
  assert.equal(ready()?.reason, 'NodeStatusUnknown');
  assert.deepEqual(
    node().status?.conditions?.map((one) => one.type),
    ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'],
  );
  const unreachable = (node().spec?.taints ?? []).map(({ key, effect }) => `${key}:${effect}`);
  assert.deepEqual([podReady()?.status, podReady()?.reason], ['False', 'NodeNotReady']);
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

// S-201
test('node-lifecycle-controller: when no node is ready, none is emptied', async () => {
  const h = harness(createNodeLifecycleController);
  h.api.put(readyNode('n'));
  h.api.put(readyNode('m'));
  for (let i = 0; i < 14; i++) await h.clock.advance(5_000);
  for (const name of ['n', 'm']) {
    const { spec, status } = h.api.get(NODES, '', name) as unknown as Node;
    assert.equal(status?.conditions?.find((one) => one.type === 'Ready')?.status, 'Unknown');
    assert.deepEqual(
      spec?.taints?.map(({ key, effect }) => `${key}:${effect}`),
      ['node.kubernetes.io/unreachable:NoSchedule'],
    );
  }
  await h.end();
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

// S-201
test('taint-eviction-controller: pods go when their patience ends, and stay when the taint goes first', async () => {
  const h = harness(createTaintEvictionController);
  const taint = { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' };
  /** Those nobody has asked to leave. */
  const names = () =>
    (h.api.all(PODS) as unknown as Pod[])
      .filter((one) => one.metadata.deletionTimestamp === undefined)
      .map((one) => one.metadata.name)
      .sort();
  const patient = (tolerationSeconds: number | undefined) => ({
    nodeName: 'n',
    tolerations: [{ ...taint, operator: 'Exists', ...(tolerationSeconds !== undefined && { tolerationSeconds }) }],
  });
  h.api.put(readyNode('n'));
  h.api.put(pod('none', { nodeName: 'n' }));
  h.api.put(pod('minute', patient(60)));
  h.api.put(pod('ever', patient(undefined)));
  h.api.put(pod('elsewhere', { nodeName: 'm' }));
  await h.clock.advance(1000);
  assert.equal(names().length, 4);
  h.api.put({ ...readyNode('n'), spec: { taints: [taint] } });
  for (let i = 0; i < 5; i++) await h.clock.advance(200);
  assert.deepEqual(names(), ['elsewhere', 'ever', 'minute']);
  assert.ok(h.api.requests.includes('PATCH /api/v1/namespaces/a/pods/none/status'));
  await h.clock.advance(50_000);
  h.api.put(readyNode('n'));
  await h.clock.advance(60_000);
  assert.deepEqual(names(), ['elsewhere', 'ever', 'minute'], 'the node came back');
  h.api.put({ ...readyNode('n'), spec: { taints: [taint] } });
  await h.clock.advance(59_000);
  assert.deepEqual(names(), ['elsewhere', 'ever', 'minute'], 'and its time began anew');
  await h.clock.advance(2000);
  assert.deepEqual(names(), ['elsewhere', 'ever']);
  await h.end();
});

// S-236
// Compat Pods, nodes, drain, P1, yes: of several tolerations for a taint the first counts
test('toleratedFor(): of several tolerations that answer, the first counts', () => {
  const taints = [{ key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }] as const;
  const own = { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' };
  const cases: [string, object[], number][] = [
    ['none', [], 0],
    ['none that answers', [{ ...own, key: 'other' }], 0],
    ['for ever', [own], Number.POSITIVE_INFINITY],
    ['for a while', [{ ...own, tolerationSeconds: 300 }], 300_000],
    ['not at all', [{ ...own, tolerationSeconds: -1 }], 0],
    [
      'everything, then a while',
      [{ operator: 'Exists' }, { ...own, tolerationSeconds: 300 }],
      Number.POSITIVE_INFINITY,
    ],
    ['a while, then everything', [{ ...own, tolerationSeconds: 300 }, { operator: 'Exists' }], 300_000],
  ];
  for (const [name, tolerations, expected] of cases)
    assert.equal(toleratedFor(pod('p', { nodeName: 'n', tolerations }) as unknown as Pod, taints), expected, name);
  // Beside two taints the shorter patience counts.
  const two = [...taints, { key: 'x', effect: 'NoExecute' }] as const;
  const tolerations = [
    { ...own, tolerationSeconds: 300 },
    { key: 'x', operator: 'Exists', tolerationSeconds: 30 },
  ];
  assert.equal(toleratedFor(pod('p', { nodeName: 'n', tolerations }) as unknown as Pod, two), 30_000);
});

// S-236
// Compat Pods, nodes, drain, P2, yes: events RegisteredNode and RemovingNode
test('node-lifecycle-controller: the Node of an agent that comes and goes has events', async () => {
  const h = harness(createNodeLifecycleController);
  h.api.put(readyNode('n'));
  await h.clock.advance(1000);
  h.api.remove(NODES, '', 'n');
  await h.clock.advance(6000);
  const reported = (h.api.all(EVENTS) as unknown as { reason: string; message: string }[]).map(
    ({ reason, message }) => `${reason}: ${message}`,
  );
  assert.deepEqual(reported, [
    'RegisteredNode: Node n event: Registered Node n in Controller',
    'RemovingNode: Node n event: Removing Node n from Controller',
  ]);
  await h.end();
});

// S-201
test('pod-garbage-collector-controller: out-of-service lets terminating pods of a silent node go', async () => {
  const h = harness(createPodGcController);
  const off = (status: string) => ({
    ...readyNode('n'),
    spec: { taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }] },
    status: { conditions: [{ type: 'Ready', status }] },
  });
  const leaving = { deletionTimestamp: '2030-01-01T00:00:00Z', deletionGracePeriodSeconds: 30 };
  h.api.put(off('True'));
  h.api.put(pod('leaving', { nodeName: 'n' }, leaving));
  h.api.put(pod('staying', { nodeName: 'n' }));
  await h.clock.advance(1000);
  assert.equal(h.api.all(PODS).length, 2, 'a node that answers is left to do it itself');
  h.api.put(off('Unknown'));
  await h.clock.advance(1000);
  assert.deepEqual(
    (h.api.all(PODS) as unknown as Pod[]).map((one) => one.metadata.name),
    ['staying'],
  );
  await h.end();
});

// S-103
test('every kube-controller has its own name and rules that name no more than they must', () => {
  const names = kubeControllers.map((one) => one.name);
  assert.equal(new Set(names).size, names.length);
  // Only those that act on every kind there is may ask for every kind there is.
  const wide = kubeControllers
    .filter(({ rules }) => rules.some((rule) => rule.resources?.includes('*')))
    .map((one) => one.name);
  assert.deepEqual(wide.sort(), ['garbage-collector-controller', 'namespace-controller', 'resourcequota-controller']);
  for (const { name, rules } of kubeControllers) {
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

// S-329
test('clusterrole-aggregation-controller: of thousands of rules each is looked at a few times', () => {
  const COUNT = 3000;
  let looks = 0;
  const rule = (i: number) => ({
    get verbs() {
      looks++;
      return ['get'];
    },
    resources: [`r${i % (COUNT / 2)}`],
  });
  const labels = { collect: 'yes' };
  const all = Array.from({ length: COUNT }, (_, i) => ({ metadata: { name: `c${i}`, labels }, rules: [rule(i)] }));
  const collector = {
    metadata: { name: 'all' },
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: labels }] },
    rules: [],
  };
  assert.equal(aggregatedRules(collector as never, all as never).length, COUNT / 2);
  assert.ok(looks < 10 * COUNT, `${looks} looks`);
});

// Compat Authorisation, P1, yes: aggregated ClusterRoles
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
  const cases: [string, object, Pod[], number | string, [allowed: number, healthy: number, desired: number]][] = [
    ['a number', { minAvailable: 2 }, three, 0, [1, 3, 2]],
    ['not enough', { minAvailable: 3 }, three, 0, [0, 3, 3]],
    ['none at all', { minAvailable: 0 }, [], 0, [0, 0, 0]],
    ['one is not ready', { minAvailable: 2 }, [...three.slice(1), podOf('w', false)], 0, [0, 2, 2]],
    ['one is leaving', { minAvailable: 2 }, [...three.slice(1), podOf('w', true, gone)], 0, [0, 2, 2]],
    ['a share, rounded up', { minAvailable: '50%' }, three, 3, [1, 3, 2]],
    ['a number that may miss', { maxUnavailable: 1 }, three, 3, [1, 3, 2]],
    ['a share that may miss', { maxUnavailable: '34%' }, three, 3, [2, 3, 1]],
  ];
  for (const [name, spec, pods, expected, wanted] of cases) {
    const status = budgetStatus(budgetOf(spec), { pods, expected, now: NOW });
    assert.deepEqual([status.disruptionsAllowed, status.currentHealthy, status.desiredHealthy], wanted, name);
    assert.equal(status.observedGeneration, 2);
  }
  const failed = budgetStatus(
    budgetOf(
      { maxUnavailable: 1 },
      { disruptionsAllowed: 2, currentHealthy: 3, desiredHealthy: 2, expectedPods: 3, observedGeneration: 1 },
    ),
    { pods: three, expected: 'nobody says how many', now: NOW },
  );
  assert.deepEqual(
    [failed.disruptionsAllowed, failed.currentHealthy, failed.observedGeneration, failed.conditions?.[0]?.reason],
    [0, 3, 1, 'SyncFailed'],
  );
  assert.equal(failed.conditions?.[0]?.message, 'nobody says how many');
  assert.equal(failed.conditions?.[0]?.observedGeneration, 1, 'the generation last counted');
  const since = (seconds: number): string => formatTime(NOW - seconds * 1000);
  const budget = budgetOf({ minAvailable: 1 }, { disruptedPods: { x: since(10), y: since(130), nobody: since(1) } });
  const { disruptedPods, disruptionsAllowed } = budgetStatus(budget, { pods: three, expected: 0, now: NOW });
  assert.deepEqual(disruptedPods, { x: since(10) });
  assert.equal(disruptionsAllowed, 1);
});

// S-130
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

// S-236: A Pod whose end was announced and that lives two minutes later has a condition that it does not come; of
//   several tolerations the first that answers counts; nodes that come and go are events.
test('staleAt(): which marks of an end that did not come are taken back, and when', () => {
  const marked = (condition: object, metadata: object = {}, phase = 'Running'): Pod => {
    const one = podOf('x', true, metadata);
    const since = formatTime(NOW);
    return {
      ...one,
      status: {
        phase,
        conditions: [{ type: 'DisruptionTarget', status: 'True', lastTransitionTime: since, ...condition }],
      },
    } as unknown as Pod;
  };
  const cases: [string, Pod, number | undefined][] = [
    ['no mark', podOf('x'), undefined],
    ['a mark', marked({ reason: 'EvictionByEvictionAPI' }), NOW + 120_000],
    ['taken back', marked({ status: 'False' }), undefined],
    ["the kubelet's", marked({ reason: 'TerminationByKubelet' }), undefined],
    ['deleted meanwhile', marked({}, { deletionTimestamp: formatTime(NOW) }), undefined],
    ['ended', marked({}, {}, 'Failed'), undefined],
    ['of no time', marked({ lastTransitionTime: undefined }), 120_000],
  ];
  for (const [name, one, expected] of cases) assert.equal(staleAt(one), expected, name);
});

// S-236
// Compat Pods, nodes, drain, P1, yes: DisruptionTarget is taken back when no end came
test('disruption-controller: what did not come to an end is reported and taken back', async () => {
  const h = harness(createDisruptionController);
  const since = formatTime(h.clock.now());
  h.api.put(budgetOf({ minAvailable: 1 }, { disruptedPods: { x: since } }));
  const target = { type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI', message: 'evicting' };
  const one = podOf('x');
  one.status!.conditions!.push({ ...target, lastTransitionTime: since } as never);
  h.api.put(one);
  h.api.put(podOf('y'));
  await h.clock.advance(119_000);
  const status = () => (h.api.get(POD_DISRUPTION_BUDGETS, 'n', 'b') as PodDisruptionBudget).status;
  const mark = () =>
    (h.api.get(PODS, 'n', 'x') as unknown as Pod).status?.conditions?.find(({ type }) => type === 'DisruptionTarget');
  assert.deepEqual([status()?.disruptionsAllowed, mark()?.status], [0, 'True']);
  // The rest of the two minutes, not two minutes more.
  await h.clock.advance(2000);
  assert.equal(status()?.disruptionsAllowed, 1);
  assert.equal(mark()?.status, 'False');
  assert.equal(Object.hasOwn(mark() ?? {}, 'reason'), false);
  h.api.remove(PODS, 'n', 'x');
  h.api.remove(PODS, 'n', 'y');
  await h.clock.advance(1000);
  const reported = (h.api.all(EVENTS) as unknown as { reason: string; message: string }[]).map(
    ({ reason, message }) => `${reason}: ${message}`,
  );
  assert.deepEqual(reported, [
    "NotDeleted: Pod was expected by PDB n/b to be deleted but it wasn't",
    'NoPods: No matching pods found',
  ]);
  await h.end();
});
