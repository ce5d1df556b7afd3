/** The API server without the VM product: the example is started as a program and driven with kubectl; parts are left out. */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { createApiServer } from '../../packages/apiserver/src/assembly/create-api-server.ts';
import { NEVER, NO_BYTES } from '../../packages/runtime/src/http/seam.ts';
import { findKubectls } from './kubectl.ts';

const EXAMPLE = fileURLToPath(new URL('../../examples/api-server/serve.ts', import.meta.url));
const CRD = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'boats.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'boats', singular: 'boat', kind: 'Boat' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { spec: { type: 'object', properties: { oars: { type: 'integer' } } } },
          },
        },
      },
    ],
  },
};

test('the example serves kubectl: namespaces, apply, a kind of its own', async (t) => {
  const kubectl = findKubectls().at(-1);
  if (!kubectl) return t.skip('there is no kubectl on this machine');
  const directory = mkdtempSync(join(tmpdir(), 'coracle-api-server-'));
  const server = spawn(process.execPath, [EXAMPLE], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(server, 'exit');
  t.after(async () => {
    server.kill();
    await ended;
    rmSync(directory, { recursive: true });
  });
  const kubeconfig = join(directory, 'kubeconfig');
  for await (const line of createInterface({ input: server.stdout })) {
    writeFileSync(kubeconfig, line, { mode: 0o600 });
    break;
  }
  const options = {
    env: { KUBECONFIG: kubeconfig, HOME: directory, PATH: process.env['PATH'] },
    encoding: 'utf8',
    timeout: 300_000,
  } as const;
  const run = (args: readonly string[], input?: unknown): string =>
    execFileSync(kubectl.path, [...args], {
      ...options,
      ...(input !== undefined && { input: JSON.stringify(input) }),
    });
  assert.equal(run(['create', 'namespace', 'one']), 'namespace/one created\n');
  assert.match(run(['apply', '-f', '-'], CRD), /boats\.example\.com created/);
  run(['wait', '--for=condition=Established', 'crd/boats.example.com', '--timeout=60s']);
  const boat = {
    apiVersion: 'example.com/v1',
    kind: 'Boat',
    metadata: { name: 'a', namespace: 'one' },
    spec: { oars: 2 },
  };
  assert.match(run(['apply', '--server-side', '-f', '-'], boat), /boat\.example\.com\/a serverside-applied/);
  assert.equal(run(['get', 'boats', '-n', 'one', '-o', 'jsonpath={.items[*].spec.oars}']), '2');
  const mayNot = spawnSync(
    kubectl.path,
    ['auth', 'can-i', 'delete', 'boats', '-n', 'one', '--as', 'somebody'],
    options,
  );
  assert.equal(mayNot.stdout, 'no\n');
});

test('a server without optional parts serves objects, and answers 404 at /openapi/v2', async (t) => {
  const server = await createApiServer({ maxInFlight: 2 });
  t.after(() => server.close(AbortSignal.timeout(5_000)));
  const admin = server.handlerAs({ name: 'admin', groups: ['system:masters'] });
  const call = (method: string, path: string, body?: unknown) =>
    admin({
      method,
      path,
      query: '',
      headers: { 'content-type': 'application/json' },
      body: body === undefined ? NO_BYTES : new TextEncoder().encode(JSON.stringify(body)),
      peer: { address: '' },
      signal: NEVER,
    });
  const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { a: 'b' } };
  const answers = [
    await call('POST', '/api/v1/namespaces/default/configmaps', configMap),
    await call('GET', '/api/v1/namespaces/default/configmaps/a'),
    await call('GET', '/readyz'),
    await call('GET', '/openapi/v3'),
    await call('GET', '/openapi/v2'),
  ];
  assert.deepEqual(
    answers.map(({ status }) => status),
    [201, 200, 200, 200, 404],
  );
});
