/** Threat 27: all objects lie in memory, so what one tenant stores has a bound, and so has what all of them do. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createMemoryBackend } from '../../packages/apiserver/src/storage/memory-backend.ts';
import { startPlane } from '../testkit/control-plane.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const KIB = 1024;
const byteLimits = { namespace: 200 * KIB, total: 500 * KIB };
const backend = createMemoryBackend();

let server: InProcessServer;
before(async () => {
  server = await startServer({ backend, byteLimits });
  for (const name of ['greedy', 'modest', 'large'])
    await server.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
});
after(() => server.stop());

const maps = (namespace: string): string => `/api/v1/namespaces/${namespace}/configmaps`;
const put = (namespace: string, name: string, bytes: number) =>
  server.request('POST', maps(namespace), {
    body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { text: 'x'.repeat(bytes) } },
  });

/** Creates until one is refused; says how many stand, and the refusal. */
async function fill(namespace: string): Promise<{ readonly stored: number; readonly refusal: string }> {
  for (let stored = 0; ; stored++) {
    const { status, json } = await put(namespace, `map-${stored}`, 10 * KIB);
    if (status !== 201) return { stored, refusal: `${status} ${json.message}` };
  }
}

// S-486: The bytes of a namespace's objects have a bound, which administrators set, and so have those of all together.
test('a namespace takes so much and no more, the text says what to do, and others go on', async () => {
  const { stored, refusal } = await fill('greedy');
  assert.ok(stored >= 15 && stored < 20, String(stored));
  assert.match(
    refusal,
    /^403 .*namespace "greedy" may have 204800 bytes together: delete some, or ask an administrator/,
  );
  assert.match(refusal, /coracle\.dev\/max-object-bytes/);
  assert.equal((await put('modest', 'one', 10 * KIB)).status, 201);
  // All at once are no way around it.
  const outcomes = await Promise.all(Array.from({ length: 30 }, (_, at) => put('greedy', `more-${at}`, 10 * KIB)));
  assert.deepEqual([...new Set(outcomes.map(({ status }) => status))], [403]);
});

test('what is there may change a little, shrink and go, and then there is room again', async () => {
  const patch = (bytes: number) =>
    server.request('PATCH', `${maps('greedy')}/map-0`, { body: { data: { more: 'y'.repeat(bytes) } } });
  assert.equal((await patch(KIB)).status, 200);
  assert.equal((await patch(100 * KIB)).status, 403);
  assert.equal((await server.request('DELETE', `${maps('greedy')}/map-1`)).status, 200);
  assert.equal((await server.request('DELETE', `${maps('greedy')}/map-2`)).status, 200);
  assert.equal((await put('greedy', 'again', 5 * KIB)).status, 201);
});

// S-486
test('an administrator gives a namespace more; all together have a bound of their own', async () => {
  const annotations = { 'coracle.dev/max-object-bytes': String(400 * KIB) };
  await server.request('PATCH', '/api/v1/namespaces/large', { body: { metadata: { annotations } } });
  const { stored, refusal } = await fill('large');
  assert.ok(stored > 20, String(stored));
  assert.match(refusal, /^507 all objects together may have 512000 bytes/);
  assert.equal((await server.request('DELETE', `${maps('large')}/map-0`)).status, 200);
});

// S-486
test('after a restart the bytes count as before', async () => {
  await server.stop();
  server = await startServer({ backend, byteLimits });
  assert.equal((await put('greedy', 'after', 20 * KIB)).status, 403);
});

// S-829: A store that is beyond its bounds of bytes starts, with all that a start has to make; objects can then be
//   deleted.
test('a store beyond its bounds starts, with what a start has to make, and is emptied again', async () => {
  const full = createMemoryBackend();
  const roles = '/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles';
  const namesOf = (list: { items: { metadata: { name: string } }[] }) =>
    list.items.map(({ metadata }) => metadata.name);
  const before = await startPlane({ backend: full });
  const names = namesOf(await before.admin(`GET ${roles}`));
  // As a version would find it that has one more.
  await before.admin(`DELETE ${roles}/${names[0]}`);
  const map = (name: string) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name },
    data: { text: 'x'.repeat(300 * KIB) },
  });
  await before.admin(`POST ${maps('default')}`, map('large'));
  await before.stop();

  const plane = await startPlane({ backend: full, byteLimits: { namespace: 100 * KIB, total: KIB } });
  try {
    assert.deepEqual(namesOf(await plane.admin(`GET ${roles}`)), names);
    const more = await plane.ask(`POST ${maps('default')}`, { as: ['a', 'system:masters'], body: map('more') });
    assert.equal(more.status, 403, JSON.stringify(more.json));
    await plane.admin(`DELETE ${maps('default')}/large`);
  } finally {
    await plane.stop();
  }
});
