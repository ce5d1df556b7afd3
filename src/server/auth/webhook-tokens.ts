/** Users by tokens that a webhook knows: it is asked with a TokenReview (apiserver plugin/pkg/authenticator/token/webhook). */
import { isJsonObject } from '../../api/meta/own-property.ts';
import { parseJson } from '../../api/schema/parse-json.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { ApiHandler } from '../../base/http/seam.ts';
import type { Logger } from '../../base/log/log.ts';
import { abortable } from '../../base/signal/abortable.ts';
import { readWhole } from '../outbound/read-whole.ts';
import { BoundedMap } from './bounded-map.ts';
import type { UserInfo } from './identity.ts';
import type { AskTokenUser } from './token-authenticator.ts';

export interface TokenWebhook {
  /** Reaches the webhook. */
  readonly handler: ApiHandler;
  /** Of its URL. */
  readonly path: string;
  /** What shows the webhook who asks. */
  readonly headers: Readonly<Record<string, string>>;
  /** Of the TokenReview. */
  readonly version: 'v1' | 'v1beta1';
  /** How long an answer stands, a refusal as well. */
  readonly cacheMs: number;
}

const TIMEOUT_MS = 30_000;
const MAX_ANSWER_BYTES = 1024 * 1024;
/** Answers remembered; refusals apart, so that made-up tokens do not push out the others. */
const CACHE_BOUND = 1024;
/** Waits before a webhook that failed is asked again. */
const RETRY_MS = [500, 750, 1125, 1688];

interface Answer {
  readonly user: UserInfo | undefined;
  readonly until: number;
}

/** Asks the webhook about each token it has not answered for of late. `audiences` are those of the API. */
export function createWebhookUsers(
  webhook: TokenWebhook,
  { audiences, clock, log }: { readonly audiences: readonly string[]; readonly clock: Clock; readonly log: Logger },
): AskTokenUser {
  const known = new BoundedMap<string, Answer>(CACHE_BOUND);
  const refused = new BoundedMap<string, Answer>(CACHE_BOUND);
  /** Requests of one user that come together ask once. Bounded by the requests that are answered at once. */
  const asking = new Map<string, Promise<UserInfo | undefined>>();

  const ask = async (token: string): Promise<UserInfo | undefined> => {
    for (let attempt = 0; ; attempt++) {
      try {
        const user = await review(webhook, { token, audiences, clock });
        (user ? refused : known).delete(token);
        (user ? known : refused).set(token, { user, until: clock.monotonic() + webhook.cacheMs });
        return user;
      } catch (error) {
        const wait = RETRY_MS[attempt];
        if (wait === undefined || error instanceof FinalRefusal) {
          log.warn('the token webhook does not answer', { error: String(error) });
          return undefined;
        }
        await new Promise<void>((resolve) => clock.schedule(wait, resolve));
      }
    }
  };

  return (token) => {
    const answer = known.get(token) ?? refused.get(token);
    if (answer && clock.monotonic() < answer.until) return Promise.resolve(answer.user);
    let pending = asking.get(token);
    if (pending === undefined) {
      pending = ask(token).finally(() => asking.delete(token));
      asking.set(token, pending);
    }
    return pending;
  };
}

/** An answer that another attempt would not change. */
class FinalRefusal extends Error {}

async function review(
  { handler, path, headers, version }: TokenWebhook,
  { token, audiences, clock }: { readonly token: string; readonly audiences: readonly string[]; readonly clock: Clock },
): Promise<UserInfo | undefined> {
  const body = { kind: 'TokenReview', apiVersion: `authentication.k8s.io/${version}`, spec: { token, audiences } };
  const timeout = new AbortController();
  const cancel = clock.schedule(TIMEOUT_MS, () => timeout.abort(new Error('no answer in time')));
  try {
    const response = await abortable(
      handler({
        method: 'POST',
        path,
        query: '',
        headers: { ...headers, 'content-type': 'application/json', accept: 'application/json' },
        body: new TextEncoder().encode(JSON.stringify(body)),
        peer: { address: '' },
        signal: timeout.signal,
      }),
      timeout.signal,
    );
    const bytes = await readWhole(response, { limit: MAX_ANSWER_BYTES, signal: timeout.signal });
    const { status: code } = response;
    if (code === 429 || code >= 500) throw new Error(`status ${code}`);
    if (code < 200 || code > 299) throw new FinalRefusal(`status ${code}`);
    return userIn(parseJson(bytes).value, audiences);
  } finally {
    cancel();
  }
}

/** The user of a TokenReview that says yes; undefined for one that says no. */
function userIn(answer: unknown, wanted: readonly string[]): UserInfo | undefined {
  const status = isJsonObject(answer) ? answer['status'] : undefined;
  if (!isJsonObject(status)) throw new FinalRefusal('the answer is no TokenReview');
  const { authenticated, audiences, user } = status;
  if (authenticated !== true) return undefined;
  // A webhook that names no audiences does not know of them: the token is good for the API.
  if (Array.isArray(audiences) && audiences.length > 0 && !audiences.some((one) => wanted.includes(one as string)))
    return undefined;
  const { username, uid, groups, extra } = isJsonObject(user) ? user : {};
  if (typeof username !== 'string' || username === '') throw new FinalRefusal('the answer names no user');
  return {
    username,
    ...(typeof uid === 'string' && uid !== '' && { uid }),
    groups: [...new Set([...texts(groups), 'system:authenticated'])],
    ...(isJsonObject(extra) && {
      extra: Object.fromEntries(Object.entries(extra).map(([key, values]) => [key.toLowerCase(), texts(values)])),
    }),
  };
}

const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : [];
