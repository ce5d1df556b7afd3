/** A proxy in front says who the user is, over a real connection; nobody else's headers mean anything. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { CertificateAuthority } from '../../packages/apiserver/src/auth/certificate-authority.ts';
import { createHttpsTransport } from '../../packages/runtime/src/http/https-transport.ts';
import { NEVER, NO_BYTES } from '../../packages/runtime/src/http/seam.ts';
import type { TlsServer } from '../../packages/runtime/src/http/tls-server.ts';
import { certified, startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { listenTls, newAuthority } from '../testkit/listen-tls.ts';

let plane: TestPlane;
let server: TlsServer;
let client: CertificateAuthority;
let proxy: CertificateAuthority;
before(async () => {
  [client, proxy] = (await Promise.all(['ca', 'proxy-ca'].map((name) => newAuthority(undefined, name)))) as [
    CertificateAuthority,
    CertificateAuthority,
  ];
  plane = await startPlane({
    clientCa: client.certificate,
    frontProxy: { ca: proxy.certificate, allowedNames: ['front-proxy-client'] },
  });
  server = await listenTls(plane.plane.handler, client, { frontProxyCa: proxy.certificate });
});
after(async () => {
  await server.close();
  await plane.stop();
});

const HEADERS = {
  'x-remote-user': 'jane',
  'x-remote-uid': 'u1',
  'x-remote-group': 'devs',
  'x-remote-extra-example.com%2fscope': 'a',
};

async function whoAmI(identity: { certificate: string; key: string } | undefined, headers: Record<string, string>) {
  const transport = createHttpsTransport({
    server: `https://127.0.0.1:${server.port}`,
    ca: client.certificate,
    ...identity,
  });
  const response = await transport({
    method: 'POST',
    path: '/apis/authentication.k8s.io/v1/selfsubjectreviews',
    query: '',
    headers: { 'content-type': 'application/json', ...headers },
    body: new TextEncoder().encode('{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'),
    peer: { address: '' },
    signal: NEVER,
  });
  const chunks: Uint8Array[] = [];
  if (typeof response.body === 'function') {
    const { body } = response;
    await new Promise<void>((resolve) =>
      body({
        write: (chunk) => chunks.push(chunk) > 0,
        buffered: 0,
        drained: async () => {},
        end: resolve,
        signal: NEVER,
      }),
    );
  } else chunks.push(...(response.body instanceof Uint8Array ? [response.body] : (response.body ?? [])));
  await transport.close();
  const json = JSON.parse(Buffer.concat(chunks).toString());
  return response.status === 201 ? json.status.userInfo : response.status;
}

const pair = (authority: CertificateAuthority, commonName: string) =>
  authority.issue({ commonName, usage: 'client', days: 1 });

// S-189: Identity headers count only from the holder of the front proxy's certificate, which has an authority of its
//   own.
// Compat Authentication and impersonation, P1, yes: front-proxy headers, with a certificate of the request-header CA
test('the proxy’s certificate and its name make the headers count', async () => {
  assert.deepEqual(await whoAmI(await pair(proxy, 'front-proxy-client'), HEADERS), {
    username: 'jane',
    uid: 'u1',
    groups: ['devs', 'system:authenticated'],
    extra: { 'example.com/scope': ['a'] },
  });
});

// S-189
test('without that certificate, or with another name, they are a failed credential or nothing', async () => {
  assert.equal(await whoAmI(await pair(proxy, 'somebody'), HEADERS), 401);
  assert.equal(await whoAmI(await pair(proxy, 'front-proxy-client'), {}), 401);
  assert.equal((await whoAmI(await pair(client, 'front-proxy-client'), HEADERS)).username, 'front-proxy-client');
  assert.equal((await whoAmI(await pair(client, 'joe'), HEADERS)).username, 'joe');
  assert.equal(await whoAmI(undefined, HEADERS), 403);
});

// Compat Authentication and impersonation, P1, yes: extension-apiserver-authentication tells extension servers whom to
//   believe
test('extension API servers learn whom to trust', async () => {
  const { data } = await plane.admin(
    'GET /api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication',
  );
  assert.deepEqual(data, {
    'client-ca-file': client.certificate,
    'requestheader-allowed-names': '["front-proxy-client"]',
    'requestheader-client-ca-file': proxy.certificate,
    'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
    'requestheader-group-headers': '["X-Remote-Group"]',
    'requestheader-uid-headers': '["X-Remote-Uid"]',
    'requestheader-username-headers': '["X-Remote-User"]',
  });
});

// S-188: A page of a foreign origin cannot use the certificate its browser holds; pages of named origins may call.
test('a page of a foreign origin cannot use the certificate its browser holds', async () => {
  const peer = certified('admin', 'system:masters');
  const ask = async (method: string, headers: Record<string, string>, more: object = {}) => {
    const { status } = await plane.plane.handler({
      method,
      path: '/api/v1/namespaces/default/configmaps',
      query: '',
      headers: { host: '127.0.0.1:16443', ...headers },
      body: NO_BYTES,
      peer,
      signal: NEVER,
      ...more,
    });
    return status;
  };
  const foreign = { origin: 'https://evil.example' };
  assert.equal(await ask('GET', foreign, { upgradable: true }), 403);
  assert.equal(await ask('GET', { origin: 'null' }, { upgradable: true }), 403);
  assert.equal(await ask('POST', foreign), 403);
  assert.equal(await ask('DELETE', foreign), 403);
  // Its own pages, programs, and what only reads and cannot be seen by the page.
  assert.equal(await ask('GET', { origin: 'https://127.0.0.1:16443' }, { upgradable: true }), 200);
  assert.equal(await ask('GET', {}, { upgradable: true }), 200);
  assert.equal(await ask('GET', foreign), 200);
  // Python's WebSocket client makes an origin of the address it calls; a browser that says http: comes from another page.
  const plain = { origin: 'http://127.0.0.1:16443' };
  assert.equal(await ask('GET', plain, { upgradable: true }), 200);
  assert.equal(await ask('GET', { ...plain, 'user-agent': 'Mozilla/5.0' }, { upgradable: true }), 403);
  assert.equal(await ask('GET', { origin: 'http://127.0.0.1:16444' }, { upgradable: true }), 403);
  // Go's WebSocket client sends whatever origin it was given, and the name of its program; writes have no such excuse.
  const program = { ...foreign, 'user-agent': 'e2e.test/v1.36.0 (linux/amd64)' };
  assert.equal(await ask('GET', program, { upgradable: true }), 200);
  assert.equal(await ask('GET', { ...program, 'sec-fetch-mode': 'websocket' }, { upgradable: true }), 403);
  assert.equal(await ask('GET', { ...foreign, 'user-agent': 'Mozilla/5.0 (X11)' }, { upgradable: true }), 403);
  assert.equal(await ask('POST', program), 403);
  // Somebody without a certificate is forged by nobody.
  assert.equal(await ask('GET', foreign, { upgradable: true, peer: { address: '' } }), 403);
});
