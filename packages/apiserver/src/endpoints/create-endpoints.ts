/**
 * The embedded Kubernetes API server: one handler over a store, a catalog of resources and the rooms that say who may
 * do what. It knows no network: the TLS server, the in-process client and the tests call the same function.
 */

import { type VersionInfo, versionInfo } from '@coracle/apimachinery/meta/version-info';
import type { ApiHandler, ApiRequest, ApiResponse } from '@coracle/runtime/http/seam';
import type { MetricFamily } from '@coracle/runtime/metrics/metric-family';
import { abortable } from '@coracle/runtime/signal/abortable';
import type { Aggregator, createAggregator } from '../aggregation/aggregator.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import { type ConnectOutbound, noOutbound } from '../outbound/outbound.ts';
import type { ResourceSource } from '../registry/resource-catalog.ts';
import type { RunStage } from '../registry/stage-job.ts';
import { createStagesElsewhere } from '../registry/stages-elsewhere.ts';
import type { Registry } from '../registry/write-contract.ts';
import { JSON_AND_YAML } from './body.ts';
import { createDiscovery } from './discovery-routes.ts';
import { createDocuments } from './documents.ts';
import type { BodyDecoder, Server } from './exchange.ts';
import type { createFlowControl } from './flow-control/flow-control.ts';
import { createHealthChecks } from './health.ts';
import { createJoinedLists } from './joined-lists.ts';
import { createOpenWatches } from './open-watches.ts';
import type { MakeSwagger } from './openapi-routes.ts';
import { createCorsPolicy } from './origin.ts';
import { createHostCheck } from './own-hosts.ts';
import { PackedLists } from './packed-lists.ts';
import { createRequestMetrics, single } from './request-metrics.ts';
import { createInFlightLimit, type FlowControl } from './request-seats.ts';
import { unavailable } from './responses.ts';
import { answer } from './stages.ts';
import { FrameCache } from './watch-frames.ts';
import { createWatchPace } from './watch-pace.ts';

type Needed = 'resources' | 'authenticate' | 'authorize' | 'admission' | 'clock' | 'log';
type Handlers = 'subresourceHandlers' | 'createOnlyHandlers' | 'connectNode' | 'aggregated' | 'bodyDecoders';
type Helpers = 'readElsewhere' | 'writeElsewhere' | 'compressor' | 'auditor' | 'admissionMetrics';

/** `bodyDecoders` are those beside JSON and YAML. */
export interface EndpointsOptions
  extends Pick<Server, Needed>,
    Partial<Pick<Server, Handlers | Helpers>>,
    Pick<Registry, 'fields' | 'deletesWhole'> {
  readonly store: ObjectStore;
  /** Puts the layer together that knows other API servers; without it no request is passed on. */
  readonly aggregation?: typeof createAggregator;
  /** Priority and fairness; without it requests are counted, whoever sends them. */
  readonly flowControl?: typeof createFlowControl;
  /** The document at /openapi/v2; 404 without it. */
  readonly swagger2?: MakeSwagger;
  /** How other API servers are reached; without it their groups are unavailable. */
  readonly connectOutbound?: ConnectOutbound;
  /** The document at `/version`. */
  readonly version?: VersionInfo;
  /** `host:port` as clients reach the server, for discovery. */
  readonly serverAddress?: string;
  /** Does the stages of large writes on another thread; without it they are done on this one. */
  readonly runStage?: RunStage;
  /** More paths that are no resources (`/openid/v1/jwks`), by exact path; authorised as such. */
  readonly paths?: ReadonlyMap<string, (request: ApiRequest) => ApiResponse | Promise<ApiResponse>>;
  /** Regular expressions of the origins whose pages may call; none when absent. */
  readonly corsAllowedOrigins?: readonly string[];
  /** DNS names that requests may call this server by, beside localhost and IP addresses; any when absent. */
  readonly hostNames?: readonly string[];
  /** Requests answered at once, those of exempt priority levels aside; 600 when not given. */
  readonly maxInFlight?: number;
  /** Metric families of other rooms, asked at each scrape. */
  readonly metrics?: () => Promise<readonly MetricFamily[]>;
}

export interface Endpoints {
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
export function createEndpoints(options: EndpointsOptions): Endpoints {
  const { store, resources, clock, log, compressor, aggregated = [], serverAddress = 'localhost' } = options;
  const registry: Registry = {
    store,
    clock,
    ...(options.fields && { fields: options.fields }),
    ...(options.runStage && { elsewhere: createStagesElsewhere(options.runStage, { store, resources, clock }) }),
    ...(options.deletesWhole && { deletesWhole: options.deletesWhole }),
  };
  const metrics = createRequestMetrics();
  const watches = createOpenWatches();
  const inProcess = aggregated.flatMap(({ group, versions }) => versions.map((version) => ({ group, version })));
  const connect = options.connectOutbound ?? noOutbound;
  const aggregator = options.aggregation?.({ registry, resources, inProcess, connect, log }) ?? NO_AGGREGATION;
  const seats = options.maxInFlight;
  const flowControl =
    options.flowControl?.({ store, resources, clock, log, ...(seats !== undefined && { seats }) }) ??
    createInFlightLimit(seats);
  let ready = false;
  let draining = false;
  let drained: (() => void) | undefined;

  const checks = createHealthChecks({ storeFault: () => store.fault(), ready: () => ready, draining: () => draining });
  const server: Server = {
    registry,
    resources,
    authenticate: options.authenticate,
    authorize: options.authorize,
    admission: options.admission,
    admissionMetrics: options.admissionMetrics,
    aggregated,
    aggregator,
    flowControl,
    auditor: options.auditor,
    checkHost: options.hostNames && createHostCheck(options.hostNames),
    cors: options.corsAllowedOrigins?.length ? createCorsPolicy(options.corsAllowedOrigins) : undefined,
    subresourceHandlers: options.subresourceHandlers ?? new Map(),
    createOnlyHandlers: options.createOnlyHandlers ?? new Map(),
    connectNode: options.connectNode,
    bodyDecoders: new Map<string, BodyDecoder>([...JSON_AND_YAML, ...(options.bodyDecoders ?? [])]),
    readElsewhere: options.readElsewhere,
    writeElsewhere: options.writeElsewhere,
    compressor,
    packedLists: compressor && new PackedLists(compressor, clock),
    joinedLists: createJoinedLists(clock),
    clock,
    log,
    metrics,
    watches,
    frames: new FrameCache(),
    pace: createWatchPace(clock),
    documents: createDocuments({
      discovery: createDiscovery({ resources, aggregated, aggregator, serverAddress }),
      resources,
      aggregated,
      aggregator,
      clock,
      checks,
      version: options.version ?? versionInfo(),
      paths: options.paths ?? new Map(),
      swagger2: options.swagger2,
      writeElsewhere: options.writeElsewhere,
      async metrics() {
        const extra = (await options.metrics?.()) ?? [];
        return metrics.text([...storeMetrics(store, resources), ...flowMetrics(flowControl), ...extra]);
      },
    }),
    ready: () => ready,
  };
  // Readers of a kind that is gone, or has another schema now, start again.
  resources.onChange(({ removed }) => watches.endOf(removed));

  const answered = (response: ApiResponse): ApiResponse => {
    if (draining && metrics.inFlight === 0) drained?.();
    return response;
  };
  return {
    registry,
    handler(request) {
      if (draining && !/^\/(healthz|livez|readyz)/.test(request.path)) {
        return Promise.resolve(unavailable('the server is shutting down, please try again later'));
      }
      try {
        const response = answer(server, request);
        if (response instanceof Promise) return response.then(answered);
        return Promise.resolve(answered(response));
      } catch (error) {
        return Promise.reject(error);
      }
    },
    setReady() {
      ready = true;
      aggregator.start();
      flowControl.start();
    },
    drain(signal) {
      draining = true;
      aggregator.stop();
      flowControl.stop();
      watches.endAll();
      if (metrics.inFlight === 0) return Promise.resolve();
      const { promise, resolve } = Promise.withResolvers<void>();
      drained = resolve;
      return abortable(promise, signal);
    },
  };
}

/** The aggregation layer of a server that knows no other. */
const NO_AGGREGATION: Aggregator = {
  remote: () => undefined,
  proxy: () => Promise.reject(new Error('this server passes no requests on')),
  ask: () => Promise.reject(new Error('this server passes no requests on')),
  generation: () => 0,
  discovery: () => ({ remote: [], stale: new Set(), priorityOf: () => undefined }),
  openApi: () => [],
  swaggers: () => [],
  start() {},
  stop() {},
};

function flowMetrics(flowControl: FlowControl): MetricFamily[] {
  const load = flowControl.load();
  const gauge = (name: string, help: string, value: (one: (typeof load)[number]) => number): MetricFamily => ({
    name: `apiserver_flowcontrol_${name}`,
    help,
    type: 'gauge',
    samples: load.map((one) => ({ labels: { priority_level: one.name }, value: value(one) })),
  });
  return [
    gauge('nominal_limit_seats', 'Seats a priority level has of its own.', ({ limit }) => limit),
    gauge('current_executing_requests', 'Requests that hold a seat.', ({ running }) => running),
    gauge('current_executing_seats', 'Seats in use, by requests and after them.', ({ inUse }) => inUse),
    gauge('current_inqueue_requests', 'Requests that wait for one.', ({ waiting }) => waiting),
  ];
}

function storeMetrics(store: ObjectStore, resources: ResourceSource): MetricFamily[] {
  const counts = new Map<string, number>();
  for (const { group, resource } of resources.all()) {
    const count = store.count(`${group}/${resource}`);
    if (count > 0) counts.set(group === '' ? resource : `${resource}.${group}`, count);
  }
  const stats = store.stats();
  return [
    {
      name: 'apiserver_storage_objects',
      help: 'Stored objects by resource.',
      type: 'gauge',
      samples: [...counts].map(([resource, value]) => ({ labels: { resource }, value })),
    },
    single('coracle_store_revision', 'Newest published revision.', store.revision()),
    single('coracle_store_writes', 'Writes made durable since start.', stats.writes),
    single('coracle_store_commits', 'Commits that carried them.', stats.commits),
    single('coracle_store_queued_writes', 'Writes decided and not yet durable.', stats.queued),
    single('coracle_store_failed_writes', 'Writes the disk refused.', stats.failedWrites),
  ];
}
