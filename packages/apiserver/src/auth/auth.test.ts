import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { encodeBase64Url } from '../../../apimachinery/src/meta/base64.ts';
import { ApiError } from '../../../apimachinery/src/meta/status.ts';
import type { PolicyRule } from '../../../apimachinery/src/types/types.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { type ApiRequest, NEVER, NO_BYTES } from '../../../runtime/src/http/seam.ts';
import { createAuthenticator } from './authenticator.ts';
import { createAuthority, openAuthority } from './certificate-authority.ts';
import { allowsPath, allowsResource } from './rbac.ts';
import { createSigningKey, createTokenIssuer } from './service-account-tokens.ts';

const clock = createFakeClock(Date.now());
const request = (over: Partial<ApiRequest>): ApiRequest => ({
  method: 'GET',
  path: '/',
  query: '',
  headers: {},
  body: NO_BYTES,
  peer: { address: '' },
  signal: NEVER,
  ...over,
});
const is401 = (error: unknown): boolean => error instanceof ApiError && error.code === 401;

// S-101
test('issue() makes a certificate that chains to the authority and carries its names', async () => {
  const pair = await createAuthority(clock);
  const authority = await openAuthority(pair, clock);
  const leaf = await authority.issue({
    commonName: 'admin',
    organizations: ['system:masters', 'b'],
    dnsNames: ['localhost'],
    ipAddresses: ['127.0.0.1'],
    usage: 'both',
    days: 1,
  });
  const certificate = new X509Certificate(leaf.certificate);
  assert.ok(certificate.verify(new X509Certificate(pair.certificate).publicKey));
  assert.match(certificate.subject, /O=system:masters\nO=b\nCN=admin/);
  assert.equal(certificate.checkHost('localhost'), 'localhost');
  assert.equal(certificate.checkIP('127.0.0.1'), '127.0.0.1');
});

// S-101
// Compat Authentication and impersonation, P0, yes: service-account tokens: claims, bound objects, audiences
test('verify() accepts a token only while it is fresh, ours, for us, and its service account lives', async () => {
  const uids = new Map([
    ['ServiceAccount ns/sa', 'u1'],
    ['Pod ns/p', 'p1'],
  ]);
  const findUid = (kind: string, namespace: string, name: string): string | undefined =>
    uids.get(`${kind} ${namespace}/${name}`);
  const key = await createSigningKey();
  const tokens = await createTokenIssuer({ key, issuer: 'https://a', clock, findUid });
  const claims = {
    namespace: 'ns',
    serviceAccount: { name: 'sa', uid: 'u1' },
    audiences: ['https://a'],
    expirationSeconds: 600,
  };
  const { token } = await tokens.sign(claims);
  assert.equal((await tokens.verify(token))?.user.username, 'system:serviceaccount:ns:sa');
  assert.deepEqual((await tokens.verify(token))?.user.groups, [
    'system:serviceaccounts',
    'system:serviceaccounts:ns',
    'system:authenticated',
  ]);
  assert.equal(await tokens.verify(token, { audiences: ['other'] }), undefined);
  const [head, body, signature] = token.split('.') as [string, string, string];
  const forged = encodeBase64Url(
    new TextEncoder().encode(atob(body.replaceAll('-', '+').replaceAll('_', '/')).replace('"sa"', '"root"')),
  );
  assert.equal(await tokens.verify(`${head}.${forged}.${signature}`), undefined);
  assert.equal(await tokens.verify('a.b.c'), undefined);
  const other = await createTokenIssuer({ key: await createSigningKey(), issuer: 'https://a', clock, findUid });
  assert.equal(await other.verify(token), undefined);

  const boundToken = (await tokens.sign({ ...claims, bound: { kind: 'Pod', name: 'p', uid: 'p1' } })).token;
  assert.ok(await tokens.verify(boundToken));
  uids.delete('Pod ns/p');
  assert.equal(await tokens.verify(boundToken), undefined);
  uids.set('ServiceAccount ns/sa', 'u2');
  assert.equal(await tokens.verify(token), undefined);
  uids.set('ServiceAccount ns/sa', 'u1');
  await clock.advance(601_000);
  assert.equal(await tokens.verify(token), undefined);
});

// S-101: Certificates and tokens: a wrong credential is never anonymous; a token ends with its service account.
// Compat Authentication and impersonation, P0, yes: certificate, bearer token, anonymous: the first that knows the
//   request decides
test('authenticate(): a credential that is present but wrong is 401, none is anonymous', async () => {
  const good = { user: { username: 'x', groups: [] }, audiences: [] };
  const authenticator = createAuthenticator({
    clock,
    tokens: { verify: async (token) => (token === 'good' ? good : undefined) },
  });
  const authenticate = async (asked: ApiRequest) => authenticator(asked);
  const certificate = {
    verified: true,
    commonName: 'kubernetes-admin',
    organizations: ['system:masters'],
    fingerprint: 'f',
  };
  assert.deepEqual((await authenticate(request({ peer: { address: '', certificate } }))).groups, [
    'system:masters',
    'system:authenticated',
  ]);
  assert.equal((await authenticate(request({}))).username, 'system:anonymous');
  assert.equal((await authenticate(request({ headers: { authorization: 'Bearer good' } }))).username, 'x');
  const protocol = `base64url.bearer.authorization.k8s.io.${encodeBase64Url(new TextEncoder().encode('good'))}`;
  const upgrade = (header: string): ApiRequest =>
    request({ upgradable: true, headers: { 'sec-websocket-protocol': header } });
  assert.equal((await authenticate(upgrade(`plain.kubevirt.io, ${protocol}`))).username, 'x');
  // A token with nothing to speak, and two of them.
  await assert.rejects(authenticate(upgrade(protocol)), is401);
  await assert.rejects(authenticate(upgrade(`plain.kubevirt.io, ${protocol}, ${protocol}`)), is401);
  await assert.rejects(authenticate(request({ headers: { authorization: 'Bearer bad' } })), is401);
  await assert.rejects(authenticate(request({ headers: { authorization: 'Basic eA==' } })), is401);
  await assert.rejects(
    authenticate(request({ peer: { address: '', certificate: { ...certificate, verified: false } } })),
    is401,
  );
  // The connection may be older than the end of the certificate.
  const until = (notAfter: number) => request({ peer: { address: '', certificate: { ...certificate, notAfter } } });
  assert.equal((await authenticate(until(clock.now() + 1))).username, 'kubernetes-admin');
  await assert.rejects(authenticate(until(clock.now() - 1)), is401);
  const closed = createAuthenticator({
    tokens: { verify: async () => undefined },
    clock,
    anonymous: () => ({ enabled: false }),
  });
  await assert.rejects(async () => closed(request({})), is401);
});

const RESOURCE_CASES: [
  rule: PolicyRule,
  verb: string,
  group: string,
  resource: string,
  subresource: string,
  name: string,
  allowed: boolean,
][] = [
  [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }, 'get', '', 'pods', '', 'a', true],
  [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }, 'list', '', 'pods', '', '', false],
  [{ verbs: ['*'], apiGroups: [''], resources: ['pods'] }, 'get', '', 'pods', 'log', 'a', false],
  [{ verbs: ['*'], apiGroups: [''], resources: ['pods/log'] }, 'get', '', 'pods', 'log', 'a', true],
  [{ verbs: ['*'], apiGroups: ['*'], resources: ['*/scale'] }, 'get', 'apps', 'deployments', 'scale', 'a', true],
  [{ verbs: ['*'], apiGroups: ['*'], resources: ['*/scale'] }, 'get', 'apps', 'deployments', '', 'a', false],
  [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }, 'create', 'apps', 'deployments', 'scale', 'a', true],
  [{ verbs: ['get'], apiGroups: ['apps'], resources: ['*'] }, 'get', '', 'pods', '', 'a', false],
  [
    { verbs: ['get'], apiGroups: [''], resources: ['secrets'], resourceNames: ['a'] },
    'get',
    '',
    'secrets',
    '',
    'a',
    true,
  ],
  [
    { verbs: ['get'], apiGroups: [''], resources: ['secrets'], resourceNames: ['a'] },
    'get',
    '',
    'secrets',
    '',
    'b',
    false,
  ],
  [
    { verbs: ['create'], apiGroups: [''], resources: ['secrets'], resourceNames: ['a'] },
    'create',
    '',
    'secrets',
    '',
    '',
    false,
  ],
  [{ verbs: ['get'], nonResourceURLs: ['*'] }, 'get', '', 'pods', '', 'a', false],
];
// S-102: RBAC matches rules as upstream.
// Compat Authorisation, P0, yes: RBAC: subjects, rules, names, non-resource URLs
test('allowsResource() matches as upstream', () => {
  for (const [rule, verb, group, resource, subresource, name, allowed] of RESOURCE_CASES)
    assert.equal(
      allowsResource(rule, {
        type: 'resource',
        verb,
        group,
        version: 'v1',
        resource,
        subresource,
        namespace: 'ns',
        name,
      }),
      allowed,
      JSON.stringify({ rule, verb, resource, subresource, name }),
    );
});

// S-102
test('allowsPath() takes a trailing star', () => {
  const may = (urls: string[], path: string): boolean =>
    allowsPath({ verbs: ['get'], nonResourceURLs: urls }, { type: 'path', verb: 'get', path });
  assert.ok(may(['/healthz'], '/healthz'));
  assert.ok(may(['/api/*'], '/api/v1'));
  assert.ok(!may(['/healthz'], '/healthz/ping'));
  assert.ok(!may(['/api*x'], '/apix'));
});
