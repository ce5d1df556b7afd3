import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
const PODS = '/api/v1/namespaces/default/pods';
const body = (name: string): string =>
  `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"${name}"},"spec":{"foo":1,"containers":[{"name":"a","bar":2,"image":"b","image":"c"}]}}`;

before(async () => {
  server = await startServer();
});
after(() => server.stop());

test('unknown and duplicate fields are warned about by default, and dropped', async () => {
  const { status, headers, json } = await server.request('POST', PODS, { body: body('warned') });
  assert.equal(status, 201);
  assert.equal(
    headers['warning'],
    '299 - "unknown field \\"spec.foo\\"", 299 - "unknown field \\"spec.containers[0].bar\\"", 299 - "duplicate field \\"spec.containers[0].image\\""',
  );
  assert.equal(json.spec.foo, undefined);
  assert.equal(json.spec.containers[0].image, 'c');
});

test('Strict refuses them all together', async () => {
  const { status, json } = await server.request('POST', `${PODS}?fieldValidation=Strict`, { body: body('strict') });
  assert.equal(status, 400);
  assert.equal(
    json.message,
    'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.foo", unknown field "spec.containers[0].bar", duplicate field "spec.containers[0].image"',
  );
});

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
