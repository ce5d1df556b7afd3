/** Users of an OpenID Connect issuer on a real port, as `coracle up --oidc-issuer-url` believes it. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { encodeBase64Url } from '../../packages/apimachinery/src/meta/base64.ts';
import { OIDC_FLAGS } from '../../packages/coracle/src/cli/access-flags.ts';
import { oidcChoice, oidcSettings } from '../../packages/coracle/src/cli/oidc-choice.ts';
import { createOutbound } from '../../packages/coracle/src/compose/outbound.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { handedOn } from '../testkit/handed-on.ts';
import { startWebhookServer, type WebhookServer } from '../testkit/webhook-server.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const pair = (await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])) as CryptoKeyPair;

let issuer: WebhookServer;
let plane: TestPlane;
let outbound: ReturnType<typeof createOutbound> | undefined;
before(async () => {
  const key = { ...(await crypto.subtle.exportKey('jwk', pair.publicKey)), kid: 'k', use: 'sig', alg: 'ES256' };
  const json = (document: object) => ({ code: 200, text: JSON.stringify(document) });
  issuer = await startWebhookServer({
    '/.well-known/openid-configuration': () => json({ issuer: url(), jwks_uri: `${url()}/keys` }),
    '/keys': () => json({ keys: [key] }),
  });
  const { caFile: _, ...choice } = oidcChoice({
    'oidc-issuer-url': url(),
    'oidc-client-id': 'coracle',
    'oidc-username-prefix': 'oidc:',
    'oidc-groups-claim': 'groups',
    'oidc-signing-algs': 'RS256,ES256',
  })!;
  const oidc = { ...choice, ca: atob(issuer.caBundle) };
  plane = await startPlane({
    oidc,
    connectOutbound: (store) => {
      outbound = createOutbound({ store });
      return outbound.connect;
    },
  });
});
after(async () => {
  await plane.stop();
  outbound?.close();
  await issuer.close();
});
const url = (): string => issuer.url('').replace(/\/$/, '');

async function bearer(claims: object): Promise<{ headers: Record<string, string> }> {
  const part = (value: unknown): string => encodeBase64Url(new TextEncoder().encode(JSON.stringify(value)));
  const all = { iss: url(), aud: 'coracle', exp: Math.floor(Date.now() / 1000) + 600, ...claims };
  const text = `${part({ alg: 'ES256', kid: 'k' })}.${part(all)}`;
  const signature = await crypto.subtle.sign(ALGORITHM, pair.privateKey, new TextEncoder().encode(text));
  return { headers: { authorization: `Bearer ${text}.${encodeBase64Url(new Uint8Array(signature))}` } };
}

const REVIEW = 'POST /apis/authentication.k8s.io/v1/selfsubjectreviews';

// S-229: Users by ID tokens of an OpenID Connect issuer: name and groups come from claims; a token for somebody else,
//   of another issuer, or past its end is nobody's.
// Compat Authentication and impersonation, P2, yes: OIDC: issuer, claims, prefixes, groups, algorithms, as the
//   `--oidc-*` flags say
test('an ID token says who its user is, and RBAC speaks of its groups', async () => {
  const jane = await bearer({ sub: 'jane', groups: ['readers'] });
  const answer = await plane.ask(REVIEW, { ...jane, body: {} });
  assert.equal(answer.status, 201, JSON.stringify(answer.json));
  const { username, groups } = answer.json.status.userInfo;
  assert.deepEqual([username, groups], ['oidc:jane', ['readers', 'system:authenticated']]);
  assert.equal((await plane.ask('GET /api/v1/nodes', jane)).status, 403);
  await plane.admin('POST /apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    metadata: { name: 'readers' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'readers' }],
  });
  assert.equal((await plane.ask('GET /api/v1/nodes', jane)).status, 200);
});

// S-229
test('a token for somebody else is 401, and a TokenReview says so', async () => {
  const other = await bearer({ sub: 'jane', aud: 'other' });
  assert.equal((await plane.ask('GET /api/v1/nodes', other)).status, 401);
  const review = async (headers: Record<string, string>) => {
    const token = headers['authorization']!.slice('Bearer '.length);
    return (await plane.admin('POST /apis/authentication.k8s.io/v1/tokenreviews', { spec: { token } })).status;
  };
  const { authenticated: refused, error } = await review(other.headers);
  assert.equal(refused, undefined);
  assert.equal(
    error,
    '[invalid bearer token, oidc: verify token: oidc: expected audience in ["coracle"] got ["other"]]',
  );
  const { authenticated, user } = await review((await bearer({ sub: 'joe' })).headers);
  assert.deepEqual([authenticated, user.username], [true, 'oidc:joe']);
});

test('the flags are read as kube-apiserver reads them, and handed on as they were', () => {
  const minimal = { 'oidc-issuer-url': 'https://a.test', 'oidc-client-id': 'c' };
  assert.equal(oidcChoice({}), undefined);
  assert.equal(oidcChoice(minimal)?.usernamePrefix, 'https://a.test#');
  assert.equal(oidcChoice({ ...minimal, 'oidc-username-claim': 'email' })?.usernamePrefix, '');
  assert.equal(oidcChoice({ ...minimal, 'oidc-username-prefix': '-' })?.usernamePrefix, '');
  assert.deepEqual(oidcChoice({ ...minimal, 'oidc-required-claim': ['a=b=c'] })?.requiredClaims, { a: 'b=c' });
  assert.throws(() => oidcChoice({ 'oidc-client-id': 'c' }), /--oidc-client-id needs --oidc-issuer-url/);
  assert.throws(() => oidcChoice({ ...minimal, 'oidc-issuer-url': 'http://a.test' }), /takes an https URL/);
  assert.throws(() => oidcChoice({ ...minimal, 'oidc-signing-algs': 'none' }), /"none" is none of RS256/);
  const given = { ...minimal, 'oidc-groups-claim': 'g', 'oidc-ca-file': '/nowhere/ca', 'oidc-username-prefix': '-' };
  const choice = oidcChoice(given)!;
  assert.deepEqual(oidcChoice(handedOn(OIDC_FLAGS, given)), choice);
  assert.throws(() => oidcSettings(choice), /--oidc-ca-file: ENOENT/);
});
