/** Users by tokens that a webhook knows: it is asked with a TokenReview (apiserver plugin/pkg/authenticator/token/webhook). */
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { Clock } from '@coracle/runtime/clock/clock';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import type { Logger } from '@coracle/runtime/log/log';
import { BoundedMap } from './bounded-map.ts';
import type { UserInfo } from './identity.ts';
import type { LookUpTokenUser } from './token-authenticator.ts';
import { askWebhook, type WebhookAddress } from './webhook-question.ts';

export interface TokenWebhook extends WebhookAddress {
  /** Of the TokenReview. */
  readonly version: 'v1' | 'v1beta1';
  /** How long an answer stands, a refusal as well. */
  readonly cacheMs: number;
}

/** Answers remembered; refusals apart, so that made-up tokens do not push out the others. */
const CACHE_BOUND = 1024;

interface Result {
  readonly user?: UserInfo;
  /** What the webhook says of a token that it refuses. */
  readonly why?: string;
}

interface Answer extends Result {
  readonly until: number;
}

/** Asks the webhook about each token it has not answered for of late. `audiences` are those of the API. */
export function createWebhookUsers(
  webhook: TokenWebhook,
  { audiences, clock, log }: { readonly audiences: readonly string[]; readonly clock: Clock; readonly log: Logger },
): LookUpTokenUser {
  const known = new BoundedMap<string, Answer>(CACHE_BOUND);
  const refused = new BoundedMap<string, Answer>(CACHE_BOUND);
  /** Requests of one user that come together ask once. Bounded by the requests that are answered at once. */
  const asking = new Map<string, Promise<Result>>();

  const ask = async (token: string): Promise<Result> => {
    const apiVersion = `authentication.k8s.io/${webhook.version}`;
    const review = { kind: 'TokenReview', apiVersion, spec: { token, audiences } };
    try {
      const result = await askWebhook(webhook, review, { read: (answer) => resultIn(answer, audiences), clock });
      (result.user ? refused : known).delete(token);
      (result.user ? known : refused).set(token, { ...result, until: clock.monotonic() + webhook.cacheMs });
      return result;
    } catch (error) {
      log.warn('the token webhook does not answer', { error: String(error) });
      return {};
    }
  };

  const resultOn = (token: string): Result | Promise<Result> => {
    const answer = known.get(token) ?? refused.get(token);
    if (answer && clock.monotonic() < answer.until) return answer;
    return getOrInsert(asking, token, () => ask(token).finally(() => asking.delete(token)));
  };
  return async (token, onRefusal) => {
    const { user, why } = await resultOn(token);
    if (why !== undefined) onRefusal?.(why);
    return user;
  };
}

/** What a TokenReview says: whose the token is, or why it is nobody's. */
function resultIn(answer: unknown, wanted: readonly string[]): Result {
  const status = isJsonObject(answer) ? answer['status'] : undefined;
  if (!isJsonObject(status)) throw new Error('the answer is not a TokenReview');
  const { authenticated, audiences, user, error } = status;
  if (authenticated !== true) return typeof error === 'string' && error !== '' ? { why: error } : {};
  // A webhook that names no audiences does not know of them: the token is good for the API.
  if (Array.isArray(audiences) && audiences.length > 0 && !audiences.some((one) => wanted.includes(one as string)))
    return {};
  const { username, uid, groups, extra } = isJsonObject(user) ? user : {};
  if (typeof username !== 'string' || username === '') throw new Error('the answer names no user');
  return {
    user: {
      username,
      ...(typeof uid === 'string' && uid !== '' && { uid }),
      groups: [...new Set([...texts(groups), 'system:authenticated'])],
      ...(isJsonObject(extra) && {
        extra: Object.fromEntries(Object.entries(extra).map(([key, values]) => [key.toLowerCase(), texts(values)])),
      }),
    },
  };
}

const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : [];
