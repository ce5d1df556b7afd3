/** Users of a token webhook on a real port, found through a kubeconfig as `coracle up` is given one. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { TOKEN_WEBHOOK_FLAGS } from '../../packages/coracle/src/cli/access-flags.ts';
import { tokenWebhook, tokenWebhookChoice } from '../../packages/coracle/src/cli/token-webhook-choice.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { handedOn } from '../testkit/handed-on.ts';
import { type Review, startWebhookServer, type WebhookServer } from '../testkit/webhook-server.ts';

const FILE = 'authentication-token-webhook-config-file';
const folder = mkdtempSync(join(tmpdir(), 'coracle-token-webhook-'));
let hook: WebhookServer;
let plane: TestPlane;
before(async () => {
  hook = await startWebhookServer({
    '/authenticate': ({ apiVersion, spec }: Review) => ({
      code: 200,
      text: JSON.stringify({
        apiVersion,
        kind: 'TokenReview',
        status:
          spec.token === 'open sesame'
            ? { authenticated: true, user: { username: 'ali', groups: ['thieves'] } }
            : { authenticated: false, error: 'not the word' },
      }),
    }),
  });
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      { name: 'hook', cluster: { server: hook.url('/authenticate'), 'certificate-authority-data': hook.caBundle } },
    ],
    users: [{ name: 'me', user: { token: 'my own' } }],
    contexts: [{ name: 'hook', context: { cluster: 'hook', user: 'me' } }],
    'current-context': 'hook',
  };
  const file = join(folder, 'config');
  writeFileSync(file, JSON.stringify(config));
  plane = await startPlane({ tokenWebhook: await tokenWebhook(tokenWebhookChoice({ [FILE]: file })!) });
});
after(async () => {
  await plane.stop();
  await hook.close();
  rmSync(folder, { recursive: true });
});

const whoIs = (token: string) =>
  plane.ask('POST /apis/authentication.k8s.io/v1/selfsubjectreviews', {
    headers: { authorization: `Bearer ${token}` },
    body: {},
  });

// S-230: A token that nobody else knows is shown to a webhook, whose answer stands for its time.
// Compat Authentication and impersonation, P2, yes: webhook authentication
test('a token that nobody else knows is shown to the webhook', async () => {
  const { status, json } = await whoIs('open sesame');
  assert.equal(status, 201, JSON.stringify(json));
  assert.deepEqual(json.status.userInfo.username, 'ali');
  assert.deepEqual(json.status.userInfo.groups, ['thieves', 'system:authenticated']);
  assert.equal((await whoIs('open barley')).status, 401);
  assert.deepEqual(
    hook.calls.map(({ path, body }) => [path, body.apiVersion, body.spec.token]),
    [
      ['/authenticate', 'authentication.k8s.io/v1beta1', 'open sesame'],
      ['/authenticate', 'authentication.k8s.io/v1beta1', 'open barley'],
    ],
  );
  const { error } = (
    await plane.admin('POST /apis/authentication.k8s.io/v1/tokenreviews', { spec: { token: 'open barley' } })
  ).status;
  assert.equal(error, '[invalid bearer token, not the word]');
  assert.equal(hook.calls.length, 2, 'a refusal is remembered with its reason');
});

test('the flags are checked, and handed on as they were', async () => {
  assert.equal(tokenWebhookChoice({}), undefined);
  const flags = { [FILE]: '/nowhere/config', 'authentication-token-webhook-version': 'v1' };
  const choice = tokenWebhookChoice(flags)!;
  assert.deepEqual(choice, { file: '/nowhere/config', version: 'v1', cacheMs: 120_000 });
  assert.deepEqual(tokenWebhookChoice(handedOn(TOKEN_WEBHOOK_FLAGS, flags)), choice);
  assert.throws(
    () => tokenWebhookChoice({ ...flags, 'authentication-token-webhook-version': 'v2' }),
    /takes v1 or v1beta1/,
  );
  await assert.rejects(tokenWebhook(choice), /--authentication-token-webhook-config-file: no kubeconfig at/);
});
