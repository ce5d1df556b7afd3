/** How a node agent asks for a certificate, whoever signs it: a request in the node's name, and the wait for its signature. */
import { certificateValidity } from '@coracle/apimachinery/certificates/certificate-validity';
import { decodeBase64, encodeBase64 } from '@coracle/apimachinery/meta/base64';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import { CERTIFICATE_SIGNING_REQUESTS } from '@coracle/apimachinery/types/resource-types';
import type { CertificateSigningRequest } from '@coracle/apimachinery/types/types';
import type { Client } from '@coracle/client/client';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { KeyPairPem } from '../config/pki.ts';

/** Asked for anew when this part of a certificate's life is left. */
export const RENEW_AT = 0.3;
/** A day's work for whoever steals it, and renewed long before. */
const CERTIFICATE_SECONDS = 86_400;
const POLL_MS = 200;

/**
 * Makes a key and a CertificateSigningRequest for it, named as kubelets are (API doc of
 * `kubernetes.io/kube-apiserver-client-kubelet`). The key, PEM, stays with the caller; the request is not sent yet.
 */
export async function createNodeSigningRequest(
  nodeName: string,
  { signerName, generateName }: { readonly signerName: string; readonly generateName: string },
): Promise<{ readonly object: CertificateSigningRequest; readonly key: string }> {
  // Loaded when it is wanted: an agent that holds a good certificate starts without it.
  const { createSigningRequest } = await import('@coracle/apiserver/auth/certificate-authority');
  const { request, key } = await createSigningRequest({
    commonName: `system:node:${nodeName}`,
    organizations: ['system:nodes'],
  });
  const object = {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { generateName },
    spec: {
      request: encodeBase64(new TextEncoder().encode(request)),
      signerName,
      usages: ['digital signature', 'client auth'],
      expirationSeconds: CERTIFICATE_SECONDS,
    },
  } as KubeObject as CertificateSigningRequest;
  return { object, key };
}

/** The part of a certificate's life that is left, 0 to 1; 0 as well when it cannot be read. */
export function lifeLeft({ certificate }: KeyPairPem, now: number): number {
  try {
    const { notBefore, notAfter } = certificateValidity(certificate);
    return Math.max(0, (notAfter - now) / (notAfter - notBefore));
  } catch {
    return 0;
  }
}

export type Signature =
  /** `certificate`: PEM. */
  | { readonly outcome: 'signed'; readonly certificate: string }
  /** Denied or Failed; it will never come. */
  | { readonly outcome: 'refused'; readonly message: string }
  /** Nobody has decided it yet. The request stays. */
  | { readonly outcome: 'waits' };

/** Looks at a request until it is decided, at most `withinMs`. Rejects with the failure of the API, or the signal's reason. */
export async function waitForSignature(
  client: Client,
  name: string,
  { clock, withinMs, signal }: { readonly clock: Clock; readonly withinMs: number; readonly signal: AbortSignal },
): Promise<Signature> {
  const until = clock.monotonic() + withinMs;
  for (;;) {
    const { status } = await client.get(CERTIFICATE_SIGNING_REQUESTS, { namespace: '', name }, { signal });
    if (status?.certificate)
      return { outcome: 'signed', certificate: new TextDecoder().decode(decodeBase64(status.certificate)) };
    const refused = status?.conditions?.find(({ type }) => type === 'Denied' || type === 'Failed');
    if (refused) return { outcome: 'refused', message: refused.message ?? '' };
    if (clock.monotonic() > until) return { outcome: 'waits' };
    await clock.sleep(POLL_MS, signal);
  }
}
