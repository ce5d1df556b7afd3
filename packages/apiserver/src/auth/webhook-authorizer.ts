/**
 * Rights that a webhook knows: it is asked with a SubjectAccessReview (apiserver plugin/pkg/authorizer/webhook). It may
 * allow, deny, or have no opinion; what it means that it does not answer is its failure policy.
 */

import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { CelProgram } from '@coracle/cel/cel';
import type { Clock } from '@coracle/runtime/clock/clock';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import type { Logger } from '@coracle/runtime/log/log';
import { matchAccess } from './access-conditions.ts';
import { type AccessReviewSpec, accessReviewSpec } from './access-review.ts';
import { BoundedMap } from './bounded-map.ts';
import type { AuthorizationAttributes, AuthorizationDecision, Authorizer } from './identity.ts';
import { askWebhook, type WebhookAddress } from './webhook-question.ts';

export interface AuthorizationWebhook extends WebhookAddress {
  /** In what is logged. */
  readonly name: string;
  /** Of the SubjectAccessReview. */
  readonly version: 'v1' | 'v1beta1';
  /** How long an answer stands that allows, and one that does not; 0 = it is not remembered. */
  readonly authorizedMs: number;
  readonly unauthorizedMs: number;
  readonly timeoutMs: number;
  /** What an error is: somebody else may still allow it, or nobody. */
  readonly failurePolicy: 'NoOpinion' | 'Deny';
  /** It is asked only about what meets them all. */
  readonly conditions: readonly CelProgram[];
}

/** Answers remembered. */
const CACHE_BOUND = 8192;
/** Questions whose parts that a client chooses are longer than this are not remembered. */
const MAX_REMEMBERED_LENGTH = 10_000;

interface Answer {
  readonly decision: AuthorizationDecision;
  readonly until: number;
}

/** Asks the webhook about each request it has not answered for of late. */
export function createWebhookAuthorizer(
  webhook: AuthorizationWebhook,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Authorizer {
  const answers = new BoundedMap<string, Answer>(CACHE_BOUND);
  /** Equal questions that come together are asked once. Bounded by the requests that are answered at once. */
  const asking = new Map<string, Promise<AuthorizationDecision>>();
  const failed = (error: string): AuthorizationDecision => ({
    allowed: false,
    ...(webhook.failurePolicy === 'Deny' && { denied: true }),
    reason: '',
    error,
  });

  const ask = async (key: string, spec: AccessReviewSpec, isRemembered: boolean): Promise<AuthorizationDecision> => {
    try {
      const { timeoutMs } = webhook;
      const decision = await askWebhook(webhook, reviewOf(webhook, spec), { read: decisionIn, clock, timeoutMs });
      const ms = decision.allowed ? webhook.authorizedMs : webhook.unauthorizedMs;
      if (isRemembered && ms > 0) answers.set(key, { decision, until: clock.monotonic() + ms });
      return decision;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      log.error('the authorization webhook does not answer', { webhook: webhook.name, error: why });
      return failed(why);
    }
  };

  return (user, attributes) => {
    const spec = accessReviewSpec(user, attributes);
    const { matches, error } = matchAccess(webhook.conditions, spec);
    if (error !== undefined) return failed(error);
    if (!matches) return NO_OPINION;
    const key = JSON.stringify(spec);
    const known = answers.get(key);
    if (known && clock.monotonic() < known.until) return known.decision;
    return getOrInsert(asking, key, () =>
      ask(key, spec, lengthOf(attributes) < MAX_REMEMBERED_LENGTH).finally(() => asking.delete(key)),
    );
  };
}

const NO_OPINION: AuthorizationDecision = { allowed: false, reason: '' };

/** In the words of its version: v1beta1 has `group` where v1 has `groups`. */
function reviewOf({ version }: AuthorizationWebhook, { groups, ...spec }: AccessReviewSpec): object {
  const named = groups === undefined ? {} : version === 'v1' ? { groups } : { group: groups };
  return {
    kind: 'SubjectAccessReview',
    apiVersion: `authorization.k8s.io/${version}`,
    metadata: {},
    spec: { ...spec, ...named },
    status: { allowed: false },
  };
}

function decisionIn(answer: unknown): AuthorizationDecision {
  const isReview = isJsonObject(answer) && answer['kind'] === 'SubjectAccessReview';
  if (!isReview) throw new Error('the answer is not a SubjectAccessReview');
  const status = answer['status'];
  const { allowed, denied, reason: said } = isJsonObject(status) ? status : {};
  const reason = typeof said === 'string' ? said : '';
  if (denied === true) {
    return {
      allowed: false,
      denied: true,
      reason,
      ...(allowed === true && {
        error: 'webhook subject access review returned both allow and deny response',
      }),
    };
  }
  return { allowed: allowed === true, reason };
}

function lengthOf(attributes: AuthorizationAttributes): number {
  if (attributes.type === 'path') return attributes.verb.length + attributes.path.length;
  const { namespace, verb, group, version, resource, subresource, name, fieldSelector, labelSelector } = attributes;
  const selectors = fieldSelector || labelSelector ? JSON.stringify([fieldSelector, labelSelector]).length : 0;
  return [namespace, verb, group, version, resource, subresource, name].join('').length + selectors;
}
