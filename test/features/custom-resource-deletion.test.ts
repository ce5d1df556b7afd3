import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { DEFINITIONS, definition, establish } from '../testkit/custom-definitions.ts';
import { type InProcessServer, startServer, type WatchFrame } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer();
  await server.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'other' } });
});
after(() => server.stop());

const BOXES = (namespace: string): string => `/apis/example.com/v1/namespaces/${namespace}/boxs`;
const box = (name: string, more: object = {}) => ({
  apiVersion: 'example.com/v1',
  kind: 'Box',
  metadata: { name, ...more },
});

/** The condition's reason in every state of the definition until it is gone. */
async function reasonsUntilGone(watch: { next(): Promise<WatchFrame | undefined> }): Promise<string[]> {
  const reasons: string[] = [];
  for (;;) {
    const event = await watch.next();
    assert.ok(event, 'the watch goes on');
    const found = event.object.status.conditions?.find((one: { type: string }) => one.type === 'Terminating');
    if (found && reasons.at(-1) !== found.reason) reasons.push(found.reason);
    if (event.type === 'DELETED') return reasons;
  }
}

// S-156: A deleted definition takes its objects first, then its routes; a deletion that was under way is finished at
//   the next start.
// Compat CustomResourceDefinitions, P0, yes: deletion: no new objects, all objects first, then the definition
test('objects go first, in all namespaces, then the definition, its routes and its group', async () => {
  await establish(server, definition({ name: 'box' }));
  await server.create(BOXES('default'), box('a'));
  await server.create(BOXES('other'), box('b'));
  const objects = await server.watch('/apis/example.com/v1/boxs?watch=true&resourceVersion=0');
  await objects.next();
  await objects.next();
  const definitions = await server.watch(`${DEFINITIONS}?watch=true&fieldSelector=metadata.name=boxs.example.com`);
  const answer = await server.request('DELETE', `${DEFINITIONS}/boxs.example.com`);
  assert.equal(answer.status, 200);
  assert.deepEqual(answer.json.metadata.finalizers, ['customresourcecleanup.apiextensions.k8s.io']);
  const reasons = await reasonsUntilGone(definitions);
  assert.deepEqual(reasons, ['InstanceDeletionPending', 'InstanceDeletionInProgress', 'InstanceDeletionCompleted']);
  const events = [await objects.next(), await objects.next()].map((one) => `${one?.type} ${one?.object.metadata.name}`);
  assert.deepEqual(events.sort(), ['DELETED a', 'DELETED b']);
  assert.equal(await objects.next(), undefined, 'the stream ends when the kind is gone');
  assert.equal((await server.request('GET', BOXES('default'))).status, 404);
  assert.equal((await server.request('GET', '/apis/example.com/v1')).status, 404);
  const { json } = await server.request('GET', '/apis');
  assert.ok(!json.groups.some((one: { name: string }) => one.name === 'example.com'));
});

// S-156
test('an object with a finalizer holds the definition back, and nothing new comes meanwhile', async () => {
  await establish(server, definition({ name: 'box' }));
  await server.create(BOXES('default'), box('held', { finalizers: ['example.com/hold'] }));
  const objects = await server.watch(`${BOXES('default')}?watch=true&resourceVersion=0`);
  await objects.next();
  await server.request('DELETE', `${DEFINITIONS}/boxs.example.com`);
  const marked = await objects.next();
  assert.ok(marked?.object.metadata.deletionTimestamp);
  const refused = await server.request('POST', BOXES('default'), { body: box('new') });
  assert.equal(refused.status, 403);
  assert.match(refused.json.message, /create not allowed while custom resource definition is terminating$/);
  assert.equal((await server.request('GET', `${BOXES('default')}/held`)).status, 200);
  const definitions = await server.watch(`${DEFINITIONS}?watch=true&fieldSelector=metadata.name=boxs.example.com`);
  await server.request('PATCH', `${BOXES('default')}/held`, { body: { metadata: { finalizers: null } } });
  const reasons = await reasonsUntilGone(definitions);
  assert.equal(reasons.at(-1), 'InstanceDeletionCompleted');
});

test('the same name can come again, without what was there', async () => {
  await establish(server, definition({ name: 'box' }));
  const { json } = await server.request('GET', BOXES('default'));
  assert.deepEqual(json.items, []);
  await server.create(BOXES('default'), box('fresh'));
});

test('a definition that was never established goes at once', async () => {
  await server.request('POST', DEFINITIONS, {
    body: definition({ name: 'rival', names: { kind: 'Box', listKind: 'RivalList' } }),
  });
  const definitions = await server.watch(`${DEFINITIONS}?watch=true&fieldSelector=metadata.name=rivals.example.com`);
  await server.request('DELETE', `${DEFINITIONS}/rivals.example.com`);
  const reasons = await reasonsUntilGone(definitions);
  assert.equal(reasons.at(-1), 'NeverEstablished');
});
