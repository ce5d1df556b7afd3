/** `coracle up --bind-address`: closed by default; open to others it says so, is known by its address, and gives nobody more. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { NODES } from '../../packages/apimachinery/src/types/resource-types.ts';
import { hostAddresses, inUrl } from '../../packages/coracle/src/config/serving-address.ts';
import { createHttpsTransport } from '../../packages/runtime/src/http/https-transport.ts';
import { NEVER, NO_BYTES } from '../../packages/runtime/src/http/seam.ts';
import { adminOf } from '../testkit/control-plane-process.ts';
import { openWorkspace, type Workspace } from './workspace.ts';

const [outside] = hostAddresses();
const skip = outside === undefined && 'this host has no address but the loopback one';
const serverOf = (at: Workspace): URL => new URL(parse(readFileSync(at.kubeconfig, 'utf8')).clusters[0].cluster.server);
const accepts = (host: string, port: number): Promise<boolean> =>
  new Promise((tell) => {
    const socket = connect({ host, port });
    socket.once('connect', () => {
      socket.destroy();
      tell(true);
    });
    socket.once('error', () => tell(false));
  });

// S-239: Without `--bind-address` only this host reaches the API; with it clients without credentials get no more than
//   such clients on this host.
test('without the flag only this host reaches the API, and nothing is said', { skip }, async (t) => {
  const at = openWorkspace(t);
  const up = await at.up();
  assert.deepEqual([up.code, up.stderr], [0, '']);
  const server = serverOf(at);
  assert.equal(server.hostname, '127.0.0.1');
  assert.equal(await accepts(outside!, Number(server.port)), false);
});

// S-239
test('with an address of this host the API and the nodes are there, for those who may', {
  skip,
  timeout: 600_000,
}, async (t) => {
  const at = openWorkspace(t);
  const up = await at.up('--bind-address', outside!);
  assert.equal(up.code, 0, up.stderr);
  const server = serverOf(at);
  assert.equal(server.host, `${inUrl(outside!)}:${server.port}`);
  assert.equal(
    up.stderr,
    `warning: the API and its nodes are open to the network on ${outside} (${server.origin}): anyone who reaches it may try to log in\n`,
  );
  assert.equal(await accepts('127.0.0.1', Number(server.port)), false, 'that address and no other');
  const certificate = new X509Certificate(readFileSync(join(at.data, 'pki/server.crt')));
  assert.equal(certificate.checkIP(outside!), outside);
  assert.equal((await at.kubectl(['get', '--raw', '/readyz'])).stdout, 'ok');

  // A client without credentials learns what such a client on this host learns: that it is there, and its version.
  const ca = readFileSync(join(at.data, 'pki/ca.crt'), 'utf8');
  const anonymous = async (origin: string, path: string, trusted: string): Promise<number> => {
    const transport = createHttpsTransport({ server: origin, ca: trusted });
    try {
      const request = { method: 'GET', path, query: '', headers: {}, body: NO_BYTES, signal: NEVER };
      return (await transport({ ...request, peer: { address: '' } })).status;
    } finally {
      transport.close();
    }
  };
  for (const path of ['/metrics', '/debug/pprof/', '/api/v1/nodes', '/openapi/v2', '/logs'])
    assert.equal(await anonymous(server.origin, path, ca), 403, path);
  assert.equal(await anonymous(server.origin, '/version', ca), 200);

  const made = await at.run(['token', 'create', '--data-dir', at.data, '--json']);
  const words = JSON.parse(made.stdout).join.split(' ').slice(1);
  assert.ok(words.includes(server.origin), 'other machines are shown the address they reach');
  const dir = join(at.dir, 'edge');
  const agent = at.start([...words, '--data-dir', dir, '--name', 'edge', '--address', outside!]);
  await agent.line(/^node edge is ready/);
  const admin = adminOf(at.data);
  t.after(() => admin.close());
  const { status, metadata } = await admin.client.get(NODES, { namespace: '', name: 'edge' });
  assert.equal(status?.addresses?.find(({ type }) => type === 'InternalIP')?.address, outside);
  const port = status?.daemonEndpoints?.kubeletEndpoint?.Port;
  const nodeCa = metadata.annotations?.['coracle.dev/serving-ca'] ?? '';
  for (const path of ['/metrics', '/containerLogs/default/pod/compute', '/pods'])
    assert.equal(await anonymous(`https://${inUrl(outside!)}:${port}`, path, nodeCa), 403, path);
  agent.child.kill('SIGTERM');
  assert.deepEqual([(await agent.ended).code, (await agent.ended).stderr], [0, '']);

  await t.test('a node that names no address of its own warns that nobody will find it', async () => {
    const quiet = at.start([...words, '--data-dir', join(at.dir, 'quiet'), '--name', 'quiet']);
    await quiet.line(/^node quiet is ready/);
    quiet.child.kill('SIGTERM');
    const { stderr } = await quiet.ended;
    assert.match(stderr, /^warning: this node is served on 127\.0\.0\.1, .* give --address IP \(this host has .*\)\n$/);
    assert.ok(stderr.includes(outside!));
  });
});

// S-239
test('an address that cannot be served on is refused in one line', async (t) => {
  const at = openWorkspace(t);
  for (const [address, code, message] of [
    ['192.0.2.254', 1, /^error: --bind-address: this host has no address 192\.0\.2\.254\n$/],
    ['example.com', 1, /^error: --bind-address takes an IP address of this host, not "example\.com"\n/],
  ] as const) {
    const outcome = await at.up('--bind-address', address);
    assert.equal(outcome.code, code, outcome.stderr);
    assert.match(outcome.stderr, message);
  }
});
