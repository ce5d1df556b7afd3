import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createFakeClock } from '../../packages/runtime/src/clock/fake-clock.fixture.ts';
import { type InProcessServer, startServer, type WatchReader } from '../testkit/in-process-server.ts';

let server: InProcessServer;
let counter = 0;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

/** A namespace of its own for each test. */
async function freshNamespace(): Promise<string> {
  const name = `watch-${counter++}`;
  await server.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  return `/api/v1/namespaces/${name}/configmaps`;
}

const make = (
  path: string,
  name: string,
  labels: Record<string, string> = {},
): Promise<{ metadata: { resourceVersion: string } }> =>
  server.create(path, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels } }) as never;

async function take(reader: WatchReader, count: number): Promise<string[]> {
  const seen: string[] = [];
  for (let i = 0; i < count; i++) {
    const event = await reader.next();
    seen.push(`${event?.type} ${event?.object.metadata?.name ?? event?.object.code}`);
  }
  return seen;
}

// S-006: A watch sees every change once, in order, and resumes from the last revision it has seen.
// Compat Watch, P0, yes: framing in JSON
test('a watch from a list sees every later change once, in order', async () => {
  const path = await freshNamespace();
  await make(path, 'old');
  const { json: list } = await server.request('GET', path);
  const reader = await server.watch(`${path}?watch=true&resourceVersion=${list.metadata.resourceVersion}`);
  assert.equal(reader.headers['content-type'], 'application/json');
  await make(path, 'new');
  await server.request('PATCH', `${path}/new`, { body: { data: { a: '1' } } });
  const deleted = await server.request('DELETE', `${path}/old`);
  assert.equal(deleted.status, 200);
  assert.deepEqual(await take(reader, 2), ['ADDED new', 'MODIFIED new']);
  const last = await reader.next();
  assert.equal(last?.type, 'DELETED');
  assert.equal(last?.object.metadata.resourceVersion, String(server.store.revision()));
  assert.equal(last?.object.kind, 'ConfigMap');
  reader.close();
});

// S-006
test('a watch resumes from the last revision it has seen', async () => {
  const path = await freshNamespace();
  const first = await make(path, 'a');
  await make(path, 'b');
  await make(path, 'c');
  const reader = await server.watch(`${path}?watch=1&resourceVersion=${first.metadata.resourceVersion}`);
  assert.deepEqual(await take(reader, 2), ['ADDED b', 'ADDED c']);
  reader.close();
});

// Compat Watch, P0, yes: start points: N, none, 0
test('a watch without a revision begins with what is there', async () => {
  const path = await freshNamespace();
  await make(path, 'a');
  const reader = await server.watch(`${path}?watch=true`);
  assert.deepEqual(await take(reader, 1), ['ADDED a']);
  await make(path, 'b');
  assert.deepEqual(await take(reader, 1), ['ADDED b']);
  reader.close();
});

// S-007: `sendInitialEvents` ends with an annotated bookmark; bookmarks cover only what was sent.
// Compat Watch, P0, yes: WatchList: initial events, annotated bookmark, 422 for wrong options
test('a watch list ends its initial events with an annotated bookmark', async () => {
  const path = await freshNamespace();
  await make(path, 'a');
  await make(path, 'b');
  const query = 'watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan';
  const reader = await server.watch(`${path}?${query}`);
  assert.deepEqual(await take(reader, 2), ['ADDED a', 'ADDED b']);
  const end = await reader.next();
  assert.deepEqual(end, {
    type: 'BOOKMARK',
    object: {
      kind: 'ConfigMap',
      apiVersion: 'v1',
      metadata: {
        resourceVersion: String(server.store.revision()),
        annotations: { 'k8s.io/initial-events-end': 'true' },
      },
    },
  });
  await make(path, 'c');
  assert.deepEqual(await take(reader, 1), ['ADDED c']);
  reader.close();
});

// Compat What is easily got wrong, P0, yes: 2 and 3, watch parameters and bookmarks
test('options of a watch that make no sense are 422', async (t) => {
  for (const query of [
    'sendInitialEvents=true',
    'sendInitialEvents=true&resourceVersionMatch=Exact',
    'resourceVersionMatch=NotOlderThan&resourceVersion=1',
  ]) {
    await t.test(query, async () => {
      const answer = await server.request('GET', `/api/v1/configmaps?watch=true&${query}`);
      assert.equal(answer.status, 422, answer.text);
    });
  }
});

// S-005
test('an object that enters or leaves the selection is ADDED or DELETED', async () => {
  const path = await freshNamespace();
  const { json: list } = await server.request('GET', path);
  const reader = await server.watch(
    `${path}?watch=true&resourceVersion=${list.metadata.resourceVersion}&labelSelector=show%3Dyes`,
  );
  await make(path, 'x');
  await server.request('PATCH', `${path}/x`, { body: { metadata: { labels: { show: 'yes' } } } });
  await server.request('PATCH', `${path}/x`, { body: { data: { a: '1' } } });
  const left = await server.request('PATCH', `${path}/x`, { body: { metadata: { labels: { show: 'no' } } } });
  await server.request('DELETE', `${path}/x`);
  await make(path, 'y', { show: 'yes' });
  assert.deepEqual(await take(reader, 2), ['ADDED x', 'MODIFIED x']);
  const gone = await reader.next();
  assert.equal(gone?.type, 'DELETED');
  assert.equal(gone?.object.metadata.labels.show, 'yes');
  assert.equal(gone?.object.metadata.resourceVersion, left.json.metadata.resourceVersion);
  assert.deepEqual(await take(reader, 1), ['ADDED y']);
  reader.close();
});

test('a watch of one object by name sees only that object', async () => {
  const path = await freshNamespace();
  const reader = await server.watch(`${path}?watch=true&resourceVersion=1&fieldSelector=metadata.name%3Dme`);
  await make(path, 'other');
  await make(path, 'me');
  assert.deepEqual(await take(reader, 1), ['ADDED me']);
  assert.deepEqual(reader.pending(), []);
  reader.close();
});

// Compat Watch, P2, yes: Tables: columns in the first event, `columnDefinitions: null` in the others
test('a Table watch sends one-row tables, with columns only in the first', async () => {
  const path = await freshNamespace();
  await make(path, 'a');
  const reader = await server.watch(`${path}?watch=true`, {
    headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
  });
  const first = await reader.next();
  assert.equal(first?.object.kind, 'Table');
  assert.deepEqual(
    first?.object.columnDefinitions.map((c: { name: string }) => c.name),
    ['Name', 'Data', 'Age'],
  );
  assert.equal(first?.object.rows[0].object.kind, 'PartialObjectMetadata');
  await make(path, 'b');
  const second = await reader.next();
  assert.equal(second?.object.columnDefinitions, null);
  assert.equal(second?.object.rows[0].cells[0], 'b');
  reader.close();
});

// S-355
// Compat Watch, P1, yes: a WatchList is no Table: 406, or the next form that the client takes
test('a watch list is no Table: 406, or the next form that the client takes', async () => {
  const path = await freshNamespace();
  await make(path, 'a');
  const table = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  const list = `${path}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`;
  const refused = await server.request('GET', list, { headers: { accept: table } });
  assert.deepEqual([refused.status, refused.json.reason], [406, 'NotAcceptable']);
  const reader = await server.watch(list, { headers: { accept: `${table},application/json` } });
  assert.equal((await reader.next())?.object.kind, 'ConfigMap');
  reader.close();
});

// S-007
// Compat Watch, P0, yes: bookmarks each minute and before the end
test('bookmarks come every minute and before the end, with a revision that covers what was sent', async () => {
  const clock = createFakeClock();
  const own = await startServer({ clock });
  const reader = await own.watch(
    `/api/v1/configmaps?watch=true&resourceVersion=${own.store.revision()}&allowWatchBookmarks=true&timeoutSeconds=100`,
  );
  await own.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'elsewhere' } });
  await clock.advance(60_000);
  const bookmark = await reader.next();
  assert.equal(bookmark?.type, 'BOOKMARK');
  assert.equal(bookmark?.object.kind, 'ConfigMap');
  assert.equal(bookmark?.object.metadata.resourceVersion, String(own.store.revision()));
  await clock.advance(38_000);
  assert.equal((await reader.next())?.type, 'BOOKMARK');
  await clock.advance(2000);
  assert.equal(await reader.next(), undefined);
  await own.stop();
});

// S-008: A revision that is too old is 410, never a gap.
// Compat Watch, P0, yes: too old: 200 and an ERROR event with 410
// Compat What is easily got wrong, P0, yes: 5, watch errors are events
test('a revision that is too old is an ERROR event with 410, not a gap', async () => {
  const clock = createFakeClock();
  const own = await startServer({ clock });
  const start = own.store.revision();
  for (let i = 0; i < 3; i++) {
    await own.request('PATCH', '/api/v1/namespaces/default', { body: { metadata: { labels: { i: String(i) } } } });
  }
  await clock.advance(20 * 60_000);
  await own.request('PATCH', '/api/v1/namespaces/default', { body: { metadata: { labels: { i: 'last' } } } });
  await clock.advance(20 * 60_000);
  assert.ok(own.store.compactedRevision() > start);
  const reader = await own.watch(`/api/v1/namespaces?watch=true&resourceVersion=${start - 1}`);
  assert.equal(reader.status, 200);
  const error = await reader.next();
  assert.equal(error?.type, 'ERROR');
  assert.equal(error?.object.code, 410);
  assert.equal(error?.object.reason, 'Expired');
  assert.match(error?.object.message, /^too old resource version: \d+ \(\d+\)$/);
  assert.equal(await reader.next(), undefined);
  await own.stop();
});

test('shutting down ends watches in good order', async () => {
  const own = await startServer();
  const reader = await own.watch('/api/v1/configmaps?watch=true&resourceVersion=1');
  await own.server.drain(AbortSignal.timeout(1000));
  assert.equal(await reader.next(), undefined);
  assert.equal((await own.request('GET', '/api/v1/configmaps')).status, 503);
  await own.store.close();
});

// Compat Watch, P0, yes: one object by name; the end of a kind ends its watches
test('a resource that is no longer served ends its watches', async () => {
  const own = await startServer();
  const reader = await own.watch('/api/v1/configmaps?watch=true&resourceVersion=1');
  own.catalog.remove({ group: '', version: 'v1', resource: 'configmaps' });
  assert.equal(await reader.next(), undefined);
  const answer = await own.request('GET', '/api/v1/configmaps');
  assert.equal(answer.status, 404);
  assert.equal(answer.text, '404 page not found\n');
  await own.stop();
});
