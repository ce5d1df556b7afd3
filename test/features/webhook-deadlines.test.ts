/** The time of a request is the time of its webhooks: what they see of it, and what the client hears when it is over. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Answer } from '../testkit/webhook-server.ts';
import { CONFIGMAPS, configMap, webhookSuite } from '../testkit/webhook-suite.ts';

const after = (ms: number) => () => new Promise<Answer>((resolve) => setTimeout(() => resolve({}), ms).unref());
const suite = webhookSuite({
  '/now': () => ({}),
  '/soon': after(1100),
  '/late': after(8000),
});
const called = () => suite.hooks.calls.map(({ path }) => path).sort();

// S-344: A webhook is given no more time than its request has left, and none is asked when that is over.
test('a webhook gets the lesser of its own time and of what is left of the request', async () => {
  await suite.configure(
    'Mutating',
    'times',
    { path: '/soon', timeoutSeconds: 20 },
    { path: '/now', timeoutSeconds: 3 },
  );
  const again = { path: '/now', name: 'again.example.com', timeoutSeconds: 2 };
  await suite.configure('Validating', 'times', { path: '/now', timeoutSeconds: 20 }, again);
  assert.equal((await suite.post(configMap('reported'), '?timeout=10s')).status, 201);
  assert.deepEqual(called(), ['/now?timeout=2s', '/now?timeout=3s', '/now?timeout=9s', '/soon?timeout=10s']);
});

// S-344
// Compat HTTP, P2, yes: a request that is over is 504 with a Status of no kind, which clients see as a server that did
//   not answer; its webhooks know its time
test('when the request is over no further webhook is asked, whatever its failure policy, and nothing is written', async () => {
  const hook = { failurePolicy: 'Ignore', timeoutSeconds: 5 };
  await suite.configure('Mutating', 'times', { path: '/late', ...hook }, { path: '/now', ...hook });
  const answer = await suite.post(configMap('over'), '?timeout=1s');
  assert.equal(answer.status, 504);
  // As upstream's filter writes it: no kind, so that clients take it for no Status.
  assert.equal(answer.headers['content-type'], 'text/plain; charset=utf-8');
  assert.equal(
    answer.text,
    '{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504}\n',
  );
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.deepEqual(called(), ['/late?timeout=1s']);
  assert.equal((await suite.server.request('GET', `${CONFIGMAPS}/over`)).status, 404);
});
