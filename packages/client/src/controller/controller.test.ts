import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ResourceType } from '../../../apimachinery/src/meta/gvk.ts';
import type { ObjectKey } from '../../../apimachinery/src/meta/object.ts';
import { keyText } from '../../../apimachinery/src/meta/object.ts';
import { conflict, notFound } from '../../../apimachinery/src/meta/status.ts';
import { CONFIG_MAPS, PODS } from '../../../apimachinery/src/types/resource-types.ts';
import type { ConfigMap } from '../../../apimachinery/src/types/types.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { createLogger, type LogRecord } from '../../../runtime/src/log/log.ts';
import { createClient } from '../create-client.ts';
import { createFakeApi } from '../fake-api.fixture.ts';
import { createInformerSet } from '../informer/informer-set.ts';
import { controllerOwner, createController, ownKeys, type ReconcileResult, requeueAfter } from './controller.ts';
import { TerminalError } from './terminal-error.ts';

function harness(reconcile: (key: string, pass: number) => Promise<ReconcileResult>) {
  const clock = createFakeClock();
  const api = createFakeApi([CONFIG_MAPS, PODS] as ResourceType<never>[]);
  const client = createClient(api.handler);
  const informers = createInformerSet(client, { clock });
  const configMaps = informers.of<ConfigMap>(CONFIG_MAPS);
  const passes: string[] = [];
  const logged: LogRecord[] = [];
  const controller = createController({
    name: 'tester',
    client,
    clock,
    log: createLogger((record) => logged.push(record), 'debug'),
    random: () => 0,
    sources: [ownKeys(configMaps), controllerOwner(informers.of(PODS), { group: '', kind: 'ConfigMap' })],
    reconcile: (key: ObjectKey) => {
      passes.push(keyText(key));
      return reconcile(keyText(key), passes.length);
    },
  });
  const stop = new AbortController();
  const run = Promise.all([informers.start(stop.signal), controller.start(stop.signal)]);
  const put = (name: string, more: object = {}) =>
    api.put({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'ns' }, ...more });
  const end = async (): Promise<void> => {
    stop.abort();
    await clock.advance(0);
    await run;
  };
  return { clock, api, passes, logged, put, end, controller };
}

test('changes of own objects and of dependents become passes; a deletion too', async () => {
  const h = harness(async () => {});
  h.put('a');
  await h.clock.advance(1);
  assert.deepEqual(h.passes, ['ns/a']);
  h.api.put({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'p',
      namespace: 'ns',
      ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'a', uid: 'u', controller: true }],
    },
  });
  h.api.put({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'q',
      namespace: 'ns',
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ConfigMap', name: 'b', uid: 'u', controller: true }],
    },
  });
  await h.clock.advance(1);
  assert.deepEqual(h.passes, ['ns/a', 'ns/a']);
  h.api.remove(CONFIG_MAPS, 'ns', 'a');
  await h.clock.advance(1);
  assert.equal(h.passes.length, 3);
  await h.end();
});

test('requeue-after comes back then, a change earlier', async () => {
  const h = harness(async (_key, pass) => (pass === 1 ? requeueAfter(1000) : undefined));
  h.put('a');
  await h.clock.advance(999);
  assert.equal(h.passes.length, 1);
  await h.clock.advance(10);
  assert.equal(h.passes.length, 2);
  await h.end();
});

test('a failed pass is logged once with its id and comes back later and later', async () => {
  const h = harness(async () => Promise.reject(new Error('broken')));
  h.put('a');
  await h.clock.advance(0);
  await h.clock.advance(5);
  await h.clock.advance(10);
  assert.equal(h.passes.length, 3);
  const errors = h.logged.filter((one) => one.level === 'error');
  assert.equal(errors.length, 3);
  assert.deepEqual(
    errors.map((one) => one.fields['retryMs']),
    [5, 10, 20],
  );
  assert.equal(new Set(errors.map((one) => one.fields['reconcileId'])).size, 3);
  assert.equal(errors[0]?.fields['ns'], 'ns');
  await h.end();
});

test('a lost race is retried without an error in the log', async () => {
  const maps = { group: '', resource: 'configmaps' };
  const h = harness(async (_key, pass) => {
    if (pass === 1) throw conflict(maps, 'a');
    // It was deleted before it was written; of another object this would be an error.
    if (pass === 2) throw notFound(maps, 'a');
  });
  h.put('a');
  await h.clock.advance(30);
  assert.equal(h.passes.length, 3);
  assert.deepEqual(
    h.logged.filter((one) => one.level !== 'debug'),
    [],
  );
  await h.end();
});

test('TerminalError is not retried until something changes', async () => {
  const h = harness(async () => Promise.reject(new TerminalError('hopeless')));
  h.put('a');
  await h.clock.advance(2_000_000);
  assert.equal(h.passes.length, 1);
  h.put('a', { data: { x: '1' } });
  await h.clock.advance(1);
  assert.equal(h.passes.length, 2);
  await h.end();
});

test('enqueue() runs a key that no source knows', async () => {
  const h = harness(async () => {});
  h.controller.enqueue({ namespace: '', name: 'cluster-scoped' });
  await h.clock.advance(1);
  assert.equal(h.passes.at(-1), 'cluster-scoped');
  await h.end();
});
