/**
 * How often the signers of CertificateSigningRequests that ask for a duration keep to it
 * (pkg/registry/certificates/certificates/storage/metrics.go). A watch counts: what is published was written once.
 */
import { certificateValidity } from '@coracle/apimachinery/certificates/certificate-validity';
import { decodeBase64 } from '@coracle/apimachinery/meta/base64';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { storagePrefix } from '@coracle/apimachinery/types/resource';
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
  const requested = new Map<string, number>();
  const honored = new Map<string, number>();
  const prefix = storagePrefix({ group: 'certificates.k8s.io', resource: 'certificatesigningrequests' });
  const watch = store.watch(prefix, store.revision(), (changes) => {
    for (const change of changes) {
      const signed = signedNow(change);
      if (!signed) continue;
      count(requested, signed.signer);
      if (isHonored(signed)) count(honored, signed.signer);
    }
  });
  const family = (which: 'requested' | 'honored', help: string): ValueFamily => ({
    name: `apiserver_certificates_registry_csr_${which}_duration_total`,
    help,
    type: 'counter',
    samples: [...(which === 'honored' ? honored : requested)].map(([signerName, value]) => ({
      labels: { signerName },
      value,
    })),
  });
  return {
    families: () => [
      family('requested', 'Certificates issued to requests for a certain duration.'),
      family('honored', 'Certificates issued to such requests with about that duration.'),
    ],
    stop: () => watch.stop(),
  };
}

interface Signed {
  readonly signer: string;
  readonly seconds: number;
  readonly certificate: string;
}

/** What was signed with this change; undefined where nothing was, or no duration asked for. */
function signedNow({ type, current, previous }: Change): Signed | undefined {
  if (type !== 'MODIFIED') return undefined;
  const { spec, status } = partsOf(current.object);
  if (spec?.expirationSeconds === undefined || !status?.certificate) return undefined;
  if (previous && partsOf(previous.object).status?.certificate) return undefined;
  const { signerName = '' } = spec;
  // One series for all whose names are made up by others.
  const signer = signerName.startsWith('kubernetes.io/') ? signerName : 'other';
  return { signer, seconds: spec.expirationSeconds, certificate: status.certificate };
}

const partsOf = (object: Readonly<UnstructuredObject>): SigningRequest => object as SigningRequest;

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

const count = (counts: Map<string, number>, signer: string): void => {
  counts.set(signer, (counts.get(signer) ?? 0) + 1);
};
