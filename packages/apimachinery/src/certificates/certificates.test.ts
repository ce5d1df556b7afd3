import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  createAuthority,
  createSigningRequest,
  openAuthority,
} from '../../../apiserver/src/auth/certificate-authority.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { checkRequestSignature, parseCertificateRequest } from './certificate-request.ts';
import { certificateValidity } from './certificate-validity.ts';
import { identifierText, readDer } from './der.ts';
import { clientUsagesProblem, kubeletClientProblem, kubeletServingProblem } from './kubelet-request.ts';

/** `openssl req -new -newkey rsa:2048 -subj /O=a/O=b/CN=jane -addext subjectAltName=DNS:d,IP:127.0.0.1,email:e@x,URI:u:v`. */
const RSA = `-----BEGIN CERTIFICATE REQUEST-----
MIICmzCCAYMCAQAwJzEKMAgGA1UECgwBYTEKMAgGA1UECgwBYjENMAsGA1UEAwwE
amFuZTCCASIwDQYJKoZIhvcNAQEBBQADggEPADCCAQoCggEBALkR8Z8OMCcgzHzS
8IfcM4YcwyAx8KhHmBdMauGrOjGOUH+4pOn3dKn4ir7djxtLDeH1YGeJubBj0jgk
8sRT17qBvRWDRRCwYUm4c7U5flH7KDcncT/hYKfVquBSsP0gTWNzvvrJeySjE8f3
UOwfw7yEFSmsWEcil+AdZ2RtOB1etgR20NiwruO/hsWg1IDLnl7ZX5/o2zK8c0zC
MoVEitm+ea5B3NmLMIsiCrxXV0YJdkAAMOEnu1A7nRyXSe0nCI+4vlJEHSICEQys
tYSJ+Bf8bZFsJ9zy8E+GgWhF1LjL7BHuOIIcTCnNr+qF2Es3cIBHQPt2g92gC3xi
LrVve4kCAwEAAaAvMC0GCSqGSIb3DQEJDjEgMB4wHAYDVR0RBBUwE4IBZIcEfwAA
AYEDZUB4hgN1OnYwDQYJKoZIhvcNAQELBQADggEBAKqNpYqhIccxkv5R4sm0OdBQ
wxpjAbEWIE7YUIrbmFr7GT8FZ3rUEVmeDTDSXb3Z2yp2Uww9y3q4xSeCGW8woxQH
wZqgXpDpM7I7R31HljtpIBAebGIvkn5nhY75SWXjePpPnArT+DLocHlAfwnSoIJt
RDVO7fmlPEqApWr6+zwLBp6KwJ8DYXiXSLBUJh0U5PGJByXrpsBneRpHPEac+eQR
Tcljj5+6lVTWpZfnAqG+nu6A+OqFj2z5oqbmJv2hhWb7jCcWSA15xVrdgGudnxjP
s03aGWxXmIWh1co9rwuIwuebtNeg2t+Pna885MS6t8CY4+yvD8ZcBzgE+jgyDnw=
-----END CERTIFICATE REQUEST-----
`;

test('a request made elsewhere is read: subject, names, and its RSA signature', async () => {
  const request = parseCertificateRequest(RSA);
  assert.equal(request.commonName, 'jane');
  assert.deepEqual(request.organizations, ['a', 'b']);
  assert.deepEqual([request.dnsNames, request.emailAddresses, request.uris], [['d'], ['e@x'], ['u:v']]);
  assert.deepEqual(
    request.ipAddresses.map((ip) => [...ip]),
    [[127, 0, 0, 1]],
  );
  assert.equal(await checkRequestSignature(request), undefined);
  const forged = { ...request, signed: request.signed.map((byte, at) => (at === 20 ? byte ^ 1 : byte)) };
  assert.equal(await checkRequestSignature(forged), 'crypto/rsa: verification error');
});

test('a request of a great many elements is not read', () => {
  const pem = (der: Uint8Array): string =>
    `-----BEGIN CERTIFICATE REQUEST-----\n${Buffer.from(der).toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`;
  const most = 256 * 1024;
  assert.throws(() => parseCertificateRequest(pem(new Uint8Array(most + 2))), {
    name: 'SyntaxError',
    message: `a certificate request has at most ${most} bytes`,
  });
  assert.throws(() => parseCertificateRequest(pem(new Uint8Array(most))), /asn1: structure error/);
});

// Compat Admission and quota, P2, yes: CertificateSigningRequests may be signed with SHA-1 (RSA, ECDSA), as Go has it
//   for requests alone
test('a request may be signed with SHA-1, as Go has it for requests alone', async () => {
  const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-1' };
  const size = { modulusLength: 2048, publicExponent: Uint8Array.of(1, 0, 1) };
  const keys = await crypto.subtle.generateKey({ ...algorithm, ...size }, true, ['sign', 'verify']);
  const parsed = parseCertificateRequest(RSA);
  const request = {
    ...parsed,
    publicKey: new Uint8Array(await crypto.subtle.exportKey('spki', keys.publicKey)),
    signatureAlgorithm: '1.2.840.113549.1.1.5',
    signature: new Uint8Array(await crypto.subtle.sign(algorithm, keys.privateKey, new Uint8Array(parsed.signed))),
  };
  assert.equal(await checkRequestSignature(request), undefined);
  assert.equal(
    await checkRequestSignature({ ...request, signature: parsed.signature }),
    'crypto/rsa: verification error',
  );
});

test('our own requests are ECDSA, and a certificate says when it ends', async () => {
  const clock = createFakeClock(Date.UTC(2030, 0, 1));
  const { request: pem } = await createSigningRequest({ commonName: 'system:node:n', organizations: ['system:nodes'] });
  const request = parseCertificateRequest(pem);
  assert.deepEqual([request.commonName, request.organizations], ['system:node:n', ['system:nodes']]);
  assert.equal(await checkRequestSignature(request), undefined);
  const authority = await openAuthority(await createAuthority(clock), clock);
  const certificate = await authority.sign(pem, { usages: ['client auth'], expirationSeconds: 3600 });
  assert.deepEqual(certificateValidity(certificate), {
    notBefore: clock.now() - 300_000,
    notAfter: clock.now() + 3_600_000,
  });
  const year = certificateValidity(await authority.sign(pem, { usages: [], expirationSeconds: 10 ** 9 }));
  assert.equal(year.notAfter, clock.now() + 365 * 86_400_000 - 300_000);
});

test('object identifiers are read in full', () => {
  assert.equal(identifierText(Uint8Array.of(0x55, 0x04, 0x03)), '2.5.4.3');
  assert.equal(
    identifierText(Uint8Array.of(0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x0e)),
    '1.2.840.113549.1.9.14',
  );
});

test('bytes of any kind are read or refused with a SyntaxError, and nothing else', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      try {
        const total = readDer(bytes).reduce((sum, { raw }) => sum + raw.length, 0);
        assert.equal(total, bytes.length);
      } catch (error) {
        assert.ok(error instanceof SyntaxError);
      }
    }),
  );
});

const node = {
  ...parseCertificateRequest(RSA),
  commonName: 'system:node:n',
  organizations: ['system:nodes'],
  dnsNames: [],
  emailAddresses: [],
  uris: [],
  ipAddresses: [],
};
for (const [name, check, request, usages, problem] of [
  ['client', kubeletClientProblem, {}, ['digital signature', 'client auth'], undefined],
  [
    'client with key encipherment',
    kubeletClientProblem,
    {},
    ['key encipherment', 'digital signature', 'client auth'],
    undefined,
  ],
  [
    'client, too many groups',
    kubeletClientProblem,
    { organizations: ['system:nodes', 'x'] },
    ['digital signature', 'client auth'],
    'subject organization is not system:nodes',
  ],
  [
    'client with a DNS name',
    kubeletClientProblem,
    { dnsNames: ['d'] },
    ['digital signature', 'client auth'],
    'DNS subjectAltNames are not allowed',
  ],
  [
    'client with an address',
    kubeletClientProblem,
    { ipAddresses: [Uint8Array.of(1)] },
    ['digital signature', 'client auth'],
    'IP subjectAltNames are not allowed',
  ],
  [
    'client with more usages',
    kubeletClientProblem,
    {},
    ['digital signature', 'client auth', 'server auth'],
    'usages did not match [client auth digital signature key encipherment]',
  ],
  ['serving', kubeletServingProblem, { dnsNames: ['d'] }, ['digital signature', 'server auth'], undefined],
  [
    'serving without names',
    kubeletServingProblem,
    {},
    ['digital signature', 'server auth'],
    'DNS or IP subjectAltName is required',
  ],
  [
    'serving of nobody',
    kubeletServingProblem,
    { dnsNames: ['d'], commonName: 'n' },
    ['digital signature', 'server auth'],
    'subject common name does not begin with system:node:',
  ],
] as const) {
  test(`a node’s request: ${name}`, () => {
    assert.equal(check({ ...node, ...request }, usages), problem);
  });
}

test('a client certificate is for client authentication', () => {
  assert.equal(clientUsagesProblem(['client auth', 'digital signature']), undefined);
  assert.equal(clientUsagesProblem(['code signing']), 'invalid usage for client certificate: code signing');
  assert.equal(clientUsagesProblem([]), 'missing required usage for client certificate: client auth');
});

test('readDer() reads no more elements than a certificate could have', () => {
  const nulls = new Uint8Array(2 * 16_385).map((_, i) => (i % 2 === 0 ? 5 : 0));
  assert.equal(readDer(nulls.subarray(2)).length, 16_384);
  assert.throws(() => readDer(nulls), { name: 'SyntaxError', message: 'asn1: structure error: too many elements' });
});
