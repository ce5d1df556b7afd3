/** CertificateSigningRequest as the controllers of this room read and write it. */

import {
  type CertificateRequest,
  parseCertificateRequest,
} from '@coracle/apimachinery/certificates/certificate-request';
import { decodeBase64 } from '@coracle/apimachinery/meta/base64';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { CertificateSigningRequest } from '@coracle/apimachinery/types/types';

export const hasCondition = ({ status }: DeepReadonly<CertificateSigningRequest>, type: string): boolean =>
  (status?.conditions ?? []).some((condition) => condition.type === type);

/** The request inside. Throws SyntaxError. */
export const requestOf = ({ spec }: DeepReadonly<CertificateSigningRequest>): CertificateRequest =>
  parseCertificateRequest(pemOf(spec.request));

export const pemOf = (base64: string): string => new TextDecoder().decode(decodeBase64(base64));
