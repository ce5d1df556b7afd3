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
  });
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
    });
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

// S-130: An eviction asks the disruption budget, whose status follows the Pods.
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

// S-130
// Compat Pods, nodes, drain, P0, yes: eviction within budgets
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

// S-235: The cause of an eviction's 429 says why the budget allows nothing; a budget that was changed and not counted
//   again says when to come back.
// Compat Pods, nodes, drain, P1, yes: the cause of an eviction's 429 in upstream's words
test('the cause of a 429 says why the budget allows nothing', async (t) => {
  const none = (name: string): string => `The disruption budget ${name}-0 does not allow evicting pods currently`;
  const condition = (reason: string, message: string) => [
    { type: 'DisruptionAllowed', status: 'False', reason, message, lastTransitionTime: '2030-01-01T00:00:00Z' },
  ];
  const cases: [string, object, (name: string) => string][] = [
    [
      'its pods could not be counted',
      { currentHealthy: 0, desiredHealthy: 1, conditions: condition('SyncFailed', 'nobody says how many') },
      (name) => `${none(name)} because it failed sync: nobody says how many`,
    ],
    [
      'too few are healthy',
      { currentHealthy: 1, desiredHealthy: 2, conditions: condition('InsufficientPods', '') },
      (name) => `The disruption budget ${name}-0 needs 2 healthy pods and has 1 currently`,
    ],
    [
      'enough are healthy, and somebody says why not',
      { currentHealthy: 3, desiredHealthy: 1, conditions: condition('Held', 'by hand') },
      (name) => `${none(name)} (Held): by hand`,
    ],
    ['enough are healthy', { currentHealthy: 3, desiredHealthy: 1 }, none],
  ];
  for (const [title, status, message] of cases)
    await t.test(title, async () => {
      const name = await podUnder([{ disruptionsAllowed: 0, ...status }]);
      const answer = await evict(name);
      assert.equal(answer.status, 429);
      assert.deepEqual(answer.json.details.causes, [{ reason: 'DisruptionBudget', message: message(name) }]);
    });
});

// S-235
test('a pod that disturbs nobody gets the reason why it goes too, and one that began meanwhile is asked about', async () => {
  const watch = await server.watch(`${PODS}?watch=1&resourceVersion=${server.store.revision()}`);
  for (const phase of ['Pending', 'Succeeded']) {
    const name = await podUnder([], { phase });
    assert.equal((await evict(name)).status, 201);
    const last = watch.pending().at(-1)!;
    const target = last.object.status.conditions.find((one: { type: string }) => one.type === 'DisruptionTarget');
    assert.deepEqual([last.type, target?.reason], ['DELETED', 'EvictionByEvictionAPI'], phase);
  }
  watch.close();
  // As it was asked for: that pod is another by now.
  const name = await podUnder([], { phase: 'Pending' });
  const stale = await evict(name, { deleteOptions: { preconditions: { resourceVersion: '1' } } });
  assert.equal(stale.status, 409);
  assert.equal(await exists(name), true);
});

// S-272
test('an eviction names its pod', async () => {
  const name = await podUnder([]);
  const { status, json } = await evict(name, { metadata: { name: 'other' } });
  assert.deepEqual([status, json.message], [400, 'name in URL does not match name in Eviction object']);
  assert.equal((await evict(name, { metadata: {} })).json.message, json.message, 'nothing is filled in');
});

// S-235
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

// S-272
// Compat Pods, nodes, drain, P1, yes: preconditions of an eviction
test('preconditions of the eviction hold', async () => {
  const name = await podUnder([]);
  const wrong = await evict(name, { deleteOptions: { preconditions: { uid: 'other' } } });
  assert.equal(wrong.status, 409);
  assert.match(
    wrong.json.message,
    /^Operation cannot be fulfilled on Pod ".*": the UID in the precondition \(other\) does not match the UID in record \(.*\)\. /,
  );
  const { resourceVersion } = (await server.request('GET', `${PODS}/${name}`)).json.metadata;
  const stale = await evict(name, { deleteOptions: { preconditions: { resourceVersion: '1' } } });
  assert.equal(stale.status, 409);
  assert.match(
    stale.json.message,
    /the ResourceVersion in the precondition \(1\) does not match the ResourceVersion in/,
  );
  const right = await evict(name, { deleteOptions: { preconditions: { resourceVersion } } });
  assert.equal(right.status, 201, right.text);
  assert.equal(await exists(name), false);
});

test('an empty selector is about every pod of the namespace, no selector about none', async () => {
  await server.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'all' } });
  const [pods, budgets] = [PODS, BUDGETS].map((path) => path.replace('/default/', '/all/')) as [string, string];
  await server.create(pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p' },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  });
  await server.request('PATCH', `${pods}/p/status`, { body: { status: { phase: 'Running' } } });
  for (const [name, spec] of [
    ['none', { minAvailable: 1 }],
    ['every', { minAvailable: 1, selector: {} }],
  ] as const) {
    await server.create(budgets, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name },
      spec,
    });
    const status = {
      observedGeneration: 1,
      disruptionsAllowed: 0,
      currentHealthy: 0,
      desiredHealthy: 1,
      expectedPods: 1,
    };
    await server.request('PATCH', `${budgets}/${name}/status`, { body: { status } });
  }
  const { status, json } = await server.request('POST', `${pods}/p/eviction`, {
    body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'p' } },
  });
  assert.equal(status, 429);
  assert.match(json.details.causes[0].message, /The disruption budget every needs 1 healthy pods/);
});
