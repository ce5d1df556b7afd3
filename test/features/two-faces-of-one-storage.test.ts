import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const CORE = '/api/v1/namespaces/default/events';
const NEW = '/apis/events.k8s.io/v1/namespaces/default/events';
const HPA = (version: string): string => `/apis/autoscaling/${version}/namespaces/default/horizontalpodautoscalers`;

const newEvent = (name: string, more: object = {}) => ({
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  metadata: { name },
  eventTime: '2026-01-02T03:04:05.000006Z',
  reportingController: 'example.com/tester',
  reportingInstance: 'tester-1',
  action: 'Do',
  reason: 'Test',
  note: 'hello',
  type: 'Normal',
  regarding: { kind: 'Pod', namespace: 'default', name: 'p' },
  ...more,
});

// S-132: Events and autoscalers are the same objects in both of their versions.
test('an event written through events.k8s.io is the same event in core, under other names', async () => {
  const watch = await server.watch(`${CORE}?watch=1&resourceVersion=${server.store.revision()}`);
  const created = await server.request('POST', NEW, { body: newEvent('e1') });
  assert.equal(created.status, 201, created.text);
  assert.equal(created.json.note, 'hello');
  const { json } = await server.request('GET', `${CORE}/e1`);
  assert.equal(json.apiVersion, 'v1');
  assert.equal(json.metadata.uid, created.json.metadata.uid);
  assert.equal(json.message, 'hello');
  assert.equal(json.involvedObject.name, 'p');
  assert.equal(json.reportingComponent, 'example.com/tester');
  assert.equal(json.note, undefined);
  assert.equal((await watch.next())?.object.message, 'hello');
  watch.close();
});

// Compat Bootstrap objects, controllers, events, leases, P1, yes: events: two views, time to live
test('an event written through core is seen in events.k8s.io, in lists and by either name of a field', async () => {
  const body = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'e2' },
    involvedObject: { kind: 'Node', namespace: 'default', name: 'n2' },
    source: { component: 'kubelet' },
    firstTimestamp: '2026-01-02T03:04:05Z',
    count: 3,
    message: 'm',
    reason: 'R',
    type: 'Warning',
  };
  assert.equal((await server.request('POST', CORE, { body })).status, 201);
  const { json } = await server.request('GET', `${NEW}?fieldSelector=regarding.name%3Dn2`);
  assert.equal(json.kind, 'EventList');
  assert.equal(json.items.length, 1);
  const [event] = json.items;
  assert.equal(event.kind, undefined);
  assert.equal(event.note, 'm');
  assert.equal(event.deprecatedCount, 3);
  assert.deepEqual(event.deprecatedSource, { component: 'kubelet' });
  assert.equal(event.deprecatedFirstTimestamp, '2026-01-02T03:04:05Z');
  const count = { count: 4 };
  const headers = { 'content-type': 'application/strategic-merge-patch+json' };
  assert.equal((await server.request('PATCH', `${CORE}/e2`, { body: count, headers })).status, 200);
  assert.equal((await server.request('GET', `${NEW}/e2`)).json.deprecatedCount, 4);
  assert.equal((await server.request('DELETE', `${NEW}/e2`)).status, 200);
  assert.equal((await server.request('GET', `${CORE}/e2`)).status, 404);
});

test('events.k8s.io is strict where core is lenient', async (t) => {
  const cases: [string, object, string][] = [
    ['no eventTime', { eventTime: null }, 'eventTime: Required value'],
    ['no reporter', { reportingController: '' }, 'reportingController: Required value'],
    ['no instance', { reportingInstance: '' }, 'reportingInstance: Required value'],
    ['no action', { action: '' }, 'action: Required value'],
    ['a type of its own', { type: 'Odd' }, 'type: Invalid value: "": has invalid value: Odd'],
    ['old fields', { deprecatedCount: 2 }, 'count: Invalid value: "": needs to be unset'],
    [
      'a series of one',
      { series: { count: 1, lastObservedTime: '2026-01-02T03:04:05.000000Z' } },
      'should be at least 2',
    ],
  ];
  for (const [name, change, message] of cases) {
    await t.test(name, async () => {
      const { status, json } = await server.request('POST', NEW, { body: newEvent('bad', change) });
      assert.equal(status, 422);
      assert.ok(json.message.includes(message), json.message);
    });
  }
  assert.equal((await server.request('POST', NEW, { body: newEvent('e3') })).status, 201);
  const note = await server.request('PATCH', `${NEW}/e3`, { body: { note: 'other' } });
  assert.ok(note.json.message.includes('message: Invalid value: "other": field is immutable'), note.json.message);
  // Upstream looks at the reason twice.
  const change = { regarding: { kind: 'Node' }, reason: 'Other', related: { kind: 'Pod', name: 'q' } };
  const fixed = await server.request('PATCH', `${NEW}/e3`, {
    body: { ...change, eventTime: '2027-01-02T03:04:05.000006Z' },
  });
  const why = 'field is immutable';
  const found = [
    ['involvedObject', '{"kind":"Node","namespace":"default","name":"p"}'],
    ['reason', '"Other"'],
    ['reason', '"Other"'],
    ['eventTime', '"2027-01-02T03:04:05.000006Z"'],
    ['related', '{"kind":"Pod","name":"q"}'],
  ].map(([field, value]) => ({
    reason: 'FieldValueInvalid',
    message: `Invalid value: ${value}: ${why}`,
    field,
  }));
  assert.deepEqual(fixed.json.details.causes, found);
  const series = { count: 2, lastObservedTime: '2026-01-02T03:04:05.000000Z' };
  assert.equal((await server.request('PATCH', `${NEW}/e3`, { body: { series } })).status, 200);
});

const target = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' };

// S-132
test('a v1 autoscaler is a v2 autoscaler with one CPU metric', async () => {
  const spec = { scaleTargetRef: target, maxReplicas: 3, targetCPUUtilizationPercentage: 55 };
  const body = { apiVersion: 'autoscaling/v1', kind: 'HorizontalPodAutoscaler', metadata: { name: 'one' }, spec };
  const created = await server.request('POST', HPA('v1'), { body });
  assert.equal(created.status, 201, created.text);
  assert.equal(created.json.spec.targetCPUUtilizationPercentage, 55);
  const { json } = await server.request('GET', `${HPA('v2')}/one`);
  assert.deepEqual(json.spec.metrics, [
    { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 55 } } },
  ]);
  assert.equal(json.spec.targetCPUUtilizationPercentage, undefined);
});

// S-132
test('what v1 cannot say goes through it unharmed', async () => {
  const cpu = (averageUtilization: number) => ({
    type: 'Resource',
    resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } },
  });
  const metrics = [
    cpu(70),
    { type: 'Pods', pods: { metric: { name: 'rps' }, target: { type: 'AverageValue', averageValue: '10' } } },
  ];
  const policies = [{ type: 'Percent', value: 50, periodSeconds: 15 }];
  const behavior = { scaleDown: { stabilizationWindowSeconds: 10, selectPolicy: 'Max', policies } };
  const body = {
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    metadata: { name: 'two', annotations: { mine: 'yes' } },
    spec: { scaleTargetRef: target, maxReplicas: 3, metrics, behavior },
  };
  assert.equal((await server.request('POST', HPA('v2'), { body })).status, 201);
  const old = await server.request('GET', `${HPA('v1')}/two`);
  assert.equal(old.json.spec.targetCPUUtilizationPercentage, 70);
  old.json.spec.maxReplicas = 4;
  old.json.spec.targetCPUUtilizationPercentage = 60;
  assert.equal((await server.request('PUT', `${HPA('v1')}/two`, { body: old.json })).status, 200);
  const { json } = await server.request('GET', `${HPA('v2')}/two`);
  assert.equal(json.spec.maxReplicas, 4);
  assert.deepEqual(json.spec.metrics, [cpu(60), metrics[1]]);
  assert.deepEqual(json.spec.behavior.scaleDown, behavior.scaleDown);
  assert.deepEqual(json.metadata.annotations, { mine: 'yes' });
});
