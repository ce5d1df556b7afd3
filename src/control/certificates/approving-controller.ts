/**
 * Approves the client certificates that nodes ask for: its own again by a node (`selfnodeclient`), a first one by whoever
 * may bring nodes in (`nodeclient`). The right is asked for in the requester's name
 * (pkg/controller/certificates/approver/sarapprove.go).
 */
import { KUBELET_CLIENT_SIGNER, kubeletClientProblem } from '../../api/certificates/kubelet-request.ts';
import type { PolicyRule } from '../../api/kinds/builtin/access-types.ts';
import { cloneJson } from '../../api/meta/deep-clone.ts';
import type { DeepReadonly } from '../../api/meta/object.ts';
import type { Client } from '../../client/client.ts';
import { type Controller, createController, DONE, ownKeys } from '../../client/controller/controller.ts';
import type { ControllerEnvironment } from '../../client/controller/environment.ts';
import { TerminalError } from '../../client/controller/terminal-error.ts';
import { hasCondition, requestOf, SIGNING_REQUESTS, type SigningRequest } from './signing-request.ts';

export const approvingRules: readonly PolicyRule[] = [
  { apiGroups: ['certificates.k8s.io'], resources: ['certificatesigningrequests'], verbs: ['list', 'watch'] },
  { apiGroups: ['certificates.k8s.io'], resources: ['certificatesigningrequests/approval'], verbs: ['update'] },
  {
    apiGroups: ['certificates.k8s.io'],
    resources: ['signers'],
    resourceNames: [KUBELET_CLIENT_SIGNER],
    verbs: ['approve'],
  },
  { apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'], verbs: ['create'] },
];

const SELF = 'Auto approving self kubelet client certificate after SubjectAccessReview.';
const OTHER = 'Auto approving kubelet client certificate after SubjectAccessReview.';

/** Makes the controller; its keys are requests. */
export function createApprovingController(environment: ControllerEnvironment): Controller {
  const { client, informers, clock, log } = environment;
  const requests = informers.of(SIGNING_REQUESTS);
  return createController({
    name: 'certificatesigningrequest-approving-controller',
    client,
    clock,
    log,
    sources: [ownKeys(requests)],
    async reconcile(key, { signal }) {
      const held = requests.get(key);
      if (!held || held.status?.certificate || hasCondition(held, 'Approved') || hasCondition(held, 'Denied'))
        return DONE;
      if (held.spec.signerName !== KUBELET_CLIENT_SIGNER) return DONE;
      const request = requestOf(held);
      if (kubeletClientProblem(request, held.spec.usages ?? [])) return DONE;
      const tried: string[] = [];
      const attempts: readonly (readonly [subresource: string, message: string])[] = [
        ...(held.spec.username === request.commonName ? [['selfnodeclient', SELF] as const] : []),
        ['nodeclient', OTHER],
      ];
      for (const [subresource, message] of attempts) {
        tried.push(subresource);
        if (!(await isAllowed(client, { held, subresource, signal }))) continue;
        const next = cloneJson(held) as SigningRequest;
        const condition = { type: 'Approved', status: 'True', reason: 'AutoApproved', message };
        next.status = { ...next.status, conditions: [...(next.status?.conditions ?? []), condition] };
        await client.update(SIGNING_REQUESTS, next, { subresource: 'approval', signal });
        return DONE;
      }
      throw new TerminalError(
        `recognized csr ${JSON.stringify(key.name)} as [${tried.join(' ')}] but subject access review was not approved`,
      );
    },
  });
}

async function isAllowed(
  client: Client,
  ask: { readonly held: DeepReadonly<SigningRequest>; readonly subresource: string; readonly signal: AbortSignal },
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
