/** A question to an authorizer as the spec of a SubjectAccessReview, for those outside this process that are asked. */
import type { LabelOperator, LabelSelector } from '@coracle/apimachinery/selector/label-selector';
import type { AuthorizationAttributes, UserInfo } from './identity.ts';

interface Requirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

interface SelectorAttributes {
  readonly requirements: readonly Requirement[];
}

export interface AccessReviewSpec {
  readonly resourceAttributes?: {
    readonly namespace?: string;
    readonly verb?: string;
    readonly group?: string;
    readonly version?: string;
    readonly resource?: string;
    readonly subresource?: string;
    readonly name?: string;
    readonly fieldSelector?: SelectorAttributes;
    readonly labelSelector?: SelectorAttributes;
  };
  readonly nonResourceAttributes?: { readonly path?: string; readonly verb?: string };
  readonly user?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
  readonly uid?: string;
}

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

const OPERATORS: Readonly<Partial<Record<LabelOperator, string>>> = {
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
