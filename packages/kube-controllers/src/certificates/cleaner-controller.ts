/**
 * Deletes signing requests that nobody needs any more (pkg/controller/certificates/cleaner): an hour after they were
 * approved and signed, denied or failed, a day without a decision, and when the certificate has expired.
 */
import { certificateValidity } from '@coracle/apimachinery/certificates/certificate-validity';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { CERTIFICATE_SIGNING_REQUESTS } from '@coracle/apimachinery/types/resource-types';
import type { CertificateSigningRequest } from '@coracle/apimachinery/types/types';
import { orAbsent } from '@coracle/client/api-failure';
import { type Controller, createController, ownKeys, requeueAfter } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { pemOf } from './signing-request.ts';

export const cleanerRules = policyRules('list watch delete : certificates.k8s.io : certificatesigningrequests');

const HOUR_MS = 3_600_000;
const DECIDED_MS = HOUR_MS;
const PENDING_MS = 24 * HOUR_MS;
/** What is approved and never signed is looked at again after this long: it may be signed at any time. */
const LOOK_AGAIN_MS = HOUR_MS;

/** When the request may go, milliseconds since the epoch; undefined while nobody can say. */
export function removableAt(request: DeepReadonly<CertificateSigningRequest>): number | undefined {
  const { conditions = [], certificate } = request.status ?? {};
  const made = Date.parse(request.metadata.creationTimestamp ?? '');
  if (conditions.length === 0) return made + PENDING_MS;
  const times: number[] = [];
  for (const { type, lastUpdateTime } of conditions) {
    const done = type === 'Denied' || type === 'Failed' || (type === 'Approved' && certificate !== undefined);
    if (done) times.push((lastUpdateTime ? Date.parse(lastUpdateTime) : made) + DECIDED_MS);
  }
  if (certificate !== undefined) {
    try {
      times.push(certificateValidity(pemOf(certificate)).notAfter);
    } catch {
      // Not a certificate of ours to read: its age decides.
    }
  }
  return times.length === 0 ? undefined : Math.min(...times);
}

/** Makes the controller; its keys are requests. */
export function createCleanerController(environment: ControllerEnvironment): Controller {
  const { client, informers, clock } = environment;
  const requests = informers.of(CERTIFICATE_SIGNING_REQUESTS);
  return createController({
    ...environment,
    name: 'certificatesigningrequest-cleaner-controller',
    sources: [ownKeys(requests)],
    async reconcile(key, { signal }) {
      const held = requests.get(key);
      if (!held) return;
      const at = removableAt(held);
      if (at === undefined) return requeueAfter(LOOK_AGAIN_MS);
      const left = at - clock.now();
      if (left > 0) return requeueAfter(Math.min(left, PENDING_MS));
      const preconditions = { uid: held.metadata.uid ?? '' };
      await orAbsent(client.delete(CERTIFICATE_SIGNING_REQUESTS, key, { preconditions, signal }));
    },
  });
}
