/**
 * Who may have which peer certificate: the agent of a node, for the name of that node, and for nothing else. Pure.
 *
 * On an external cluster an agent is a node (`system:node:NAME`), or the agents' service account. That account is
 * shared by all nodes, so that its name says nothing: the token has to name the node (KEP-4193), which the API server
 * vouches for in `spec.extra` of the request.
 */
import {
  type CertificateRequest,
  parseCertificateRequest,
} from '@coracle/apimachinery/certificates/certificate-request';
import { kubeletClientProblem } from '@coracle/apimachinery/certificates/kubelet-request';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { CertificateSigningRequest } from '@coracle/apimachinery/types/types';
import { pemOf } from './signing-request.ts';

/** Why a request is refused, as its condition says it. */
export interface Refusal {
  readonly reason: 'NotAPeerRequest' | 'RequesterIsAnotherNode' | 'RequesterNamesNoNode' | 'RequesterIsNoAgent';
  readonly message: string;
}

/** In `spec.extra`, of tokens that are bound to a node or to a Pod on one. */
export const NODE_CLAIM = 'authentication.kubernetes.io/node-name';
const NODE_PREFIX = 'system:node:';
const NODES_GROUP = 'system:nodes';
const NODE_NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

/** Validates a request. `agentUser` is the user name of the agents' service account. Undefined: it may be signed. */
export function peerRequestRefusal(
  { spec }: DeepReadonly<Pick<CertificateSigningRequest, 'spec'>>,
  agentUser: string,
): Refusal | undefined {
  const { username = '', groups = [], extra = {}, usages = [] } = spec;
  let request: CertificateRequest;
  try {
    request = parseCertificateRequest(pemOf(spec.request));
  } catch (error) {
    return { reason: 'NotAPeerRequest', message: (error as Error).message };
  }
  const problem = kubeletClientProblem(request, usages);
  if (problem !== undefined) return { reason: 'NotAPeerRequest', message: problem };
  const node = request.commonName.slice(NODE_PREFIX.length);
  if (!NODE_NAME.test(node))
    return { reason: 'NotAPeerRequest', message: `${JSON.stringify(node)} is not a node name` };
  const another = (who: string): Refusal => ({
    reason: 'RequesterIsAnotherNode',
    message: `${who} may not have a certificate of node ${node}`,
  });
  if (username.startsWith(NODE_PREFIX) && groups.includes(NODES_GROUP))
    return username === request.commonName ? undefined : another(username);
  if (username !== agentUser)
    return { reason: 'RequesterIsNoAgent', message: `${username} is neither a node nor ${agentUser}` };
  const claims = extra[NODE_CLAIM] ?? [];
  const [claimed] = claims;
  if (claimed === undefined)
    return {
      reason: 'RequesterNamesNoNode',
      message: `all agents are ${agentUser}: the token must be bound to Node ${node}, which takes an API server that puts ${NODE_CLAIM} into such tokens (Kubernetes 1.31 and newer)`,
    };
  return claims.length === 1 && claimed === node ? undefined : another(`the agent of node ${claims.join(', ')}`);
}
