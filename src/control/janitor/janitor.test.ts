import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  CONFIG_MAPS,
  EVENTS,
  LEASES,
  NAMESPACES,
  NODES,
  PODS,
  SERVICE_ACCOUNTS,
} from '../../api/kinds/builtin/resource-types.ts';
import type { ConfigMap, Node, Pod } from '../../api/kinds/builtin/types.ts';
import type { ResourceType } from '../../api/meta/gvk.ts';
import { formatMicroTime, formatTime } from '../../api/meta/object.ts';
import { createFakeClock } from '../../base/clock/fake-clock.ts';
import { createLogger, type LogRecord } from '../../base/log/log.ts';
import type { Runnable } from '../../client/controller/environment.ts';
import { createClient } from '../../client/create-client.ts';
import { createFakeApi } from '../../client/fake-api.fixture.ts';
import { createInformerSet } from '../../client/informer/informer-set.ts';
import { createEventTtlController } from './event-ttl-controller.ts';
import { type JanitorOptions, janitorControllers } from './janitor-controllers.ts';
import { createNodeLifecycleController, wantedTaints } from './node-lifecycle-controller.ts';
import { createPodGcController } from './pod-gc-controller.ts';
import { createRootCaController } from './root-ca-controller.ts';
import { createServiceAccountController } from './service-account-controller.ts';

const TYPES = [CONFIG_MAPS, EVENTS, LEASES, NAMESPACES, NODES, PODS, SERVICE_ACCOUNTS] as ResourceType<never>[];

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
    for (const rule of rules) assert.ok(!rule.verbs.includes('*') && !rule.verbs.includes('escalate'), name);
  }
});
