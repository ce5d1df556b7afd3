/** Everything that is no resource: discovery, OpenAPI, health, version, metrics and the index of paths. */

import { methodNotAllowed } from '@coracle/apimachinery/meta/status';
import type { VersionInfo } from '@coracle/apimachinery/meta/version-info';
import type { ApiRequest, ApiResponse } from '@coracle/runtime/http/seam';
import type { Exchange } from './exchange.ts';
import { type HealthChecks, healthMetrics, healthResponse } from './health.ts';
import { createOpenApi, type OpenApiParts } from './openapi-routes.ts';
import { encodedResponse, JSON_HEADERS, pageNotFound, representationOf } from './responses.ts';

export interface DocumentParts extends OpenApiParts {
  readonly discovery: (exchange: Exchange) => Promise<ApiResponse> | undefined;
  readonly checks: HealthChecks;
  readonly version: VersionInfo;
  readonly paths: ReadonlyMap<string, (request: ApiRequest) => ApiResponse | Promise<ApiResponse>>;
  readonly metrics: () => Promise<string>;
}

const METRICS_HEADERS = Object.freeze({ 'content-type': 'text/plain; version=0.0.4; charset=utf-8' });
const encoder = new TextEncoder();

/** Answers a request that is about no resource; undefined when nobody has that path. */
export function createDocuments(
  parts: DocumentParts,
): (exchange: Exchange) => ApiResponse | Promise<ApiResponse> | undefined {
  const openApi = createOpenApi(parts);
  const version = encoder.encode(JSON.stringify(parts.version));
  return (exchange) => {
    const { path, method } = exchange.request;
    const extra = parts.paths.get(path);
    if (extra) return extra(exchange.request);
    const reads = method === 'GET' || method === 'HEAD';
    // Upstream asks its checks whatever the method is.
    if (!reads) return healthResponse(exchange, parts.checks) ?? refusal(exchange, parts);
    switch (path) {
      case '/':
        return indexOfPaths(exchange, parts);
      case '/version':
      case '/version/':
        return json(exchange, version);
      case '/metrics':
        return parts.metrics().then((text) => ({ status: 200, headers: METRICS_HEADERS, body: encoder.encode(text) }));
      case '/metrics/slis':
        return { status: 200, headers: METRICS_HEADERS, body: encoder.encode(healthMetrics(parts.checks)) };
      default:
        return healthResponse(exchange, parts.checks) ?? openApi(exchange) ?? parts.discovery(exchange);
    }
  };
}

const READ_ONLY = new Set(['/version', '/version/', '/metrics', '/metrics/slis', '/openapi/v2', '/openapi/v3']);

/** What can only be read: 405 in the words of upstream's router; undefined when nobody has that path. */
async function refusal(exchange: Exchange, { discovery, resources }: DocumentParts): Promise<ApiResponse> {
  const { path } = exchange.request;
  const found = READ_ONLY.has(path) ? undefined : await discovery(exchange);
  const known = READ_ONLY.has(path) || (found?.status ?? 404) < 400;
  if (!known) return pageNotFound();
  // The page of a group of definitions is given to every method.
  const [, root, group] = path.split('/');
  const isCustom = root === 'apis' && resources.all().some((info) => info.group === group && info.strategy.custom);
  if (found !== undefined && isCustom) return found;
  throw methodNotAllowed();
}

const json = (exchange: Exchange, bytes: Uint8Array): ApiResponse =>
  encodedResponse({ status: 200, bytes, representation: representationOf(exchange, { transforms: false }) });

/** Everything that can be asked for beside objects, sorted. */
function indexedPaths({ resources, aggregator, checks, paths }: DocumentParts): string[] {
  const found = new Set([
    ...['/api', '/apis', '/metrics', '/metrics/slis', '/openapi/v2', '/openapi/v3', '/version'],
    ...paths.keys(),
  ]);
  for (const { group, version } of [...resources.all(), ...aggregator.discovery().remote]) {
    if (group === '') found.add(`/api/${version}`);
    else found.add(`/apis/${group}`).add(`/apis/${group}/${version}`);
  }
  for (const kind of ['healthz', 'livez', 'readyz'] as const) {
    found.add(`/${kind}`);
    for (const name of checks[kind].keys()) found.add(`/${kind}/${name}`);
  }
  return [...found].sort();
}

function indexOfPaths(exchange: Exchange, parts: DocumentParts): ApiResponse {
  const bytes = encoder.encode(JSON.stringify({ paths: indexedPaths(parts) }, null, 2));
  const { encoding } = representationOf(exchange, { transforms: false });
  return encoding === 'json'
    ? { status: 200, headers: JSON_HEADERS, body: bytes }
    : encodedResponse({ status: 200, bytes, representation: { encoding, pretty: false } });
}
