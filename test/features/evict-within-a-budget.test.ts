import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const PODS = '/api/v1/namespaces/default/pods';
const BUDGETS = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';

interface BudgetStatus {
  readonly disruptionsAllowed: number;
  readonly currentHealthy?: number;
  readonly desiredHealthy?: number;
  readonly observedGeneration?: number;
}

let number = 0;

/** A pod in `phase` under as many budgets as there are statuses; returns its name. */
async function podUnder(
  statuses: readonly BudgetStatus[],
  { phase = 'Running', ready = true, policy }: { phase?: string; ready?: boolean; policy?: string } = {},
): Promise<string> {
  const name = `p${number++}`;
  await server.create(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: name } },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  } as never);
  const conditions = [{ type: 'Ready', status: ready ? 'True' : 'False' }];
  await server.request('PATCH', `${PODS}/${name}/status`, { body: { status: { phase, conditions } } });
  for (const [i, status] of statuses.entries()) {
    await server.create(BUDGETS, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: `${name}-${i}` },
      spec: {
        minAvailable: 1,
        selector: { matchLabels: { app: name } },
        ...(policy && { unhealthyPodEvictionPolicy: policy }),
      },
    } as never);
    const full = { observedGeneration: 1, currentHealthy: 2, desiredHealthy: 1, expectedPods: 2, ...status };
    await server.request('PATCH', `${BUDGETS}/${name}-${i}/status`, { body: { status: full } });
  }
  return name;
}

const evict = (name: string, more: object = {}, query = '') =>
  server.request('POST', `${PODS}/${name}/eviction${query}`, {
    body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name }, ...more },
  });
const exists = async (name: string): Promise<boolean> =>
  (await server.request('GET', `${PODS}/${name}`)).status === 200;

test('an eviction takes one disruption from the budget and deletes the pod', async () => {
  const watch = await server.watch(`${PODS}?watch=1&resourceVersion=${server.store.revision()}`);
  const name = await podUnder([{ disruptionsAllowed: 1 }]);
  const { status, json } = await evict(name);
  assert.equal(status, 201);
  assert.equal(json.status, 'Success');
  assert.equal(await exists(name), false);
  const budget = (await server.request('GET', `${BUDGETS}/${name}-0`)).json.status;
  assert.equal(budget.disruptionsAllowed, 0);
  assert.deepEqual(Object.keys(budget.disruptedPods), [name]);
  const allowed = budget.conditions.find((one: { type: string }) => one.type === 'DisruptionAllowed');
  assert.equal(allowed.status, 'False');
  const last = watch.pending().at(-1)!;
  assert.equal(last.type, 'DELETED');
  const target = last.object.status.conditions.find((one: { type: string }) => one.type === 'DisruptionTarget');
  assert.deepEqual([target.status, target.reason], ['True', 'EvictionByEvictionAPI']);
  watch.close();
});

test('an exhausted budget answers 429 with the reason clients look for', async () => {
  const name = await podUnder([{ disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1 }]);
  const { status, json } = await evict(name);
  assert.equal(status, 429);
  assert.equal(json.reason, 'TooManyRequests');
  assert.equal(json.message, "Cannot evict pod as it would violate the pod's disruption budget.");
  assert.deepEqual(json.details.causes, [
    {
      reason: 'DisruptionBudget',
      message: `The disruption budget ${name}-0 needs 1 healthy pods and has 1 currently`,
    },
  ]);
  assert.equal(await exists(name), true);
});

test('a budget that was changed and not counted again answers 429 and says when to come back', async () => {
  const name = await podUnder([{ disruptionsAllowed: 5, observedGeneration: 0 }]);
  const { status, json, headers } = await evict(name);
  assert.equal(status, 429);
  assert.equal(json.details.retryAfterSeconds, 10);
  assert.equal(headers['retry-after'], '10');
});

test('two budgets for one pod are not understood', async () => {
  const name = await podUnder([{ disruptionsAllowed: 1 }, { disruptionsAllowed: 1 }]);
  const { status, json } = await evict(name);
  assert.equal(status, 500);
  assert.match(json.message, /more than one PodDisruptionBudget/);
});

test('pods that disturb nobody need no budget', async (t) => {
  const cases: [string, Parameters<typeof podUnder>[1], boolean, BudgetStatus][] = [
    ['pending', { phase: 'Pending' }, true, { disruptionsAllowed: 0 }],
    ['succeeded', { phase: 'Succeeded' }, true, { disruptionsAllowed: 0 }],
    ['failed', { phase: 'Failed' }, true, { disruptionsAllowed: 0 }],
    ['not ready, enough others', { ready: false }, true, { disruptionsAllowed: 0 }],
    ['not ready, too few others', { ready: false }, false, { disruptionsAllowed: 0, currentHealthy: 0 }],
    [
      'not ready, always allowed',
      { ready: false, policy: 'AlwaysAllow' },
      true,
      { disruptionsAllowed: 0, currentHealthy: 0 },
    ],
  ];
  for (const [title, pod, gone, budget] of cases) {
    await t.test(title, async () => {
      const name = await podUnder([budget], pod);
      assert.equal((await evict(name)).status, gone ? 201 : 429);
      assert.equal(await exists(name), !gone);
    });
  }
});

test('a dry run asks the budget and changes nothing', async () => {
  const name = await podUnder([{ disruptionsAllowed: 1 }]);
  assert.equal((await evict(name, {}, '?dryRun=All')).status, 201);
  assert.equal(await exists(name), true);
  assert.equal((await server.request('GET', `${BUDGETS}/${name}-0`)).json.status.disruptionsAllowed, 1);
});

test('preconditions of the eviction hold', async () => {
  const name = await podUnder([]);
  const wrong = await evict(name, { deleteOptions: { preconditions: { uid: 'other' } } });
  assert.equal(wrong.status, 409);
  const { resourceVersion } = (await server.request('GET', `${PODS}/${name}`)).json.metadata;
  const stale = await evict(name, { deleteOptions: { preconditions: { resourceVersion: '1' } } });
  assert.equal(stale.status, 409);
  const right = await evict(name, { deleteOptions: { preconditions: { resourceVersion } } });
  assert.equal(right.status, 201, right.text);
  assert.equal(await exists(name), false);
});
