/**
 * The request pipeline: named stages in order. A stage answers (and the rest is skipped) or lets the request pass.
 * 401 comes before 403, 403 before 404, and a body is read last.
 *
 *   audit-id > request-info > deadline > authentication > impersonation > aggregation > authorisation > routing and verb
 *
 * Around them: one place turns a failure into a Status, and `finish` adds cache headers, warnings and the audit id, and
 * compresses large bodies.
 */

import { ApiError, badRequest } from '../../api/meta/status.ts';
import type { ApiRequest, ApiResponse } from '../../base/http/seam.ts';
import { authorizationAttributes, forbiddenBy } from './authorization.ts';
import { Exchange, type Server } from './exchange.ts';
import { impersonatedUser } from './impersonation.ts';
import { wantsPretty } from './negotiation.ts';
import { parseGoDuration } from './query.ts';
import { isLongRunning, parseRequestInfo } from './request-info.ts';
import { pageNotFound, statusResponse, toApiError } from './responses.ts';
import { routeResource } from './routing.ts';

export interface Stage {
  readonly name: string;
  readonly run: (exchange: Exchange) => ApiResponse | Promise<ApiResponse | undefined> | undefined;
}

const MAX_AUDIT_ID_LENGTH = 64;

const auditId: Stage = {
  name: 'audit-id',
  run(exchange) {
    const sent = exchange.request.headers['audit-id'];
    const usable = sent !== undefined && sent.length <= MAX_AUDIT_ID_LENGTH && /^[\x21-\x7e]+$/.test(sent);
    exchange.auditId = usable ? sent : crypto.randomUUID();
    return undefined;
  },
};

const requestInfo: Stage = {
  name: 'request-info',
  run(exchange) {
    exchange.info = parseRequestInfo(exchange.request);
    return undefined;
  },
};

const deadline: Stage = {
  name: 'deadline',
  run(exchange) {
    if (!isLongRunning(exchange.info)) exchange.deadlineMs = deadlineOf(exchange);
    return undefined;
  },
};

const authentication: Stage = {
  name: 'authentication',
  async run(exchange) {
    exchange.user = await exchange.server.authenticate(exchange.request);
    return undefined;
  },
};

/** From here on the request is the impersonated user's. */
const impersonation: Stage = {
  name: 'impersonation',
  run(exchange) {
    exchange.user = impersonatedUser(exchange);
    return undefined;
  },
};

/**
 * Aggregated APIs authorise for themselves, in their own words, what concerns an object in a namespace. Their endpoints
 * of cluster scope (version, health) they leave open, because upstream the aggregator in front of them has asked before.
 */
const aggregation: Stage = {
  name: 'aggregation',
  run(exchange) {
    const { info, server, request, user } = exchange;
    if (!info.isResource || server.aggregated.length === 0) return undefined;
    for (const api of server.aggregated) {
      if (api.group === info.group && api.versions.includes(info.version)) {
        if (info.namespace === '') authorise(exchange);
        return api.handle(request, user, info, server.authorize);
      }
    }
    return undefined;
  },
};

const authorisation: Stage = {
  name: 'authorisation',
  run(exchange) {
    authorise(exchange);
    return undefined;
  },
};

/** Throws ApiError 403 when the user may not. */
function authorise({ server, user, info }: Exchange): void {
  const verdict = server.authorize(user, authorizationAttributes(info));
  if (!verdict.allowed) throw forbiddenBy(user, info, verdict.reason);
}

const routing: Stage = {
  name: 'routing',
  run(exchange) {
    if (exchange.info.isResource) return routeResource(exchange)(exchange);
    return exchange.server.documents(exchange) ?? pageNotFound();
  },
};

export const STAGES: readonly Stage[] = [
  auditId,
  requestInfo,
  deadline,
  authentication,
  impersonation,
  aggregation,
  authorisation,
  routing,
];

/** Runs one request through the stages. Never rejects. */
export async function answer(server: Server, request: ApiRequest): Promise<ApiResponse> {
  const exchange = new Exchange(request, server);
  const started = server.clock.monotonic();
  server.metrics.begin();
  let response: ApiResponse;
  try {
    response = await runStages(exchange);
    if (response.status === 404 && !server.ready() && exchange.resource === undefined) response = notReadyYet();
  } catch (error) {
    response = failure(exchange, error);
  }
  server.metrics.end({
    verb: exchange.info?.verb ?? 'none',
    // Only served resources become labels: paths are the client's, and there is no end of them.
    group: exchange.resource?.group ?? '',
    resource: exchange.resource?.resource ?? '',
    code: response.status,
    ms: server.clock.monotonic() - started,
  });
  return finish(exchange, response);
}

async function runStages(exchange: Exchange): Promise<ApiResponse> {
  for (const stage of STAGES) {
    const outcome = stage.run(exchange);
    if (outcome === undefined) continue;
    if (!(outcome instanceof Promise)) return outcome;
    const response = await (stage === routing ? withDeadline(exchange, outcome) : outcome);
    if (response) return response;
  }
  return pageNotFound();
}

const WRITE_DEADLINE_MS = 34_000;
const DEADLINE_MS = 60_000;
const WRITES = new Set(['create', 'update', 'patch', 'delete', 'deletecollection']);

/** What the query asks for, within what the server allows. Throws ApiError 400 when it is no duration. */
function deadlineOf({ info, request, query }: Exchange): number {
  const cap = WRITES.has(info.verb) ? WRITE_DEADLINE_MS : DEADLINE_MS;
  const text = request.query.includes('timeout') ? query.get('timeout') : null;
  if (text === null || text === '') return cap;
  const asked = parseGoDuration(text);
  if (asked === undefined) throw badRequest(`invalid timeout specified in the request URL: ${JSON.stringify(text)}`);
  return asked > 0 && asked < cap ? asked : cap;
}

/** Gives up waiting for an answer in time; what has been sent to the disk by then may still be written. */
function withDeadline<T>(exchange: Exchange, pending: Promise<T>): Promise<T> {
  const { deadlineMs } = exchange;
  if (deadlineMs === undefined) return pending;
  return new Promise((resolve, reject) => {
    const cancel = exchange.server.clock.schedule(deadlineMs, () => {
      reject(
        new ApiError({
          code: 504,
          reason: 'Timeout',
          message: 'Timeout: request did not complete within the allotted timeout',
        }),
      );
    });
    void pending.then(resolve, reject).finally(cancel);
  });
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
  return statusResponse(apiError.status, { pretty: wantsPretty(request.headers, query) });
}

/** Before every kind is served, "no such path" would make controllers believe that a kind is gone. */
function notReadyYet(): ApiResponse {
  return statusResponse(
    new ApiError({
      code: 503,
      reason: 'ServiceUnavailable',
      message: 'the request has been made before all known HTTP paths have been installed, please try again',
      details: { retryAfterSeconds: 1 },
    }).status,
    { pretty: false },
  );
}

const CACHE_CONTROL = 'no-cache, private';
/** Bodies below this size are sent as they are. */
const COMPRESS_FROM_BYTES = 128 * 1024;

async function finish(exchange: Exchange, response: ApiResponse): Promise<ApiResponse> {
  const headers: Record<string, string> = {
    'audit-id': exchange.auditId,
    'cache-control': CACHE_CONTROL,
    ...response.headers,
  };
  const warning = exchange.warningHeader();
  if (warning !== undefined) headers['warning'] = warning;
  const compressed = compressible(exchange, response);
  if (!compressed) return { ...response, headers };
  headers['content-encoding'] = 'gzip';
  headers['vary'] = headers['vary'] === undefined ? 'Accept-Encoding' : `${headers['vary']}, Accept-Encoding`;
  return { status: response.status, headers, body: await exchange.server.compress!(compressed) };
}

/** The body as one buffer when it is worth compressing and the client can read it. Streams never are. */
function compressible({ request, server }: Exchange, { body, headers }: ApiResponse): Uint8Array | undefined {
  if (!server.compress || body === undefined || typeof body === 'function') return undefined;
  if (headers['content-encoding'] !== undefined) return undefined;
  const chunks = body instanceof Uint8Array ? [body] : body;
  let length = 0;
  for (const chunk of chunks) length += chunk.length;
  if (length < COMPRESS_FROM_BYTES || !/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return undefined;
  if (chunks.length === 1) return chunks[0];
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}
