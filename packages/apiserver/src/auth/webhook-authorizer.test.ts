import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import type { ApiRequest } from '../../../runtime/src/http/seam.ts';
import { silentLogger } from '../../../runtime/src/log/log.ts';
import { compileAccessCondition } from './access-conditions.ts';
import type { AuthorizationAttributes, UserInfo } from './identity.ts';
import { unionAuthorizer } from './union.ts';
import { type AuthorizationWebhook, createWebhookAuthorizer } from './webhook-authorizer.ts';

// biome-ignore lint/suspicious/noExplicitAny: reviews of every shape.
type Json = any;

let clock = createFakeClock();
let asked: { readonly request: ApiRequest; readonly body: Json }[] = [];
let answer: () => { readonly status: number; readonly json?: Json } | Error;
const said = (status: object) => () => ({ status: 200, json: { kind: 'SubjectAccessReview', status } });
beforeEach(() => {
  clock = createFakeClock();
  asked = [];
  answer = said({ allowed: true, reason: 'because' });
});

const authorizer = (more: Partial<AuthorizationWebhook> = {}) =>
  createWebhookAuthorizer(
    {
      name: 'hook',
      handler: async (request) => {
        asked.push({ request, body: JSON.parse(new TextDecoder().decode(request.body)) });
        const given = answer();
        if (given instanceof Error) throw given;
        return { status: given.status, headers: {}, body: new TextEncoder().encode(JSON.stringify(given.json ?? {})) };
      },
      path: '/authorize',
      query: 'timeout=30s',
      headers: { authorization: 'Bearer own' },
      version: 'v1',
      authorizedMs: 300_000,
      unauthorizedMs: 30_000,
      timeoutMs: 30_000,
      failurePolicy: 'NoOpinion',
      conditions: [],
      ...more,
    },
    { clock, log: silentLogger },
  );

const JANE: UserInfo = { username: 'jane', uid: '7', groups: ['a'], extra: { scopes: ['x'] } };
const about = (more: Partial<AuthorizationAttributes & { type: 'resource' }> = {}): AuthorizationAttributes => ({
  type: 'resource',
  verb: 'list',
  group: '',
  version: 'v1',
  resource: 'pods',
  subresource: '',
  namespace: 'default',
  name: '',
  ...more,
});

// S-287: An authorization webhook is asked in upstream's words, in the order that is configured; it may allow, deny or
//   fail.
test('the webhook is asked with a SubjectAccessReview, selectors among what it is about', async () => {
  const decision = await authorizer()(
    JANE,
    about({
      fieldSelector: [{ field: 'spec.nodeName', op: '=', value: 'n1' }],
      labelSelector: {
        requirements: [
          { key: 'app', operator: 'in', values: ['a', 'b'] },
          { key: 'size', operator: 'gt', values: ['1'] },
          { key: 'old', operator: '!', values: [] },
        ],
      },
    }),
  );
  assert.deepEqual(decision, { allowed: true, reason: 'because' });
  const [{ request, body }] = asked as [(typeof asked)[0]];
  assert.deepEqual(
    [request.method, request.path, request.query, request.headers['authorization']],
    ['POST', '/authorize', 'timeout=30s', 'Bearer own'],
  );
  assert.deepEqual(body, {
    kind: 'SubjectAccessReview',
    apiVersion: 'authorization.k8s.io/v1',
    metadata: {},
    spec: {
      resourceAttributes: {
        namespace: 'default',
        verb: 'list',
        version: 'v1',
        resource: 'pods',
        fieldSelector: { requirements: [{ key: 'spec.nodeName', operator: 'In', values: ['n1'] }] },
        labelSelector: {
          requirements: [
            { key: 'app', operator: 'In', values: ['a', 'b'] },
            { key: 'old', operator: 'DoesNotExist' },
          ],
        },
      },
      user: 'jane',
      groups: ['a'],
      extra: { scopes: ['x'] },
      uid: '7',
    },
    status: { allowed: false },
  });
});

test('v1beta1 calls groups group; a path is no resource', async () => {
  await authorizer({ version: 'v1beta1' })(JANE, { type: 'path', verb: 'get', path: '/metrics' });
  const { apiVersion, spec } = asked[0]!.body;
  assert.deepEqual([apiVersion, spec.group, spec.groups], ['authorization.k8s.io/v1beta1', ['a'], undefined]);
  assert.deepEqual(spec.nonResourceAttributes, { path: '/metrics', verb: 'get' });
});

test('an answer stands for its time, a no for another one; equal questions that come together are one', async () => {
  const ask = authorizer();
  await Promise.all([ask(JANE, about()), ask(JANE, about())]);
  await clock.advance(299_999);
  assert.deepEqual(ask(JANE, about()), { allowed: true, reason: 'because' }, 'at once');
  assert.equal(asked.length, 1);
  answer = said({ allowed: false });
  await clock.advance(1);
  assert.deepEqual(await ask(JANE, about()), { allowed: false, reason: '' });
  await clock.advance(29_999);
  await ask(JANE, about());
  assert.equal(asked.length, 2);
  await clock.advance(1);
  await ask(JANE, about());
  await ask(JANE, about({ name: 'x'.repeat(10_000) }));
  await ask(JANE, about({ name: 'x'.repeat(10_000) }));
  assert.equal(asked.length, 5, 'what is long is not remembered');
});

test('without a time to live every request is asked about', async () => {
  const ask = authorizer({ authorizedMs: 0 });
  await ask(JANE, about());
  await ask(JANE, about());
  assert.equal(asked.length, 2);
});

// S-287
test('a no that is meant as one, and a yes and no at once', async () => {
  answer = said({ allowed: false, denied: true, reason: 'never' });
  assert.deepEqual(await authorizer()(JANE, about()), { allowed: false, denied: true, reason: 'never' });
  answer = said({ allowed: true, denied: true });
  const both = await authorizer()(JANE, about());
  assert.equal(both.denied, true);
  assert.equal(both.error, 'webhook subject access review returned both allow and deny response');
});

// S-287
test('what may pass is tried five times, what will not pass once; failurePolicy says what it means', async () => {
  const passing: [string, () => Error | { status: number; json?: Json }, string][] = [
    [
      'a cut connection',
      () => new Error('outer', { cause: Object.assign(new Error('cut'), { code: 'ECONNRESET' }) }),
      'outer',
    ],
    ['500', () => ({ status: 500 }), 'an error on the server ("{}") has prevented the request from succeeding'],
    ['a Status', () => ({ status: 504, json: { kind: 'Status', message: 'too slow' } }), 'too slow'],
  ];
  for (const [name, given, error] of passing) {
    asked = [];
    answer = given;
    const waited = authorizer()(JANE, about());
    for (let i = 0; i < 6; i++) await clock.advance(2000);
    assert.deepEqual(await waited, { allowed: false, reason: '', error }, name);
    assert.equal(asked.length, 5, name);
  }
  asked = [];
  answer = () => new Error('connection refused');
  assert.equal((await authorizer()(JANE, about())).error, 'connection refused');
  answer = () => ({ status: 503 });
  assert.equal((await authorizer()(JANE, about())).error, 'the server is currently unable to handle the request');
  answer = () => ({ status: 400 });
  const error = 'the server rejected our request for an unknown reason';
  const denied = await authorizer({ failurePolicy: 'Deny' })(JANE, about());
  assert.deepEqual(denied, { allowed: false, denied: true, reason: '', error });
  answer = () => ({ status: 200, json: { kind: 'Status' } });
  assert.match((await authorizer()(JANE, about())).error!, /not a SubjectAccessReview/);
  assert.equal(asked.length, 4);
  answer = said({ allowed: true });
  assert.equal((await authorizer()(JANE, about())).allowed, true);
});

test('no answer in time is a failure', async () => {
  const ask = createWebhookAuthorizer(
    {
      name: 'hook',
      handler: () => new Promise(() => {}),
      path: '',
      headers: {},
      version: 'v1',
      authorizedMs: 0,
      unauthorizedMs: 0,
      timeoutMs: 3000,
      failurePolicy: 'NoOpinion',
      conditions: [],
    },
    { clock, log: silentLogger },
  );
  const waited = ask(JANE, about());
  await clock.advance(3000);
  assert.match((await waited).error!, /^context deadline exceeded/);
});

// S-287
test('conditions decide whether it is asked; one that fails is a failure unless another is false', async () => {
  const conditions = (...expressions: string[]) => ({ conditions: expressions.map(compileAccessCondition) });
  const mine = `has(request.resourceAttributes) && request.resourceAttributes.namespace == 'default'`;
  const failing = `request.extra['missing'][0] == 'x'`;
  assert.equal((await authorizer(conditions(mine))(JANE, about())).allowed, true);
  const skipped = authorizer(conditions(failing, mine))(JANE, about({ namespace: 'other' }));
  assert.deepEqual(skipped, { allowed: false, reason: '' });
  const failed = await authorizer(conditions(mine, failing))(JANE, about());
  assert.match(failed.error!, /^cel evaluation error: expression '.*' resulted in error: no such key: missing$/);
  const selecting = `request.resourceAttributes.fieldSelector.requirements.exists(r, r.key == 'a' && r.operator == 'In')`;
  const selected = about({ fieldSelector: [{ field: 'a', op: '=', value: 'b' }] });
  assert.equal((await authorizer(conditions(selecting))(JANE, selected)).allowed, true);
  assert.equal(asked.length, 2);
});

test('a union goes on after no opinion and after an error, and stops at a denial', async () => {
  const no = { allowed: false, reason: 'first' };
  const [later, failing] = [Promise.resolve(no), { allowed: false, reason: '', error: 'broken' }];
  const yes = { allowed: true, reason: 'last' };
  assert.deepEqual(unionAuthorizer([() => no, () => yes])(JANE, about()), yes, 'at once');
  assert.deepEqual(await unionAuthorizer([() => no, () => later, () => failing, () => yes])(JANE, about()), yes);
  const denial = { allowed: false, denied: true, reason: 'never' };
  assert.deepEqual(await unionAuthorizer([() => later, () => denial, () => yes])(JANE, about()), denial);
  const reported = await unionAuthorizer([() => failing, () => later, () => ({ ...failing, error: 'too' })])(
    JANE,
    about(),
  );
  assert.deepEqual(reported, { allowed: false, reason: 'first', error: '[broken, too]' });
});
