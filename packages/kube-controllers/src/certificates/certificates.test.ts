import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CertificateSigningRequest } from '../../../apimachinery/src/types/types.ts';
import {
  createAuthority,
  createSigningRequest,
  openAuthority,
} from '../../../apiserver/src/auth/certificate-authority.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { removableAt } from './cleaner-controller.ts';

const HOUR = 3_600_000;
const MADE = Date.UTC(2030, 0, 1);
const request = (status?: CertificateSigningRequest['status']): CertificateSigningRequest => ({
  apiVersion: 'certificates.k8s.io/v1',
  kind: 'CertificateSigningRequest',
  metadata: { name: 'r', creationTimestamp: new Date(MADE).toISOString() },
  spec: { request: '', signerName: 's' },
  ...(status && { status }),
});
const condition = (type: string, hours: number) => ({
  type,
  status: 'True',
  lastUpdateTime: new Date(MADE + hours * HOUR).toISOString(),
});

for (const [name, status, hours] of [
  ['nobody decided on', undefined, 24],
  ['denied', { conditions: [condition('Denied', 2)] }, 3],
  ['failed', { conditions: [condition('Approved', 1), condition('Failed', 2)] }, 3],
  ['approved and not signed', { conditions: [condition('Approved', 1)] }, undefined],
  ['approved and signed', { conditions: [condition('Approved', 1)], certificate: 'eA==' }, 2],
] as const) {
  test(`a request may go: ${name}`, () => {
    assert.equal(
      removableAt(request(status as CertificateSigningRequest['status'])),
      hours === undefined ? undefined : MADE + hours * HOUR,
    );
  });
}

test('a request goes with its certificate, if that ends first', async () => {
  const clock = createFakeClock(MADE);
  const authority = await openAuthority(await createAuthority(clock), clock);
  const { request: pem } = await createSigningRequest({ commonName: 'x', organizations: [] });
  const certificate = Buffer.from(await authority.sign(pem, { usages: [], expirationSeconds: 600 })).toString('base64');
  assert.equal(removableAt(request({ conditions: [condition('Approved', 0)], certificate })), MADE + 600_000);
});
