/** Authorization webhooks on a real port, found through files as `coracle up` is given them. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { AUTHORIZATION_FLAGS } from '../../packages/coracle/src/cli/access-flags.ts';
import { authorizationChoice } from '../../packages/coracle/src/cli/authorization-choice.ts';
import { openAuthorizers } from '../../packages/coracle/src/cli/open-authorizers.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';
import { handedOn } from '../testkit/handed-on.ts';
import { type Review, startWebhookServer, type WebhookServer } from '../testkit/webhook-server.ts';

const folder = mkdtempSync(join(tmpdir(), 'coracle-authorization-'));
const [kubeconfig, config] = [join(folder, 'kubeconfig'), join(folder, 'config.yaml')];
let hook: WebhookServer;
let plane: TestPlane;
let authorizers: Awaited<ReturnType<typeof openAuthorizers>>;
/** What the webhook says; by what is asked. */
let say: (spec: Review) => object | number = () => ({ allowed: false });

const hookOf = (more: object = {}) => ({
  type: 'Webhook',
  name: 'hook',
  webhook: {
    timeout: '30s',
    subjectAccessReviewVersion: 'v1',
    failurePolicy: 'NoOpinion',
    cacheAuthorizedRequests: false,
    cacheUnauthorizedRequests: false,
    connectionInfo: { type: 'KubeConfigFile', kubeConfigFile: kubeconfig },
    ...more,
  },
});
const REJECTED = 'the server rejected our request for an unknown reason';
const NODE = { type: 'Node', name: 'node' };
const RBAC = { type: 'RBAC', name: 'rbac' };
const write = (...list: object[]) =>
  writeFileSync(
    config,
    JSON.stringify({
      apiVersion: 'apiserver.config.k8s.io/v1',
      kind: 'AuthorizationConfiguration',
      authorizers: list,
    }),
  );
/** Puts another configuration in the file's place, and waits until it counts. */
async function replace(...list: object[]): Promise<void> {
  const before = authorizers.current();
  write(...list);
  await eventually(
    async () => authorizers.current(),
    (now) => now !== before,
  );
}

before(async () => {
  hook = await startWebhookServer({
    '/authorize': ({ kind, apiVersion, spec }: Review) => {
      const said = say(spec);
      if (typeof said === 'number') return { code: said, text: '{}' };
      return { code: 200, text: JSON.stringify({ kind, apiVersion, status: said }) };
    },
  });
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      clusters: [
        { name: 'hook', cluster: { server: hook.url('/authorize'), 'certificate-authority-data': hook.caBundle } },
      ],
      users: [{ name: 'me', user: { token: 'own' } }],
      contexts: [{ name: 'hook', context: { cluster: 'hook', user: 'me' } }],
      'current-context': 'hook',
    }),
  );
  write(NODE, RBAC, hookOf());
  authorizers = await openAuthorizers(authorizationChoice({ 'authorization-config': config })!, {
    clock: systemClock,
    log: silentLogger,
  });
  plane = await startPlane({ authorizers: authorizers.current });
});
after(async () => {
  authorizers.stop();
  await plane.stop();
  await hook.close();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  hook.calls.length = 0;
  say = () => ({ allowed: false });
});

const jane = { as: ['jane', 'staff'] } as const;
const asked = () => hook.calls.map(({ body }) => body.spec.resourceAttributes ?? body.spec.nonResourceAttributes);

// S-287
// Compat Authorisation, P2, yes: webhook authorisation: `--authorization-mode`, `--authorization-webhook-*`,
//   `--authorization-config` with match conditions, failure policy, reload
test('what nobody before allows is asked, and its answer counts', async () => {
  say = ({ resourceAttributes }) =>
    resourceAttributes?.resource === 'pods' ? { allowed: true } : { allowed: false, reason: 'not on a Sunday' };
  const pods = await plane.ask('GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn1', jane);
  assert.equal(pods.status, 200, JSON.stringify(pods.json));
  const [{ path, body }] = hook.calls as [WebhookServer['calls'][0]];
  assert.equal(path, '/authorize?timeout=30s');
  assert.deepEqual(
    [body.apiVersion, body.spec.user, body.spec.groups],
    ['authorization.k8s.io/v1', 'jane', ['staff', 'system:authenticated']],
  );
  assert.deepEqual(body.spec.resourceAttributes, {
    verb: 'list',
    version: 'v1',
    resource: 'pods',
    fieldSelector: { requirements: [{ key: 'spec.nodeName', operator: 'In', values: ['n1'] }] },
  });
  const secrets = await plane.ask('GET /api/v1/secrets', jane);
  assert.equal(secrets.status, 403);
  assert.equal(
    secrets.json.message,
    'secrets is forbidden: User "jane" cannot list resource "secrets" in API group "" at the cluster scope: not on a Sunday',
  );
});

// S-287
test('what RBAC allows, and members of system:masters, are not its business', async () => {
  assert.equal((await plane.ask('GET /version', jane)).status, 200);
  await plane.admin('GET /api/v1/secrets');
  assert.deepEqual(hook.calls, []);
});

// S-287
test('a webhook that fails makes no refusal but an error, in upstream`s words', async () => {
  say = () => 400;
  const { status, headers, response } = await plane.ask('GET /api/v1/secrets?limit=1', jane);
  assert.equal(status, 500);
  assert.equal(headers['content-type'], 'text/plain; charset=utf-8');
  assert.equal(
    new TextDecoder().decode(response.body as Uint8Array),
    `Internal Server Error: "/api/v1/secrets?limit=1": ${REJECTED}\n`,
  );
  const review = await plane.admin('POST /apis/authorization.k8s.io/v1/subjectaccessreviews', {
    spec: { user: 'jane', resourceAttributes: { verb: 'get', resource: 'pods' } },
  });
  assert.deepEqual(review.status, { allowed: false, evaluationError: REJECTED });
});

test('reviews ask it as well, and say what is a denial; rules alone are not the whole truth', async () => {
  say = () => ({ allowed: false, denied: true, reason: 'never' });
  const own = (resource: string) => `POST /apis/authorization.k8s.io/v1/${resource}`;
  const body = { spec: { resourceAttributes: { verb: 'get', resource: 'pods' } } };
  const review = await plane.ask(own('selfsubjectaccessreviews'), { ...jane, body });
  assert.deepEqual(review.json.status, { allowed: false, denied: true, reason: 'never' });
  const rules = await plane.ask(own('selfsubjectrulesreviews'), { ...jane, body: { spec: { namespace: 'default' } } });
  const { incomplete, evaluationError } = rules.json.status;
  assert.deepEqual([incomplete, evaluationError], [true, 'webhook authorizer does not support user rule resolution']);
});

// S-287
test('rights beyond the request itself are asked too: creation by PUT and apply, escalation, impersonation', async () => {
  const allowed = new Set(['update', 'patch']);
  say = ({ resourceAttributes: { verb } }) => ({ allowed: allowed.has(verb) });
  const lease = { metadata: { name: 'a' } };
  const path = '/apis/coordination.k8s.io/v1/namespaces/default/leases/a';
  assert.equal((await plane.ask(`PUT ${path}`, { ...jane, body: lease })).status, 403);
  assert.deepEqual(
    asked().map(({ verb }) => verb),
    ['update', 'create'],
  );
  allowed.add('create');
  assert.equal((await plane.ask(`PUT ${path}`, { ...jane, body: lease })).status, 201);
  const role = { metadata: { name: 'strong' }, rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }] };
  const roles = 'POST /apis/rbac.authorization.k8s.io/v1/clusterroles';
  assert.equal((await plane.ask(roles, { ...jane, body: role })).status, 403);
  allowed.add('escalate');
  assert.equal((await plane.ask(roles, { ...jane, body: role })).status, 201);
  const as = { ...jane, headers: { 'impersonate-user': 'admin' } };
  allowed.add('list');
  assert.equal((await plane.ask('GET /api/v1/pods', as)).status, 403);
  allowed.add('impersonate');
  assert.equal((await plane.ask('GET /api/v1/pods', as)).status, 200);
});

// S-291: A policy's expression gets the answer of an authorizer that has to be waited for.
test('an expression of a policy gets its answer, though it cannot wait for it', async () => {
  const group = '/apis/admissionregistration.k8s.io/v1';
  const match = {
    resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] }],
  };
  const mayFly = `authorizer.group('air.test').resource('planes').namespace('default').check('fly').allowed()`;
  await plane.admin(`POST ${group}/validatingadmissionpolicies`, {
    metadata: { name: 'fly' },
    spec: {
      matchConstraints: match,
      matchConditions: [{ name: 'asks', expression: `authorizer.path('/sky').check('get').allowed()` }],
      variables: [{ name: 'flies', expression: mayFly }],
      validations: [{ expression: 'variables.flies || variables.flies', message: 'you may not fly' }],
    },
  });
  await plane.admin(`POST ${group}/validatingadmissionpolicybindings`, {
    metadata: { name: 'fly' },
    spec: { policyName: 'fly', validationActions: ['Deny'] },
  });
  await plane.admin(`POST ${group}/mutatingadmissionpolicies`, {
    metadata: { name: 'mark' },
    spec: {
      matchConstraints: match,
      failurePolicy: 'Fail',
      reinvocationPolicy: 'Never',
      mutations: [
        {
          patchType: 'ApplyConfiguration',
          applyConfiguration: {
            expression: `Object{metadata: Object.metadata{labels: {'flies': string(${mayFly})}}}`,
          },
        },
      ],
    },
  });
  await plane.admin(`POST ${group}/mutatingadmissionpolicybindings`, {
    metadata: { name: 'mark' },
    spec: { policyName: 'mark' },
  });
  let flies = false;
  say = ({ resourceAttributes }) => ({ allowed: resourceAttributes?.verb === 'fly' ? flies : true });
  const create = (name: string) =>
    plane.ask('POST /api/v1/namespaces/default/configmaps', { ...jane, body: { metadata: { name } } });
  const refused = await eventually(
    () => create('a'),
    ({ status }) => status !== 201,
  );
  assert.equal(refused.status, 422, JSON.stringify(refused.json));
  assert.match(refused.json.message, /you may not fly$/);
  const questions = asked().filter(({ verb }) => verb === 'fly');
  assert.deepEqual(questions.at(-1), {
    namespace: 'default',
    verb: 'fly',
    group: 'air.test',
    version: '*',
    resource: 'planes',
  });
  flies = true;
  const created = await create('b');
  assert.equal(created.status, 201, JSON.stringify(created.json));
  assert.deepEqual(created.json.metadata.labels, { flies: 'true' });
  for (const kind of ['validatingadmissionpolicies/fly', 'mutatingadmissionpolicies/mark']) {
    await plane.admin(`DELETE ${group}/${kind}`);
  }
});

// S-290: Such a file is followed; a bad one changes nothing.
test('the file is followed: order, conditions and failure policy become what it says now', async () => {
  const condition = { expression: `request.user != 'joe'` };
  await replace(
    hookOf({ failurePolicy: 'Deny', matchConditionSubjectAccessReviewVersion: 'v1', matchConditions: [condition] }),
    NODE,
    RBAC,
  );
  say = () => ({ allowed: false, denied: true, reason: 'closed' });
  const refused = await plane.ask('GET /version', jane);
  assert.equal(refused.status, 403, 'a denial beats those behind it');
  assert.equal(refused.json.message, 'forbidden: User "jane" cannot get path "/version": closed');
  assert.equal((await plane.ask('GET /version', { as: ['joe'] })).status, 200);
  say = () => 400;
  assert.equal((await plane.ask('GET /version', jane)).status, 500);

  // One that is no good changes nothing.
  const before = authorizers.current();
  write(RBAC);
  await new Promise((resolve) => setTimeout(resolve, 150));
  assert.equal(authorizers.current(), before);
  await replace({ type: 'AlwaysAllow', name: 'alwaysallow' }, NODE, RBAC);
  assert.equal((await plane.ask('GET /api/v1/secrets', jane)).status, 200);
  await replace(NODE, RBAC, hookOf());
  assert.equal((await plane.ask('GET /version', jane)).status, 200);
});

const FILE = 'authorization-webhook-config-file';
const tools = { clock: systemClock, log: silentLogger };

test('the flags make the same of a webhook, which is asked in v1beta1', async () => {
  const choice = authorizationChoice({ 'authorization-mode': 'Node,RBAC,Webhook', [FILE]: kubeconfig })!;
  const opened = await openAuthorizers(choice, tools);
  const other = await startPlane({ authorizers: opened.current });
  try {
    say = () => ({ allowed: true });
    assert.equal((await other.ask('GET /api/v1/secrets', jane)).status, 200);
    assert.equal((await other.ask('GET /api/v1/secrets', jane)).status, 200);
    assert.equal(hook.calls.length, 1, 'remembered');
    const { apiVersion, spec } = hook.calls[0]!.body;
    assert.deepEqual([apiVersion, spec.group], ['authorization.k8s.io/v1beta1', ['staff', 'system:authenticated']]);
  } finally {
    await other.stop();
  }
});

test('the flags are checked, and handed on as they were', async () => {
  const mode = (text: string, more: object = {}) => authorizationChoice({ 'authorization-mode': text, ...more });
  assert.equal(authorizationChoice({}), undefined);
  const given = { [FILE]: '/nowhere', 'authorization-webhook-cache-authorized-ttl': '90s' };
  const choice = mode('Webhook,RBAC', given)!;
  const webhook = { file: '/nowhere', version: 'v1beta1', authorizedMs: 90_000, unauthorizedMs: 30_000 };
  assert.deepEqual(choice, { modes: ['Webhook', 'RBAC'], webhook });
  const again = handedOn(AUTHORIZATION_FLAGS, { 'authorization-mode': 'Webhook,RBAC', ...given });
  assert.deepEqual(authorizationChoice(again), choice);
  assert.throws(() => mode('Magic'), /^Error: authorization-mode "Magic" is not a valid mode$/);
  assert.throws(() => mode('RBAC,RBAC'), /authorization-mode \["RBAC" "RBAC"\] has mode specified more than once/);
  assert.throws(() => mode('Webhook'), /authorization-mode Webhook's authorization config file not passed/);
  assert.throws(() => mode('RBAC', { [FILE]: 'x' }), /cannot specify --authorization-webhook-config-file without mode/);
  assert.throws(
    () => mode('RBAC', { 'authorization-config': 'x' }),
    /--authorization-config can not be specified when --authorization-mode or --authorization-webhook-\* flags are defined/,
  );
  await assert.rejects(openAuthorizers(choice, tools), /--authorization-webhook-config-file: no kubeconfig at/);
  const missing = authorizationChoice({ 'authorization-config': join(folder, 'none') })!;
  await assert.rejects(openAuthorizers(missing, tools), /^Error: --authorization-config: .*none: ENOENT/);
});
