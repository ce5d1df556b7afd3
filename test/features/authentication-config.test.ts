/** Several issuers on real ports, described by a file as `coracle up --authentication-config` is given it. */
import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { encodeBase64Url } from '../../packages/apimachinery/src/meta/base64.ts';
import { AUTHENTICATION_FLAGS } from '../../packages/coracle/src/cli/access-flags.ts';
import { authenticationChoice } from '../../packages/coracle/src/cli/authentication-choice.ts';
import { openAuthentication } from '../../packages/coracle/src/cli/open-authentication.ts';
import { createOutbound } from '../../packages/coracle/src/compose/outbound.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';
import { handedOn } from '../testkit/handed-on.ts';
import { startWebhookServer, type WebhookServer } from '../testkit/webhook-server.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-384' };
const folder = mkdtempSync(join(tmpdir(), 'coracle-authentication-'));
const config = join(folder, 'config.yaml');

interface Issuer {
  readonly server: WebhookServer;
  readonly url: string;
  bearer(claims: object): Promise<{ headers: Record<string, string> }>;
}

/** An issuer whose discovery document lies at `discovery`, below its URL or elsewhere. */
async function startIssuer(path: string, discovery: string): Promise<Issuer> {
  const pair = (await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])) as CryptoKeyPair;
  const key = { ...(await crypto.subtle.exportKey('jwk', pair.publicKey)), kid: 'k', use: 'sig' };
  const json = (document: object) => ({ code: 200, text: JSON.stringify(document) });
  const server = await startWebhookServer({
    [discovery]: () => json({ issuer: url, jwks_uri: server.url('/keys') }),
    '/keys': () => json({ keys: [key] }),
  });
  const url = server.url(path);
  return {
    server,
    url,
    async bearer(claims) {
      const part = (value: unknown): string => encodeBase64Url(new TextEncoder().encode(JSON.stringify(value)));
      const all = { iss: url, aud: 'coracle', exp: Math.floor(Date.now() / 1000) + 600, ...claims };
      const text = `${part({ alg: 'ES384', kid: 'k' })}.${part(all)}`;
      const signature = await crypto.subtle.sign(ALGORITHM, pair.privateKey, new TextEncoder().encode(text));
      return { headers: { authorization: `Bearer ${text}.${encodeBase64Url(new Uint8Array(signature))}` } };
    },
  };
}

let [staff, robots]: Issuer[] = [];
let plane: TestPlane;
let authentication: ReturnType<typeof openAuthentication>;
let outbound: ReturnType<typeof createOutbound> | undefined;

const described = (issuer: Issuer, more: object) => ({
  issuer: {
    url: issuer.url,
    certificateAuthority: atob(issuer.server.caBundle),
    audiences: ['coracle', 'others'],
    audienceMatchPolicy: 'MatchAny',
    ...(issuer === robots && { discoveryURL: issuer.server.url('/elsewhere') }),
  },
  ...more,
});
const STAFF = {
  claimValidationRules: [{ expression: 'claims.active == true', message: 'left the company' }],
  claimMappings: {
    username: { expression: `'staff:' + claims.sub` },
    groups: { claim: 'teams', prefix: 'team:' },
    extra: [{ key: 'company.test/floor', valueExpression: 'claims.floor' }],
  },
  userValidationRules: [{ expression: `user.username != 'staff:root'`, message: 'nobody is root' }],
};
const ROBOTS = { claimMappings: { username: { claim: 'sub', prefix: 'robot:' }, uid: { claim: 'serial' } } };
const ANONYMOUS = { enabled: true, conditions: [{ path: '/livez' }, { path: '/readyz' }] };
const document = (more: object) =>
  JSON.stringify({ apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AuthenticationConfiguration', ...more });

const tools = { disallowedIssuers: [], allowsAll: false, clock: systemClock, log: silentLogger };
const open = (flags: Record<string, string>) => openAuthentication(authenticationChoice(flags)!, tools);

before(async () => {
  staff = await startIssuer('', '/.well-known/openid-configuration');
  robots = await startIssuer('/robots', '/elsewhere');
  writeFileSync(config, document({ jwt: [described(staff, STAFF)], anonymous: ANONYMOUS }));
  authentication = open({ 'authentication-config': config });
  plane = await startPlane({
    authentication: authentication.current,
    connectOutbound: (store) => {
      outbound = createOutbound({ store });
      return outbound.connect;
    },
  });
});
after(async () => {
  authentication.stop();
  await plane.stop();
  outbound?.close();
  await Promise.all([staff, robots].map((issuer) => issuer!.server.close()));
  rmSync(folder, { recursive: true });
});

const whoIs = async (asking: { headers: Record<string, string> }) => {
  const answer = await plane.ask('POST /apis/authentication.k8s.io/v1/selfsubjectreviews', { ...asking, body: {} });
  return answer.status === 201 ? answer.json.status.userInfo : answer.status;
};

// S-288
// Compat Authentication and impersonation, P2, yes: `--authentication-config`: several issuers, CEL mappings and rules,
//   anonymous paths, followed when it changes
test('expressions make the user of a token, and conditions refuse one', async () => {
  const claims = { sub: 'jane', active: true, teams: ['a'], floor: '7', jti: 'x', aud: ['others', 'more'] };
  assert.deepEqual(await whoIs(await staff!.bearer(claims)), {
    username: 'staff:jane',
    groups: ['team:a', 'system:authenticated'],
    extra: { 'company.test/floor': ['7'], 'authentication.kubernetes.io/credential-id': ['JTI=x'] },
  });
  const wrong: [object, string][] = [
    [
      { active: false },
      `oidc: error evaluating claim validation expression: validation expression 'claims.active == true' failed: left the company`,
    ],
    [
      { active: undefined },
      `oidc: error evaluating claim validation expression: expression 'claims.active == true' resulted in error: no such key: active`,
    ],
    [
      { sub: 'root' },
      `oidc: error evaluating user info validation rule: validation expression 'user.username != 'staff:root'' failed: nobody is root`,
    ],
    [{ aud: 'more' }, `oidc: verify token: oidc: expected audience in ["coracle" "others"] got ["more"]`],
    [{ exp: 1700000000 }, 'oidc: verify token: oidc: token is expired (Token Expiry: 2023-11-14 22:13:20 +0000 UTC)'],
    [
      { floor: 7 },
      'oidc: error evaluating extra claim expression: claims.floor: expression must return a string or a list of strings',
    ],
    [
      { sub: 7 },
      `oidc: error evaluating username claim expression: expression ''staff:' + claims.sub' resulted in error: no such overload`,
    ],
    [{ teams: [1] }, 'oidc: parse groups claim "teams": expected string, got array'],
  ];
  for (const [more, why] of wrong) {
    const asking = await staff!.bearer({ ...claims, ...more });
    assert.equal(await whoIs(asking), 401, JSON.stringify(more));
    const token = asking.headers['authorization']!.slice('Bearer '.length);
    const { status } = await plane.admin('POST /apis/authentication.k8s.io/v1/tokenreviews', { spec: { token } });
    assert.equal(status.error, `[invalid bearer token, ${why}]`);
  }
});

// S-288
test('without a credential only some paths are served', async () => {
  assert.equal((await plane.ask('GET /livez')).status, 200);
  assert.equal((await plane.ask('GET /version')).status, 401);
  assert.equal((await plane.ask('GET /livez/ping')).status, 401);
  assert.equal((await plane.ask('GET /livez', { headers: { authorization: 'Bearer a.b.c' } })).status, 401);
});

// S-290
test('the file is followed: an issuer more, and one less; a bad one changes nothing', async () => {
  const robot = await robots!.bearer({ sub: 'r2', serial: '2' });
  const jane = await staff!.bearer({ sub: 'jane', active: true, floor: '7' });
  assert.equal(await whoIs(robot), 401);
  const replace = async (more: object): Promise<void> => {
    const before = authentication.current();
    writeFileSync(`${config}.new`, document(more));
    renameSync(`${config}.new`, config);
    await eventually(
      async () => authentication.current(),
      (now) => now !== before,
    );
  };
  const both = [described(staff!, STAFF), described(robots!, ROBOTS)];
  await replace({ jwt: both, anonymous: ANONYMOUS });
  assert.deepEqual(await whoIs(robot), { username: 'robot:r2', uid: '2', groups: ['system:authenticated'] });
  assert.equal((await whoIs(jane)).username, 'staff:jane');
  assert.deepEqual(
    robots!.server.calls.map(({ path }) => path),
    ['/elsewhere', '/keys'],
  );

  const before = authentication.current();
  writeFileSync(config, document({ jwt: both }));
  await new Promise((resolve) => setTimeout(resolve, 150));
  assert.equal(authentication.current(), before, 'the rule about anonymous requests may not change');

  await replace({ jwt: both.slice(1), anonymous: ANONYMOUS });
  assert.equal(await whoIs(jane), 401);
  assert.equal((await whoIs(robot)).username, 'robot:r2');
});

test('the flags are checked, and handed on as they were', () => {
  assert.equal(authenticationChoice({}), undefined);
  const given = { 'authentication-config': '/nowhere/a', 'anonymous-auth': 'false' };
  const choice = authenticationChoice(given)!;
  assert.deepEqual(choice, { config: '/nowhere/a', anonymous: false });
  assert.deepEqual(handedOn(AUTHENTICATION_FLAGS, given), given);
  assert.throws(
    () => authenticationChoice({ 'authentication-config': 'a', 'oidc-client-id': 'c' }),
    /^Error: authentication-config file and oidc-\* flags are mutually exclusive$/,
  );
  assert.throws(() => authenticationChoice({ 'anonymous-auth': 'no' }), /--anonymous-auth takes true or false/);
  assert.throws(() => openAuthentication(choice, tools), /^Error: --authentication-config: \/nowhere\/a: ENOENT/);
  const file = join(folder, 'other');
  writeFileSync(file, document({ anonymous: { enabled: true } }));
  assert.throws(
    () => open({ 'authentication-config': file, 'anonymous-auth': 'true' }),
    /--anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file/,
  );
  writeFileSync(file, document({ jwt: [{ claimMappings: { username: { expression: 'claims.' } } }] }));
  assert.throws(
    () => open({ 'authentication-config': file }),
    (error: Error) =>
      !error.message.includes('\n') && /username\.expression: Invalid value: "claims\."/.test(error.message),
  );
});

test('--anonymous-auth=false refuses who shows nothing; so does a server where everybody may everything', () => {
  const rule = (flags: Record<string, string>, more: object = {}) =>
    openAuthentication(authenticationChoice(flags) ?? {}, { ...tools, ...more }).current().anonymous;
  assert.deepEqual(rule({}), { enabled: true });
  assert.deepEqual(rule({ 'anonymous-auth': 'false' }), { enabled: false });
  assert.deepEqual(rule({}, { allowsAll: true }), { enabled: false });
});
