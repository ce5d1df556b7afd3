/** A registry that its owner turned against those who pull from it: where its challenges and redirects may send them. */
import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { addressRange } from '../../packages/runtime/src/oci/address-range.ts';
import type { Resolve } from '../../packages/runtime/src/oci/checked-request.ts';
import { parseReference } from '../../packages/runtime/src/oci/reference.ts';
import { createRegistryClient } from '../../packages/runtime/src/oci/registry-client.ts';

const signal = new AbortController().signal;
const credentials = { username: 'me', password: 'canary' };

/** A service of this host that keeps what it is sent. */
async function listen(
  t: TestContext,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  host = '127.0.0.1',
): Promise<{ at: string; port: number; seen: string[] }> {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(`${request.url} ${request.headers.authorization ?? '-'}`);
    answer(request, response);
  });
  await new Promise<void>((done) => server.listen(0, host, done));
  t.after(() => new Promise<void>((done) => server.close(() => done())));
  const { port } = server.address() as AddressInfo;
  return { at: `${host}:${port}`, port, seen };
}

const pull = (registry: string, resolve?: Resolve) =>
  createRegistryClient(parseReference(`${registry}/x:v1`), {
    architecture: 'amd64',
    clock: systemClock,
    credentials,
    ...(resolve && { resolve }),
  });

// S-498: A registry cannot send those who pull from it, or their credentials, to services of another network.
test('a challenge that names a service of another network gets neither the credential nor a connection', async (t) => {
  let realm = '';
  const registry = await listen(t, (_, response) =>
    response.writeHead(401, { 'www-authenticate': `Bearer realm="${realm}",service="s"` }).end(),
  );
  const cases: readonly [string, RegExp][] = [
    ['http://169.254.169.254/latest/meta-data', /only link-local addresses/],
    ['http://[::ffff:169.254.169.254]/', /only link-local addresses/],
    ['https://10.0.0.1/token', /only private addresses/],
    ['https://inside.example/token', /only private addresses/],
    // A public one without TLS: whoever listens on the way reads the credential.
    ['http://8.8.8.8/token', /only public addresses/],
    ['ftp://127.0.0.1/', /names no usable token service/],
    ['', /names no usable token service/],
  ];
  const own = Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === 'IPv4' && addressRange(one.address) === 'private')?.address;
  const victim = own === undefined ? undefined : await listen(t, (_, response) => response.end('{"token":"t"}'), own);
  const resolve: Resolve = async (name) => (name === 'inside.example' ? ['10.9.8.7'] : ['127.0.0.1']);
  for (const [at, message] of victim ? [...cases, [`http://${victim.at}/token`, /only private/] as const] : cases) {
    realm = at;
    await assert.rejects(pull(registry.at, resolve).manifest(signal), (error: Error) => {
      assert.match(error.message, message, at);
      assert.doesNotMatch(error.message, /canary/);
      return true;
    });
  }
  assert.deepEqual(victim?.seen ?? [], []);
  assert.ok(registry.seen.every((line) => line.endsWith(' -')));
});

// S-498
test('a redirect carries no credential to another host or port, and leads to no other network', async (t) => {
  let location = '';
  const other = await listen(t, (_, response) => response.writeHead(404).end());
  const registry = await listen(t, (request, response) => {
    if (request.url?.startsWith('/token')) response.writeHead(307, { location }).end();
    else if (request.headers.authorization === 'Bearer good') response.writeHead(307, { location }).end();
    else
      response.writeHead(401, { 'www-authenticate': `Bearer realm="http://${registry.at}/token",service="s"` }).end();
  });
  // The token service sends its caller elsewhere: the password stays.
  location = `http://${other.at}/elsewhere`;
  await assert.rejects(pull(registry.at).manifest(signal), /token service .* answered 404/);
  assert.deepEqual(other.seen, ['/elsewhere -']);
  location = 'https://[fe80::1]/';
  await assert.rejects(pull(registry.at).manifest(signal), /only link-local addresses/);
  location = 'http://169.254.169.254/latest/meta-data/iam';
  await assert.rejects(pull(registry.at).manifest(signal), /only link-local addresses/);
  location = 'file:///etc/passwd';
  await assert.rejects(pull(registry.at).manifest(signal), /redirects to file: which is refused/);
});

// S-498
test('a name that means another address the second time is connected to where it was checked', async (t) => {
  const inside = await listen(t, (_, response) => response.end('{"token":"t"}'));
  const registry = await listen(t, (_, response) =>
    response.writeHead(401, { 'www-authenticate': `Bearer realm="http://rebind.example:${inside.port}/token"` }).end(),
  );
  // First the address that may be used, in every later answer the one that may not: one look must be all there is.
  const looks: string[] = [];
  const resolve: Resolve = async (name) => {
    looks.push(name);
    if (name !== 'rebind.example') return ['127.0.0.1'];
    return looks.filter((one) => one === name).length === 1 ? ['127.0.0.1'] : ['169.254.169.254'];
  };
  await assert.rejects(pull(registry.at, resolve).manifest(signal), /pull access denied/);
  assert.equal(inside.seen.length, 1);
  assert.deepEqual(
    looks.filter((name) => name === 'rebind.example'),
    ['rebind.example'],
  );
  // Of several addresses only those that may be used are.
  const mixed: Resolve = async (name) => (name === 'rebind.example' ? ['10.0.0.1', '127.0.0.1'] : ['127.0.0.1']);
  await assert.rejects(pull(registry.at, mixed).manifest(signal), /pull access denied/);
  assert.equal(inside.seen.length, 2);
});
