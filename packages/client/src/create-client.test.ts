import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../apimachinery/src/meta/status.ts';
import { CONFIG_MAPS, NODES, PODS } from '../../apimachinery/src/types/resource-types.ts';
import type { ConfigMap, Pod } from '../../apimachinery/src/types/types.ts';
import type { ApiHandler, ApiRequest, ApiResponse, ByteSink } from '../../runtime/src/http/seam.ts';
import { isAlreadyExists, isConflict, isNamespaceTerminating, isNotFound } from './api-failure.ts';
import { createClient } from './create-client.ts';

const encode = (value: unknown): Uint8Array =>
  new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value));
const json = (value: unknown, status = 200): ApiResponse => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: encode(value),
});

/** A handler that answers everything alike and keeps what it was asked. */
function recording(answer: ApiResponse | ((request: ApiRequest) => ApiResponse)): {
  handler: ApiHandler;
  seen: ApiRequest[];
} {
  const seen: ApiRequest[] = [];
  const handler: ApiHandler = async (request) => {
    seen.push(request);
    return typeof answer === 'function' ? answer(request) : answer;
  };
  return { handler, seen };
}

const pod: Pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'ns' }, spec: { containers: [] } };
const key = { namespace: 'ns', name: 'p' };

test('verbs become methods, paths, queries and bodies', async () => {
  const { handler, seen } = recording(json({ ...pod, items: [] }));
  const client = createClient(handler, { userAgent: 'tester/1', token: () => 't0' });
  await client.get(PODS, key);
  await client.get(PODS, key, { subresource: 'status', metadataOnly: true });
  await client.list(PODS, { namespace: 'ns', labelSelector: 'a=b,c', limit: 5, resourceVersion: '0' });
  await client.list(NODES);
  await client.create(PODS, pod);
  await client.create(PODS, pod, { subresource: 'binding', dryRun: true });
  await client.update(PODS, pod, { subresource: 'status', fieldManager: 'me' });
  await client.patch(PODS, key, { type: 'merge', body: { a: 1 } });
  await client.patch(PODS, key, { type: 'json', body: [{ op: 'remove', path: '/a' }] });
  await client.patch(PODS, key, { type: 'strategic', body: {} }, { subresource: 'status' });
  await client.patch(PODS, key, { type: 'apply', body: pod, fieldManager: 'me', force: true });
  await client.delete(PODS, key, { gracePeriodSeconds: 0, preconditions: { uid: 'u' } });
  await client.raw('POST', '/apis/x', { query: 'a=1', body: { b: 2 } });

  const shown = seen.map(
    ({ method, path, query, headers }) => `${method} ${path}?${query} ${headers['content-type'] ?? '-'}`,
  );
  const base = '/api/v1/namespaces/ns/pods';
  assert.deepEqual(shown, [
    `GET ${base}/p? -`,
    `GET ${base}/p/status? -`,
    `GET ${base}?labelSelector=a%3Db%2Cc&limit=5&resourceVersion=0 -`,
    'GET /api/v1/nodes? -',
    `POST ${base}? application/json`,
    `POST ${base}/p/binding?dryRun=All application/json`,
    `PUT ${base}/p/status?fieldManager=me application/json`,
    `PATCH ${base}/p? application/merge-patch+json`,
    `PATCH ${base}/p? application/json-patch+json`,
    `PATCH ${base}/p/status? application/strategic-merge-patch+json`,
    `PATCH ${base}/p?fieldManager=me&force=true application/apply-patch+yaml`,
    `DELETE ${base}/p? application/json`,
    'POST /apis/x?a=1 application/json',
  ]);
  assert.equal(seen[0]?.headers['authorization'], 'Bearer t0');
  assert.equal(seen[0]?.headers['user-agent'], 'tester/1');
  assert.match(seen[1]?.headers['accept'] ?? '', /as=PartialObjectMetadata;/);
  assert.deepEqual(JSON.parse(new TextDecoder().decode(seen[11]!.body)), {
    apiVersion: 'v1',
    kind: 'DeleteOptions',
    gracePeriodSeconds: 0,
    preconditions: { uid: 'u' },
  });
});

// S-116: Names are path segments before they are sent, and the server never throws on a path.
test('names that are no path segments never reach the handler', async () => {
  const { handler, seen } = recording(json({}));
  const client = createClient(handler);
  for (const name of ['', '.', '..', 'a/b', 'a%2fb']) {
    await assert.rejects(client.get(PODS, { namespace: 'ns', name }), TypeError);
    await assert.rejects(client.get(PODS, { namespace: name, name: 'p' }), TypeError);
  }
  await assert.rejects(client.raw('GET', 'api'), TypeError);
  assert.equal(seen.length, 0);
});

test('list() names the kind of every item', async () => {
  const { handler } = recording(
    json({ kind: 'PodList', apiVersion: 'v1', metadata: {}, items: [{ metadata: { name: 'a' } }] }),
  );
  const list = await createClient(handler).list(PODS);
  assert.deepEqual(list.items, [{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } }] as unknown);
});

test('an empty list of metadata, whose items are null, is an empty list', async () => {
  const list = { kind: 'PartialObjectMetadataList', apiVersion: 'meta.k8s.io/v1', metadata: {}, items: null };
  const body = new TextEncoder().encode(JSON.stringify(list));
  const client = createClient(async () => ({ status: 200, headers: {}, body }));
  assert.deepEqual((await client.list(PODS, { metadataOnly: true })).items, []);
});

test('failures are ApiErrors with the Status they carry', async () => {
  const status = (code: number, reason: string, details = {}) =>
    json(
      {
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        reason,
        message: `it is ${reason}`,
        code,
        details,
      },
      code,
    );
  const failureOf = async (response: ApiResponse): Promise<ApiError> => {
    const error = await createClient(recording(response).handler)
      .get(PODS, key)
      .catch((caught: unknown) => caught);
    assert.ok(error instanceof ApiError);
    return error;
  };
  assert.ok(isNotFound(await failureOf(status(404, 'NotFound'))));
  const conflict = await failureOf(status(409, 'Conflict'));
  assert.equal(conflict.message, 'it is Conflict');
  assert.ok(isConflict(conflict) && !isAlreadyExists(conflict));
  const exists = await failureOf(status(409, 'AlreadyExists'));
  assert.ok(isAlreadyExists(exists) && !isConflict(exists));
  assert.ok(
    isNamespaceTerminating(await failureOf(status(403, 'Forbidden', { causes: [{ reason: 'NamespaceTerminating' }] }))),
  );
  // A proxy's page: no Status, but still a code, a reason and a bounded text.
  const page = await failureOf({ status: 503, headers: {}, body: encode('x'.repeat(5000)) });
  assert.equal(page.code, 503);
  assert.equal(page.reason, 'ServiceUnavailable');
  assert.ok(page.message.length < 1200);
});

test('raw() gives text as it is and undefined for nothing', async () => {
  const plain: ApiResponse = { status: 200, headers: { 'content-type': 'text/plain' }, body: encode('ok') };
  assert.equal(await createClient(recording(plain).handler).raw('GET', '/healthz'), 'ok');
  assert.equal(await createClient(recording({ status: 204, headers: {} }).handler).raw('GET', '/x'), undefined);
});

test('bodies may come as bytes, as a list or as a stream, and a short one is an error', async () => {
  const whole = encode(pod);
  const stream = (upTo: number) => (sink: ByteSink) => {
    for (let i = 0; i < upTo; i += 7) sink.write(whole.subarray(i, Math.min(i + 7, upTo)));
    sink.end();
  };
  const headers = { 'content-length': String(whole.length) };
  for (const body of [whole, [whole.subarray(0, 9), whole.subarray(9)], stream(whole.length)]) {
    assert.deepEqual(await createClient(recording({ status: 200, headers, body }).handler).get(PODS, key), pod);
  }
  const cut: ApiResponse = { status: 200, headers, body: stream(20) };
  await assert.rejects(createClient(recording(cut).handler).get(PODS, key), /connection ended after 20 of/);
});

test('watch() yields frames however they are cut, and leaving it ends the stream', async () => {
  let signal: AbortSignal | undefined;
  const { handler, seen } = recording({
    status: 200,
    headers: {},
    body: (sink) => {
      signal = sink.signal;
      sink.write(encode('{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n{"type":"MODI'));
      sink.write(encode('FIED","object":{"metadata":{"name":"a"}}}\n'));
    },
  });
  const types: string[] = [];
  for await (const event of createClient(handler).watch<ConfigMap>(CONFIG_MAPS, {
    resourceVersion: '5',
    allowWatchBookmarks: true,
  })) {
    types.push(event.type);
    if (types.length === 2) break;
  }
  assert.deepEqual(types, ['ADDED', 'MODIFIED']);
  assert.equal(signal?.aborted, true);
  assert.equal(seen[0]?.query, 'watch=true&resourceVersion=5&allowWatchBookmarks=true');
});

test('watch() throws what the server refuses and ends quietly when its signal fires', async () => {
  const refused = createClient(recording(json({ kind: 'Status', code: 422, reason: 'Invalid' }, 422)).handler);
  await assert.rejects(async () => {
    for await (const _event of refused.watch(PODS, {})) assert.fail('no event expected');
  }, ApiError);

  const stop = new AbortController();
  const open = createClient(recording({ status: 200, headers: {}, body: () => stop.abort() }).handler);
  for await (const _event of open.watch(PODS, { signal: stop.signal })) assert.fail('no event expected');
});

test('a stream nobody reads is cut off at the bound', async () => {
  const megabyte = new Uint8Array(1024 * 1024).fill(0x20);
  let refused = 0;
  let aborted = false;
  const { handler } = recording({
    status: 200,
    headers: {},
    body: (sink) => {
      sink.signal.addEventListener('abort', () => {
        aborted = true;
      });
      for (let i = 0; i < 70; i++) if (!sink.write(megabyte)) refused++;
    },
  });
  await assert.rejects(createClient(handler).get(PODS, key), /bytes unread/);
  assert.ok(refused > 60);
  assert.equal(aborted, true);
});
