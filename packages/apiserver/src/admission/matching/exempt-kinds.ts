/** Kinds that webhooks and policies are never asked about: a broken one could not be taken away again. */
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';

const GROUP = 'admissionregistration.k8s.io';

const WEBHOOKS: ReadonlySet<string> = new Set(['mutatingwebhookconfigurations', 'validatingwebhookconfigurations']);

const POLICIES: ReadonlySet<string> = new Set([
  'mutatingadmissionpolicies',
  'mutatingadmissionpolicybindings',
  'validatingadmissionpolicies',
  'validatingadmissionpolicybindings',
]);

/** True for the configuration of admission itself: no webhook is asked about it (webhook/predicates/rules). */
export const isExemptFromWebhooks = ({ group, resource }: Pick<ResourceInfo, 'group' | 'resource'>): boolean =>
  group === GROUP && (POLICIES.has(resource) || WEBHOOKS.has(resource));

const REVIEWS: ReadonlySet<string> = new Set([
  'authentication.k8s.io/selfsubjectreviews',
  'authentication.k8s.io/tokenreviews',
  'authorization.k8s.io/localsubjectaccessreviews',
  'authorization.k8s.io/selfsubjectaccessreviews',
  'authorization.k8s.io/selfsubjectrulesreviews',
  'authorization.k8s.io/subjectaccessreviews',
]);

/**
 * True for policies, their bindings, and questions (policy/generic plugin.go with the exclusion list). Configurations of
 * webhooks are validated: a policy is how a cluster keeps a bad one out.
 */
export const isExemptFromPolicies = ({ group, resource }: Pick<ResourceInfo, 'group' | 'resource'>): boolean =>
  (group === GROUP && POLICIES.has(resource)) || REVIEWS.has(`${group}/${resource}`);
