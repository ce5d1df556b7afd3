/**
 * The request pipeline: `STAGES` in order. A stage answers (and the rest is skipped) or lets the request pass. 401 comes
 * before 403, 403 before 404, and a body is read only for who may send it. A long path or query is not parsed before it is
 * known who sends it. Around them, `failure` makes a Status of what is thrown, and `finish` adds the last headers.
 */

import { goQuote } from '@coracle/apimachinery/meta/go-text';
import { joinBytes } from '@coracle/apimachinery/meta/join-bytes';
import { ApiError, type Status } from '@coracle/apimachinery/meta/status';
import type { ApiRequest, ApiResponse } from '@coracle/runtime/http/seam';
import type { RemoteApi } from '../aggregation/api-service-index.ts';
import type { AuthorizationDecision, Authorizer, UserInfo } from '../auth/identity.ts';
import { isAnonymous, shareOwner } from '../auth/share-owner.ts';
import { aggregatedApi } from './aggregated-api.ts';
import { arrival, decisionOf, isLongTarget, received, refuseLongTarget, SHORT_TARGET } from './arrival.ts';
import { beginAudit, endAudit } from './auditing.ts';
import { escapeHtml, forbiddenBy } from './authorization.ts';
import { bodyTooLarge, MAX_BODY_BYTES } from './body.ts';
import { deadlineOf, withDeadline } from './deadline.ts';
import { Exchange, type Server } from './exchange.ts';
import { impersonatedUser } from './impersonation.ts';
import { acceptsGzip, COMPRESS_FROM_BYTES, takesJson, wantsPretty } from './negotiation.ts';
import { preflightAnswer, refuseForeignPage } from './origin.ts';
import { isLongRunning, parseRequestInfo } from './request-info.ts';
import {
  encodedResponse,
  lineResponse,
  pageNotFound,
  representationOf,
  statusResponse,
  toApiError,
  tooManyRequests,
  unavailable,
} from './responses.ts';
import { routeResource } from './routing.ts';

type Answer = ApiResponse | Promise<ApiResponse | undefined> | undefined;

type Stage = (exchange: Exchange) => Answer;

const MAX_AUDIT_ID_LENGTH = 64;

function auditId(exchange: Exchange): undefined {
  const sent = exchange.request.headers['audit-id'];
  const usable = sent !== undefined && sent.length <= MAX_AUDIT_ID_LENGTH && /^[\x21-\x7e]+$/.test(sent);
  exchange.auditId = usable ? sent : crypto.randomUUID();
}

function requestInfo(exchange: Exchange): Promise<undefined> | undefined {
  const { request, server } = exchange;
  if (!isLongTarget(exchange)) {
    exchange.info = parseRequestInfo(request);
    server.checkHost?.(request);
    return undefined;
  }
  // For the log, should it be refused.
  exchange.info = parseRequestInfo({ method: request.method, path: request.path.slice(0, SHORT_TARGET), query: '' });
  server.checkHost?.(request);
  const known = authenticate(exchange);
  const parse = (): undefined => {
    refuseLongTarget(exchange);
    exchange.info = parseRequestInfo(request);
  };
  return known ? known.then(parse) : parse();
}

function deadline(exchange: Exchange): undefined {
  if (!isLongRunning(exchange.info)) exchange.deadline = exchange.startedAt + deadlineOf(exchange);
}

function cors(exchange: Exchange): ApiResponse | undefined {
  if (exchange.request.headers['origin'] === undefined) return undefined;
  exchange.cors = exchange.server.cors?.(exchange.request);
  return exchange.cors && exchange.request.method === 'OPTIONS' ? preflightAnswer() : undefined;
}

const authentication: Stage = (exchange) => (exchange.authenticated ? undefined : authenticate(exchange));

function authenticate(exchange: Exchange): Promise<undefined> | undefined {
  const user = exchange.server.authenticate(exchange.request, exchange);
  return user instanceof Promise ? user.then((known) => authenticated(exchange, known)) : authenticated(exchange, user);
}

function authenticated(exchange: Exchange, user: UserInfo): undefined {
  const { request } = exchange;
  exchange.user = user;
  exchange.authenticated = user;
  if (!isAnonymous(user)) request.identify?.(shareOwner(user));
  if (request.headers['origin'] !== undefined) refuseForeignPage(request, { allowed: exchange.cors !== undefined });
  return undefined;
}

const audit: Stage = (exchange) => void beginAudit(exchange, true);

/** From here on the request is the impersonated user's. */
const impersonation: Stage = (exchange) =>
  impersonatedUser(exchange)?.then((user) => {
    exchange.user = user;
    return undefined;
  });

/** From here on the request holds seats of its priority level; `answer` gives them back. */
function flowControl(exchange: Exchange): Answer {
  const { info, server, user } = exchange;
  if (info.verb !== 'watch' && isLongRunning(info)) return undefined;
  const flow = server.flowControl.classify(user, info);
  if (!flow) return undefined;
  exchange.flow = flow;
  exchange.work = server.flowControl.estimate(flow, exchange);
  const entered = server.flowControl.enter(flow, exchange.work, exchange);
  if (entered instanceof Promise) return entered.then((granted) => seated(exchange, granted));
  return seated(exchange, entered);
}

function seated(exchange: Exchange, granted: boolean): ApiResponse | undefined {
  exchange.seated = granted;
  return granted ? undefined : tooManyRequests();
}

/**
 * Aggregated APIs say themselves what right a request for an object in a namespace takes. Their endpoints
 * of cluster scope (version, health) they leave open, because upstream the aggregator in front of them has asked before.
 */
function aggregation(exchange: Exchange): Answer {
  const { info, server, request, user } = exchange;
  const remote = remoteOf(exchange);
  if (remote) {
    return afterwards(authorise(exchange), () => {
      // What is longer has been cut off on its way in: passed on, it would be another request.
      if (request.body.length > MAX_BODY_BYTES) throw bodyTooLarge();
      const answered = server.aggregator.proxy(remote, request, { user, auditId: exchange.auditId });
      if (request.upgradable || request.upgradeTo !== undefined) return answered;
      return withDeadline(exchange, answered);
    });
  }
  const api = info.isResource ? aggregatedApi(server.aggregated, info) : undefined;
  if (api === undefined) return undefined;
  const asked = info.namespace === '' ? authorise(exchange) : undefined;
  return afterwards(asked, () => api.handle(request, user, info, inFrontOf(exchange)));
}

/** The authorizer for an API of this process: a refusal is a 403 Status, since upstream this server asks before that API. */
const inFrontOf =
  ({ server, info }: Exchange): Authorizer =>
  async (user, attributes) => {
    const decision = await server.authorize(user, attributes);
    if (decision.allowed || attributes.type !== 'resource') return decision;
    throw forbiddenBy(user, { ...info, ...attributes }, decision.reason);
  };

/** What follows an authorisation that was not refused. */
function afterwards(asked: Answer, next: () => Promise<ApiResponse | undefined>): Answer {
  if (asked === undefined) return next();
  return asked instanceof Promise ? asked.then((failure) => failure ?? next()) : asked;
}

/** The server behind this one that answers; `/apis/<group>/<version>` itself is its own as well. */
function remoteOf({ info, server }: Exchange): RemoteApi | undefined {
  if (info.isResource) return server.aggregator.remote(info.group, info.version);
  const version = GROUP_VERSION_PATH.exec(info.path)?.[1];
  return version === undefined ? undefined : server.aggregator.remote(info.group, version);
}

const GROUP_VERSION_PATH = /^\/apis\/[^/]+\/([^/]+)\/?$/;

/** Throws ApiError 403 when the user may not; answers 500 when nobody could say. */
function authorise(exchange: Exchange): Answer {
  const decision = decisionOf(exchange);
  return decision instanceof Promise
    ? decision.then((known) => validated(exchange, known))
    : validated(exchange, decision);
}

function validated(exchange: Exchange, { allowed, reason, error }: AuthorizationDecision): Answer {
  const failed = !allowed && error !== undefined;
  if (exchange.audit) {
    if (!failed) exchange.annotate('authorization.k8s.io/decision', allowed ? 'allow' : 'forbid');
    exchange.annotate('authorization.k8s.io/reason', failed ? 'internal error' : reason);
  }
  if (failed) return undecided(exchange, error);
  if (!allowed) throw forbiddenBy(exchange.user, exchange.info, reason);
  return received(exchange);
}

/** An authorizer failed and nobody allows it: no Status but a line of text (responsewriters.InternalError). */
function undecided({ server, request, auditId }: Exchange, error: string): ApiResponse {
  const uri = request.query === '' ? request.path : `${request.path}?${request.query}`;
  server.log.error('a request could not be authorised', { path: request.path, auditId, error });
  return lineResponse(500, escapeHtml(`Internal Server Error: ${goQuote(uri)}: ${error}`));
}

function routing(exchange: Exchange): Answer {
  if (exchange.info.isResource) return routeResource(exchange)(exchange);
  return exchange.server.documents(exchange) ?? pageNotFound();
}

const NOT_READY_YET = 'the request has been made before all known HTTP paths have been installed, please try again';

const STAGES: readonly Stage[] = [
  auditId,
  requestInfo,
  deadline,
  cors,
  authentication,
  audit,
  impersonation,
  arrival,
  flowControl,
  aggregation,
  authorise,
  routing,
];

/**
 * Runs one request through the stages. Never throws or rejects. Nothing is waited for that is there already: reading one
 * object is answered at once.
 */
export function answer(server: Server, request: ApiRequest): ApiResponse | Promise<ApiResponse> {
  const exchange = new Exchange(request, server);
  exchange.startedAt = server.clock.monotonic();
  if (server.auditor) exchange.receivedAt = server.clock.now();
  server.metrics.begin();
  let response: ApiResponse | Promise<ApiResponse>;
  try {
    response = runStages(exchange, 0);
  } catch (error) {
    return failed(exchange, error);
  }
  if (!(response instanceof Promise)) return settle(exchange, response);
  return response.then(
    (answered) => settle(exchange, answered),
    (error: unknown) => failed(exchange, error),
  );
}

function failed(exchange: Exchange, error: unknown): ApiResponse | Promise<ApiResponse> {
  const response = failure(exchange, error);
  // Who is nobody is written down as well.
  if (exchange.server.auditor && exchange.authenticated === undefined && exchange.info) beginAudit(exchange, false);
  return settle(exchange, response, !(error instanceof ApiError) && response.status === 500);
}

/** Everything that follows the answer itself: audit, seats, metrics, the last headers. */
function settle(exchange: Exchange, answered: ApiResponse, panicked = false): ApiResponse | Promise<ApiResponse> {
  const { server } = exchange;
  const isEarly = answered.status === 404 && !server.ready() && exchange.resource === undefined;
  // Before every kind is served, "no such path" would make controllers believe that a kind is gone.
  let response = isEarly ? unavailable(NOT_READY_YET) : answered;
  if (exchange.audit) response = endAudit(exchange, { response, panicked });
  if (exchange.seated) server.flowControl.leave(exchange.flow!, exchange.work);
  server.metrics.end(exchange, response.status, server.clock.monotonic() - exchange.startedAt);
  return finish(exchange, response);
}

/** The stages from the `at`-th on. */
function runStages(exchange: Exchange, at: number): ApiResponse | Promise<ApiResponse> {
  for (let i = at; i < STAGES.length; i++) {
    const stage = STAGES[i]!;
    const outcome = stage(exchange);
    if (outcome === undefined) continue;
    if (!(outcome instanceof Promise)) return outcome;
    const isWork = stage === routing || stage === authorise;
    const pending = isWork ? withDeadline(exchange, outcome) : outcome;
    return pending.then((response) => response ?? runStages(exchange, i + 1));
  }
  return pageNotFound();
}

function failure(exchange: Exchange, error: unknown): ApiResponse {
  const { server, request } = exchange;
  const apiError = toApiError(error);
  if (apiError.code >= 500 && !(error instanceof ApiError)) {
    server.log.error('request failed', {
      method: request.method,
      path: request.path,
      auditId: exchange.auditId,
      error: error instanceof Error ? (error.stack ?? error.message) : String(error),
    });
  }
  const query = request.query === '' ? null : exchange.query.get('pretty');
  const answer = statusResponse(apiError.status, { pretty: wantsPretty(request.headers, query) });
  return inEncodingAsked(exchange, answer, apiError.status);
}

/**
 * A client that takes YAML or protobuf alone gets its errors that way too; one that takes nothing an error can be (Tables
 * alone, or nothing we have) in JSON, indented (responsewriters.WriteRawJSON).
 */
function inEncodingAsked(exchange: Exchange, answer: ApiResponse, status: Status): ApiResponse {
  if (takesJson(exchange.request.headers['accept'])) return answer;
  try {
    const representation = representationOf(exchange, { transforms: false, protobuf: 'all' });
    if (representation.encoding === 'json') {
      return representation.pretty ? statusResponse(status, { pretty: true }) : answer;
    }
    const bytes = new TextEncoder().encode(JSON.stringify(status));
    const encoded = encodedResponse({ status: answer.status, bytes, representation });
    return { ...encoded, headers: { ...answer.headers, ...encoded.headers } };
  } catch {
    return { ...answer, body: new TextEncoder().encode(JSON.stringify(status, null, 2)) };
  }
}

function finish(exchange: Exchange, response: ApiResponse): ApiResponse | Promise<ApiResponse> {
  const headers: Record<string, string> = {
    'audit-id': exchange.auditId,
    'cache-control': 'no-cache, private',
    ...exchange.flow?.headers,
    ...exchange.cors,
    ...response.headers,
  };
  const warning = exchange.warningHeader();
  if (warning !== undefined) headers['warning'] = warning;
  const compressed = compressible(exchange, response);
  if (!compressed) return { ...response, headers };
  headers['content-encoding'] = 'gzip';
  headers['vary'] = headers['vary'] === undefined ? 'Accept-Encoding' : `${headers['vary']}, Accept-Encoding`;
  return exchange.server.compressor!.gzip(compressed).then((body) => ({ status: response.status, headers, body }));
}

/** The body as one buffer when it is worth compressing and the client can read it. Streams never are. */
function compressible({ request, server }: Exchange, { body, headers }: ApiResponse): Uint8Array | undefined {
  if (!server.compressor || body === undefined || typeof body === 'function') return undefined;
  if (headers['content-encoding'] !== undefined) return undefined;
  const chunks = body instanceof Uint8Array ? [body] : body;
  let length = 0;
  for (const chunk of chunks) length += chunk.length;
  if (length < COMPRESS_FROM_BYTES || !acceptsGzip(request.headers)) return undefined;
  return chunks.length === 1 ? chunks[0] : joinBytes(chunks);
}
