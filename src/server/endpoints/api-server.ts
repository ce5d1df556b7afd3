/**
 * The embedded Kubernetes API server: one handler over a store, a catalog of resources and the rooms that say who may
 * do what. It knows no network: the TLS server, the in-process client and the tests call the same function.
 */

import { type VersionInfo, versionInfo } from '../../api/kinds/discovery/version-info.ts';
import { ApiError } from '../../api/meta/status.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { ApiHandler, ApiRequest, ApiResponse } from '../../base/http/seam.ts';
import type { Logger } from '../../base/log/log.ts';
import type { AdmissionPlugin } from '../admission/plugin.ts';
import type { Authenticator, Authorizer } from '../auth/identity.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import type { ResourceSource } from '../registry/resource-catalog.ts';
import type { FieldManagement, Registry } from '../registry/write-call.ts';
import type { AggregatedApi } from './aggregated-api.ts';
import { JSON_AND_YAML } from './body.ts';
import { createDiscovery } from './discovery-routes.ts';
import { createDocuments } from './documents.ts';
import type { BodyDecoder, CreateOnlyHandler, Server, SubresourceHandler } from './exchange.ts';
import { createHealthChecks, type HealthCheck } from './health.ts';
import { createOpenWatches } from './open-watches.ts';
import { createRequestMetrics, type MetricFamily } from './request-metrics.ts';
import { statusResponse } from './responses.ts';
import { answer } from './stages.ts';
import { FrameCache } from './watch-frames.ts';

export interface ApiServerOptions {
  readonly store: ObjectStore;
  readonly resources: ResourceSource;
  readonly authenticate: Authenticator;
  readonly authorize: Authorizer;
  /** In upstream's order. */
  readonly admission: readonly AdmissionPlugin[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly aggregated?: readonly AggregatedApi[];
  readonly version?: VersionInfo;
  /** `host:port` as clients reach the server, for discovery. */
  readonly serverAddress?: string;
  /** By `group/resource/subresource`; goes before the registry's own subresources. */
  readonly subresourceHandlers?: ReadonlyMap<string, SubresourceHandler>;
  /** By `group/resource`: kinds that are answered and not stored. */
  readonly createOnlyHandlers?: ReadonlyMap<string, CreateOnlyHandler>;
  /** Media types beside JSON and YAML. */
  readonly bodyDecoders?: ReadonlyMap<string, BodyDecoder>;
  /** Field ownership; without it server-side apply is refused and managedFields are left alone. */
  readonly fields?: FieldManagement;
  /** gzip of a whole body, for large answers. */
  readonly compress?: (bytes: Uint8Array) => Promise<Uint8Array>;
  /** More checks for healthz and readyz. */
  readonly healthChecks?: ReadonlyMap<string, HealthCheck>;
  /** More paths that are no resources (`/openid/v1/jwks`), by exact path; authorised as such. */
  readonly paths?: ReadonlyMap<string, (request: ApiRequest) => ApiResponse | Promise<ApiResponse>>;
  /** Metric families of other rooms, asked at each scrape. */
  readonly metrics?: () => readonly MetricFamily[];
}

export interface ApiServer {
  /** Answers any request; never rejects. */
  readonly handler: ApiHandler;
  /** For objects the server itself has to write (`ensureBootstrapObjects`). */
  readonly registry: Registry;
  /** All kinds are served and bootstrap objects exist: unknown paths are 404 from here on, readyz is ok. */
  setReady(): void;
  /**
   * Takes no more requests, ends the watches, and resolves when the last request has been answered. Rejects with the
   * signal's reason when that takes too long.
   */
  drain(signal: AbortSignal): Promise<void>;
}

/** Puts the server together. It serves at once and says so in readyz after `setReady`. */
export function createApiServer(options: ApiServerOptions): ApiServer {
  const { store, resources, clock, log } = options;
  const registry: Registry = { store, clock, ...(options.fields && { fields: options.fields }) };
  const metrics = createRequestMetrics();
  const watches = createOpenWatches();
  const aggregated = options.aggregated ?? [];
  let ready = false;
  let draining = false;
  let drained: (() => void) | undefined;

  const checks = createHealthChecks({
    storeFault: () => store.fault(),
    ready: () => ready,
    draining: () => draining,
    more: options.healthChecks ?? new Map(),
  });
  const server: Server = {
    registry,
    resources,
    authenticate: options.authenticate,
    authorize: options.authorize,
    admission: options.admission,
    aggregated,
    subresourceHandlers: options.subresourceHandlers ?? new Map(),
    createOnlyHandlers: options.createOnlyHandlers ?? new Map(),
    bodyDecoders: new Map<string, BodyDecoder>([...JSON_AND_YAML, ...(options.bodyDecoders ?? [])]),
    compress: options.compress,
    clock,
    log,
    metrics,
    watches,
    frames: new FrameCache(),
    documents: createDocuments({
      discovery: createDiscovery({ resources, aggregated, serverAddress: options.serverAddress ?? 'localhost' }),
      resources,
      clock,
      checks,
      version: options.version ?? versionInfo(),
      paths: options.paths ?? new Map(),
      metrics: () => metrics.text([...storeMetrics(store, resources), ...(options.metrics?.() ?? [])]),
    }),
    ready: () => ready,
  };
  // Readers of a kind that is gone, or has another schema now, start again.
  resources.onChange(({ removed }) => watches.endOf(removed));

  return {
    registry,
    async handler(request) {
      if (draining && !isProbe(request.path)) return shuttingDown();
      const response = await answer(server, request);
      if (draining && metrics.inFlight === 0) drained?.();
      return response;
    },
    setReady() {
      ready = true;
    },
    drain(signal) {
      draining = true;
      watches.endAll();
      if (metrics.inFlight === 0) return Promise.resolve();
      return new Promise((resolve, reject) => {
        drained = resolve;
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      });
    },
  };
}

const isProbe = (path: string): boolean =>
  path.startsWith('/healthz') || path.startsWith('/livez') || path.startsWith('/readyz');

const shuttingDown = (): ApiResponse =>
  statusResponse(
    new ApiError({
      code: 503,
      reason: 'ServiceUnavailable',
      message: 'the server is shutting down, please try again later',
      details: { retryAfterSeconds: 1 },
    }).status,
    { pretty: false },
  );

function storeMetrics(store: ObjectStore, resources: ResourceSource): MetricFamily[] {
  const counts = new Map<string, number>();
  for (const { group, resource } of resources.all()) {
    const count = store.count(`${group}/${resource}`);
    if (count > 0) counts.set(group === '' ? resource : `${resource}.${group}`, count);
  }
  const stats = store.stats();
  const gauge = (name: string, help: string, value: number): MetricFamily => ({
    name,
    help,
    type: 'gauge',
    samples: [{ labels: {}, value }],
  });
  return [
    {
      name: 'apiserver_storage_objects',
      help: 'Stored objects by resource.',
      type: 'gauge',
      samples: [...counts].map(([resource, value]) => ({ labels: { resource }, value })),
    },
    gauge('coracle_store_revision', 'Newest published revision.', store.revision()),
    gauge('coracle_store_writes', 'Writes made durable since start.', stats.writes),
    gauge('coracle_store_commits', 'Commits that carried them.', stats.commits),
    gauge('coracle_store_queued_writes', 'Writes decided and not yet durable.', stats.queued),
    gauge('coracle_store_failed_writes', 'Writes the disk refused.', stats.failedWrites),
  ];
}
