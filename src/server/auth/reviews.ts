/**
 * The create-only review kinds of authentication.k8s.io and authorization.k8s.io: each takes the posted object and
 * answers it with its status filled in. Nothing is stored.
 */

import type { UnstructuredObject } from '../../api/meta/object.ts';
import { ApiError, invalid } from '../../api/meta/status.ts';
import type { AuthorizationAttributes, Authorizer, UserInfo } from './identity.ts';
import type { PolicyRule, Rbac } from './rbac.ts';
import type { TokenIssuer } from './service-account-tokens.ts';

export type ReviewHandler = (
  object: UnstructuredObject,
  user: UserInfo,
  namespace: string,
) => Promise<UnstructuredObject>;

interface ResourceAttributes {
  namespace?: string;
  verb?: string;
  group?: string;
  version?: string;
  resource?: string;
  subresource?: string;
  name?: string;
}

interface AccessSpec {
  resourceAttributes?: ResourceAttributes;
  nonResourceAttributes?: { path?: string; verb?: string };
  user?: string;
  groups?: string[];
  uid?: string;
  extra?: Record<string, string[]>;
}

export interface ReviewOptions {
  readonly authorize: Authorizer;
  readonly rulesFor: Rbac['rulesFor'];
  readonly tokens: Pick<TokenIssuer, 'verify' | 'issuer'>;
}

const AUTHORIZATION = 'authorization.k8s.io';

function attributesOf(kind: string, spec: AccessSpec): AuthorizationAttributes {
  const { resourceAttributes: r, nonResourceAttributes: n } = spec;
  if (!r === !n)
    throw invalid({ group: AUTHORIZATION, kind }, '', [
      {
        type: 'FieldValueInvalid',
        field: 'spec.resourceAttributes',
        value: r ?? null,
        detail: 'exactly one of nonResourceAttributes or resourceAttributes must be specified',
      },
    ]);
  if (n) return { type: 'path', verb: n.verb ?? '', path: n.path ?? '' };
  return {
    type: 'resource',
    verb: r!.verb ?? '',
    group: r!.group ?? '',
    version: r!.version ?? '',
    resource: r!.resource ?? '',
    subresource: r!.subresource ?? '',
    namespace: r!.namespace ?? '',
    name: r!.name ?? '',
  };
}

const sorted = (rules: readonly PolicyRule[], resource: boolean): Partial<PolicyRule>[] =>
  rules
    .filter((rule) => (rule.resources !== undefined) === resource)
    .map(({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }) =>
      resource
        ? { verbs, apiGroups: apiGroups ?? [], resources: resources ?? [], ...(resourceNames && { resourceNames }) }
        : { verbs, nonResourceURLs: nonResourceURLs ?? [] },
    );

/** Review handlers by `group/resource`, for the server's create-only kinds. */
export function createReviewHandlers(options: ReviewOptions): ReadonlyMap<string, ReviewHandler> {
  const { authorize } = options;
  const answer = (object: UnstructuredObject, user: UserInfo): UnstructuredObject => {
    const verdict = authorize(user, attributesOf(object.kind, (object['spec'] ?? {}) as AccessSpec));
    return {
      ...object,
      status: { allowed: verdict.allowed, ...(verdict.reason !== '' && { reason: verdict.reason }) },
    };
  };
  const subject = (object: UnstructuredObject): UnstructuredObject => {
    const spec = (object['spec'] ?? {}) as AccessSpec;
    if (!spec.user && !spec.groups?.length)
      throw invalid({ group: AUTHORIZATION, kind: object.kind }, '', [
        {
          type: 'FieldValueInvalid',
          field: 'spec.user',
          value: spec.user ?? '',
          detail: 'at least one of user or group must be specified',
        },
      ]);
    return answer(object, {
      username: spec.user ?? '',
      groups: spec.groups ?? [],
      ...(spec.uid && { uid: spec.uid }),
      ...(spec.extra && { extra: spec.extra }),
    });
  };
  return new Map<string, ReviewHandler>([
    [`${AUTHORIZATION}/selfsubjectaccessreviews`, async (object, user) => answer(object, user)],
    [`${AUTHORIZATION}/subjectaccessreviews`, async (object) => subject(object)],
    [
      `${AUTHORIZATION}/localsubjectaccessreviews`,
      async (object, _user, namespace) => {
        const { resourceAttributes } = (object['spec'] ?? {}) as AccessSpec;
        if ((resourceAttributes?.namespace ?? '') !== namespace)
          throw invalid({ group: AUTHORIZATION, kind: object.kind }, '', [
            {
              type: 'FieldValueInvalid',
              field: 'spec.resourceAttributes.namespace',
              value: resourceAttributes?.namespace ?? '',
              detail: `must match metadata.namespace`,
            },
          ]);
        return subject(object);
      },
    ],
    [
      `${AUTHORIZATION}/selfsubjectrulesreviews`,
      async (object, user) => {
        const { namespace } = (object['spec'] ?? {}) as { namespace?: string };
        if (!namespace) throw new ApiError({ code: 400, reason: 'BadRequest', message: 'no namespace on request' });
        const rules: readonly PolicyRule[] = user.groups.includes('system:masters')
          ? [
              { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
              { verbs: ['*'], nonResourceURLs: ['*'] },
              ...options.rulesFor(user, namespace),
            ]
          : options.rulesFor(user, namespace);
        return {
          ...object,
          status: { resourceRules: sorted(rules, true), nonResourceRules: sorted(rules, false), incomplete: false },
        };
      },
    ],
    [
      'authentication.k8s.io/selfsubjectreviews',
      async (object, user) => ({
        ...object,
        status: {
          userInfo: {
            username: user.username,
            ...(user.uid && { uid: user.uid }),
            groups: [...user.groups],
            ...(user.extra && { extra: user.extra }),
          },
        },
      }),
    ],
    [
      'authentication.k8s.io/tokenreviews',
      async (object) => {
        const { token, audiences } = (object['spec'] ?? {}) as { token?: string; audiences?: string[] };
        const wanted = audiences?.length ? audiences : [options.tokens.issuer];
        const verified = token ? await options.tokens.verify(token, wanted) : undefined;
        // The token itself is never sent back.
        const spec = audiences ? { audiences } : {};
        if (!verified)
          return { ...object, spec, status: { authenticated: false, user: {}, error: 'invalid bearer token' } };
        const { username, uid, groups, extra } = verified.user;
        return {
          ...object,
          spec,
          status: {
            authenticated: true,
            user: { username, ...(uid && { uid }), groups: [...groups], ...(extra && { extra }) },
            audiences: wanted.filter((audience) => verified.audiences.includes(audience)),
          },
        };
      },
    ],
  ]);
}
