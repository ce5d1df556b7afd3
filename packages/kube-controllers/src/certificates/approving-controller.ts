/**
 * Approves the client certificates that nodes ask for: its own again by a node (`selfnodeclient`), a first one by whoever
 * may bring nodes in (`nodeclient`), who thereby gets no certificate of a node that exists (upstream lets them). The right is asked for in the requester's name
 * (pkg/controller/certificates/approver/sarapprove.go).
 */

import type { CertificateRequest } from '@coracle/apimachinery/certificates/certificate-request';
import { KUBELET_CLIENT_SIGNER, kubeletClientProblem } from '@coracle/apimachinery/certificates/kubelet-request';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { CERTIFICATE_SIGNING_REQUESTS, NODES } from '@coracle/apimachinery/types/resource-types';
import type { CertificateSigningRequest } from '@coracle/apimachinery/types/types';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { type Controller, createController, ownKeys } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { TerminalError } from '@coracle/client/controller/terminal-error';
import { hasCondition, requestOf, withCondition } from './signing-request.ts';

export const approvingRules = policyRules(
  'list watch : certificates.k8s.io : certificatesigningrequests',
  'update : certificates.k8s.io : certificatesigningrequests/approval',
  `approve : certificates.k8s.io : signers : ${KUBELET_CLIENT_SIGNER}`,
  'create : authorization.k8s.io : subjectaccessreviews',
  'get : core : nodes',
);

const SELF = 'Auto approving self kubelet client certificate after SubjectAccessReview.';
const OTHER = 'Auto approving kubelet client certificate after SubjectAccessReview.';

const NODE_USER = 'system:node:';

/** Makes the controller; its keys are requests. */
export function createApprovingController(environment: ControllerEnvironment): Controller {
  const { client, informers } = environment;
  const requests = informers.of(CERTIFICATE_SIGNING_REQUESTS);
  return createController({
    ...environment,
    name: 'certificatesigningrequest-approving-controller',
    sources: [ownKeys(requests)],
    async reconcile(key, { signal }) {
      const held = requests.get(key);
      if (!held || held.status?.certificate || hasCondition(held, 'Approved', 'Denied')) return;
      if (held.spec.signerName !== KUBELET_CLIENT_SIGNER) return;
      const request = requestOf(held);
      if (kubeletClientProblem(request, held.spec.usages ?? [])) return;
      const tried: string[] = [];
      const attempts: readonly (readonly [subresource: string, message: string])[] = [
        ...(held.spec.username === request.commonName ? [['selfnodeclient', SELF] as const] : []),
        ['nodeclient', OTHER],
      ];
      const nodeName = request.commonName.slice(NODE_USER.length);
      for (const [subresource, message] of attempts) {
        tried.push(subresource);
        if (!(await isAllowed(client, { held, subresource, signal }))) continue;
        if (subresource === 'nodeclient' && (await nodeExists(client, nodeName, signal)))
          throw new TerminalError(
            `node ${JSON.stringify(nodeName)} exists: ${JSON.stringify(held.spec.username)} brings new nodes in; a ` +
              `certificate for this one is asked for with its own, or approved by an administrator`,
          );
        const promised = subresource === 'nodeclient' ? await promisedTo(client, request, signal) : undefined;
        if (promised !== undefined)
          throw new TerminalError(
            `node ${JSON.stringify(nodeName)} is about to join with another key (certificate request ` +
              `${JSON.stringify(promised)}): an administrator approves this one, or deletes that one first`,
          );
        const next = withCondition(held, { type: 'Approved', reason: 'AutoApproved', message });
        await client.update(CERTIFICATE_SIGNING_REQUESTS, next, { subresource: 'approval', signal });
        return;
      }
      throw new TerminalError(
        `recognized csr ${JSON.stringify(key.name)} as [${tried.join(' ')}] but subject access review was not approved`,
      );
    },
  });
}

const nodeExists = async (client: Client, name: string, signal: AbortSignal): Promise<boolean> =>
  (await orAbsent(client.get(NODES, { namespace: '', name }, { metadataOnly: true, signal }))) !== undefined;

/**
 * The request by which somebody with another key was promised the same node, before that Node exists. Read anew, as the
 * copy here may not know the last approval yet; approvals are made one after the other.
 */
async function promisedTo(client: Client, asked: CertificateRequest, signal: AbortSignal): Promise<string | undefined> {
  const { items } = await client.list(CERTIFICATE_SIGNING_REQUESTS, { signal });
  return items.find((other) => {
    if (other.spec.signerName !== KUBELET_CLIENT_SIGNER || !hasCondition(other, 'Approved')) return false;
    if (hasCondition(other, 'Denied', 'Failed')) return false;
    const { commonName, publicKey } = requestOf(other);
    return commonName === asked.commonName && String(publicKey) !== String(asked.publicKey);
  })?.metadata.name;
}

async function isAllowed(
  client: Client,
  ask: {
    readonly held: DeepReadonly<CertificateSigningRequest>;
    readonly subresource: string;
    readonly signal: AbortSignal;
  },
): Promise<boolean> {
  const { username = '', uid, groups = [], extra } = ask.held.spec;
  const review = (await client.raw('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', {
    signal: ask.signal,
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: {
        user: username,
        groups,
        ...(uid !== undefined && { uid }),
        ...(extra && { extra }),
        resourceAttributes: {
          group: 'certificates.k8s.io',
          resource: 'certificatesigningrequests',
          verb: 'create',
          subresource: ask.subresource,
        },
      },
    },
  })) as { status?: { allowed?: boolean } };
  return review.status?.allowed === true;
}
