import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAuthority } from '../../../apiserver/src/auth/certificate-authority.ts';
import { systemClock } from '../../../runtime/src/clock/clock.ts';
import { issuedCertificateProblem } from './issued-certificate.ts';

const block = (body: string, type = 'CERTIFICATE'): string => `-----BEGIN ${type}-----\n${body}-----END ${type}-----\n`;

test('issuedCertificateProblem() passes chains, with words between them', async () => {
  const { certificate } = await createAuthority(systemClock);
  assert.equal(issuedCertificateProblem(certificate), undefined);
  assert.equal(issuedCertificateProblem(`one\n${certificate}two\n${certificate}`), undefined);
});

test('issuedCertificateProblem() says what apis/certificates/validation says', () => {
  for (const [pem, problem] of [
    ['text', 'must contain at least one CERTIFICATE PEM block'],
    [block('???\n'), 'must contain at least one CERTIFICATE PEM block'],
    [block(''), 'found CERTIFICATE PEM block containing 0 certificates'],
    [block('TEST\n'), 'x509: malformed certificate'],
    [block('MAMCAQE=\n'), 'x509: malformed certificate'],
    [block('A: b\n\nMAA=\n'), 'no PEM block headers are permitted'],
    [block('MAA=\n', 'PRIVATE KEY'), 'only CERTIFICATE PEM blocks are allowed, found "PRIVATE KEY"'],
  ] as const) {
    assert.equal(issuedCertificateProblem(pem), problem, pem);
  }
});
