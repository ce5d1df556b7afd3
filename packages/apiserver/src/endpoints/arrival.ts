/**
 * What comes in before anybody works on it: bodies, read only for those who may send one, and targets too long to be
 * looked at for somebody unknown.
 */
import { ApiError } from '@coracle/apimachinery/meta/status';
import type { ApiResponse, BodyOutcome } from '@coracle/runtime/http/seam';
import type { AuthorizationDecision } from '../auth/identity.ts';
import { isAnonymous, shareOwner } from '../auth/share-owner.ts';
import { aggregatedApi } from './aggregated-api.ts';
import { authorizationAttributes } from './authorization.ts';
import { withDeadline } from './deadline.ts';
import type { Exchange } from './exchange.ts';
import { tooManyRequests } from './responses.ts';

/** Path and query together: what is longer is read for users alone, and by nobody before it is known that it is one. */
export const SHORT_TARGET = 4096;

/** Whether a request has to say who it is before its target is parsed. */
export const isLongTarget = ({ request: { path, query } }: Exchange): boolean =>
  path.length + query.length > SHORT_TARGET;

/** Throws ApiError 414 for a long target of nobody. */
export function refuseLongTarget(exchange: Exchange): void {
  if (!isAnonymous(exchange.authenticated!)) return;
  throw new ApiError({
    code: 414,
    reason: 'RequestURITooLong',
    message: `path and query of a request without a credential may have ${SHORT_TARGET} bytes together`,
    details: {},
  });
}

/** What the authorizer says of the request as it stands. Asked once. */
export function decisionOf(exchange: Exchange): AuthorizationDecision | Promise<AuthorizationDecision> {
  const { server, user, info, request } = exchange;
  exchange.decision ??= server.authorize(user, authorizationAttributes(info, request.query));
  return exchange.decision;
}

/**
 * Reads the body of a request that may be made, before it takes a seat: a body that comes slowly keeps nobody from one.
 * Where the authorizer has to wait, the body waits as well, until `authorisation` has let it pass.
 */
export function arrival(exchange: Exchange): Promise<ApiResponse | undefined> | undefined {
  if (exchange.request.receive === undefined) return undefined;
  if (authorisesItself(exchange)) return received(exchange);
  const decision = decisionOf(exchange);
  return !(decision instanceof Promise) && decision.allowed ? received(exchange) : undefined;
}

/** Those who have an API of their own in this process ask in their own words; users alone get that far. */
const authorisesItself = ({ info, server, user }: Exchange): boolean =>
  info.isResource &&
  !isAnonymous(user) &&
  aggregatedApi(server.aggregated, info) !== undefined &&
  server.aggregator.remote(info.group, info.version) === undefined;

/** Reads the body unless that has been done. Answers 429 when its owner has too many in flight, 503 when all have. */
export function received(exchange: Exchange): Promise<ApiResponse | undefined> | undefined {
  const { request } = exchange;
  if (request.receive === undefined) return undefined;
  return withDeadline(exchange, request.receive(shareOwner(exchange.authenticated!)).then(refusalOf));
}

function refusalOf(outcome: BodyOutcome): ApiResponse | undefined {
  switch (outcome) {
    case 'here':
      return undefined;
    case 'owner-full':
      return tooManyRequests();
    case 'full':
      throw new ApiError({
        code: 503,
        reason: 'ServiceUnavailable',
        message: 'too many request bodies are on their way to this server, please try again later',
        details: { retryAfterSeconds: 1 },
      });
    case 'gone':
      throw new ApiError({ code: 400, reason: 'BadRequest', message: 'unexpected EOF' });
    default:
      return outcome satisfies never;
  }
}
