/** What is noted of tokens that outlive what they were asked for: those of Secrets, and mounted ones that are kept. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { compilePolicy, DEFAULT_POLICY } from '../../packages/apiserver/src/audit/policy.ts';
import { createFakeClock } from '../../packages/runtime/src/clock/fake-clock.fixture.ts';
import { startPlane, TEST_ISSUER, type TestPlane } from '../testkit/control-plane.ts';

const clock = createFakeClock(Date.UTC(2030, 0, 1));
const CORE = '/api/v1/namespaces/default';
const SECRET = `${CORE}/secrets/held`;
let plane: TestPlane;
let token: string;
// biome-ignore lint/suspicious/noExplicitAny: events are looked into.
let events: any[] = [];

before(async () => {
  const policy = compilePolicy(DEFAULT_POLICY);
  plane = await startPlane({
    clock,
    audit: { policy: (request) => policy(request), sink: { write: (line) => void events.push(JSON.parse(line)) } },
  });
  const account = await plane.admin(`POST ${CORE}/serviceaccounts`, {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'robot' },
  });
  const { uid } = account.metadata;
  token = await plane.plane.signLegacyToken({
    namespace: 'default',
    serviceAccount: { name: 'robot', uid },
    secret: 'held',
  });
  await plane.admin(`POST ${CORE}/secrets`, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'held', annotations: { 'kubernetes.io/service-account.name': 'robot' } },
    type: 'kubernetes.io/service-account-token',
    stringData: { token },
  });
});
after(() => plane.stop());
beforeEach(() => {
  events = [];
});

const use = async (bearer = token) => {
  const headers = { authorization: `Bearer ${bearer}` };
  const { status, headers: answered } = await plane.ask('GET /api', { headers });
  const event = events.find(({ requestURI }) => requestURI === '/api');
  events = [];
  const notes = Object.entries<string>(event.annotations ?? {}).filter(([key]) => key.startsWith('authentication.'));
  return { status, warning: answered['warning'], notes: Object.fromEntries(notes) };
};
const reviewed = async (bearer: string, audiences?: string[]) =>
  (await plane.admin('POST /apis/authentication.k8s.io/v1/tokenreviews', { spec: { token: bearer, audiences } }))
    .status;

// Compat Authentication and impersonation, P2, yes: mounted tokens used after their time: audit annotation
//   `stale-token`
test('a mounted token that is used after its time says so in the audit event', async () => {
  const { metadata } = await plane.admin(`POST ${CORE}/pods`, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p' },
    spec: { serviceAccountName: 'robot', containers: [{ name: 'c', image: 'i' }] },
  });
  const { status } = await plane.admin(`POST ${CORE}/serviceaccounts/robot/token`, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: {
      expirationSeconds: 3607,
      boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'p', uid: metadata.uid },
    },
  });
  assert.deepEqual((await use(status.token)).notes, {});
  await clock.advance(3_612_000);
  assert.deepEqual((await use(status.token)).notes, {
    'authentication.k8s.io/stale-token':
      'subject: system:serviceaccount:default:robot, seconds after warning threshold: 5',
  });
});

// Compat Authentication and impersonation, P1, yes: TokenReview: `status.error` in upstream's words, of tokens of
//   service accounts, of issuers and of a webhook
test('a TokenReview says what is wrong with a token that is known', async () => {
  const made = async (name: string) => {
    const { metadata } = await plane.admin(`POST ${CORE}/serviceaccounts`, { metadata: { name } });
    return metadata.uid as string;
  };
  const asked = async (account: string, boundObjectRef?: object): Promise<string> =>
    (await plane.admin(`POST ${CORE}/serviceaccounts/${account}/token`, { spec: { boundObjectRef } })).status.token;
  const error = async (bearer: string, audiences?: string[]): Promise<string> => {
    const { authenticated, error: said } = await reviewed(bearer, audiences);
    assert.equal(authenticated, undefined);
    return said;
  };
  const uid = await made('known');
  const bearer = await asked('known');
  assert.equal((await reviewed(bearer)).authenticated, true);
  assert.equal(
    await error(bearer, ['vault', 'b']),
    `[invalid bearer token, token audiences ["${TEST_ISSUER}"] is invalid for the target audiences ["vault" "b"]]`,
  );
  assert.equal(await error('abc'), 'invalid bearer token');
  const [head = '', body = '', signature = ''] = bearer.split('.');
  const unsigned = `${head}.${body}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`;
  assert.equal(await error(unsigned), '[invalid bearer token, go-jose/go-jose: error in cryptographic primitive]');
  assert.equal(await error(`e30.${body}.${signature}`), '[invalid bearer token, invalid signature, no keys found]');

  await plane.admin(`POST ${CORE}/secrets`, { metadata: { name: 'bound' } });
  const bound = await asked('known', { kind: 'Secret', apiVersion: 'v1', name: 'bound' });
  const old = (await plane.admin(`GET ${CORE}/secrets/bound`)).metadata.uid;
  await plane.admin(`DELETE ${CORE}/secrets/bound`);
  assert.equal(await error(bound), '[invalid bearer token, service account token has been invalidated]');
  const { metadata } = await plane.admin(`POST ${CORE}/secrets`, { metadata: { name: 'bound' } });
  assert.equal(
    await error(bound),
    `[invalid bearer token, secret UID (${metadata.uid}) does not match service account secret ref claim (${old})]`,
  );
  await plane.admin(`DELETE ${CORE}/serviceaccounts/known`);
  assert.equal(await error(bearer), '[invalid bearer token, serviceaccounts "known" not found]');
  const again = await made('known');
  assert.equal(
    await error(bearer),
    `[invalid bearer token, service account UID (${again}) does not match claim (${uid})]`,
  );
  const short = await asked('known');
  await clock.advance(3_601_000);
  assert.equal(await error(short), '[invalid bearer token, service account token has expired]');

  await plane.admin(`DELETE ${SECRET}`);
  assert.equal(await error(token), '[invalid bearer token, Token has been invalidated]');
});
