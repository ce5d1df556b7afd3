/** Tokens that are no TokenRequest's: bootstrap tokens, Secrets of service accounts, the token file; and what ends them. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { parseStaticTokens } from '../../packages/apiserver/src/auth/static-tokens.ts';
import { createFakeClock } from '../../packages/runtime/src/clock/fake-clock.fixture.ts';
import { startPlane, TEST_ISSUER, type TestPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';

const clock = createFakeClock(Date.UTC(2030, 0, 1));
const SYSTEM = '/api/v1/namespaces/kube-system/secrets';
const CORE = '/api/v1/namespaces/default';
let plane: TestPlane;
before(async () => {
  plane = await startPlane({ clock, staticTokens: parseStaticTokens('file-token,jane,u1,"devs,ops"\n') });
  await plane.run(['serviceaccount-token-controller'], {
    rootCa: 'PEM',
    keys: { sign: async () => '', signToken: plane.plane.signLegacyToken },
  });
});
after(() => plane.stop());

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const whoIs = async (token: string) => {
  const { status, json } = await plane.ask('POST /apis/authentication.k8s.io/v1/selfsubjectreviews', {
    headers: { authorization: `Bearer ${token}` },
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
  });
  return status === 201 ? json.status.userInfo : status;
};

const bootstrap = (id: string, data: Record<string, string> = {}, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: `bootstrap-token-${id}` },
  type: 'bootstrap.kubernetes.io/token',
  data: Object.fromEntries(
    Object.entries({
      'token-id': id,
      'token-secret': '0123456789abcdef',
      'usage-bootstrap-authentication': 'true',
      ...data,
    }).map(([name, value]) => [name, base64(value)]),
  ),
  ...more,
});

// S-187
// Compat Authentication and impersonation, P1, yes: bootstrap tokens
test('a bootstrap token is its bearer’s identity until it expires or goes', async () => {
  const expiration = new Date(clock.now() + 60_000).toISOString();
  await plane.admin(
    `POST ${SYSTEM}`,
    bootstrap('abcdef', { expiration, 'auth-extra-groups': 'system:bootstrappers:workers' }),
  );
  const token = 'abcdef.0123456789abcdef';
  assert.deepEqual(await whoIs(token), {
    username: 'system:bootstrap:abcdef',
    groups: ['system:bootstrappers', 'system:bootstrappers:workers', 'system:authenticated'],
  });
  assert.equal(await whoIs('abcdef.0123456789abcdeX'.toLowerCase()), 401);
  assert.equal(await whoIs('zzzzzz.0123456789abcdef'), 401);
  await clock.advance(61_000);
  assert.equal(await whoIs(token), 401);
});

test('what a bootstrap token may not be, it is not', async () => {
  for (const [id, secret] of [
    ['aaaaa1', bootstrap('aaaaa1', { 'usage-bootstrap-authentication': 'false' })],
    ['aaaaa2', bootstrap('aaaaa2', { 'auth-extra-groups': 'system:masters' })],
    ['aaaaa3', bootstrap('aaaaa3', {}, { type: 'Opaque' })],
    ['aaaaa4', bootstrap('aaaaa4', { 'token-id': 'other1' })],
    ['aaaaa5', bootstrap('aaaaa5', { expiration: 'tomorrow' })],
  ] as const) {
    await plane.admin(`POST ${SYSTEM}`, secret);
    assert.equal(await whoIs(`${id}.0123456789abcdef`), 401, id);
  }
});

test('its bearer may ask for a certificate of a node, and may do nothing else', async () => {
  await plane.admin(`POST ${SYSTEM}`, bootstrap('joiner'));
  const headers = { authorization: 'Bearer joiner.0123456789abcdef' };
  const status = async (line: string) => (await plane.ask(line, { headers })).status;
  assert.equal(await status('GET /apis/certificates.k8s.io/v1/certificatesigningrequests'), 200);
  assert.equal(await status('GET /api/v1/nodes'), 403);
  assert.equal(await status('GET /api/v1/secrets'), 403);
});

// Compat Authentication and impersonation, P1, yes: static token file
// Compat Authentication and impersonation, P0, yes: TokenReview
test('the token file names its users; TokenReview knows all kinds of tokens', async () => {
  assert.deepEqual(await whoIs('file-token'), {
    username: 'jane',
    uid: 'u1',
    groups: ['devs', 'ops', 'system:authenticated'],
  });
  const review = (spec: object) =>
    plane.admin('POST /apis/authentication.k8s.io/v1/tokenreviews', {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec,
    });
  const { status } = await review({ token: 'file-token' });
  assert.deepEqual([status.authenticated, status.user.username, status.audiences], [true, 'jane', [TEST_ISSUER]]);
  const other = await review({ token: 'file-token', audiences: ['vault'] });
  assert.deepEqual(other.status, { user: {}, error: 'invalid bearer token' });
  for (const [text, message] of [
    ['a,b', /line 1 has 2 columns/],
    ['a,,c', /line 1 has an empty token or user/],
    ['a,b,c\na,d,e', /line 2 has the token of another line/],
    ['a,b,c,"d', /a quoted column has no end/],
  ] as const)
    assert.throws(() => parseStaticTokens(text), message);
});

// S-187: Tokens of Secrets and bootstrap tokens are their bearer's identity until they expire or go.
test('a Secret for a service account is filled with a token that ends with it', async () => {
  await plane.admin(`POST ${CORE}/serviceaccounts`, {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'robot' },
  });
  const make = (name: string) =>
    plane.admin(`POST ${CORE}/secrets`, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, annotations: { 'kubernetes.io/service-account.name': 'robot' } },
      type: 'kubernetes.io/service-account-token',
    });
  const filled = async (name: string): Promise<string> => {
    const { data, metadata } = await eventually(
      async () => {
        await clock.advance(50);
        return plane.admin(`GET ${CORE}/secrets/${name}`);
      },
      (secret) => secret.data?.token !== undefined,
    );
    assert.equal(Buffer.from(data['ca.crt'], 'base64').toString(), 'PEM');
    assert.equal(Buffer.from(data.namespace, 'base64').toString(), 'default');
    assert.ok(metadata.annotations['kubernetes.io/service-account.uid']);
    return Buffer.from(data.token, 'base64').toString();
  };
  await make('one');
  const token = await filled('one');
  assert.equal(JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).exp, undefined);
  const user = await whoIs(token);
  assert.equal(user.username, 'system:serviceaccount:default:robot');
  assert.deepEqual(user.groups, ['system:serviceaccounts', 'system:serviceaccounts:default', 'system:authenticated']);
  await plane.admin(`DELETE ${CORE}/secrets/one`);
  assert.equal(await whoIs(token), 401);
  // Its account goes, and with it the Secret and the token.
  await make('two');
  const second = await filled('two');
  await plane.admin(`DELETE ${CORE}/serviceaccounts/robot`);
  assert.equal(await whoIs(second), 401);
  await eventually(
    async () => {
      await clock.advance(50);
      return plane.ask(`GET ${CORE}/secrets/two`, { as: ['admin', 'system:masters'] });
    },
    ({ status }) => status === 404,
  );
});

// S-187
// Compat Authentication and impersonation, P0, yes: TokenRequest, tokens bound to Pods, Secrets and Nodes
test('tokens bound to a Node and to a Secret end with it', async () => {
  await plane.admin(`POST ${CORE}/serviceaccounts`, {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'bound' },
  });
  await plane.admin('POST /api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } });
  await plane.admin(`POST ${CORE}/secrets`, { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' } });
  const mint = async (spec: object) =>
    (
      await plane.admin(`POST ${CORE}/serviceaccounts/bound/token`, {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec,
      })
    ).status;
  for (const [kind, path] of [
    ['Node', '/api/v1/nodes/n'],
    ['Secret', `${CORE}/secrets/s`],
  ] as const) {
    const { token } = await mint({ boundObjectRef: { kind, apiVersion: 'v1', name: path.split('/').at(-1) } });
    const user = await whoIs(token);
    assert.equal(user.username, 'system:serviceaccount:default:bound');
    if (kind === 'Node') assert.deepEqual(user.extra['authentication.kubernetes.io/node-name'], ['n']);
    await plane.admin(`DELETE ${path}`);
    assert.equal(await whoIs(token), 401, kind);
  }
  // A year for whoever read a mounted token once; the answer still says what was asked for.
  const spec = { serviceAccountName: 'bound', containers: [{ name: 'c', image: 'i' }] };
  const { metadata } = await plane.admin(`POST ${CORE}/pods`, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p' },
    spec,
  });
  const { token, expirationTimestamp } = await mint({
    expirationSeconds: 3607,
    boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'p', uid: metadata.uid },
  });
  const claims = JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString());
  assert.equal(claims.exp - claims.iat, 365 * 86_400);
  assert.equal(claims['kubernetes.io'].warnafter - claims.iat, 3607);
  assert.equal(Date.parse(expirationTimestamp) / 1000 - claims.iat, 3607);
});

test('a token can be asked for by POST alone', async () => {
  const as = ['admin', 'system:masters'] as const;
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences: null } };
  await plane.admin(`POST ${CORE}/serviceaccounts`, {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'asked' },
  });
  const answers = [];
  for (const method of ['POST', 'GET', 'PUT', 'DELETE']) {
    const line = `${method} ${CORE}/serviceaccounts/asked/token`;
    const { status, json } = await plane.ask(line, { as, ...(method !== 'GET' && { body }) });
    answers.push([method, status, json.reason]);
  }
  assert.deepEqual(answers, [
    ['POST', 201, undefined],
    ['GET', 405, 'MethodNotAllowed'],
    ['PUT', 405, 'MethodNotAllowed'],
    ['DELETE', 405, 'MethodNotAllowed'],
  ]);
});
