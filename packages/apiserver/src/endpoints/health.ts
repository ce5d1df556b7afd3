/** /healthz, /livez, /readyz: named checks, each with its own path; and what came of them, as /metrics/slis tells it. */
import { goQuote } from '@coracle/apimachinery/meta/go-text';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import { familyText, type ValueFamily } from '@coracle/runtime/metrics/metric-family';
import type { Exchange } from './exchange.ts';
import { pageNotFound, textResponse } from './responses.ts';
import START_HOOKS from './start-hooks.json' with { type: 'json' };

/** Undefined when all is well, else why not. */
export type HealthCheck = () => string | undefined;

export interface HealthChecks {
  readonly healthz: ReadonlyMap<string, HealthCheck>;
  readonly livez: ReadonlyMap<string, HealthCheck>;
  readonly readyz: ReadonlyMap<string, HealthCheck>;
  /** What came of the checks so far: a series for each that was made. */
  readonly results: Map<string, CheckResults>;
}

/** Of one check under one of the three paths. */
export interface CheckResults {
  readonly name: string;
  readonly type: string;
  healthy: boolean;
  success: number;
  error: number;
}

const fine: HealthCheck = () => undefined;
const MAX_REASON_LENGTH = 300;

/** The checks of a server: `etcd` is the store, under the name that monitors know. */
export function createHealthChecks(parts: {
  readonly storeFault: HealthCheck;
  readonly ready: () => boolean;
  readonly draining: () => boolean;
}): HealthChecks {
  const starting: HealthCheck = () => (parts.ready() ? undefined : 'still starting');
  // What upstream's start-up hooks are called; ours have run once the server is ready.
  const hooks: [string, HealthCheck][] = START_HOOKS.map((name) => [`poststarthook/${name}`, starting]);
  const healthz: [string, HealthCheck][] = [
    ['ping', fine],
    ['log', fine],
    ['etcd', parts.storeFault],
    ['autoregister-completion', starting],
    ...hooks,
  ];
  return {
    healthz: new Map(healthz),
    // Liveness is about the process: neither a full disk nor a long start goes away by a restart.
    livez: new Map(healthz.map(([name]) => [name, fine])),
    readyz: new Map([
      ...healthz,
      ['informer-sync', starting],
      ['shutdown', () => (parts.draining() ? 'process is shutting down' : undefined)],
    ]),
    results: new Map(),
  };
}

/** The page /metrics/slis (KEP-3466): how each check ended last, and how often it ended how. */
export function healthMetrics({ results }: HealthChecks): string {
  const all = [...results.values()];
  const counted = (status: 'error' | 'success') =>
    all
      .filter((result) => result[status] > 0)
      .map(({ name, type, [status]: value }) => ({ labels: { name, status, type }, value }));
  const families: ValueFamily[] = [
    {
      name: 'kubernetes_healthcheck',
      help: '[STABLE] This metric records the result of a single healthcheck.',
      type: 'gauge',
      samples: all.map(({ name, type, healthy }) => ({ labels: { name, type }, value: healthy ? 1 : 0 })),
    },
    {
      name: 'kubernetes_healthchecks_total',
      help: '[STABLE] This metric records the results of all healthcheck.',
      type: 'counter',
      samples: [...counted('error'), ...counted('success')],
    },
  ];
  return families.map(familyText).join('');
}

function noteResult(results: HealthChecks['results'], { name, type }: { name: string; type: string }, ok: boolean) {
  const key = `${type}/${name}`;
  const noted = results.get(key) ?? { name, type, healthy: ok, success: 0, error: 0 };
  results.set(key, noted);
  noted.healthy = ok;
  noted[ok ? 'success' : 'error']++;
}

/** Answers the three paths and those of single checks; undefined for any other path. */
export function healthResponse(exchange: Exchange, checks: HealthChecks): ApiResponse | undefined {
  const [, kind = '', ...rest] = exchange.request.path.split('/');
  if (kind !== 'healthz' && kind !== 'livez' && kind !== 'readyz') return undefined;
  return rest.length > 0 ? oneCheck(checks[kind], rest.join('/')) : allChecks(exchange, checks, kind);
}

function oneCheck(checks: ReadonlyMap<string, HealthCheck>, name: string): ApiResponse {
  const check = checks.get(name);
  if (!check) return pageNotFound();
  const reason = check();
  return reason === undefined
    ? textResponse(200, 'ok')
    : textResponse(500, `internal server error: ${oneLine(reason)}\n`);
}

function allChecks({ query }: Exchange, checks: HealthChecks, kind: 'healthz' | 'livez' | 'readyz'): ApiResponse {
  const excluded = new Set(query.getAll('exclude'));
  let text = '';
  let failed = false;
  for (const [name, check] of checks[kind]) {
    if (excluded.delete(name)) {
      text += `[+]${name} excluded: ok\n`;
      continue;
    }
    const reason = check();
    noteResult(checks.results, { name, type: kind }, reason === undefined);
    failed ||= reason !== undefined;
    text += reason === undefined ? `[+]${name} ok\n` : `[-]${name} failed: ${oneLine(reason)}\n`;
  }
  if (excluded.size > 0) {
    const names = [...excluded].sort().map((name) => goQuote(oneLine(name)));
    text += `warn: some health checks cannot be excluded: no matches for ${names.join(',')}\n`;
  }
  if (failed) return textResponse(500, `${text}${kind} check failed\n`);
  return textResponse(200, query.has('verbose') ? `${text}${kind} check passed\n` : 'ok');
}

const oneLine = (text: string): string => text.replace(/\p{Cc}+/gu, ' ').slice(0, MAX_REASON_LENGTH);
