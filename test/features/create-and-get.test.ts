import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const configMap = (name: string): object => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } });

// S-001: A created object is returned by GET byte for byte, and what belongs to the server cannot be set by a client.
test('POST creates an object that GET returns byte for byte', async () => {
  const created = await server.request('POST', CONFIG_MAPS, { body: { ...configMap('one'), data: { a: '1' } } });
  assert.equal(created.status, 201);
  assert.equal(created.json.metadata.namespace, 'default');
  assert.match(created.json.metadata.uid, /^[0-9a-f-]{36}$/);
  assert.match(created.json.metadata.creationTimestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  assert.match(created.json.metadata.resourceVersion, /^[1-9][0-9]*$/);
  assert.equal(created.json.metadata.generation, undefined);
  const got = await server.request('GET', `${CONFIG_MAPS}/one`);
  assert.equal(got.status, 200);
  assert.equal(got.text, created.text);
  assert.ok(got.text.endsWith('\n'));
  assert.equal(got.headers['content-type'], 'application/json');
  assert.equal(got.headers['cache-control'], 'no-cache, private');
  assert.ok(got.headers['audit-id']);
});

// Compat HTTP, P0, yes: every answer has `Audit-Id` (the one sent, else new) and `Cache-Control`
test('the audit id of the request comes back', async () => {
  const answer = await server.request('GET', '/version', { headers: { 'audit-id': 'my-id' } });
  assert.equal(answer.headers['audit-id'], 'my-id');
});

// S-001
// Compat Writing, P0, yes: create: checks in order, system metadata of clients is not taken
test('system metadata sent by a client is not taken', async () => {
  const created = await server.request('POST', CONFIG_MAPS, {
    body: {
      ...configMap('wiped'),
      metadata: {
        name: 'wiped',
        uid: 'mine',
        creationTimestamp: '2000-01-01T00:00:00Z',
        deletionTimestamp: '2000-01-01T00:00:00Z',
        generation: 7,
        selfLink: '/x',
      },
    },
  });
  const { metadata } = created.json;
  assert.notEqual(metadata.uid, 'mine');
  assert.notEqual(metadata.creationTimestamp, '2000-01-01T00:00:00Z');
  assert.deepEqual(
    // A generation stays where the kind's strategy has no say in it, as upstream.
    [metadata.deletionTimestamp, metadata.generation, metadata.selfLink],
    [undefined, 7, undefined],
  );
});

// S-002: `generateName`, dry runs and YAML bodies work; what cannot be given is 406.
test('generateName appends five characters without vowels', async () => {
  const body = { ...configMap(''), metadata: { generateName: `${'a'.repeat(60)}-` } };
  const created = await server.request('POST', CONFIG_MAPS, { body });
  assert.match(created.json.metadata.name, /^a{58}[bcdfghjklmnpqrstvwxz2456789]{5}$/);
});

// S-003: A refused create says what is wrong and where, in upstream's words, all of it at once; no shape of input makes
//   the server stumble.
// Compat Status, P0, yes: Invalid: message and one cause for each field
test('a refused create says why, in upstream words', async (t) => {
  await server.request('POST', CONFIG_MAPS, { body: configMap('taken') });
  const cases: [string, { path?: string; body: unknown; type?: string }, number, string, RegExp][] = [
    ['name taken', { body: configMap('taken') }, 409, 'AlreadyExists', /^configmaps "taken" already exists$/],
    [
      'namespace missing',
      { path: '/api/v1/namespaces/no/configmaps', body: configMap('a') },
      404,
      'NotFound',
      /^namespaces "no" not found$/,
    ],
    [
      'other namespace in the body',
      { body: { ...configMap('a'), metadata: { name: 'a', namespace: 'other' } } },
      400,
      'BadRequest',
      /^the namespace of the provided object does not match the namespace sent on the request$/,
    ],
    [
      'other version in the body',
      { body: { apiVersion: 'apps/v1', kind: 'ConfigMap', metadata: { name: 'a' } } },
      400,
      'BadRequest',
      /^ConfigMap in version "v1" cannot be handled as a ConfigMap: it is of kind ConfigMap of apps\/v1, not ConfigMap of v1$/,
    ],
    [
      'bad name',
      { body: configMap('A B') },
      422,
      'Invalid',
      /^ConfigMap "A B" is invalid: metadata.name: Invalid value: "A B": /,
    ],
    [
      'no name',
      { body: configMap('') },
      422,
      'Invalid',
      /metadata.name: Required value: name or generateName is required/,
    ],
    [
      'wrong type',
      { body: { ...configMap('a'), data: { k: 1 } } },
      400,
      'BadRequest',
      /data\.k: expected string, got number 1/,
    ],
    ['no JSON', { body: '{' }, 400, 'BadRequest', /unexpected end of JSON input/],
    [
      'unknown media type',
      { body: 'x', type: 'text/plain' },
      415,
      'UnsupportedMediaType',
      /accepted media types include: application\/json/,
    ],
    ['body too large', { body: new Uint8Array(3 * 1024 * 1024 + 1) }, 413, 'RequestEntityTooLarge', /limit is 3145728/],
    [
      'resourceVersion set',
      { body: { ...configMap('a'), metadata: { name: 'a', resourceVersion: '1' } } },
      500,
      '',
      /should not be set on objects to be created/,
    ],
    [
      'resourceVersion set on an object that is not valid: validation comes first',
      { body: { ...configMap('a'), metadata: { name: 'A_B', resourceVersion: '1' } } },
      422,
      'Invalid',
      /metadata.name: Invalid value: "A_B"/,
    ],
  ];
  for (const [name, { path = CONFIG_MAPS, body, type }, status, reason, message] of cases) {
    await t.test(name, async () => {
      const answer = await server.request('POST', path, { body, ...(type && { headers: { 'content-type': type } }) });
      assert.equal(answer.status, status, answer.text);
      assert.equal(answer.json.code, status);
      assert.equal(answer.json.kind, 'Status');
      assert.equal(answer.json.reason ?? '', reason);
      assert.match(answer.json.message, message);
    });
  }
});

// S-002
// Compat HTTP, P0, yes: media types of built-in kinds: JSON, YAML, protobuf
test('a YAML body is accepted and YAML is given when asked for', async () => {
  const created = await server.request('POST', CONFIG_MAPS, {
    body: 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yaml\ndata:\n  a: "1"\n',
    headers: { 'content-type': 'application/yaml', accept: 'application/yaml' },
  });
  assert.equal(created.status, 201);
  assert.equal(created.headers['content-type'], 'application/yaml');
  assert.match(created.text, /^kind: ConfigMap\napiVersion: v1\n.*data:\n {2}a: "1"\n/s);
});

// S-002
// Compat HTTP, P0, yes: 406 as indented JSON, 415 with the accepted types, an empty Content-Type is JSON
test('what cannot be given is 406, pretty printed', async () => {
  const answer = await server.request('GET', `${CONFIG_MAPS}/yaml`, { headers: { accept: 'image/png' } });
  assert.equal(answer.status, 406);
  assert.match(answer.text, /^\{\n {2}"kind": "Status"/);
});

// Compat HTTP, P0, yes: pretty JSON for `?pretty`, browsers and curl; a newline at the end of JSON in one line, none
//   behind indented
test('browsers and curl get indented JSON', async () => {
  const answer = await server.request('GET', `${CONFIG_MAPS}/yaml`, { headers: { 'user-agent': 'curl/8' } });
  assert.match(answer.text, /^\{\n {2}"kind": "ConfigMap",\n/);
});

// S-002
// Compat Writing, P0, yes: dryRun=All: everything but the write
test('a dry run answers like a create and keeps nothing', async () => {
  const before = server.store.revision();
  const answer = await server.request('POST', `${CONFIG_MAPS}?dryRun=All`, { body: configMap('dry') });
  assert.equal(answer.status, 201);
  assert.ok(answer.json.metadata.uid);
  assert.equal(answer.json.metadata.resourceVersion, undefined);
  assert.equal((await server.request('GET', `${CONFIG_MAPS}/dry`)).status, 404);
  assert.equal(server.store.revision(), before);
  const taken = await server.request('POST', `${CONFIG_MAPS}?dryRun=All`, { body: configMap('yaml') });
  assert.equal(taken.status, 409);
  const wrong = await server.request('POST', `${CONFIG_MAPS}?dryRun=Some`, { body: configMap('dry') });
  assert.equal(wrong.status, 422);
  assert.match(wrong.json.message, /dryRun: Unsupported value/);
});

// Compat Status, P0, yes: Expired (410), Timeout with ResourceVersionTooLarge (504)
// Compat Reading, P0, yes: GET with a resourceVersion waits for it, 3 s at most
test('GET with a resourceVersion from the future gives up with 504 after its wait', async () => {
  const { createFakeClock } = await import('../../packages/runtime/src/clock/fake-clock.fixture.ts');
  const clock = createFakeClock();
  const own = await startServer({ clock });
  const pending = own.request('GET', '/api/v1/namespaces/default?resourceVersion=100000');
  await clock.advance(3001);
  const answer = await pending;
  assert.equal(answer.status, 504);
  assert.equal(answer.json.message, `Timeout: Too large resource version: 100000, current: ${own.store.revision()}`);
  assert.deepEqual(answer.json.details, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  });
  assert.equal(answer.headers['retry-after'], '1');
  await own.stop();
});

/** A CSR is called what its maker likes; the Event of a ClusterRole is called after it. */
// Compat Types, P2, yes: names of core Events and CertificateSigningRequests need only fit a path
test('some names need only fit a path', async () => {
  const cases: [string, object][] = [
    [
      '/api/v1/namespaces/default/events',
      { apiVersion: 'v1', kind: 'Event', involvedObject: { namespace: 'default', name: 'x' } },
    ],
    [
      '/apis/certificates.k8s.io/v1/certificatesigningrequests',
      {
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        spec: { request: '', signerName: 'a.io/b', usages: ['client auth'] },
      },
    ],
  ];
  for (const [path, body] of cases) {
    for (const [name, good] of [
      ['node-csr-A_b:C.16f', true],
      ['a/b', false],
    ]) {
      const answer = await server.request('POST', path, { body: { ...body, metadata: { name } } });
      const reported = (answer.json.message as string | undefined) ?? '';
      assert.equal(reported.includes('metadata.name: Invalid'), !good, `${path} ${name}: ${answer.text}`);
    }
  }
});
