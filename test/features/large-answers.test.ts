/**
 * Objects of very many keys are written in steps, with others served in between: what comes out is what would come out in
 * one go, of one revision, and in order.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { joinBytes } from '../../packages/apimachinery/src/meta/join-bytes.ts';
import { encodeProtobuf, encodeWatchFrame, PROTOBUF } from '../../packages/apiserver/src/kinds/protobuf/documents.ts';
import { type ApiResponse, type ByteSink, NEVER, NO_BYTES } from '../../packages/runtime/src/http/seam.ts';
import { eventually } from '../testkit/eventually.ts';
import { type Answer, type InProcessServer, startServer } from '../testkit/in-process-server.ts';

type Document = Answer['json'];

let server: InProcessServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const MAPS = '/api/v1/namespaces/default/configmaps';
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const encoder = new TextEncoder();

async function call(
  method: string,
  pathAndQuery: string,
  { object, headers = {} }: { object?: object; headers?: Record<string, string> } = {},
): Promise<{ status: number; type: string; bytes: Uint8Array; body: ApiResponse['body'] }> {
  const [path = '', query = ''] = pathAndQuery.split('?');
  const body = object ? encoder.encode(JSON.stringify(object)) : NO_BYTES;
  const answer = await server.handler({ method, path, query, headers, body, peer: { address: '' }, signal: NEVER });
  const parts =
    typeof answer.body === 'function' ? [] : answer.body instanceof Uint8Array ? [answer.body] : answer.body;
  return {
    status: answer.status,
    type: answer.headers['content-type'] ?? '',
    bytes: joinBytes(parts ?? []),
    body: answer.body,
  };
}

const ONLY = { accept: PROTOBUF };
const MERGE = { headers: { 'content-type': 'application/merge-patch+json' } };
const keys = (count: number, value: string): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, value]));
const map = (name: string, count: number): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data: keys(count, 'v'),
});
const same = (bytes: Uint8Array, document: Document): void =>
  assert.ok(Buffer.from(encodeProtobuf(document)!).equals(bytes), document.metadata.name);

// S-324: A large object turned into another form is of one revision, and is what its stored JSON says.
test('large objects in protobuf: created, read, listed, changed, and their metadata alone', async () => {
  const created = await call('POST', MAPS, {
    object: map('big', 6_000),
    headers: { ...ONLY, 'content-type': 'application/json' },
  });
  assert.deepEqual([created.status, created.type], [201, PROTOBUF]);
  const big = (await server.request('GET', `${MAPS}/big`)).json;
  same(created.bytes, big);
  same((await call('GET', `${MAPS}/big`, { headers: ONLY })).bytes, big);
  await server.create(MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'small' }, data: { a: 'b' } });
  same((await call('GET', MAPS, { headers: ONLY })).bytes, (await server.request('GET', MAPS)).json);
  const patched = await call('PATCH', `${MAPS}/big?dryRun=All`, {
    object: { metadata: { labels: { a: 'b' } } },
    headers: { ...ONLY, 'content-type': 'application/merge-patch+json' },
  });
  assert.equal(patched.status, 200);
  const partial = `${PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1`;
  const { metadata } = big;
  same((await call('GET', `${MAPS}/big`, { headers: { accept: partial } })).bytes, {
    kind: 'PartialObjectMetadata',
    apiVersion: 'meta.k8s.io/v1',
    metadata,
  });
});

// S-324
test('an answer that is being written is of one revision, whatever is written meanwhile', async () => {
  const before = (await server.request('GET', `${MAPS}/big`)).json;
  const read = call('GET', `${MAPS}/big`, { headers: ONLY });
  const write = server.request('PATCH', `${MAPS}/big`, { ...MERGE, body: { data: keys(6_000, 'w') } });
  same((await read).bytes, before);
  assert.equal((await write).status, 200);
  const after = (await server.request('GET', `${MAPS}/big`)).json;
  assert.equal(after.data.k5999, 'w');
  // Whoever read the revision before learns that it has moved.
  const stale = await server.request('PUT', `${MAPS}/big`, { body: before });
  assert.equal(stale.status, 409);
});

// S-326: A large event in protobuf stands where it happened; what comes after it waits for it.
test('watches in protobuf: large events stand where they happened, and small ones wait for them', async () => {
  const { resourceVersion } = (await server.request('GET', MAPS)).json.metadata;
  const gone = new AbortController();
  const watch = async (): Promise<Uint8Array[]> => {
    const answer = await call('GET', `${MAPS}?watch=true&timeoutSeconds=60&resourceVersion=${resourceVersion}`, {
      headers: { accept: `${PROTOBUF};stream=watch` },
    });
    const chunks: Uint8Array[] = [];
    const sink: ByteSink = {
      buffered: 0,
      signal: gone.signal,
      drained: () => Promise.resolve(),
      end() {},
      write(chunk) {
        chunks.push(chunk);
        return true;
      },
    };
    assert.ok(typeof answer.body === 'function');
    answer.body(sink);
    return chunks;
  };
  const [one, other] = [await watch(), await watch()];
  const events: (readonly [number, Uint8Array])[] = [];
  const patch = async (name: string, value: string): Promise<void> => {
    const { status, json } = await server.request('PATCH', `${MAPS}/${name}`, {
      ...MERGE,
      body: { metadata: { labels: { value } } },
    });
    assert.equal(status, 200);
    const frame = encodeWatchFrame('MODIFIED', encodeProtobuf(json)!);
    events.push([Number(json.metadata.resourceVersion), frame]);
  };
  await Promise.all(['1', '2', '3'].map((value) => patch('big', value)));
  for (const value of ['1', '2']) await patch('small', value);
  await patch('big', '4');
  await patch('small', '3');
  // Three writers at once finish in any order: their events come in that of their revisions.
  const wanted = joinBytes(events.sort(([a], [b]) => a - b).map(([, frame]) => frame));
  const received = (chunks: readonly Uint8Array[]): number => chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  await eventually('all events', () => received(one) >= wanted.length && received(other) >= wanted.length);
  gone.abort();
  assert.ok(Buffer.from(joinBytes(one)).equals(wanted));
  assert.ok(Buffer.from(joinBytes(other)).equals(wanted));
});

// S-328
test('a small body that defaults make a large object is stored whole, and owned as a small one is', async () => {
  const properties = Object.fromEntries(
    Array.from({ length: 12_000 }, (_, at) => [`f${at}`, { type: 'string', default: `d${at}` }]),
  );
  await server.create(DEFINITIONS, {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'filleds.large.example' },
    spec: {
      group: 'large.example',
      names: { plural: 'filleds', singular: 'filled', kind: 'Filled' },
      scope: 'Namespaced',
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: { spec: { type: 'object', properties: { ...properties, mine: { type: 'string' } } } },
            },
          },
        },
      ],
    },
  });
  const path = '/apis/large.example/v1/namespaces/default/filleds';
  const object = { apiVersion: 'large.example/v1', kind: 'Filled', metadata: { name: 'a' }, spec: { mine: 'x' } };
  const created = await eventually(
    () => server.request('POST', path, { body: object }),
    ({ status }) => status !== 404,
  );
  assert.equal(created.status, 201, JSON.stringify(created.json).slice(0, 300));
  const { json: stored } = await server.request('GET', `${path}/a`);
  assert.equal(Object.keys(stored.spec).length, 12_001);
  assert.equal(stored.spec.f11999, 'd11999');
  assert.deepEqual(created.json, stored);
  assert.equal(Object.keys(stored.metadata.managedFields[0].fieldsV1['f:spec']).length, 12_002);
  assert.equal((await server.request('POST', path, { body: object })).status, 409);
  // What one takes away comes back as its default.
  const { json: patched } = await server.request('PATCH', `${path}/a`, {
    ...MERGE,
    body: { spec: { f7: null, mine: null } },
  });
  assert.deepEqual([patched.spec.f7, patched.spec.mine], ['d7', undefined]);
});
