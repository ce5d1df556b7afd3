/**
 * How often the signers of CertificateSigningRequests that ask for a duration keep to it
 * (pkg/registry/certificates/certificates/storage/metrics.go). A watch counts: what is published was written once.
 */
import { certificateValidity } from '@coracle/apimachinery/certificates/certificate-validity';
import { decodeBase64 } from '@coracle/apimachinery/meta/base64';
import { storagePrefix } from '@coracle/apimachinery/types/resource';
import { createCounter } from '@coracle/runtime/metrics/counter';
import type { ValueFamily } from '@coracle/runtime/metrics/metric-family';
import type { Change, ObjectStore } from '../cache/object-store.ts';

interface SigningRequest {
  spec?: { signerName?: string; expirationSeconds?: number };
  status?: { certificate?: string };
}

/** Signers date back, and round. */
const SLACK_MS = 5 * 60_000;

export interface SigningMetrics {
  families(): ValueFamily[];
  stop(): void;
}

/** Counts from now on. */
export function createSigningMetrics(store: Pick<ObjectStore, 'watch' | 'revision'>): SigningMetrics {
  const counter = (what: string, help: string) =>
    createCounter(`apiserver_certificates_registry_csr_${what}_duration_total`, help);
  const requested = counter('requested', 'Certificates issued to requests for a certain duration.');
  const honored = counter('honored', 'Certificates issued to such requests with about that duration.');
  const prefix = storagePrefix({ group: 'certificates.k8s.io', resource: 'certificatesigningrequests' });
  const watch = store.watch(prefix, store.revision(), (changes) => {
    for (const change of changes) {
      const signed = signedNow(change);
      if (!signed) continue;
      const { signerName } = signed;
      requested.add({ signerName });
      if (isHonored(signed)) honored.add({ signerName });
    }
  });
  return { families: () => [requested.family(), honored.family()], stop: () => watch.stop() };
}

interface Signed {
  readonly signerName: string;
  readonly seconds: number;
  readonly certificate: string;
}

/** What was signed with this change; undefined where nothing was, or no duration asked for. */
function signedNow({ type, current, previous }: Change): Signed | undefined {
  if (type !== 'MODIFIED') return undefined;
  const { spec, status } = current.object as SigningRequest;
  if (spec?.expirationSeconds === undefined || !status?.certificate) return undefined;
  if ((previous?.object as SigningRequest | undefined)?.status?.certificate) return undefined;
  const { signerName: name = '' } = spec;
  // One series for all whose names are made up by others.
  const signerName = name.startsWith('kubernetes.io/') ? name : 'other';
  return { signerName, seconds: spec.expirationSeconds, certificate: status.certificate };
}

function isHonored({ seconds, certificate }: Signed): boolean {
  try {
    const { notBefore, notAfter } = certificateValidity(new TextDecoder().decode(decodeBase64(certificate)));
    const wanted = seconds * 1000;
    return Math.abs(wanted - (notAfter - notBefore)) < SLACK_MS + wanted / 20;
  } catch {
    // Not what admission lets through today; it is no certificate of that duration.
    return false;
  }
}
