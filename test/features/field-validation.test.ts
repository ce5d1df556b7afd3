import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { definition, establish } from '../testkit/custom-definitions.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
const PODS = '/api/v1/namespaces/default/pods';
const body = (name: string): string =>
  `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"${name}"},"spec":{"foo":1,"containers":[{"name":"a","bar":2,"image":"b","image":"c"}]}}`;

before(async () => {
  server = await startServer();
});
after(() => server.stop());

// S-017: `fieldValidation`: unknown and duplicate fields are warned about, refused or ignored as asked.
// S-022
// Compat Writing, P0, yes: fieldValidation Ignore, Warn (default), Strict
test('unknown and duplicate fields are warned about by default, and dropped', async () => {
  const { status, headers, json } = await server.request('POST', PODS, { body: body('warned') });
  assert.equal(status, 201);
  assert.equal(
    headers['warning'],
    '299 - "duplicate field \\"spec.containers[0].image\\"", 299 - "unknown field \\"spec.foo\\"", 299 - "unknown field \\"spec.containers[0].bar\\""',
  );
  assert.equal(json.spec.foo, undefined);
  assert.equal(json.spec.containers[0].image, 'c');
});

// S-017
test('Strict refuses them all together', async () => {
  const { status, json } = await server.request('POST', `${PODS}?fieldValidation=Strict`, { body: body('strict') });
  assert.equal(status, 400);
  assert.equal(
    json.message,
    'Pod in version "v1" cannot be handled as a Pod: strict decoding error: duplicate field "spec.containers[0].image", unknown field "spec.foo", unknown field "spec.containers[0].bar"',
  );
});

// S-017
test('Ignore says nothing', async () => {
  const { status, headers } = await server.request('POST', `${PODS}?fieldValidation=Ignore`, { body: body('ignored') });
  assert.equal(status, 201);
  assert.equal(headers['warning'], undefined);
});

test('any other level is refused', async () => {
  const { status, json } = await server.request('POST', `${PODS}?fieldValidation=Loose`, { body: body('loose') });
  assert.equal(status, 422);
  assert.match(json.message, /fieldValidation: Unsupported value: "Loose"/);
});

test('a strict patch that adds an unknown field is 422 on the patch', async () => {
  const { status, json } = await server.request('PATCH', `${PODS}/warned?fieldValidation=Strict`, {
    body: { spec: { nope: 1 } },
  });
  assert.equal(status, 422);
  assert.equal(json.details.causes[0].field, 'patch');
  assert.match(json.message, /strict decoding error: unknown field "spec.nope"/);
});

const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';
const DEPLOYMENT = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"old","unknown":1,"name":"odd"},"spec":{
  "zone":1,"twice":{"a":1,"a":2},"twice":2,"paused":true,"paused":false,"replicas":0,"selector":{"matchLabels":{"app":"a"}},
  "template":{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"a","image":"b","nested":1,
  "imagePullPolicy":"Always","imagePullPolicy":"Never"}]}}}}`;

// S-268: Duplicate fields are reported, then unknown ones, each with its path.
test('the problems of a built-in kind are reported, each with its path', async () => {
  const { status, json } = await server.request('POST', `${DEPLOYMENTS}?fieldValidation=Strict`, { body: DEPLOYMENT });
  assert.equal(status, 400);
  assert.equal(
    json.message.replace(/^.*strict decoding error: /, ''),
    [
      'duplicate field "metadata.name"',
      'duplicate field "spec.twice.a"',
      'duplicate field "spec.twice"',
      'duplicate field "spec.paused"',
      'duplicate field "spec.template.spec.containers[0].imagePullPolicy"',
      'unknown field "metadata.unknown"',
      'unknown field "spec.zone"',
      'unknown field "spec.twice"',
      'unknown field "spec.template.spec.containers[0].nested"',
    ].join(', '),
  );
});

// S-268
test('of a custom kind: duplicates, unknown metadata, unknown fields, unknown metadata of embedded resources', async () => {
  const embedded = { type: 'object', 'x-kubernetes-embedded-resource': true, properties: { a: { type: 'string' } } };
  const schema = { type: 'object', properties: { known: { type: 'integer' }, embedded } };
  await establish(server, definition({ name: 'strict', spec: schema }));
  const inner = '{"apiVersion":"v1","kind":"Any","metadata":{"name":"b","odd":1}}';
  const body = `{"apiVersion":"example.com/v1","alone":1,"kind":"Strict","metadata":{"name":"a","odd":1},"spec":{"odd":1,"embedded":${inner},"odd":2,"known":1,"known":2}}`;
  const path = '/apis/example.com/v1/namespaces/default/stricts?fieldValidation=Strict';
  const { json } = await server.request('POST', path, { body });
  assert.equal(
    json.message.replace(/^.*strict decoding error: /, ''),
    [
      'duplicate field "spec.odd"',
      'duplicate field "spec.known"',
      'unknown field "metadata.odd"',
      'unknown field "alone"',
      'unknown field "spec.odd"',
      'unknown field "spec.embedded.metadata.odd"',
    ].join(', '),
  );
});
