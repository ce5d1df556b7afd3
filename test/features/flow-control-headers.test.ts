import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const ROOT = '/apis/flowcontrol.apiserver.k8s.io/v1';
/** Ends the requests that hold a seat, in the order in which they came. */
const held: (() => void)[] = [];
let arrived = (): void => {};

let server: InProcessServer;
before(async () => {
  server = await startServer({
    // Who asks stands in a header; anybody may do anything.
    authenticate: async ({ headers }) => ({
      username: headers['x-user'] ?? 'admin',
      groups: [
        'system:authenticated',
        ...(headers['x-user'] === undefined ? ['system:masters'] : []),
        ...(headers['x-user']?.startsWith('system:serviceaccount:') ? ['system:serviceaccounts'] : []),
      ],
    }),
    maxInFlight: 1,
    createOnlyHandlers: new Map([
      [
        'authorization.k8s.io/selfsubjectaccessreviews',
        (object) =>
          new Promise((resolve) => {
            held.push(() => resolve(object));
            arrived();
          }),
      ],
    ]),
  });
});
after(() => server.stop());

const uidOf = async (kind: string, name: string): Promise<string> =>
  (await server.request('GET', `${ROOT}/${kind}/${name}`)).json.metadata.uid;

const level = (name: string, limited: object) => ({
  apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
  kind: 'PriorityLevelConfiguration',
  metadata: { name },
  spec: {
    type: 'Limited',
    limited: { nominalConcurrencyShares: 0, lendablePercent: 0, limitResponse: { type: 'Reject' }, ...limited },
  },
});
const schema = (name: string, user: string, levelName = name) => ({
  apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
  kind: 'FlowSchema',
  metadata: { name },
  spec: {
    matchingPrecedence: 1000,
    priorityLevelConfiguration: { name: levelName },
    distinguisherMethod: { type: 'ByUser' },
    rules: [
      {
        subjects: [{ kind: 'User', user: { name: user } }],
        resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'], namespaces: ['*'], clusterScope: true }],
        nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/version', '/apis/*'] }],
      },
    ],
  },
});

const headersFor = async (path: string, user?: string): Promise<(string | undefined)[]> => {
  const { headers } = await server.request('GET', path, user === undefined ? {} : { headers: { 'x-user': user } });
  return [headers['x-kubernetes-pf-flowschema-uid'], headers['x-kubernetes-pf-prioritylevel-uid']];
};

const BUILTIN: readonly (readonly [user: string | undefined, path: string, schema: string, level: string])[] = [
  [undefined, '/api/v1/nodes', 'exempt', 'exempt'],
  ['jane', '/healthz', 'probes', 'exempt'],
  ['jane', '/api/v1/nodes', 'global-default', 'global-default'],
  ['system:serviceaccount:dev:robot', '/api/v1/nodes', 'service-accounts', 'workload-low'],
  ['system:serviceaccount:kube-system:robot', '/api/v1/nodes', 'kube-system-service-accounts', 'workload-high'],
  [
    'system:serviceaccount:kube-system:robot',
    '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x',
    'system-leader-election',
    'leader-election',
  ],
  ['system:kube-scheduler', '/api/v1/pods', 'kube-scheduler', 'workload-high'],
];

for (const [user, path, schemaName, levelName] of BUILTIN) {
  test(`${user ?? 'an administrator'} at ${path} is ${schemaName}`, async () => {
    const expected = [await uidOf('flowschemas', schemaName), await uidOf('prioritylevelconfigurations', levelName)];
    assert.deepEqual(await headersFor(path, user), expected);
  });
}

// S-161: Flow schemas and priority levels that users write are followed; without a seat a request waits where its level
//   has queues, else it is 429.
// Compat Priority and fairness, audit, health, metrics, P1, yes: the matched pair stands in the headers of every answer
test('a pair that a user makes is matched from then on', async () => {
  const pair = await server.create(`${ROOT}/prioritylevelconfigurations`, level('noxu', {}));
  const flow = await server.create(`${ROOT}/flowschemas`, schema('noxu', 'noxu'));
  const uids = [flow, pair].map(({ metadata }) => (metadata as { uid: string }).uid);
  assert.deepEqual(await headersFor('/api/v1/nodes', 'noxu'), uids);
  assert.deepEqual(await headersFor('/apis/apps', 'noxu'), uids);
  assert.notDeepEqual(await headersFor('/metrics', 'noxu'), uids);
  // A refusal and a 404 carry them as well.
  assert.deepEqual(await headersFor('/api/v1/namespaces/default/pods/none', 'noxu'), uids);
});

// Compat Priority and fairness, audit, health, metrics, P1, yes: flow schemas and priority levels exist, come back, and
//   say whether they dangle
test('a schema without its level is dangling, and passed over', async () => {
  const watch = await server.watch(`${ROOT}/flowschemas?watch=1&fieldSelector=metadata.name=lost`);
  await server.create(`${ROOT}/flowschemas`, schema('lost', 'lost', 'no-such-level'));
  const until = async (status: string) => {
    for (;;) {
      const conditions = (await watch.next())?.object.status?.conditions ?? [];
      if (conditions[0]?.status === status) return conditions[0];
    }
  };
  const condition = await until('True');
  assert.deepEqual([condition.type, condition.reason], ['Dangling', 'NotFound']);
  assert.deepEqual((await headersFor('/api/v1/nodes', 'lost'))[0], await uidOf('flowschemas', 'global-default'));
  await server.create(`${ROOT}/prioritylevelconfigurations`, level('no-such-level', {}));
  assert.equal((await until('False')).reason, 'Found');
  watch.close();
});

const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', metadata: {}, spec: {} };
const hold = (user: string) => {
  const reached = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const answer = server.request('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
    headers: { 'x-user': user },
    body: review,
  });
  return { reached, answer };
};

// S-161
// Compat Status, P0, yes: TooManyRequests (429)
// Compat Priority and fairness, audit, health, metrics, P1, yes: a bound of requests in flight by priority level: 429
//   and Retry-After
test('without a seat a request is refused with 429, or waits where its level has queues', async () => {
  await server.create(
    `${ROOT}/prioritylevelconfigurations`,
    level('patient', {
      limitResponse: { type: 'Queue', queuing: { queues: 1, handSize: 1, queueLengthLimit: 1 } },
    }),
  );
  await server.create(`${ROOT}/flowschemas`, schema('patient', 'patient'));
  await server.create(`${ROOT}/prioritylevelconfigurations`, level('brusque', { limitResponse: { type: 'Reject' } }));
  await server.create(`${ROOT}/flowschemas`, schema('brusque', 'brusque'));

  const first = hold('brusque');
  await first.reached;
  const refused = await server.request('GET', '/api/v1/nodes', { headers: { 'x-user': 'brusque' } });
  assert.equal(refused.status, 429);
  assert.equal(refused.headers['retry-after'], '1');
  assert.equal(refused.text, 'Too many requests, please try again later.\n');
  assert.equal(refused.headers['x-kubernetes-pf-flowschema-uid'], await uidOf('flowschemas', 'brusque'));

  const waiting = server.request('GET', '/api/v1/nodes', { headers: { 'x-user': 'patient' } });
  const tooMany = await server.request('GET', '/api/v1/nodes', { headers: { 'x-user': 'patient' } });
  assert.equal(tooMany.status, 429, 'its queue has one place');
  assert.equal((await server.request('GET', '/api/v1/nodes')).status, 200, 'administrators are exempt');
  assert.equal(
    (await server.request('GET', '/version', { headers: { 'x-user': 'jane' } })).status,
    200,
    'another level has seats of its own',
  );

  const { text } = await server.request('GET', '/metrics');
  assert.match(text, /^apiserver_flowcontrol_nominal_limit_seats\{priority_level="workload-low"\} 1$/m);
  assert.match(text, /^apiserver_flowcontrol_current_executing_requests\{priority_level="brusque"\} 1$/m);
  assert.match(text, /^apiserver_flowcontrol_current_inqueue_requests\{priority_level="patient"\} 1$/m);

  held.shift()!();
  assert.equal((await first.answer).status, 201);
  assert.equal((await waiting).status, 200);
});
