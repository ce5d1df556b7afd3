/**
 * The create-only review kinds of authentication.k8s.io and authorization.k8s.io: each takes the posted object and
 * answers it with its status filled in. Nothing is stored.
 */

import { formatTime, type UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { badRequest, type FieldError, invalid } from '@coracle/apimachinery/meta/status';
import type { PolicyRule, SubjectAccessReviewSpec } from '@coracle/apimachinery/types/types';
import { invalid as invalidValue } from '@coracle/apimachinery/validation/field-errors';
import type { Clock } from '@coracle/runtime/clock/clock';
import { NO_ATTRIBUTES } from './access-review.ts';
import type { AuthorizerChain } from './authorizer-chain.ts';
import type { AuthorizationAttributes, Authorizer, UserInfo } from './identity.ts';
import { accessSelectors, selectorErrors } from './review-selectors.ts';
import type { TokenAuthenticator } from './token-authenticator.ts';
import { aggregated } from './union.ts';

export type ReviewHandler = (
  object: UnstructuredObject,
  user: UserInfo,
  namespace: string,
) => Promise<UnstructuredObject>;

type AccessSpec = Partial<SubjectAccessReviewSpec>;

export interface ReviewOptions {
  readonly authorize: Authorizer;
  readonly rulesFor: AuthorizerChain['rulesFor'];
  readonly tokens: TokenAuthenticator;
  readonly clock: Pick<Clock, 'now'>;
}

const AUTHORIZATION = 'authorization.k8s.io';

const specOf = (object: UnstructuredObject): AccessSpec => (object['spec'] ?? {}) as AccessSpec;

/** A question has no metadata of its own, but for what the request says: its namespace and who manages its fields. */
function metadataErrors({ metadata }: UnstructuredObject, { local = false } = {}): FieldError[] {
  const { managedFields: _tracked, namespace, ...own } = metadata;
  const rest = { ...own, ...(!local && { namespace }) };
  const isEmpty = (value: unknown): boolean =>
    value === undefined || value === '' || (typeof value === 'object' && Object.keys(value ?? {}).length === 0);
  if (Object.values(rest).every(isEmpty)) return [];
  return [invalidValue('metadata', metadata, local ? 'must be empty except for namespace' : 'must be empty')];
}

/** Every problem of a spec at once (authorization/validation). */
function specErrors(spec: AccessSpec, { withSubject }: { readonly withSubject: boolean }): FieldError[] {
  const { resourceAttributes, nonResourceAttributes } = spec;
  const errors: FieldError[] = [];
  if (resourceAttributes && nonResourceAttributes) {
    const detail = 'cannot be specified in combination with resourceAttributes';
    errors.push(invalidValue('spec.nonResourceAttributes', nonResourceAttributes, detail));
  } else if (!resourceAttributes && !nonResourceAttributes) {
    const detail = 'exactly one of nonResourceAttributes or resourceAttributes must be specified';
    errors.push(invalidValue('spec.resourceAttributes', null, detail));
  }
  if (withSubject && !spec.user && !spec.groups?.length)
    errors.push(invalidValue('spec.user', spec.user ?? '', 'at least one of user or group must be specified'));
  if (resourceAttributes) errors.push(...selectorErrors(resourceAttributes, 'spec.resourceAttributes'));
  return errors;
}

/** What is asked; `problems` says why a selector was not looked at. */
function questionOf({ resourceAttributes = {}, nonResourceAttributes: n }: AccessSpec): {
  readonly attributes: AuthorizationAttributes;
  readonly problems: readonly string[];
} {
  if (n) return { attributes: { type: 'path', verb: n.verb ?? '', path: n.path ?? '' }, problems: [] };
  const { fieldSelector: _fields, labelSelector: _labels, ...named } = resourceAttributes;
  const { problems, ...selectors } = accessSelectors(resourceAttributes);
  return { attributes: { type: 'resource', ...NO_ATTRIBUTES, ...named, ...selectors }, problems };
}

const shown = (rules: readonly PolicyRule[], resource: boolean): Partial<PolicyRule>[] =>
  rules
    .filter((rule) => (rule.resources !== undefined) === resource)
    .map(({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }) =>
      resource
        ? { verbs, apiGroups: apiGroups ?? [], resources: resources ?? [], ...(resourceNames && { resourceNames }) }
        : { verbs, nonResourceURLs: nonResourceURLs ?? [] },
    );

const userJson = ({ username, uid, groups, extra }: UserInfo): Record<string, unknown> => ({
  username,
  ...(uid && { uid }),
  groups: [...groups],
  ...(extra && { extra }),
});

/** Review handlers by `group/resource`, for the server's create-only kinds. */
export function createReviewHandlers(options: ReviewOptions): ReadonlyMap<string, ReviewHandler> {
  return new Map<string, ReviewHandler>([
    ...accessReviews(options.authorize),
    [`${AUTHORIZATION}/selfsubjectrulesreviews`, rulesReview(options)],
    ['authentication.k8s.io/selfsubjectreviews', selfSubjectReview(options.clock)],
    ['authentication.k8s.io/tokenreviews', tokenReview(options.tokens)],
  ]);
}

/** The three that ask whether somebody may do something: the caller, anybody, anybody in one namespace. */
function accessReviews(authorize: Authorizer): [string, ReviewHandler][] {
  const answer = async (object: UnstructuredObject, user: UserInfo): Promise<UnstructuredObject> => {
    const { attributes, problems } = questionOf(specOf(object));
    const { allowed, denied, reason, error } = await authorize(user, attributes);
    const troubles = [...(error === undefined ? [] : [error]), ...problems];
    return {
      ...object,
      status: {
        allowed,
        ...(denied && { denied }),
        ...(reason !== '' && { reason }),
        ...(troubles.length > 0 && { evaluationError: troubles.join(', ') }),
      },
    };
  };
  const review =
    ({ self = false, local = false }): ReviewHandler =>
    async (object, user, namespace) => {
      const spec = specOf(object);
      const errors = [
        ...specErrors(spec, { withSubject: !self }),
        ...metadataErrors(object, { local }),
        ...(local ? localErrors(spec, namespace) : []),
      ];
      if (errors.length > 0) throw invalid({ group: AUTHORIZATION, kind: object.kind }, '', errors);
      return answer(object, self ? user : subjectOf(spec));
    };
  return [
    [`${AUTHORIZATION}/selfsubjectaccessreviews`, review({ self: true })],
    [`${AUTHORIZATION}/subjectaccessreviews`, review({})],
    [`${AUTHORIZATION}/localsubjectaccessreviews`, review({ local: true })],
  ];
}

/** Whom a review asks about. */
const subjectOf = ({ user = '', groups = [], uid, extra }: AccessSpec): UserInfo => ({
  username: user,
  groups,
  ...(uid && { uid }),
  ...(extra && { extra }),
});

/** Whoever may ask in one namespace may ask of nothing outside it. */
function localErrors({ resourceAttributes, nonResourceAttributes }: AccessSpec, namespace: string): FieldError[] {
  const asked = resourceAttributes?.namespace ?? '';
  return [
    ...(resourceAttributes && asked !== namespace
      ? [invalidValue('spec.resourceAttributes.namespace', asked, 'must match metadata.namespace')]
      : []),
    ...(nonResourceAttributes
      ? [invalidValue('spec.nonResourceAttributes', nonResourceAttributes, 'disallowed on this kind of request')]
      : []),
  ];
}

/** What the caller may do in a namespace. */
const rulesReview =
  (options: Pick<ReviewOptions, 'rulesFor'>): ReviewHandler =>
  async (object, user) => {
    const { namespace } = (object['spec'] ?? {}) as { namespace?: string };
    if (!namespace) throw badRequest('no namespace on request');
    const { rules, problems } = options.rulesFor(user, namespace);
    const evaluationError = aggregated(problems);
    return {
      ...object,
      status: {
        resourceRules: shown(rules, true),
        nonResourceRules: shown(rules, false),
        incomplete: problems.length > 0,
        ...(evaluationError !== undefined && { evaluationError }),
      },
    };
  };

/** Who the caller is. */
const selfSubjectReview =
  (clock: ReviewOptions['clock']): ReviewHandler =>
  // It is made anew: nothing of the body comes back.
  async ({ apiVersion, kind }, user) => ({
    apiVersion,
    kind,
    metadata: { creationTimestamp: formatTime(clock.now()) },
    status: { userInfo: userJson(user) },
  });

/** Whose a token is. */
const tokenReview =
  (tokens: TokenAuthenticator): ReviewHandler =>
  async (object) => {
    const { token, audiences } = (object['spec'] ?? {}) as { token?: string; audiences?: string[] };
    if (!token) throw badRequest('token is required for TokenReview in authentication');
    const wanted = audiences?.length ? audiences : tokens.audiences;
    // Who knows the loopback credential alone is asked first upstream: that is the one word on every token.
    const problems = ['invalid bearer token'];
    const verified = await tokens.verify(token, { audiences: wanted, refused: (why) => void problems.push(why) });
    // The token itself is never sent back.
    const spec = audiences ? { audiences } : {};
    const status = verified
      ? {
          authenticated: true,
          user: userJson(verified.user),
          audiences: wanted.filter((audience) => verified.audiences.includes(audience)),
        }
      : { user: {}, error: aggregated(problems) };
    return { ...object, spec, status };
  };
