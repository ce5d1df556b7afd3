import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { encodeBase64Url } from '../../../apimachinery/src/meta/base64.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { silentLogger } from '../../../runtime/src/log/log.ts';
import type { ConnectOutbound } from '../outbound/outbound.ts';
import { createOidcUsers, type OidcSettings, oidcDefaults } from './oidc.ts';

const ISSUER = 'https://issuer.test/realm';
const SETTINGS: OidcSettings = { ...oidcDefaults({ issuerUrl: ISSUER }), issuerUrl: ISSUER, clientId: 'coracle' };
const RS256 = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' };
const ES256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

const rsaPair = () =>
  crypto.subtle.generateKey({ ...RS256, modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]) }, true, [
    'sign',
    'verify',
  ]) as Promise<CryptoKeyPair>;
const [first, second] = [await rsaPair(), await rsaPair()];
const curve = (await crypto.subtle.generateKey(ES256, true, ['sign', 'verify'])) as CryptoKeyPair;
const jwk = async ({ publicKey }: CryptoKeyPair, more: object) => ({
  ...(await crypto.subtle.exportKey('jwk', publicKey)),
  use: 'sig',
  ...more,
});

const clock = createFakeClock();
let served: unknown[] = [];
let fetched: string[] = [];
let issuerOfDocument = ISSUER;
beforeEach(async () => {
  served = [await jwk(first, { kid: 'one', alg: 'RS256' })];
  fetched = [];
  issuerOfDocument = ISSUER;
});
const connect: ConnectOutbound =
  () =>
  async ({ path }) => {
    fetched.push(path);
    const document = path.endsWith('/keys')
      ? { keys: served }
      : { issuer: issuerOfDocument, jwks_uri: `${ISSUER}/keys` };
    return { status: 200, headers: {}, body: new TextEncoder().encode(JSON.stringify(document)) };
  };
const users = (settings: Partial<OidcSettings> = {}) =>
  createOidcUsers({ ...SETTINGS, ...settings }, { connect, clock, log: silentLogger });

const part = (value: unknown): string => encodeBase64Url(new TextEncoder().encode(JSON.stringify(value)));
const seconds = (): number => Math.floor(clock.now() / 1000);
const claimsOf = (more: object) => ({ iss: ISSUER, aud: 'coracle', sub: 'jane', exp: seconds() + 600, ...more });

interface Signing {
  readonly header?: object;
  readonly key?: CryptoKey;
  readonly algorithm?: typeof RS256;
}
async function token(claims: object = {}, { header, key = first.privateKey, algorithm = RS256 }: Signing = {}) {
  const text = `${part({ alg: 'RS256', kid: 'one', ...header })}.${part(claimsOf(claims))}`;
  const signature = await crypto.subtle.sign(algorithm, key, new TextEncoder().encode(text));
  return `${text}.${encodeBase64Url(new Uint8Array(signature))}`;
}

test('the name has the prefix of the issuer, and nobody has groups that were not asked for', async () => {
  const user = await users()(await token({ groups: ['admins'], jti: '7' }));
  assert.deepEqual(user, {
    username: `${ISSUER}#jane`,
    groups: ['system:authenticated'],
    extra: { 'authentication.kubernetes.io/credential-id': ['JTI=7'] },
  });
});

test('claims and prefixes are chosen', async () => {
  const find = users({ usernameClaim: 'email', usernamePrefix: 'o:', groupsClaim: 'roles', groupsPrefix: 'g:' });
  const user = await find(
    await token({ email: 'j@x', email_verified: true, roles: ['a', 'b'], aud: ['x', 'coracle'] }),
  );
  assert.deepEqual([user?.username, user?.groups], ['o:j@x', ['g:a', 'g:b', 'system:authenticated']]);
  assert.deepEqual((await find(await token({ email: 'j@x', roles: 'one' })))?.groups, [
    'g:one',
    'system:authenticated',
  ]);
});

const HMAC = { name: 'HMAC', hash: 'SHA-256' };
const REFUSED: readonly (readonly [name: string, make: () => Promise<string>, settings?: Partial<OidcSettings>])[] = [
  ['another issuer', () => token({ iss: 'https://other.test' })],
  ['another audience', () => token({ aud: 'other' })],
  ['no audience', () => token({ aud: undefined })],
  ['expired', () => token({ exp: seconds() })],
  ['without an end', () => token({ exp: undefined })],
  ['not valid yet', () => token({ nbf: seconds() + 301 })],
  ['without a name', () => token({ sub: undefined })],
  ['an empty name', () => token({ sub: '' })],
  ['a name that is no text', () => token({ sub: 7 })],
  ['a name out of the prototype', () => token(), { usernameClaim: 'constructor' }],
  ['an address that is not verified', () => token({ email: 'j@x', email_verified: false }), { usernameClaim: 'email' }],
  ['a verified address in a text', () => token({ email: 'j@x', email_verified: 'true' }), { usernameClaim: 'email' }],
  ['groups that are no texts', () => token({ groups: [1] }), { groupsClaim: 'groups' }],
  ['a required claim is missing', () => token(), { requiredClaims: { hd: 'x' } }],
  ['a required claim is another', () => token({ hd: 'y' }), { requiredClaims: { hd: 'x' } }],
  ['signed by another key', () => token({}, { key: second.privateKey })],
  ['signed by a key of another name', () => token({}, { header: { kid: 'two' } })],
  ['an algorithm that is not allowed', () => token({}, { header: { alg: 'PS256' } })],
  ['no signature at all', async () => `${part({ alg: 'none' })}.${part(claimsOf({}))}.`],
  ['alg none with a signature', () => token({}, { header: { alg: 'none' } }), { signingAlgorithms: ['none'] }],
  [
    'the public key as a shared secret',
    async () => {
      const secret = new TextEncoder().encode(JSON.stringify(served[0]));
      const key = await crypto.subtle.importKey('raw', secret, HMAC, false, ['sign']);
      const text = `${part({ alg: 'HS256', kid: 'one' })}.${part(claimsOf({}))}`;
      const signature = await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(text));
      return `${text}.${encodeBase64Url(new Uint8Array(signature))}`;
    },
    { signingAlgorithms: ['RS256', 'HS256'] },
  ],
  ['something critical', () => token({}, { header: { crit: ['b64'], b64: true } })],
  [
    'a changed claim',
    async () => {
      const [head, , signature] = (await token()).split('.');
      return `${head}.${part(claimsOf({ sub: 'root' }))}.${signature}`;
    },
  ],
  ['too long', () => token({ filler: 'x'.repeat(64 * 1024) })],
  ['no token', async () => 'a.b.c'],
];
for (const [name, make, settings] of REFUSED) {
  // S-229
  test(`refused: ${name}`, async () => {
    const find = users(settings);
    assert.equal(await find(await make()), undefined);
  });
}

test('of keys without names each is tried, and of keys that cannot be read the others', async () => {
  const nameless = () => token({}, { header: { kid: undefined }, key: second.privateKey });
  served = [await jwk(first, {}), { kty: 'RSA', n: '!', e: 'AQAB' }, await jwk(second, {})];
  assert.ok(await users()(await nameless()));
  served = [await jwk(first, {}), { kty: 'RSA', n: '!', e: 'AQAB' }];
  assert.equal(await users()(await nameless()), undefined);
});

test('elliptic curves, where they are allowed', async () => {
  served = [await jwk(curve, { kid: 'one' })];
  const made = await token({}, { header: { alg: 'ES256' }, key: curve.privateKey, algorithm: ES256 });
  assert.equal(await users()(made), undefined);
  assert.equal((await users({ signingAlgorithms: ['ES256'] })(made))?.username, `${ISSUER}#jane`);
});

// S-229
test('a key that is new is fetched, but no more often than every ten seconds', async () => {
  const find = users();
  assert.ok(await find(await token()));
  assert.deepEqual(fetched, ['/realm/.well-known/openid-configuration', '/realm/keys']);
  served = [await jwk(second, { kid: 'two' })];
  const rotated = await token({}, { header: { kid: 'two' }, key: second.privateKey });
  assert.equal(await find(rotated), undefined);
  assert.equal(fetched.length, 2, 'too early to ask again');
  await clock.advance(10_000);
  assert.ok(await find(rotated));
  assert.equal(fetched.length, 4);
});

test('a signature is checked once in ten seconds, an end is seen at once', async () => {
  const find = users();
  const made = await token({ exp: seconds() + 15 });
  const user = await find(made);
  assert.ok(user);
  served = [];
  assert.equal(await find(made), user, 'the very same');
  await clock.advance(10_000);
  assert.equal(await find(made), user);
  await clock.advance(5000);
  assert.equal(await find(made), undefined);
});

// S-229
test('an issuer that names another one is not believed; who cannot be asked knows nobody', async () => {
  issuerOfDocument = 'https://other.test';
  assert.equal(await users()(await token()), undefined);
  const gone: ConnectOutbound = () => () => Promise.reject(new Error('refused'));
  const find = createOidcUsers(SETTINGS, { connect: gone, clock, log: silentLogger });
  assert.equal(await find(await token()), undefined);
});
