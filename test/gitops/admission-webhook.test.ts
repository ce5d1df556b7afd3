/**
 * The guard of declared fields on an external cluster: a server of ours without the guard in process stands for it,
 * which asks the webhook of `coracle controllers` over TLS.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createClient } from '../../packages/client/src/create-client.ts';
import { COMPONENTS, keepRunning } from '../../packages/coracle/src/compose/components.ts';
import { createOutbound } from '../../packages/coracle/src/compose/outbound.ts';
import { webhookEndpoint } from '../../packages/coracle/src/compose/webhook-endpoint.ts';
import { configSyncCrds } from '../../packages/gitops/src/kinds/definitions.ts';
import { createGitOpsController } from '../../packages/gitops/src/sync/gitops-controller.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import type { ApiHandler } from '../../packages/runtime/src/http/seam.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { eventually } from '../testkit/eventually.ts';
import { createRepository, type GitRepository } from '../testkit/git-repository.ts';
import { configMapYaml } from '../testkit/gitops-cluster.ts';
import { type Answer, type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
const NAME = 'admission-webhook.configsync.gke.io';
const MAPS = '/api/v1/namespaces/default/configmaps';
const SYNCS = '/apis/configsync.gke.io/v1beta1/namespaces/config-management-system/rootsyncs';
const COMPONENT = 'system:serviceaccount:kubevirt:coracle-gitops';

let server: InProcessServer;
let outbound: ReturnType<typeof createOutbound>;
let repository: GitRepository;
const stop = new AbortController();
let running: Promise<void>;
const send = (method: string, path: string, body?: object, user = 'bob'): Promise<Answer> =>
  server.request(method, path, {
    ...(body && { body }),
    headers: { 'x-user': user, ...(method === 'PATCH' && { 'content-type': 'application/merge-patch+json' }) },
  });
const asComponent: ApiHandler = (request) =>
  server.handler({ ...request, headers: { ...request.headers, 'x-user': COMPONENT } });

before(
  async () => {
    outbound = createOutbound({
      store: { get: (key) => server.store.get(key), list: (...args) => server.store.list(...args) },
    });
    server = await startServer({
      connectOutbound: outbound.connect,
      authenticate: async ({ headers }) => ({
        username: headers['x-user'] ?? 'root',
        groups: ['system:authenticated'],
      }),
    });
    for (const definition of configSyncCrds(systemClock.now()))
      await server.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition);
    for (const name of ['config-management-system', 'default'])
      await send('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    await eventually(
      () => send('GET', SYNCS),
      ({ status }) => status === 200,
    );
    repository = await createRepository();
    running = keepRunning({
      component: COMPONENTS.find(({ name }) => name === 'gitops')!,
      client: createClient(asComponent),
      facts: {
        rootCa: '',
        createGitOps: (environment) =>
          createGitOpsController({
            ...environment,
            serveWebhook: {
              trusted: [COMPONENT],
              serve: webhookEndpoint({ address: '127.0.0.1', port: 0, clock: systemClock, log: silentLogger }),
            },
          }),
      },
      clock: systemClock,
      log: silentLogger,
      signal: stop.signal,
    });
  },
  { timeout: 600_000 },
);
after(async () => {
  stop.abort(new Error('the test is over'));
  await running;
  await server.stop();
  outbound.close();
  repository.remove();
});
const hooks = async (): Promise<string[]> =>
  ((await send('GET', `${CONFIGURATIONS}/${NAME}`)).json.webhooks ?? []).map(({ name }: { name: string }) => name);

// S-961: On an external cluster `coracle controllers --webhook-address` serves the same decisions as a webhook, fills
//   the configuration in with one webhook for each version of a group that is declared, and puts it right when it is
//   altered.
test('the configuration that turns it on is filled; then it decides as in process, and is put right', async () => {
  await repository.commit({ 'a.yaml': configMapYaml('a', { k: 'declared' }) });
  const made = await send('POST', SYNCS, {
    apiVersion: 'configsync.gke.io/v1beta1',
    kind: 'RootSync',
    metadata: { name: 'root-sync' },
    spec: {
      sourceFormat: 'unstructured',
      git: { repo: repository.url, branch: 'main', auth: 'none', period: '100ms' },
    },
  });
  assert.equal(made.status, 201, made.text);
  await send('POST', CONFIGURATIONS, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: NAME },
  });
  await eventually(hooks, (names) => names.includes(`v1.${NAME}`));
  await eventually(
    () => send('GET', `${MAPS}/a`),
    ({ json }) => json.metadata?.annotations?.['configsync.gke.io/declared-fields'] !== undefined,
  );
  const changed = await send('PATCH', `${MAPS}/a`, { data: { k: 'mine' } });
  assert.equal(changed.status, 403);
  assert.equal(
    changed.json.message,
    `admission webhook "v1.${NAME}" denied the request: bob cannot modify fields of object "_configmap_default_a" managed by Config Sync: .data.k`,
  );
  assert.equal((await send('PATCH', `${MAPS}/a`, { data: { mine: 'x' } })).status, 200);
  assert.equal((await send('DELETE', `${MAPS}/a`)).status, 403);
  const inventory = await send(
    'DELETE',
    '/apis/kpt.dev/v1alpha1/namespaces/config-management-system/resourcegroups/root-sync',
  );
  assert.match(inventory.json.message, /is not authorized to modify ResourceGroup.kpt.dev generated by Config Sync/);
  await send('PATCH', `${CONFIGURATIONS}/${NAME}`, { webhooks: [] });
  await eventually(hooks, (names) => names.includes(`v1.${NAME}`));
  await repository.commit({ 'a.yaml': configMapYaml('a', { k: 'next' }) });
  await eventually(
    () => send('GET', `${MAPS}/a`),
    ({ json }) => json.data?.k === 'next',
  );
});

// S-970
test('with annotation coracle.dev/guards: dependents deletions alone are asked about: warned, refused, let through', async () => {
  await send('PATCH', `${CONFIGURATIONS}/${NAME}`, {
    metadata: { annotations: { 'coracle.dev/guards': 'dependents' } },
  });
  await eventually(
    () => send('GET', `${CONFIGURATIONS}/${NAME}`),
    ({ json }) =>
      json.webhooks?.every(
        ({ rules }: { rules: { operations: string[] }[] }) => rules[0]?.operations.join() === 'DELETE',
      ),
  );
  const say = (mode: string) =>
    send('PATCH', `${SYNCS}/root-sync`, { metadata: { annotations: { 'coracle.dev/delete-with-dependents': mode } } });
  const saidMode = async (mode: string) =>
    eventually(
      () => send('GET', `${MAPS}/a`),
      ({ json }) => json.metadata?.annotations?.['coracle.dev/dependents']?.includes(`"onDelete":"${mode}"`) === true,
    );
  await say('refuse');
  await repository.commit({
    'b.yaml': configMapYaml(
      'b',
      {},
      { annotations: { 'config.kubernetes.io/depends-on': '/namespaces/default/ConfigMap/a' } },
    ),
  });
  await saidMode('refuse');
  assert.equal((await send('PATCH', `${MAPS}/a`, { data: { k: 'mine' } })).status, 200);
  const refused = await send('DELETE', `${MAPS}/a`);
  assert.equal(refused.status, 403);
  assert.match(
    refused.json.message,
    /^admission webhook "v1.admission-webhook.configsync.gke.io" denied the request: ConfigMap, default\/a is declared by RootSync root-sync, .*: ConfigMap, default\/b\. /,
  );
  await say('warn');
  await saidMode('warn');
  const warned = await send('DELETE', `${MAPS}/a`);
  assert.equal(warned.status, 200);
  assert.match(warned.headers['warning'] ?? '', /ConfigMap, default\/a is declared by RootSync root-sync/);
  await say('refuse');
  await saidMode('refuse');
  await send('PATCH', `${MAPS}/a`, { metadata: { annotations: { 'coracle.dev/delete-with-dependents': 'allow' } } });
  assert.equal((await send('DELETE', `${MAPS}/a`)).status, 200);
  await saidMode('refuse');
  // What the source takes away is not asked for by anybody.
  await repository.commit({ 'a.yaml': null, 'b.yaml': null, 'c.yaml': configMapYaml('c', {}) });
  await eventually(
    () => send('GET', `${MAPS}/a`),
    ({ status }) => status === 404,
  );
});
