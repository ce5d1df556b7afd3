/** CertificateSigningRequest as the controllers of this room read and write it. */

import {
  type CertificateRequest,
  parseCertificateRequest,
} from '@coracle/apimachinery/certificates/certificate-request';
import { decodeBase64 } from '@coracle/apimachinery/meta/base64';
import { clusterType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { CertificateSigningRequest, CertificateSigningRequestCondition } from '@coracle/apimachinery/types/types';

export type SigningCondition = CertificateSigningRequestCondition;

export type SigningRequest = CertificateSigningRequest;

export const SIGNING_REQUESTS = clusterType<SigningRequest>(
  'certificates.k8s.io/v1',
  'certificatesigningrequests',
  'CertificateSigningRequest',
);

export const hasCondition = ({ status }: DeepReadonly<SigningRequest>, type: string): boolean =>
  (status?.conditions ?? []).some((condition) => condition.type === type);

/** The request inside. Throws SyntaxError. */
export const requestOf = ({ spec }: DeepReadonly<SigningRequest>): CertificateRequest =>
  parseCertificateRequest(pemOf(spec.request));

export const pemOf = (base64: string): string => new TextDecoder().decode(decodeBase64(base64));
