/**
 * Which writes a webhook or policy is about: operations, groups, versions, resources and scope of its rules
 * (admission/plugin/webhook/predicates/rules), with the equivalent resources of matchPolicy Equivalent.
 */
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { names } from '../../auth/rbac.ts';
import type { AdmissionOperation } from '../plugin.ts';

/** admissionregistration.k8s.io/v1 RuleWithOperations and NamedRuleWithOperations. */
export interface OperationRule {
  readonly operations?: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly apiVersions?: readonly string[];
  readonly resources?: readonly string[];
  readonly scope?: string;
  readonly resourceNames?: readonly string[];
}

/** A write as rules see it. */
export interface RuleSubject {
  readonly operation: AdmissionOperation;
  readonly info: ResourceInfo;
  readonly subresource: string;
  /** Undefined: whatever `resourceNames` say, a name could be among them. */
  readonly name: string | undefined;
}

/** The resource in whose version the object is shown, or undefined when no rule is about the write. */
export function matchRules(
  rules: readonly OperationRule[],
  subject: RuleSubject,
  equivalents: readonly ResourceInfo[],
): ResourceInfo | undefined {
  for (const rule of rules) if (matchesRule(rule, subject)) return subject.info;
  // Earlier rules first, whichever face of the storage they name.
  for (const rule of rules) {
    for (const info of equivalents) if (matchesRule(rule, { ...subject, info })) return info;
  }
  return undefined;
}

function matchesRule(rule: OperationRule, { operation, info, subresource, name }: RuleSubject): boolean {
  return (
    matchesScope(rule.scope, info) &&
    names(rule.operations, operation) &&
    names(rule.apiGroups, info.group) &&
    names(rule.apiVersions, info.version) &&
    (rule.resources ?? []).some((text) => matchesResource(text, info.resource, subresource)) &&
    (name === undefined || !rule.resourceNames?.length || rule.resourceNames.includes(name))
  );
}

const matchesScope = (scope: string | undefined, info: ResourceInfo): boolean =>
  scope === undefined || scope === '*' || (scope === 'Namespaced') === info.namespaced;

/** `*` alone means every resource without its subresources, `pods/*` the pods and all their subresources. */
function matchesResource(text: string, resource: string, subresource: string): boolean {
  const slash = text.indexOf('/');
  const wanted = slash < 0 ? text : text.slice(0, slash);
  const sub = slash < 0 ? '' : text.slice(slash + 1);
  return (wanted === '*' || wanted === resource) && (sub === '*' || sub === subresource);
}

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
