import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import type { ApiRequest } from '../../../runtime/src/http/seam.ts';
import { silentLogger } from '../../../runtime/src/log/log.ts';
import { createWebhookUsers } from './webhook-tokens.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape.
type Json = any;

let clock = createFakeClock();
let asked: { readonly request: ApiRequest; readonly body: Json }[] = [];
let answer: () => { readonly status: number; readonly json?: Json } | Error;
const said = (status: object) => () => ({ status: 200, json: { kind: 'TokenReview', status } });
beforeEach(() => {
  clock = createFakeClock();
  asked = [];
  answer = said({ authenticated: true, user: { username: 'jane', uid: '7', groups: ['a'], extra: { Scopes: ['x'] } } });
});
const users = () =>
  createWebhookUsers(
    {
      handler: async (request) => {
        asked.push({ request, body: JSON.parse(new TextDecoder().decode(request.body)) });
        const given = answer();
        if (given instanceof Error) throw given;
        return { status: given.status, headers: {}, body: new TextEncoder().encode(JSON.stringify(given.json ?? {})) };
      },
      path: '/authenticate',
      headers: { authorization: 'Bearer own' },
      version: 'v1beta1',
      cacheMs: 120_000,
    },
    { audiences: ['api'], clock, log: silentLogger },
  );

test('the webhook is asked with a TokenReview, and what it says is believed', async () => {
  assert.deepEqual(await users()('secret'), {
    username: 'jane',
    uid: '7',
    groups: ['a', 'system:authenticated'],
    extra: { scopes: ['x'] },
  });
  const [{ request, body }] = asked as [(typeof asked)[0]];
  assert.deepEqual(
    [request.method, request.path, request.headers['authorization']],
    ['POST', '/authenticate', 'Bearer own'],
  );
  assert.deepEqual(body, {
    kind: 'TokenReview',
    apiVersion: 'authentication.k8s.io/v1beta1',
    spec: { token: 'secret', audiences: ['api'] },
  });
});

// S-230
test('an answer stands for its time, a refusal too; those who come together ask once', async () => {
  const find = users();
  const [one, two] = await Promise.all([find('a'), find('a')]);
  assert.equal(one, two);
  await clock.advance(119_999);
  assert.equal(await find('a'), one);
  assert.equal(asked.length, 1);
  answer = said({ authenticated: false });
  await clock.advance(1);
  assert.equal(await find('a'), undefined);
  assert.equal(await find('a'), undefined);
  assert.equal(asked.length, 2);
});

const REFUSED: readonly (readonly [name: string, answer: () => { status: number; json?: Json }])[] = [
  ['no', said({ authenticated: false, user: { username: 'jane' } })],
  ['a yes that is no truth', said({ authenticated: 'true', user: { username: 'jane' } })],
  ['yes, to nobody', said({ authenticated: true })],
  ['yes, for another audience', said({ authenticated: true, audiences: ['other'], user: { username: 'jane' } })],
  ['something else', () => ({ status: 200, json: [] })],
  ['403', () => ({ status: 403 })],
];
for (const [name, given] of REFUSED) {
  test(`the webhook says: ${name}`, async () => {
    answer = given;
    assert.equal(await users()('secret'), undefined);
    assert.equal(asked.length, 1);
  });
}

// S-230
test('a webhook that fails is asked again, five times at most, and not remembered', async () => {
  let failures = 2;
  const good = answer;
  answer = () => (failures-- > 0 ? { status: 500 } : good());
  const find = users();
  const first = find('a');
  for (let i = 0; i < 4; i++) await clock.advance(2000);
  assert.equal((await first)?.username, 'jane');
  assert.equal(asked.length, 3);
  answer = () => Object.assign(new Error('cut'), { code: 'ECONNRESET' });
  const second = find('b');
  for (let i = 0; i < 6; i++) await clock.advance(2000);
  assert.equal(await second, undefined);
  assert.equal(asked.length, 8);
  answer = good;
  assert.equal((await find('b'))?.username, 'jane');
});
