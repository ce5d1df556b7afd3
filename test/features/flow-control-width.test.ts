/** Requests that keep the server busy take more than one seat of their priority level. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createFakeClock } from '../../packages/runtime/src/clock/fake-clock.fixture.ts';
import { type Answer, type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const ROOT = '/apis/flowcontrol.apiserver.k8s.io/v1';
const MAPS = '/api/v1/namespaces/default/configmaps';
const REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
/** Ends the request that holds a seat. */
let letGo = (): void => {};
let arrived = (): void => {};

const clock = createFakeClock();
let server: InProcessServer;
before(async () => {
  server = await startServer({
    clock,
    authenticate: async ({ headers }) => ({
      username: headers['x-user'] ?? 'admin',
      groups: ['system:authenticated', ...(headers['x-user'] === undefined ? ['system:masters'] : [])],
    }),
    maxInFlight: 4,
    createOnlyHandlers: new Map([
      [
        'authorization.k8s.io/selfsubjectaccessreviews',
        (object) =>
          new Promise((resolve) => {
            letGo = () => resolve(object);
            arrived();
          }),
      ],
    ]),
  });
  // Seats that nobody else uses are all this level has; it does not wait for them.
  await server.create(`${ROOT}/prioritylevelconfigurations`, {
    apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
    kind: 'PriorityLevelConfiguration',
    metadata: { name: 'brusque' },
    spec: { type: 'Limited', limited: { nominalConcurrencyShares: 0, limitResponse: { type: 'Reject' } } },
  });
  await server.create(`${ROOT}/flowschemas`, {
    apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
    kind: 'FlowSchema',
    metadata: { name: 'brusque' },
    spec: {
      matchingPrecedence: 1000,
      priorityLevelConfiguration: { name: 'brusque' },
      rules: [
        {
          subjects: [{ kind: 'User', user: { name: 'user' } }],
          resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'], namespaces: ['*'], clusterScope: true }],
        },
      ],
    },
  });
  for (let i = 0; i < 5; i++) await server.create(MAPS, map(`m${i}`, 'x'.repeat(99_000)));
});
after(() => server.stop());

const map = (name: string, text: string) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data: { text },
});
const asUser = (method: string, path: string, body?: unknown): Promise<Answer> =>
  server.request(method, path, { headers: { 'x-user': 'user' }, ...(body !== undefined && { body }) });
const status = async (path: string): Promise<number> => (await asUser('GET', path)).status;
const executing = async (): Promise<(string | undefined)[]> => {
  const { text } = await server.request('GET', '/metrics');
  return ['requests', 'seats'].map(
    (what) =>
      new RegExp(`^apiserver_flowcontrol_current_executing_${what}\\{priority_level="brusque"\\} (\\d+)$`, 'm').exec(
        text,
      )?.[1],
  );
};

// S-228: A long list takes more seats of its priority level than one object, and a write that many watch keeps its
//   seats longer.
// Compat Priority and fairness, audit, health, metrics, P1, yes: lists and writes that many watch take more seats, or
//   keep them longer
test('a list takes a seat for each 100 kB, one object and a short page take one', async () => {
  const reached = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const held = asUser('POST', REVIEWS, {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: {},
  });
  await reached;
  assert.deepEqual(await executing(), ['1', '1']);
  assert.equal(await status(MAPS), 429, 'five seats beside the one that is taken');
  assert.equal(await status(`${MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`), 429);
  assert.equal(await status(`${MAPS}?limit=2`), 200);
  assert.equal(await status(`${MAPS}?fieldSelector=metadata.name%3Dm1`), 200);
  assert.equal(await status(`${MAPS}/m1`), 200);
  assert.equal(await status('/api/v1/secrets'), 200, 'there are none');
  const watch = await server.watch(`${MAPS}?watch=1`, { headers: { 'x-user': 'user' } });
  assert.equal(watch.status, 200);
  watch.close();
  letGo();
  assert.equal((await held).status, 201);
  assert.equal(await status(MAPS), 200, 'what is wider than its level runs alone');
});

// S-228
test('a write that many watch keeps its seats a little longer than the request', async () => {
  const watches = await Promise.all(
    Array.from({ length: 25 }, () => server.watch(`${MAPS}?watch=1&resourceVersion=1`)),
  );
  const elsewhere = await asUser('POST', '/api/v1/namespaces/default/secrets', {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 's' },
  });
  assert.equal(elsewhere.status, 201);
  assert.deepEqual(await executing(), ['0', '0'], 'nobody watches those');
  assert.equal((await asUser('POST', MAPS, map('watched', 'x'))).status, 201);
  assert.deepEqual(await executing(), ['0', '3']);
  assert.equal(await status(`${MAPS}?limit=2`), 429, 'one seat is left');
  assert.equal(await status(`${MAPS}/m1`), 200);
  await clock.advance(5);
  assert.deepEqual(await executing(), ['0', '0']);
  for (const watch of watches) watch.close();
  assert.equal((await asUser('DELETE', `${MAPS}/watched`)).status, 200);
  assert.deepEqual(await executing(), ['0', '0'], 'the watchers have gone');
});
