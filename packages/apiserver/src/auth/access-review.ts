/** A question to an authorizer as the spec of a SubjectAccessReview, for those outside this process that are asked. */
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { LabelOperator, LabelSelector } from '@coracle/apimachinery/selector/label-selector';
import type { LabelSelectorRequirement, SubjectAccessReviewSpec } from '@coracle/apimachinery/types/types';
import type { AuthorizationAttributes, UserInfo } from './identity.ts';

type Requirement = DeepReadonly<LabelSelectorRequirement>;

export type AccessReviewSpec = DeepReadonly<SubjectAccessReviewSpec>;

/** Attributes that say nothing. */
export const NO_ATTRIBUTES = {
  namespace: '',
  verb: '',
  group: '',
  version: '',
  resource: '',
  subresource: '',
  name: '',
} as const;

/** The spec, members in upstream's order and empty ones left out, as Go's encoder leaves them out. */
export function accessReviewSpec(user: UserInfo, asked: AuthorizationAttributes): AccessReviewSpec {
  return {
    ...(asked.type === 'resource'
      ? { resourceAttributes: resourceAttributes(asked) }
      : { nonResourceAttributes: filled({ path: asked.path, verb: asked.verb }) }),
    ...filled({ user: user.username }),
    ...(user.groups.length > 0 && { groups: user.groups }),
    ...(user.extra && Object.keys(user.extra).length > 0 && { extra: user.extra }),
    ...filled({ uid: user.uid ?? '' }),
  };
}

function resourceAttributes({
  namespace,
  verb,
  group,
  version,
  resource,
  subresource,
  name,
  fieldSelector = [],
  labelSelector,
}: AuthorizationAttributes & { type: 'resource' }) {
  const fields = fieldSelector.map(({ field, op, value }) => ({
    key: field,
    operator: op === '=' ? 'In' : 'NotIn',
    values: [value],
  }));
  const labels = labelRequirements(labelSelector);
  return {
    ...filled({ namespace, verb, group, version, resource, subresource, name }),
    ...(fields.length > 0 && { fieldSelector: { requirements: fields } }),
    ...(labels.length > 0 && { labelSelector: { requirements: labels } }),
  };
}

const OPERATORS: Readonly<Partial<Record<LabelOperator, Requirement['operator']>>> = {
  in: 'In',
  '=': 'In',
  '==': 'In',
  notin: 'NotIn',
  '!=': 'NotIn',
  exists: 'Exists',
  '!': 'DoesNotExist',
};

/** Comparisons of numbers have no name there; leaving one out asks for more, never for less. */
function labelRequirements(selector: LabelSelector | undefined): Requirement[] {
  return (selector?.requirements ?? []).flatMap(({ key, operator, values }): Requirement[] => {
    const named = OPERATORS[operator];
    return named === undefined ? [] : [{ key, operator: named, ...(values.length > 0 && { values }) }];
  });
}

/** Without what is empty. */
const filled = <T extends Readonly<Record<string, string>>>(members: T): Partial<T> =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== '')) as Partial<T>;
