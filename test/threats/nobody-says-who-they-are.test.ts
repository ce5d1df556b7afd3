/** Threat 13: headers that name a user mean nothing without the proxy's certificate, however they are spelled. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { connect } from 'node:tls';
import type { CertificateAuthority } from '../../packages/apiserver/src/auth/certificate-authority.ts';
import type { TlsServer } from '../../packages/runtime/src/http/tls-server.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { listenTls, newAuthority } from '../testkit/listen-tls.ts';

let plane: TestPlane;
let server: TlsServer;
let client: CertificateAuthority;
before(async () => {
  const [own, proxy] = await Promise.all(['ca', 'proxy-ca'].map((name) => newAuthority(undefined, name)));
  client = own!;
  plane = await startPlane({
    clientCa: own!.certificate,
    frontProxy: { ca: proxy!.certificate, allowedNames: ['front-proxy-client'] },
  });
  server = await listenTls(plane.plane.handler, client, { frontProxyCa: proxy!.certificate });
});
after(async () => {
  await server.close();
  await plane.stop();
});

const BODY = '{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}';
const REVIEW = '/apis/authentication.k8s.io/v1/selfsubjectreviews';

/** Bytes as they are, over TLS with or without a certificate; the whole answer as text. */
async function raw(bytes: string, identity?: { certificate: string; key: string }): Promise<string> {
  const socket = connect({
    host: '127.0.0.1',
    port: server.port,
    ca: client.certificate,
    ...(identity && { cert: identity.certificate, key: identity.key }),
  });
  let text = '';
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  await once(socket, 'secureConnect');
  socket.write(bytes, 'latin1');
  await new Promise<void>((done) => {
    socket.once('close', () => done());
    setTimeout(done, 2000);
  });
  socket.destroy();
  return text;
}

const post = (headers: string): string =>
  `POST ${REVIEW} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${BODY.length}\r\n${headers}\r\n${BODY}`;

const SPELLINGS: readonly (readonly [string, string])[] = [
  ['plain', 'X-Remote-User: admin\r\nX-Remote-Group: system:masters\r\n'],
  ['with underscores', 'X_Remote_User: admin\r\nX_Remote_Group: system:masters\r\n'],
  ['in capitals', 'X-REMOTE-USER: admin\r\nX-REMOTE-GROUP: system:masters\r\n'],
  ['twice', 'X-Remote-User: a\r\nX-Remote-User: admin\r\nX-Remote-Group: system:masters\r\n'],
  ['named by Connection', 'Connection: X-Remote-User\r\nX-Remote-User: admin\r\nX-Remote-Group: system:masters\r\n'],
  ['folded', 'X-Remote-User:\r\n admin\r\nX-Remote-Group: system:masters\r\n'],
  ['with a space before the colon', 'X-Remote-User : admin\r\nX-Remote-Group : system:masters\r\n'],
  ['after a bare line feed', 'X-A: b\nX-Remote-User: admin\nX-Remote-Group: system:masters\r\n'],
  ['behind a NUL', 'X-A: b\0\r\nX-Remote-User: admin\r\n'],
  [
    'as a certificate',
    'X-Client-Cert: admin\r\nX-Forwarded-Client-Cert: CN=admin,O=system:masters\r\nSSL-Client-S-DN: CN=admin\r\n',
  ],
];

for (const [how, headers] of SPELLINGS) {
  test(`${how}, from nobody: anonymous, or refused`, async () => {
    const text = await raw(post(headers));
    assert.doesNotMatch(text, /system:masters|"username": ?"admin"/, text);
    assert.match(text, /^HTTP\/1\.1 (400|401|403|201)/, text);
    if (text.startsWith('HTTP/1.1 201')) assert.match(text, /system:anonymous/);
  });
  test(`${how}, from a user with a certificate of the other CA: that user`, async () => {
    const pair = await client.issue({ commonName: 'front-proxy-client', usage: 'client', days: 1 });
    const text = await raw(post(headers), pair);
    assert.doesNotMatch(text, /system:masters|"username": ?"admin"/, text);
    if (text.startsWith('HTTP/1.1 201')) assert.match(text, /"username": ?"front-proxy-client"/);
  });
}

test('a second request hidden in the first one’s body is never answered as its own', async () => {
  const hidden = 'GET /api/v1/secrets HTTP/1.1\r\nHost: a\r\nX-Remote-User: admin\r\n\r\n';
  for (const head of [
    'Content-Length: 4\r\nTransfer-Encoding: chunked\r\n',
    'Transfer-Encoding: chunked\r\nContent-Length: 4\r\n',
    'Transfer-Encoding: xchunked\r\n',
    'Transfer-Encoding: identity, chunked\r\nContent-Length: 0\r\n',
    'Content-Length: 0\r\nContent-Length: 5\r\n',
    'Content-Length: +5\r\n',
  ]) {
    const text = await raw(`POST ${REVIEW} HTTP/1.1\r\nHost: a\r\n${head}\r\n0\r\n\r\n${hidden}`);
    assert.doesNotMatch(text, /"kind": ?"SecretList"|system:masters/, `${head}: ${text}`);
    // Closed without a word is as good.
    assert.match(text, /^$|^HTTP\/1\.1 (4\d\d|501)/, `${head}: ${text}`);
  }
});

// S-484
test('a token in another spelling is no token: padding, bits that mean nothing, white space', async () => {
  await plane.admin('POST /api/v1/namespaces/default/serviceaccounts', {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'worker' },
  });
  const { status } = await plane.admin('POST /api/v1/namespaces/default/serviceaccounts/worker/token', {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: {},
  });
  const token: string = status.token;
  const ask = (spelled: string): Promise<string> => raw(post(`Authorization: Bearer ${spelled}\r\n`));
  assert.match(await ask(token), /^HTTP\/1\.1 201[\s\S]*system:serviceaccount:default:worker/);
  const [head, body, signature] = token.split('.') as [string, string, string];
  // 64 bytes of signature leave four bits of the last character without a meaning.
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const sameBytes = signature.slice(0, -1) + alphabet[alphabet.indexOf(signature.at(-1)!) ^ 1]!;
  assert.deepEqual(Buffer.from(sameBytes, 'base64url'), Buffer.from(signature, 'base64url'));
  for (const spelled of [
    `${token}=`,
    `${token}==`,
    `${head}=.${body}.${signature}`,
    `${head}.${body}=.${signature}`,
    `${head}.${body}.${sameBytes}`,
    `${head}.${body}.${signature.slice(0, 9)} ${signature.slice(9)}`,
    `${token.replaceAll('-', '+').replaceAll('_', '/')}=`,
  ])
    assert.match(await ask(spelled), /^HTTP\/1\.1 401/, spelled);
});
