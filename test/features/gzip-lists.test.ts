import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { createAuditor } from '../../packages/apiserver/src/audit/auditor.ts';
import { compilePolicy } from '../../packages/apiserver/src/audit/policy.ts';
import { compressor } from '../../packages/coracle/src/compose/compressor.ts';
import { NEVER, NO_BYTES } from '../../packages/runtime/src/http/seam.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const ALL = '/api/v1/configmaps';
const IN_A = '/api/v1/namespaces/a/configmaps';

let server: InProcessServer;
/** Who asks, by the header `user`: bob may read namespace b alone. */
before(async () => {
  server = await startServer({
    compressor,
    authenticate: async ({ headers }) => ({ username: headers['user'] ?? 'alice', groups: ['system:authenticated'] }),
    authorize: (user, attributes) => ({
      allowed: user.username !== 'bob' || ('namespace' in attributes && attributes.namespace === 'b'),
      reason: '',
    }),
  });
  for (const name of ['a', 'b']) {
    await server.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    for (let i = 0; i < 120; i++) await server.create(`/api/v1/namespaces/${name}/configmaps`, map(`m${100 + i}`, i));
  }
});
after(() => server.stop());

const map = (name: string, i: number) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, labels: { even: String(i % 2 === 0) } },
  data: { text: `${name} `.repeat(600) },
});

interface Read {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** As it came, in bytes. */
  readonly size: number;
}

async function read(path: string, headers: Record<string, string> = {}, from = server): Promise<Read> {
  const [base = '', query = ''] = path.split('?');
  const response = await from.handler({
    method: 'GET',
    path: base,
    query,
    headers,
    body: NO_BYTES,
    peer: { address: '' },
    signal: NEVER,
  });
  const body = response.body ?? NO_BYTES;
  if (typeof body === 'function') throw new Error('a stream');
  const bytes = Buffer.concat(body instanceof Uint8Array ? [body] : body);
  const text = (response.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString();
  return { status: response.status, headers: response.headers, text, size: bytes.length };
}

const GZIP = { 'accept-encoding': 'gzip' };

/** Both forms of one list; throws when the gzip one is none. */
async function both(path: string, headers: Record<string, string> = {}): Promise<{ plain: string; zipped: string }> {
  const zipped = await read(path, { ...headers, ...GZIP });
  assert.equal(zipped.headers['content-encoding'], 'gzip', path);
  assert.equal(zipped.headers['vary'], 'Accept-Encoding');
  const plain = await read(path, headers);
  assert.equal(plain.headers['content-encoding'], undefined);
  assert.equal(zipped.headers['content-type'], plain.headers['content-type']);
  assert.ok(zipped.size < plain.size / 2, `${zipped.size} of ${plain.size}`);
  return { plain: plain.text, zipped: zipped.text };
}

// S-302: A list in gzip is the list, for who may read it, as fresh as without.
// Compat HTTP, P1, yes: gzip from 128 KiB on, never for watches; only the bare word `gzip` asks for it
test('a list in gzip is the list, in every representation and selection', async () => {
  const paths = [ALL, IN_A, `${ALL}?limit=100`, `${ALL}?labelSelector=even%3Dtrue`, `${ALL}?pretty=1`];
  const accepts = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf'];
  for (const path of paths) {
    for (const accept of accepts) {
      for (let reader = 0; reader < 2; reader++) {
        const { plain, zipped } = await both(path, { accept });
        assert.equal(zipped, plain, `${path} as ${accept}`);
      }
    }
  }
});

// S-302
test('the pages of a snapshot stay what they were while others write', async () => {
  const seen: string[] = [];
  let next = '';
  for (let page = 0; ; page++) {
    const { plain, zipped } = await both(`${ALL}?limit=80${next}`);
    assert.equal(zipped, plain);
    const list = JSON.parse(zipped);
    for (const { metadata, data } of list.items) {
      seen.push(metadata.name);
      assert.ok(!data.text.startsWith('later'), 'a later state');
    }
    if (!list.metadata.continue) break;
    next = `&continue=${list.metadata.continue}`;
    const changed = `${IN_A}/m${200 + page}`;
    await server.request('PATCH', changed, { body: { data: { text: 'later '.repeat(600) } } });
    assert.ok(page < 10);
  }
  assert.equal(seen.length, 240);
});

// S-302
test('a write is in the next list, a deletion too', async () => {
  await read(IN_A, GZIP);
  await server.request('PATCH', `${IN_A}/m150`, { body: { data: { text: `new ${'x'.repeat(2000)}` } } });
  const changed = await both(IN_A);
  assert.equal(changed.zipped, changed.plain);
  assert.match(changed.zipped, /"text":"new x/);
  await server.request('DELETE', `${IN_A}/m151`);
  await server.create(IN_A, map('m1500', 1));
  const after = await both(IN_A);
  assert.equal(after.zipped, after.plain);
  assert.doesNotMatch(after.zipped, /"name":"m151"/);
  assert.match(after.zipped, /"name":"m1500"/);
});

// S-302
test('who may not list gets nothing of what was compressed for others', async () => {
  await both(ALL);
  await both(IN_A);
  for (const path of [ALL, IN_A]) {
    const { status, text } = await read(path, { ...GZIP, user: 'bob' });
    assert.equal(status, 403);
    assert.doesNotMatch(text, /m100/);
  }
  const { zipped } = await both('/api/v1/namespaces/b/configmaps', { user: 'bob' });
  const namespaces = JSON.parse(zipped).items.map(
    (item: { metadata: { namespace: string } }) => item.metadata.namespace,
  );
  assert.deepEqual([...new Set(namespaces)], ['b']);
});

test('only the word gzip asks for it, and small lists stay as they are', async () => {
  for (const accepted of ['gzip', 'deflate, gzip', 'br,gzip , *']) {
    const { headers } = await read(ALL, { 'accept-encoding': accepted });
    assert.equal(headers['content-encoding'], 'gzip', accepted);
  }
  for (const accepted of ['', 'gzip;q=0', 'x-gzip', 'br, deflate', '*']) {
    const { headers } = await read(ALL, { 'accept-encoding': accepted });
    assert.equal(headers['content-encoding'], undefined, accepted);
  }
  const few = await read(`${ALL}?limit=20`, GZIP);
  assert.ok(few.size < 128 * 1024);
  assert.equal(few.headers['content-encoding'], undefined);
});

test('a single large object is gzipped as well', async () => {
  await server.create('/api/v1/namespaces/b/configmaps', {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'large' },
    data: { text: 'x'.repeat(200_000) },
  });
  const { plain, zipped } = await both('/api/v1/namespaces/b/configmaps/large');
  assert.equal(zipped, plain);
  await server.request('DELETE', '/api/v1/namespaces/b/configmaps/large');
});

test('objects of a custom kind show the version that was asked for', async () => {
  const version = (name: string, storage: boolean): object => ({
    name,
    served: true,
    storage,
    schema: {
      openAPIV3Schema: {
        type: 'object',
        properties: { spec: { type: 'object', properties: { text: { type: 'string' } } } },
      },
    },
  });
  await server.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'papers.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'papers', singular: 'paper', kind: 'Paper', listKind: 'PaperList' },
      versions: [version('v1', true), version('v2', false)],
    },
  });
  for (let i = 0; i < 100; i++) {
    await server.create('/apis/example.com/v1/namespaces/a/papers', {
      apiVersion: 'example.com/v1',
      kind: 'Paper',
      metadata: { name: `p${i}` },
      spec: { text: `${i} `.repeat(1000) },
    });
  }
  for (const v of ['v1', 'v2', 'v1']) {
    const { plain, zipped } = await both(`/apis/example.com/${v}/papers`);
    assert.equal(zipped, plain);
    assert.equal(JSON.parse(zipped).items[99].apiVersion, `example.com/${v}`);
  }
});

test('an audit event that shows answers shows a compressed list as it is', async () => {
  const lines: string[] = [];
  const policy = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [{ level: 'RequestResponse' }] };
  const own = await startServer({
    compressor,
    auditor: createAuditor({
      policy: compilePolicy(policy),
      sink: { write: (line) => void lines.push(line) },
      now: () => Date.now(),
    }),
  });
  for (let i = 0; i < 60; i++) await own.create('/api/v1/namespaces/default/configmaps', map(`m${i}`, i));
  const { headers, text } = await read(ALL, GZIP, own);
  assert.equal(headers['content-encoding'], 'gzip');
  const event = JSON.parse(lines.at(-1)!);
  assert.equal(event.responseObject.items.length, 60);
  assert.deepEqual(event.responseObject.items[7].data, JSON.parse(text).items[7].data);
  await own.stop();
});
