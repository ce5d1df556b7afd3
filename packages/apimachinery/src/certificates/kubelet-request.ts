/** What the requests of nodes look like, and the names of the signers (pkg/apis/certificates/helpers.go). */
import type { CertificateRequest } from './certificate-request.ts';

export const CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client';
export const KUBELET_CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet';
export const KUBELET_SERVING_SIGNER = 'kubernetes.io/kubelet-serving';
export const LEGACY_SIGNER = 'kubernetes.io/legacy-unknown';

const NODE_PREFIX = 'system:node:';
const NODES_GROUP = 'system:nodes';

/** Why a request is not one of a kubelet for its client certificate; undefined when it is. */
export function kubeletClientProblem(request: CertificateRequest, usages: readonly string[]): string | undefined {
  if (!isOfNodes(request)) return 'subject organization is not system:nodes';
  if (request.dnsNames.length > 0) return 'DNS subjectAltNames are not allowed';
  if (request.emailAddresses.length > 0) return 'Email subjectAltNames are not allowed';
  if (request.ipAddresses.length > 0) return 'IP subjectAltNames are not allowed';
  if (request.uris.length > 0) return 'URI subjectAltNames are not allowed';
  if (!request.commonName.startsWith(NODE_PREFIX)) return 'subject common name does not begin with system:node:';
  return usagesProblem(usages, 'client auth');
}

/** Why a request is not one of a kubelet for its serving certificate; undefined when it is. */
export function kubeletServingProblem(request: CertificateRequest, usages: readonly string[]): string | undefined {
  if (!isOfNodes(request)) return 'subject organization is not system:nodes';
  if (request.dnsNames.length === 0 && request.ipAddresses.length === 0) return 'DNS or IP subjectAltName is required';
  if (request.emailAddresses.length > 0) return 'Email subjectAltNames are not allowed';
  if (request.uris.length > 0) return 'URI subjectAltNames are not allowed';
  const problem = usagesProblem(usages, 'server auth');
  if (problem) return problem;
  return request.commonName.startsWith(NODE_PREFIX)
    ? undefined
    : 'subject common name does not begin with system:node:';
}

/** Why usages do not fit a client certificate; undefined when they do. */
export function clientUsagesProblem(usages: readonly string[]): string | undefined {
  for (const usage of usages)
    if (usage !== 'digital signature' && usage !== 'key encipherment' && usage !== 'client auth')
      return `invalid usage for client certificate: ${usage}`;
  return usages.includes('client auth') ? undefined : 'missing required usage for client certificate: client auth';
}

const isOfNodes = ({ organizations }: CertificateRequest): boolean =>
  organizations.length === 1 && organizations[0] === NODES_GROUP;

/** Key encipherment only makes sense for RSA keys and may be left out. */
function usagesProblem(usages: readonly string[], purpose: 'client auth' | 'server auth'): string | undefined {
  const given = new Set(usages);
  const required = [purpose, 'digital signature', 'key encipherment'].sort();
  given.delete('key encipherment');
  const fits = given.size === 2 && given.has(purpose) && given.has('digital signature');
  return fits ? undefined : `usages did not match [${required.join(' ')}]`;
}
