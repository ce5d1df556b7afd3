/** Threat 27: somebody who asks a hundred times as much as others is queued and refused; the others are answered. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { MAX_BEHIND_MS, MAX_BUFFERED_BYTES } from '../../packages/apiserver/src/endpoints/watch-stream.ts';
import type { Backend } from '../../packages/apiserver/src/storage/backend.ts';
import { createMemoryBackend } from '../../packages/apiserver/src/storage/memory-backend.ts';
import { createFakeClock } from '../../packages/runtime/src/clock/fake-clock.fixture.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';

let testPlane: TestPlane;
let slow = false;
before(async () => {
  const disk = createMemoryBackend();
  const backend: Backend = {
    ...disk,
    async commit(rows) {
      if (slow) await new Promise((done) => setTimeout(done, 10));
      await disk.commit(rows);
    },
  };
  testPlane = await startPlane({ backend });
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  for (const name of ['greedy', 'modest']) {
    await testPlane.admin('POST /api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    await testPlane.admin(`POST ${rbac}/namespaces/${name}/rolebindings`, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'admin' },
      subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name }],
    });
  }
});
after(() => testPlane.stop());

const write = (who: string, at: number): Promise<number> =>
  testPlane
    .ask(`POST /api/v1/namespaces/${who}/configmaps`, {
      as: [who],
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `m${at}` } },
    })
    .then(({ status }) => status);

// S-216: Somebody who asks a hundred times as much as others is queued; the others are answered.
test('4,000 writes at once by one, 20 by another: the 20 are answered long before the 4,000 are', {
  timeout: 600_000,
}, async () => {
  slow = true;
  let answered = 0;
  const flood = Array.from({ length: 4000 }, (_, at) => write('greedy', at).finally(() => answered++));
  await new Promise((done) => setImmediate(done));
  for (let at = 0; at < 20; at++) assert.equal(await write('modest', at), 201);
  const behind = 4000 - answered;
  slow = false;
  const statuses = await Promise.all(flood);
  assert.ok(
    statuses.every((status) => status === 201 || status === 429),
    String([...new Set(statuses)]),
  );
  const refused = statuses.filter((status) => status === 429).length;
  assert.ok(behind > 0 || refused > 0, 'the flood was never held back');
});

test('watches that nobody reads are ended, and keep nothing but their place', { timeout: 600_000 }, async () => {
  const clock = createFakeClock();
  const plane = await startPlane({ clock });
  const path = '/api/v1/namespaces/default/configmaps';
  let dropped = 0;
  let held = 0;
  const stop = new AbortController();
  for (let i = 0; i < 50; i++) {
    const { response } = await plane.ask(`GET ${path}?watch=1`, { as: ['greedy', 'system:masters'] });
    assert.equal(typeof response.body, 'function');
    if (typeof response.body !== 'function') return;
    let buffered = 0;
    response.body({
      get buffered() {
        return buffered;
      },
      signal: stop.signal,
      drained: () => new Promise(() => {}),
      write(chunk) {
        buffered += chunk.byteLength;
        held += chunk.byteLength;
        return false;
      },
      end() {
        dropped++;
      },
    });
  }
  const data = { a: 'x'.repeat(100_000) };
  for (let at = 0; at < 30; at++)
    await plane.admin(`POST ${path}`, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `w${at}` }, data });
  await clock.advance(MAX_BEHIND_MS + 1000);
  await plane.admin(`POST ${path}`, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'after' } });
  assert.equal(dropped, 50, 'readers that stay behind are let go');
  assert.ok(held <= 50 * MAX_BUFFERED_BYTES);
  stop.abort();
  await plane.stop();
});
