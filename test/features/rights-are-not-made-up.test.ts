/** Who writes or binds a role must hold what it grants. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { AdmissionPlugin } from '../../packages/apiserver/src/admission/plugin.ts';
import { rbacEscalation, uncovered } from '../../packages/apiserver/src/auth/escalation.ts';
import type { UserInfo } from '../../packages/apiserver/src/auth/identity.ts';
import { createRbac, type Rbac } from '../../packages/apiserver/src/auth/rbac.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const ADMIN: UserInfo = { username: 'root', groups: ['system:masters'] };
const JANE: UserInfo = { username: 'jane', groups: ['dev', 'system:authenticated'] };

let server: InProcessServer;
let rbac: Rbac;
let user: UserInfo = ADMIN;

before(async () => {
  // The plug-in needs the server's own store, which exists once the server does.
  let check: AdmissionPlugin | undefined;
  const late: AdmissionPlugin = {
    name: 'late',
    matches: (...what) => check?.matches(...what) ?? false,
    validate: (attributes) => check!.validate!(attributes),
  };
  server = await startServer({
    authenticate: async () => user,
    authorize: (who, attributes) =>
      // Jane may write RBAC objects; what she may put into them is another question.
      attributes.type === 'resource' && ['escalate', 'bind'].includes(attributes.verb)
        ? rbac.authorize(who, attributes)
        : { allowed: true, reason: '' },
    admission: [late],
  });
  rbac = createRbac(server.store);
  check = rbacEscalation(rbac);
  const role = (name: string, rules: object[], more: object = {}) =>
    server.create(`${RBAC}/clusterroles`, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name },
      rules,
      ...more,
    });
  await role('reader', [{ apiGroups: [''], resources: ['pods', 'pods/log'], verbs: ['get', 'list'] }]);
  await role('strong', [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }]);
  await role('may-bind', [
    {
      apiGroups: ['rbac.authorization.k8s.io'],
      resources: ['clusterroles'],
      verbs: ['bind'],
      resourceNames: ['strong'],
    },
  ]);
  await bind('jane-reads', 'reader');
});
after(async () => {
  rbac.stop();
  await server.stop();
});

const bind = (name: string, role: string) =>
  server.request('POST', `${RBAC}/clusterrolebindings`, {
    body: {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'User', name: 'jane', apiGroup: 'rbac.authorization.k8s.io' }],
    },
  });
const write = (name: string, rules: object[], more: object = {}) =>
  server.request('POST', `${RBAC}/namespaces/default/roles`, {
    body: { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: { name }, rules, ...more },
  });

/** Acts as Jane. */
async function asJane<T>(act: () => Promise<T>): Promise<T> {
  user = JANE;
  try {
    return await act();
  } finally {
    user = ADMIN;
  }
}

// S-135: Nobody hands out rights they do not hold: roles, bindings, and roles that collect others.
// Compat Authorisation, P0, yes: escalation: roles and bindings take what they grant Note: A refusal names at most
//   5,000 missing parts of rules
test('a role may hold what its writer holds, and no more', async () => {
  const held = await asJane(() => write('ok', [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }]));
  assert.equal(held.status, 201, held.text);
  const more = await asJane(() =>
    write('no', [
      { apiGroups: [''], resources: ['pods'], verbs: ['get', 'delete', 'update'] },
      { apiGroups: ['apps'], resources: ['deployments'], verbs: ['get'] },
    ]),
  );
  assert.equal(more.status, 403);
  assert.equal(
    more.json.message,
    'roles.rbac.authorization.k8s.io "no" is forbidden: user "jane" (groups=["dev" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n' +
      '{APIGroups:[""], Resources:["pods"], Verbs:["delete" "update"]}\n' +
      '{APIGroups:["apps"], Resources:["deployments"], Verbs:["get"]}',
  );
});

test('an update is checked like a create, but not one that only a collector would make', async () => {
  await write('grown', [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }], {
    metadata: { name: 'grown', finalizers: ['a.b/c'] },
  });
  const path = `${RBAC}/namespaces/default/roles/grown`;
  const labels = await asJane(() => server.request('PATCH', path, { body: { metadata: { labels: { a: 'b' } } } }));
  assert.equal(labels.status, 403);
  const free = await asJane(() => server.request('PATCH', path, { body: { metadata: { finalizers: null } } }));
  assert.equal(free.status, 200, free.text);
});

// S-135
test('binding takes the rules of the role, or the right to bind it', async () => {
  assert.equal((await asJane(() => bind('one', 'reader'))).status, 201);
  const strong = await asJane(() => bind('two', 'strong'));
  assert.equal(strong.status, 403);
  assert.match(strong.json.message, /\{APIGroups:\["\*"\], Resources:\["\*"\], Verbs:\["\*"\]\}/);
  assert.equal((await asJane(() => bind('three', 'nowhere'))).status, 404);
  await bind('jane-binds', 'may-bind');
  assert.equal((await asJane(() => bind('two', 'strong'))).status, 201);
  await server.request('DELETE', `${RBAC}/clusterrolebindings/two`);
});

// S-135
test('only who may do everything lets a role collect the rules of others', async () => {
  const body = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'collecting' },
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] },
  };
  const refused = await asJane(() => server.request('POST', `${RBAC}/clusterroles`, { body }));
  assert.equal(refused.status, 403);
  assert.match(refused.json.message, /must have cluster-admin privileges to use an aggregationRule/);
});

test('what covers what', async () => {
  const rule = (resources: string[], verbs: string[], resourceNames?: string[]) => ({
    apiGroups: [''],
    resources,
    verbs,
    ...(resourceNames && { resourceNames }),
  });
  const cases: [string, ReturnType<typeof rule>, ReturnType<typeof rule>, number][] = [
    ['the same', rule(['pods'], ['get']), rule(['pods'], ['get']), 0],
    ['any verb', rule(['pods'], ['*']), rule(['pods'], ['get', 'list']), 0],
    ['one verb of two', rule(['pods'], ['get']), rule(['pods'], ['get', 'list']), 1],
    ['a subresource by its parent', rule(['pods'], ['get']), rule(['pods/log'], ['get']), 1],
    ['any parent of a subresource', rule(['*/log'], ['get']), rule(['pods/log'], ['get']), 0],
    ['any resource', rule(['*'], ['get']), rule(['pods/log'], ['get']), 0],
    ['a name out of all', rule(['pods'], ['get']), rule(['pods'], ['get'], ['a']), 0],
    ['all from one name', rule(['pods'], ['get'], ['a']), rule(['pods'], ['get']), 1],
    ['another name', rule(['pods'], ['get'], ['a']), rule(['pods'], ['get'], ['a', 'b']), 1],
  ];
  for (const [name, held, wanted, missing] of cases) {
    assert.equal((await uncovered([held], [wanted])).length, missing, name);
  }
  assert.equal(
    (
      await uncovered(
        [{ verbs: ['get'], nonResourceURLs: ['/api/*'] }],
        [{ verbs: ['get'], nonResourceURLs: ['/api/v1'] }],
      )
    ).length,
    0,
  );
});

test('others are served while very much is compared, and of endless parts the first are reported', async () => {
  const rule = (i: number) => ({ verbs: ['get'], apiGroups: [''], resources: [`r${i}`] });
  const work = uncovered(
    Array.from({ length: 1000 }, (_, i) => rule(i)),
    Array.from({ length: 1001 }, (_, i) => rule(i)),
  );
  let turns = 0;
  let isDone = false;
  const others = (): void => {
    turns++;
    if (!isDone) setImmediate(others);
  };
  setImmediate(others);
  assert.deepEqual(await work, [rule(1000)]);
  isDone = true;
  assert.ok(turns > 10, `${turns} turns`);
  const names = (letter: string) => Array.from({ length: 3000 }, (_, i) => `${letter}${i}`);
  const endless = { verbs: names('v'), apiGroups: names('g'), resources: names('r') };
  assert.equal((await uncovered([], [endless])).length, 5000);
});

test('roles that aggregate aggregating roles hold the rules of all', async () => {
  const role = (name: string, labels: object, more: object) =>
    server.create(`${RBAC}/clusterroles`, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name, labels },
      ...more,
    });
  const collect = (label: string) => ({
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [label]: 'yes' } }] },
  });
  await role('top', {}, collect('to-top'));
  await role('middle', { 'to-top': 'yes' }, collect('to-middle'));
  await role(
    'leaf',
    { 'to-middle': 'yes', 'to-top': 'no' },
    { rules: [{ apiGroups: ['x'], resources: ['y'], verbs: ['get'] }] },
  );
  await bind('jane-top', 'top');
  const decision = rbac.authorize(JANE, {
    type: 'resource',
    verb: 'get',
    group: 'x',
    version: 'v1',
    resource: 'y',
    subresource: '',
    namespace: '',
    name: '',
  });
  assert.equal(decision.allowed, true);
});

test('a role whose collected rules are not written down yet cannot be bound for free', async () => {
  await server.create(`${RBAC}/clusterroles`, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'part', labels: { part: 'yes' } },
    rules: [{ apiGroups: ['z'], resources: ['z'], verbs: ['get'] }],
  });
  await server.create(`${RBAC}/clusterroles`, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'whole' },
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { part: 'yes' } }] },
  });
  const refused = await asJane(() => bind('four', 'whole'));
  assert.equal(refused.status, 403);
  assert.match(refused.json.message, /\{APIGroups:\["z"\], Resources:\["z"\], Verbs:\["get"\]\}/);
});
