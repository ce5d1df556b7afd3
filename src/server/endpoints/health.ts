/** /healthz, /livez, /readyz: named checks, each with its own path. */
import type { ApiResponse } from '../../base/http/seam.ts';
import type { Exchange } from './exchange.ts';
import { pageNotFound, textResponse } from './responses.ts';

/** Undefined when all is well, else why not. */
export type HealthCheck = () => string | undefined;

export interface HealthChecks {
  readonly healthz: ReadonlyMap<string, HealthCheck>;
  readonly livez: ReadonlyMap<string, HealthCheck>;
  readonly readyz: ReadonlyMap<string, HealthCheck>;
}

const fine: HealthCheck = () => undefined;
const MAX_REASON_LENGTH = 300;

/** What upstream's start-up hooks are called; ours have run once the server is ready. */
const START_HOOKS = [
  'start-apiserver-admission-initializer',
  'generic-apiserver-start-informers',
  'start-apiextensions-informers',
  'start-apiextensions-controllers',
  'crd-informer-synced',
  'bootstrap-controller',
  'start-system-namespaces-controller',
  'start-service-ip-repair-controllers',
  'scheduling/bootstrap-system-priority-classes',
  'start-cluster-authentication-info-controller',
  'start-kube-aggregator-informers',
  'apiservice-registration-controller',
  'apiservice-status-local-available-controller',
  'apiservice-status-remote-available-controller',
  'kube-apiserver-autoregistration',
  'apiservice-discovery-controller',
  'apiservice-openapi-controller',
  'apiservice-openapiv3-controller',
  'rbac/bootstrap-roles',
  'priority-and-fairness-config-consumer',
  'priority-and-fairness-config-producer',
  'priority-and-fairness-filter',
  'storage-readiness',
];

/** The checks of a server: `etcd` is the store, under the name that monitors know. */
export function createHealthChecks(parts: {
  readonly storeFault: HealthCheck;
  readonly ready: () => boolean;
  readonly draining: () => boolean;
  readonly more: ReadonlyMap<string, HealthCheck>;
}): HealthChecks {
  const starting: HealthCheck = () => (parts.ready() ? undefined : 'still starting');
  const hooks: [string, HealthCheck][] = START_HOOKS.map((name) => [`poststarthook/${name}`, starting]);
  const base: [string, HealthCheck][] = [
    ['ping', fine],
    ['log', fine],
  ];
  const ready = new Map<string, HealthCheck>([
    ...base,
    ['etcd', parts.storeFault],
    ['autoregister-completion', starting],
    ...hooks,
    ...parts.more,
    ['informer-sync', starting],
    ['shutdown', () => (parts.draining() ? 'process is shutting down' : undefined)],
  ]);
  return {
    healthz: new Map<string, HealthCheck>([
      ...base,
      ['etcd', parts.storeFault],
      ['autoregister-completion', starting],
      ...hooks,
      ...parts.more,
    ]),
    // Liveness is about the process: neither a full disk nor a long start goes away by a restart.
    livez: new Map<string, HealthCheck>([
      ...base,
      ...['etcd', 'autoregister-completion', ...hooks.map(([name]) => name)].map((name) => [name, fine] as const),
    ]),
    readyz: ready,
  };
}

/** Answers the three paths and those of single checks; undefined for any other path. */
export function healthResponse(exchange: Exchange, checks: HealthChecks): ApiResponse | undefined {
  const [, kind = '', ...rest] = exchange.request.path.split('/');
  if (kind !== 'healthz' && kind !== 'livez' && kind !== 'readyz') return undefined;
  const name = rest.join('/');
  if (name !== '') return oneCheck(checks[kind], name);
  const excluded = new Set(exchange.query.getAll('exclude'));
  return allChecks(checks[kind], { kind, excluded, verbose: exchange.query.has('verbose') });
}

function oneCheck(checks: ReadonlyMap<string, HealthCheck>, name: string): ApiResponse {
  const check = checks.get(name);
  if (!check) return pageNotFound();
  const reason = check();
  return reason === undefined
    ? textResponse(200, 'ok')
    : textResponse(500, `internal server error: ${oneLine(reason)}\n`);
}

function allChecks(
  checks: ReadonlyMap<string, HealthCheck>,
  { kind, excluded, verbose }: { readonly kind: string; readonly excluded: Set<string>; readonly verbose: boolean },
): ApiResponse {
  let text = '';
  let failed = false;
  for (const [name, check] of checks) {
    if (excluded.delete(name)) {
      text += `[+]${name} excluded: ok\n`;
      continue;
    }
    const reason = check();
    if (reason === undefined) {
      text += `[+]${name} ok\n`;
    } else {
      failed = true;
      text += `[-]${name} failed: ${oneLine(reason)}\n`;
    }
  }
  if (excluded.size > 0) {
    const names = [...excluded].map((name) => JSON.stringify(oneLine(name))).join(', ');
    text += `warn: some health checks cannot be excluded: no matches for ${names}\n`;
  }
  if (failed) return textResponse(500, `${text}${kind} check failed\n`);
  return textResponse(200, verbose ? `${text}${kind} check passed\n` : 'ok');
}

const oneLine = (text: string): string => text.replace(/\p{Cc}+/gu, ' ').slice(0, MAX_REASON_LENGTH);
