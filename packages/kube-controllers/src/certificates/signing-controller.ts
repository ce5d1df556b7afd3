/**
 * Signs approved requests for the signers of Kubernetes (pkg/controller/certificates/signer/signer.go). It never sees the
 * authority's key: whoever has that gives a function.
 */

import type { CertificateRequest } from '@coracle/apimachinery/certificates/certificate-request';
import {
  CLIENT_SIGNER,
  clientUsagesProblem,
  KUBELET_CLIENT_SIGNER,
  KUBELET_SERVING_SIGNER,
  kubeletClientProblem,
  kubeletServingProblem,
  LEGACY_SIGNER,
} from '@coracle/apimachinery/certificates/kubelet-request';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { CERTIFICATE_SIGNING_REQUESTS } from '@coracle/apimachinery/types/resource-types';
import type { CertificateSigningRequestSpec } from '@coracle/apimachinery/types/types';
import { type Controller, createController, ownKeys } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { hasCondition, pemOf, requestOf, withCertificate, withCondition } from './signing-request.ts';

/** Signs a PEM request as it stands; resolves to the certificate, PEM. */
export type SignRequest = (
  request: string,
  options: { readonly usages: readonly string[]; readonly expirationSeconds?: number },
) => Promise<string>;

export interface SigningOptions extends ControllerEnvironment {
  readonly sign: SignRequest;
}

/** By signer: why a request is not one it signs. */
const PROBLEMS: Readonly<
  Record<string, (request: CertificateRequest, usages: readonly string[]) => string | undefined>
> = {
  [CLIENT_SIGNER]: (_request, usages) => clientUsagesProblem(usages),
  [KUBELET_CLIENT_SIGNER]: kubeletClientProblem,
  [KUBELET_SERVING_SIGNER]: kubeletServingProblem,
  [LEGACY_SIGNER]: () => undefined,
};

export const signingRules = policyRules(
  'list watch : certificates.k8s.io : certificatesigningrequests',
  'update : certificates.k8s.io : certificatesigningrequests/status',
  `sign : certificates.k8s.io : signers : ${Object.keys(PROBLEMS).join(' ')}`,
);

/** A node's certificate is a day's work for whoever steals it, whatever was asked for; agents renew theirs long before. */
const NODE_SECONDS = 86_400;

type Lifetime = Pick<CertificateSigningRequestSpec, 'signerName' | 'expirationSeconds'>;

/** Seconds asked for; undefined where the authority decides. */
const lifeOf = ({ signerName, expirationSeconds: asked }: Lifetime): number | undefined =>
  signerName === KUBELET_CLIENT_SIGNER ? Math.min(asked ?? NODE_SECONDS, NODE_SECONDS) : asked;

/** Makes the controller; its keys are requests. */
export function createSigningController(options: SigningOptions): Controller {
  const { client, informers, sign } = options;
  const requests = informers.of(CERTIFICATE_SIGNING_REQUESTS);
  return createController({
    ...options,
    name: 'certificatesigningrequest-signing-controller',
    sources: [ownKeys(requests)],
    async reconcile(key, { signal }) {
      const held = requests.get(key);
      if (!held || held.status?.certificate || !hasCondition(held, 'Approved')) return;
      if (hasCondition(held, 'Denied', 'Failed')) return;
      const problemOf = PROBLEMS[held.spec.signerName];
      if (!problemOf) return;
      const { usages = [], request } = held.spec;
      const expirationSeconds = lifeOf(held.spec);
      const message = problemOf(requestOf(held), usages);
      const options = { usages, ...(expirationSeconds !== undefined && { expirationSeconds }) };
      const next =
        message === undefined
          ? withCertificate(held, await sign(pemOf(request), options))
          : withCondition(held, { type: 'Failed', reason: 'SignerValidationFailure', message });
      await client.update(CERTIFICATE_SIGNING_REQUESTS, next, { subresource: 'status', signal });
    },
  });
}
