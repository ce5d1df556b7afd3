/** CertificateSigningRequest as the controllers of this room read and write it. */

import {
  type CertificateRequest,
  parseCertificateRequest,
} from '@coracle/apimachinery/certificates/certificate-request';
import { decodeBase64, encodeBase64 } from '@coracle/apimachinery/meta/base64';
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { CertificateSigningRequest, CertificateSigningRequestCondition } from '@coracle/apimachinery/types/types';

/** True when the request has a condition of one of the types. */
export const hasCondition = ({ status }: DeepReadonly<CertificateSigningRequest>, ...types: string[]): boolean =>
  (status?.conditions ?? []).some(({ type }) => types.includes(type));

/** The request with one more condition. */
export function withCondition(
  held: DeepReadonly<CertificateSigningRequest>,
  { type, ...why }: Omit<CertificateSigningRequestCondition, 'status'>,
): CertificateSigningRequest {
  const next = cloneJson(held) as CertificateSigningRequest;
  const conditions = [...(next.status?.conditions ?? []), { type, status: 'True', ...why }];
  return { ...next, status: { ...next.status, conditions } };
}

/** The request with its certificate, PEM. */
export function withCertificate(held: DeepReadonly<CertificateSigningRequest>, pem: string): CertificateSigningRequest {
  const next = cloneJson(held) as CertificateSigningRequest;
  return { ...next, status: { ...next.status, certificate: encodeBase64(new TextEncoder().encode(pem)) } };
}

/** The request inside. Throws SyntaxError. */
export const requestOf = ({ spec }: DeepReadonly<CertificateSigningRequest>): CertificateRequest =>
  parseCertificateRequest(pemOf(spec.request));

export const pemOf = (base64: string): string => new TextDecoder().decode(decodeBase64(base64));
