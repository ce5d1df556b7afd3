/** What is written about a request, by level and stage, and what never is. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { type AuditPolicy, compilePolicy, DEFAULT_POLICY } from '../../packages/apiserver/src/audit/policy.ts';
import { NEVER, NO_BYTES } from '../../packages/runtime/src/http/seam.ts';
import { certified, startPlane, type TestPlane } from '../testkit/control-plane.ts';

let plane: TestPlane;
let policy: AuditPolicy = compilePolicy(DEFAULT_POLICY);
// biome-ignore lint/suspicious/noExplicitAny: events are looked into.
let events: any[] = [];
before(async () => {
  plane = await startPlane({
    audit: { policy: (request) => policy(request), sink: { write: (line) => void events.push(JSON.parse(line)) } },
  });
});
after(() => plane.stop());
beforeEach(() => {
  events = [];
});

const ADMIN = ['admin', 'system:masters'] as const;
const rules = (...list: object[]): AuditPolicy =>
  compilePolicy({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: list });
const secret = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name },
  stringData: { password: 'hunter2' },
});

// S-172: By default the audit log has one event without contents for each request; a policy decides otherwise.
test('by default every request is one event without contents; probes are none', async () => {
  policy = compilePolicy(DEFAULT_POLICY);
  await plane.ask('POST /api/v1/namespaces/default/secrets', {
    as: ADMIN,
    body: secret('s'),
    headers: { 'user-agent': 'ua/1', 'audit-id': 'my-id' },
  });
  await plane.ask('GET /readyz', { as: ADMIN });
  assert.equal(events.length, 1);
  const [event] = events;
  assert.deepEqual(Object.keys(event), [
    'kind',
    'apiVersion',
    'level',
    'auditID',
    'stage',
    'requestURI',
    'verb',
    'user',
    'sourceIPs',
    'userAgent',
    'objectRef',
    'responseStatus',
    'requestReceivedTimestamp',
    'stageTimestamp',
    'annotations',
  ]);
  const { requestReceivedTimestamp, stageTimestamp, user, ...rest } = event;
  assert.match(requestReceivedTimestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  assert.ok(stageTimestamp >= requestReceivedTimestamp);
  assert.deepEqual([user.username, user.groups], ['admin', ['system:masters', 'system:authenticated']]);
  assert.deepEqual(rest, {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'Metadata',
    auditID: 'my-id',
    stage: 'ResponseComplete',
    requestURI: '/api/v1/namespaces/default/secrets',
    verb: 'create',
    sourceIPs: ['192.0.2.1'],
    userAgent: 'ua/1',
    objectRef: { resource: 'secrets', namespace: 'default', name: 's', apiVersion: 'v1' },
    responseStatus: { metadata: {}, code: 201 },
    annotations: { 'authorization.k8s.io/decision': 'allow', 'authorization.k8s.io/reason': '' },
  });
  assert.ok(!JSON.stringify(events).includes('hunter2'));
});

test('a refusal, a failed authentication and an impersonation are recorded as such', async () => {
  policy = rules({ level: 'Metadata' });
  await plane.ask('GET /api/v1/secrets', { as: ['jane'] });
  assert.deepEqual(
    events.map(({ stage }) => stage),
    ['RequestReceived', 'ResponseComplete'],
  );
  assert.deepEqual(events[1].annotations, {
    'authorization.k8s.io/decision': 'forbid',
    'authorization.k8s.io/reason': '',
  });
  assert.deepEqual(
    [events[1].responseStatus.status, events[1].responseStatus.reason, events[1].responseStatus.code],
    ['Failure', 'Forbidden', 403],
  );
  events = [];
  await plane.ask('GET /api/v1/pods', { headers: { authorization: 'Bearer wrong' } });
  assert.deepEqual(
    [events.length, events[0].stage, events[0].responseStatus.code, events[0].user],
    [1, 'ResponseStarted', 401, {}],
  );
  events = [];
  await plane.ask('GET /api/v1/pods', { as: ADMIN, headers: { 'impersonate-user': 'jane' } });
  assert.equal(events[0].impersonatedUser, undefined);
  assert.equal(events[1].user.username, 'admin');
  assert.deepEqual(events[1].impersonatedUser, { username: 'jane', groups: ['system:authenticated'] });
});

// S-172
// Compat Priority and fairness, audit, health, metrics, P2, yes: audit events by policy
test('contents are written at their levels, without managedFields where those are not wanted', async () => {
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c1' }, data: { a: 'b' } };
  const post = (name: string) =>
    plane.ask('POST /api/v1/namespaces/default/configmaps', { as: ADMIN, body: { ...body, metadata: { name } } });
  policy = rules({ level: 'Request', omitStages: ['RequestReceived'] });
  await post('c1');
  assert.deepEqual(events[0].requestObject.data, { a: 'b' });
  assert.equal(events[0].responseObject, undefined);
  events = [];
  policy = rules({ level: 'RequestResponse', omitStages: ['RequestReceived'] });
  await post('c2');
  assert.equal(events[0].responseObject.metadata.name, 'c2');
  assert.ok(events[0].responseObject.metadata.managedFields.length > 0);
  events = [];
  policy = rules({ level: 'RequestResponse', omitStages: ['RequestReceived'], omitManagedFields: true });
  await post('c3');
  assert.equal(events[0].responseObject.metadata.managedFields, undefined);
  await plane.ask('PATCH /api/v1/namespaces/default/configmaps/c3', { as: ADMIN, body: { data: { x: 'y' } } });
  assert.deepEqual(events[1].requestObject, { data: { x: 'y' } });
  assert.deepEqual(events[1].responseObject.data, { a: 'b', x: 'y' });
  // Documents that are no resource have no contents at any level.
  events = [];
  await plane.ask('GET /version', { as: ADMIN });
  assert.deepEqual([events[0].verb, events[0].objectRef, events[0].responseObject], ['get', undefined, undefined]);
});

test('a watch is recorded when it starts and when it ends', async () => {
  policy = rules({ level: 'Metadata', omitStages: ['RequestReceived'] });
  const gone = new AbortController();
  const response = await plane.plane.handler({
    method: 'GET',
    path: '/api/v1/pods',
    query: 'watch=1',
    headers: {},
    body: NO_BYTES,
    peer: certified(...ADMIN),
    signal: NEVER,
  });
  assert.deepEqual(
    events.map(({ stage, verb }) => [stage, verb]),
    [['ResponseStarted', 'watch']],
  );
  assert.ok(typeof response.body === 'function');
  response.body({ write: () => true, buffered: 0, drained: async () => {}, end: () => {}, signal: gone.signal });
  gone.abort();
  assert.deepEqual(
    events.map(({ stage }) => stage),
    ['ResponseStarted', 'ResponseComplete'],
  );
});

const request = (over: object) => ({
  user: { username: 'jane', groups: ['devs', 'system:authenticated'] },
  isResource: true,
  verb: 'get',
  path: '/api/v1/namespaces/a/pods/p/log',
  group: '',
  resource: 'pods',
  subresource: 'log',
  namespace: 'a',
  name: 'p',
  ...over,
});
const path = {
  isResource: false,
  path: '/healthz/etcd',
  group: '',
  resource: '',
  subresource: '',
  namespace: '',
  name: '',
};

for (const [rule, over, matches] of [
  [{}, {}, true],
  [{ users: ['jane'] }, {}, true],
  [{ users: ['joe'] }, {}, false],
  [{ userGroups: ['devs'] }, {}, true],
  [{ userGroups: ['ops'] }, {}, false],
  [{ userGroups: ['devs'] }, { user: undefined }, false],
  [{ verbs: ['get', 'list'] }, {}, true],
  [{ verbs: ['delete'] }, {}, false],
  [{ namespaces: ['a'] }, {}, true],
  [{ namespaces: [''] }, {}, false],
  [{ namespaces: [''] }, { namespace: '' }, true],
  [{ resources: [{ group: '', resources: ['pods'] }] }, {}, false],
  [{ resources: [{ group: '', resources: ['pods'] }] }, { subresource: '' }, true],
  [{ resources: [{ group: '', resources: ['pods/log'] }] }, {}, true],
  [{ resources: [{ group: '', resources: ['*/log'] }] }, {}, true],
  [{ resources: [{ group: '', resources: ['pods/*'] }] }, {}, true],
  [{ resources: [{ group: '', resources: ['*'] }] }, {}, true],
  [{ resources: [{ group: 'apps' }] }, {}, false],
  [{ resources: [{ group: '' }] }, {}, true],
  [{ resources: [{ group: '', resources: ['pods/log'], resourceNames: ['q'] }] }, {}, false],
  [{ nonResourceURLs: ['/healthz*'] }, path, true],
  [{ nonResourceURLs: ['/healthz'] }, path, false],
  [{ nonResourceURLs: ['*'] }, {}, false],
  [{ resources: [{ group: '' }] }, path, false],
] as const) {
  test(`rule ${JSON.stringify(rule)} ${matches ? 'matches' : 'does not match'} ${JSON.stringify(over)}`, () => {
    const decide = rules({ level: 'Request', ...rule });
    assert.equal(decide(request(over)).level, matches ? 'Request' : 'None');
  });
}

for (const [document, message] of [
  [[], /an object of kind Policy/],
  [{ kind: 'Policy', apiVersion: 'audit.k8s.io/v1beta1', rules: [{ level: 'None' }] }, /not audit\.k8s\.io\/v1 Policy/],
  [{ kind: 'Policy', apiVersion: 'audit.k8s.io/v1' }, /rules: at least one is needed/],
  [
    { kind: 'Policy', apiVersion: 'audit.k8s.io/v1', rules: [{ level: 'All' }] },
    /rules\[0\]\.level: takes one of None, Metadata/,
  ],
  [
    { kind: 'Policy', apiVersion: 'audit.k8s.io/v1', rules: [{ level: 'None', usrs: ['a'] }] },
    /rules\[0\]\.usrs: no such field/,
  ],
  [
    { kind: 'Policy', apiVersion: 'audit.k8s.io/v1', rules: [{ level: 'None', omitStages: ['Started'] }] },
    /rules\[0\]\.omitStages: takes a list of/,
  ],
  [
    { kind: 'Policy', apiVersion: 'audit.k8s.io/v1', rules: [{ level: 'None', nonResourceURLs: ['/a*b'] }] },
    /may have "\*" only at its end/,
  ],
  [
    {
      kind: 'Policy',
      apiVersion: 'audit.k8s.io/v1',
      rules: [{ level: 'None', namespaces: ['a'], nonResourceURLs: ['/a'] }],
    },
    /cannot have resources or namespaces as well/,
  ],
] as const) {
  test(`a policy is refused: ${message.source}`, () => {
    assert.throws(() => compilePolicy(document), message);
  });
}
