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

test('integers are judged by their spelling where the type is known', async () => {
  const { status, json } = await server.request('POST', DEPLOYMENTS, {
    body: deployment('spelt', { replicas: 77 }).replace('77', '1.0'),
  });
  assert.equal(status, 400);
  assert.equal(
    json.message,
    'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal number 1.0 into Go struct field DeploymentSpec.spec.replicas of type int32',
  );
});

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

test('an unknown field in a member that is given twice is told once', async () => {
  const { headers } = await server.request('POST', SECRETS, {
    body: '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"told","foo":1},"metadata":{"name":"told","foo":1}}',
  });
  assert.equal(headers['warning'], '299 - "unknown field \\"metadata.foo\\"", 299 - "duplicate field \\"metadata\\""');
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
