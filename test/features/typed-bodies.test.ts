import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';
const REVISIONS = '/apis/apps/v1/namespaces/default/controllerrevisions';
const SECRETS = '/api/v1/namespaces/default/secrets';

before(async () => {
  server = await startServer();
});
after(() => server.stop());

const deployment = (name: string, spec: Record<string, unknown>): string =>
  JSON.stringify({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name },
    spec: {
      selector: { matchLabels: { a: 'b' } },
      template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
      ...spec,
    },
  });

const patch = (path: string, type: string, body: string) =>
  server.request('PATCH', path, { headers: { 'content-type': `application/${type}` }, body });

// S-315
test('an empty field that Go leaves out is not kept, whichever way it comes', async () => {
  const path = `${DEPLOYMENTS}/zeros`;
  const created = await server.request('POST', DEPLOYMENTS, {
    body: deployment('zeros', { paused: false, minReadySeconds: 0, replicas: 0 }),
  });
  assert.equal(created.status, 201);
  const { spec, metadata } = created.json;
  assert.deepEqual([spec.paused, spec.minReadySeconds, spec.replicas], [undefined, undefined, 0]);
  const owned = metadata.managedFields[0].fieldsV1['f:spec'];
  assert.deepEqual([owned['f:paused'], owned['f:replicas']], [undefined, {}]);

  for (const [type, body] of [
    ['merge-patch+json', '{"spec":{"paused":false,"minReadySeconds":0}}'],
    ['json-patch+json', '[{"op":"add","path":"/spec/paused","value":false}]'],
    [
      'strategic-merge-patch+json',
      '{"spec":{"template":{"spec":{"nodeName":"","containers":[{"name":"c","tty":false}]}}}}',
    ],
  ] as const) {
    const { json } = await patch(path, type, body);
    assert.deepEqual(json, created.json, type);
  }
});

test('an empty field takes the default of an absent one', async () => {
  const { json } = await server.request('POST', '/api/v1/namespaces/default/pods', {
    body: JSON.stringify({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'defaults' },
      spec: {
        dnsPolicy: '',
        containers: [{ name: 'c', image: 'i', imagePullPolicy: '', ports: [{ containerPort: 80, protocol: '' }] }],
      },
    }),
  });
  assert.equal(json.spec.dnsPolicy, 'ClusterFirst');
  assert.equal(json.spec.containers[0].imagePullPolicy, 'Always');
  assert.deepEqual(json.spec.containers[0].ports, [{ containerPort: 80, protocol: 'TCP' }]);
});

// S-315
// Compat Writing, P1, yes: who applies an empty field owns it, and changes nothing by applying it again
test('who applies an empty field owns it, and changes nothing by applying it again', async () => {
  const path = `${DEPLOYMENTS}/applied?fieldManager=m`;
  const body = deployment('applied', { paused: false });
  const first = await patch(path, 'apply-patch+yaml', body);
  assert.equal(first.json.spec.paused, undefined);
  assert.deepEqual(first.json.metadata.managedFields[0].fieldsV1['f:spec']['f:paused'], {});
  const again = await patch(path, 'apply-patch+yaml', body);
  assert.deepEqual(again.json, first.json);
  const other = await patch(
    `${DEPLOYMENTS}/applied?fieldManager=n`,
    'apply-patch+yaml',
    '{"apiVersion":"apps/v1","kind":"Deployment","spec":{"paused":true}}',
  );
  assert.equal(other.status, 409);
});

// Compat Writing, P1, yes: integers of built-in kinds are validated by their spelling: `1.0` and `1e3` are none
test('integers are validated by their spelling where the type is known', async () => {
  const { status, json } = await server.request('POST', DEPLOYMENTS, {
    body: deployment('spelt', { replicas: 77 }).replace('77', '1.0'),
  });
  assert.equal(status, 400);
  assert.equal(
    json.message,
    'Deployment in version "v1" cannot be handled as a Deployment: spec.replicas: expected int32, got number 1.0',
  );
});

// S-315
// Compat Writing, P2, yes: content of any form keeps every int64, and is not looked into for members given twice
test('content of any form keeps every int64 and may name a member twice', async () => {
  const { status, headers } = await server.request('POST', `${REVISIONS}?fieldValidation=Strict`, {
    body: '{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"wide"},"revision":9007199254740993,"data":{"n":9223372036854775807,"m":1,"m":2}}',
  });
  assert.deepEqual([status, headers['warning']], [201, undefined]);
  for (const { text } of [
    await patch(`${REVISIONS}/wide`, 'merge-patch+json', '{"metadata":{"labels":{"a":"b"}}}'),
    await server.request('GET', `${REVISIONS}/wide`),
    await server.request('GET', REVISIONS),
  ]) {
    assert.match(text, /"revision":9007199254740993/);
    assert.match(text, /"n":9223372036854775807/);
  }
});

test('bytes are shown as base64 in one piece, nulls as nothing', async () => {
  const { json } = await server.request('POST', SECRETS, {
    body: '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"bytes"},"type":"","data":{"a":"aGVs\\r\\nbG8=","b":"++G=","c":null}}',
  });
  assert.deepEqual(json.data, { a: 'aGVsbG8=', b: '++E=', c: '' });
  assert.equal(json.type, 'Opaque');
});

test('an unknown field in a member that is given twice is reported once', async () => {
  const { headers } = await server.request('POST', SECRETS, {
    body: '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"reported","foo":1},"metadata":{"name":"reported","foo":1}}',
  });
  assert.equal(headers['warning'], '299 - "duplicate field \\"metadata\\"", 299 - "unknown field \\"metadata.foo\\""');
});

test('an Event shows its empty reporters in core, and not in events.k8s.io', async () => {
  const events = 'namespaces/default/events';
  const { json } = await server.request('POST', `/api/v1/${events}`, {
    body: JSON.stringify({ metadata: { name: 'e' }, involvedObject: { namespace: 'default' }, reason: 'R' }),
  });
  assert.deepEqual([json.reportingComponent, json.reportingInstance], ['', '']);
  const shown = await server.request('GET', `/apis/events.k8s.io/v1/${events}/e`);
  assert.deepEqual([shown.json.reportingController, shown.json.reportingInstance], [undefined, undefined]);
});

const ROLES = '/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles';

// S-334: Nulls that Go writes are shown, patched and owned; objects of earlier versions show them too.
// Compat Writing, P1, yes: nulls that Go writes (times with `omitempty` alone, lists, maps and pointers without it) are
//   shown, patched and owned; an empty list of them comes out of the store as null
test('what Go writes as null is there: for JSON patches, after `[]`, in every representation', async () => {
  const made = await server.request('POST', ROLES, { body: { metadata: { name: 'null' } } });
  assert.equal(made.json.rules, null, made.text);
  assert.equal(made.json.metadata.managedFields, undefined, 'nobody owns what an empty object has');
  const tried = await server.request('POST', `${ROLES}?dryRun=All`, { body: { metadata: { name: 'x' }, rules: [] } });
  assert.deepEqual(tried.json.rules, [], 'a dry run never came to the store');
  const rule = { verbs: ['get'], apiGroups: [''], resources: ['pods'] };
  const patched = await server.request('PATCH', `${ROLES}/null`, {
    headers: { 'content-type': 'application/json-patch+json' },
    body: [
      { op: 'test', path: '/rules', value: null },
      { op: 'replace', path: '/rules', value: [rule] },
    ],
  });
  assert.deepEqual(patched.json.rules, [rule], patched.text);
  const emptied = await server.request('PUT', `${ROLES}/null`, { body: { metadata: { name: 'null' }, rules: [] } });
  assert.equal(emptied.json.rules, null);
  const same = await server.request('PUT', `${ROLES}/null`, { body: { metadata: { name: 'null' }, rules: [] } });
  assert.equal(same.json.metadata.resourceVersion, emptied.json.metadata.resourceVersion, 'nothing was written');
  const { json: list } = await server.request('GET', ROLES);
  assert.equal(list.items.find((one: { metadata: { name: string } }) => one.metadata.name === 'null').rules, null);
});

test('both versions of an autoscaler have what each always writes', async () => {
  const path = (version: string): string => `/apis/autoscaling/${version}/namespaces/default/horizontalpodautoscalers`;
  const spec = { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' }, maxReplicas: 3 };
  for (const version of ['v1', 'v2']) {
    const name = `made-as-${version}`;
    const made = await server.request('POST', path(version), { body: { metadata: { name }, spec } });
    assert.equal(made.status, 201, made.text);
    const v1 = await server.request('GET', `${path('v1')}/${name}`);
    assert.deepEqual(v1.json.status, { currentReplicas: 0, desiredReplicas: 0 }, name);
    const v2 = await server.request('GET', `${path('v2')}/${name}`);
    assert.deepEqual(v2.json.status, { currentMetrics: null, desiredReplicas: 0 }, name);
  }
});

// S-334
// Compat Writing, P2, yes: who creates an object does not own what an empty object of its kind has
test('who sets a condition owns the times that nobody set; who creates an Event does not', async () => {
  const pods = '/api/v1/namespaces/default/pods';
  await server.request('POST', pods, {
    body: { metadata: { name: 'c' }, spec: { containers: [{ name: 'c', image: 'i' }] } },
  });
  const { json } = await server.request('PATCH', `${pods}/c/status?fieldManager=kubelet`, {
    headers: { 'content-type': 'application/strategic-merge-patch+json' },
    body: { status: { conditions: [{ type: 'Ready', status: 'True' }] } },
  });
  const [condition] = json.status.conditions;
  assert.deepEqual(condition, { type: 'Ready', status: 'True', lastProbeTime: null, lastTransitionTime: null });
  const entry = json.metadata.managedFields.find((one: { manager: string }) => one.manager === 'kubelet');
  const owned = entry.fieldsV1['f:status']['f:conditions']['k:{"type":"Ready"}'];
  assert.deepEqual(Object.keys(owned).sort(), ['.', 'f:lastProbeTime', 'f:lastTransitionTime', 'f:status', 'f:type']);
  const event = await server.request('POST', '/api/v1/namespaces/default/events', {
    body: {
      metadata: { name: 'hollow' },
      involvedObject: { kind: 'Pod', name: 'c', namespace: 'default' },
      reason: 'R',
    },
  });
  assert.equal(event.json.eventTime, null, event.text);
  assert.deepEqual(Object.keys(event.json.metadata.managedFields[0].fieldsV1).sort(), ['f:involvedObject', 'f:reason']);
});

// S-256
// Compat Writing, P2, yes: an int64 of a built-in kind keeps its digits where nobody counts with it, in JSON and
//   protobuf Note: Refused with 400 still: YAML bodies and patches of built-in kinds with integers beyond 2^53,
//   terminationGracePeriodSeconds of a Pod, bounds in the schema of a definition
test('an int64 keeps its digits where nobody counts with it', async () => {
  const body = `{"metadata":{"name":"wide"},"spec":{"containers":[{"name":"c","image":"i"}],"tolerations":[{"key":"k","operator":"Exists","effect":"NoExecute","tolerationSeconds":9007199254740993}]}}`;
  const made = await server.request('POST', '/api/v1/namespaces/default/pods', {
    body: body,
    headers: { 'content-type': 'application/json' },
  });
  assert.equal(made.status, 201, made.text);
  assert.match(made.text, /"tolerationSeconds":9007199254740993[,}]/);
});
