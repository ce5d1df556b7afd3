/** `coracle up` with files that say who may come and what they may do, as the program itself reads and follows them. */
// test:full: every combination of flags or steps, a process each.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { createHttpsTransport } from '../../packages/runtime/src/http/https-transport.ts';
import { NEVER, NO_BYTES } from '../../packages/runtime/src/http/seam.ts';
import { type Review, startWebhookServer } from '../testkit/webhook-server.ts';
import { openWorkspace } from './workspace.ts';

const document = (kind: string, more: object): string =>
  JSON.stringify({ apiVersion: 'apiserver.config.k8s.io/v1', kind, ...more });

// S-287
// S-823: `coracle up --quota-backend-bytes` and `--quota-namespace-bytes` say how many bytes of objects are taken, in
//   all and of one namespace.
test('files of authentication and authorisation: refused in one line, else kept by the process in the background', async (t) => {
  const at = openWorkspace(t);
  const [authentication, authorization] = [join(at.dir, 'authentication'), join(at.dir, 'authorization')];
  const files = ['--authentication-config', authentication, '--authorization-config', authorization];
  const hook = await startWebhookServer({
    '/authorize': ({ kind, apiVersion, spec }: Review) => {
      const allowed = spec.user === 'jane' && spec.resourceAttributes?.resource === 'secrets';
      return {
        code: 200,
        text: JSON.stringify({ kind, apiVersion, status: { allowed, reason: 'the webhook says so' } }),
      };
    },
  });
  t.after(() => hook.close());
  const kubeconfig = join(at.dir, 'hook');
  const cluster = { server: hook.url('/authorize'), 'certificate-authority-data': hook.caBundle };
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      clusters: [{ name: 'a', cluster }],
      users: [{ name: 'a', user: {} }],
      contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
      'current-context': 'a',
    }),
  );
  const authorizers = (timeout: string) =>
    document('AuthorizationConfiguration', {
      authorizers: [
        { type: 'Node', name: 'node' },
        { type: 'RBAC', name: 'rbac' },
        {
          type: 'Webhook',
          name: 'hook',
          webhook: {
            timeout,
            subjectAccessReviewVersion: 'v1',
            failurePolicy: 'Deny',
            connectionInfo: { type: 'KubeConfigFile', kubeConfigFile: kubeconfig },
          },
        },
      ],
    });

  writeFileSync(authentication, document('AuthenticationConfiguration', { anonymous: { enabled: false } }));
  writeFileSync(authorization, authorizers('61s'));
  const wrong = await at.up(...files);
  assert.deepEqual(
    [wrong.code, wrong.stderr],
    [
      1,
      `error: --authorization-config: ${authorization}: authorizers[2].timeout: Invalid value: "1m1s": must be > 0s and <= 30s\n`,
    ],
  );
  const unknown = await at.up('--authorization-mode', 'Node,Magic');
  assert.deepEqual([unknown.code, unknown.stderr], [1, 'error: authorization-mode "Magic" is not a valid mode\n']);
  const both = await at.up('--authentication-config', authentication, '--oidc-client-id', 'c');
  assert.deepEqual(
    [both.code, both.stderr],
    [1, 'error: authentication-config file and oidc-* flags are mutually exclusive\n'],
  );

  const little = await at.up('--quota-backend-bytes', 'lots');
  assert.deepEqual(
    [little.code, little.stderr],
    [1, 'error: --quota-backend-bytes takes an amount of bytes from 1Mi on, as 8Gi, not "lots"\n'],
  );

  writeFileSync(authorization, authorizers('3s'));
  const up = await at.up(...files, '--quota-namespace-bytes', '1Mi');
  assert.deepEqual([up.code, up.stderr], [0, '']);
  const may = await at.kubectl(['auth', 'can-i', 'list', 'secrets', '--as', 'jane']);
  assert.deepEqual([may.code, may.stdout], [0, 'yes\n'], may.stderr);
  const large = join(at.dir, 'large');
  writeFileSync(large, 'x'.repeat(700 * 1024));
  const first = await at.kubectl(['create', 'configmap', 'one', `--from-file=${large}`]);
  assert.equal(first.code, 0, first.stderr);
  const second = await at.kubectl(['create', 'configmap', 'two', `--from-file=${large}`]);
  assert.match(second.stderr, /namespace "default" may have 1048576 bytes together/);
  const mayNot = await at.kubectl(['get', 'pods', '--as', 'joe']);
  assert.equal(
    mayNot.stderr,
    'Error from server (Forbidden): pods is forbidden: User "joe" cannot list resource "pods" in API group "" in the namespace "default": the webhook says so\n',
  );
  // The admin is asked about by nobody, and who shows nothing is nobody.
  assert.equal((await at.kubectl(['get', '--raw', '/readyz'])).stdout, 'ok');
  const [{ cluster: own }] = parse(readFileSync(at.kubeconfig, 'utf8')).clusters;
  const ca = Buffer.from(own['certificate-authority-data'], 'base64').toString();
  const anonymous = createHttpsTransport({ server: own.server, ca });
  const { status } = await anonymous({
    ...{ method: 'GET', path: '/readyz', query: '', headers: {} },
    ...{ body: NO_BYTES, peer: { address: '' }, signal: NEVER },
  });
  anonymous.close();
  assert.equal(status, 401);
  assert.ok(hook.calls.every(({ body }) => body.spec.user === 'jane' || body.spec.user === 'joe'));
});
