/** Kinds that webhooks and policies are never asked about: a broken one could not be taken away again. */
import type { ResourceInfo } from '../../../api/kinds/resource.ts';

const EXEMPT: ReadonlySet<string> = new Set([
  'mutatingwebhookconfigurations',
  'validatingwebhookconfigurations',
  'mutatingadmissionpolicies',
  'mutatingadmissionpolicybindings',
  'validatingadmissionpolicies',
  'validatingadmissionpolicybindings',
]);

/** True for the configuration of admission itself. */
export const isExempt = ({ group, resource }: Pick<ResourceInfo, 'group' | 'resource'>): boolean =>
  group === 'admissionregistration.k8s.io' && EXEMPT.has(resource);

const REVIEWS: ReadonlySet<string> = new Set([
  'authentication.k8s.io/selfsubjectreviews',
  'authentication.k8s.io/tokenreviews',
  'authorization.k8s.io/localsubjectaccessreviews',
  'authorization.k8s.io/selfsubjectaccessreviews',
  'authorization.k8s.io/selfsubjectrulesreviews',
  'authorization.k8s.io/subjectaccessreviews',
]);

/** Policies are not asked about questions either (policy/generic exclusion list); webhooks are. */
export const isExemptFromPolicies = (info: Pick<ResourceInfo, 'group' | 'resource'>): boolean =>
  isExempt(info) || REVIEWS.has(`${info.group}/${info.resource}`);
