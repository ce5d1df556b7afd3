/**
 * The aggregation layer: knows which group versions other servers answer for, passes their requests on, and says what
 * discovery and OpenAPI have to show of them.
 */

import type { ApiRequest, ApiResponse } from '@coracle/runtime/http/seam';
import type { Logger } from '@coracle/runtime/log/log';
import type { UserInfo } from '../auth/identity.ts';
import type { GroupPriority, RemoteGroupVersion } from '../kinds/discovery/discovery.ts';
import type { ConnectOutbound } from '../outbound/outbound.ts';
import { serviceAddresses } from '../outbound/service-address.ts';
import type { ResourceSource } from '../registry/resource-catalog.ts';
import type { Registry } from '../registry/write-contract.ts';
import { createApiServiceIndex, type RemoteApi } from './api-service-index.ts';
import { keepApiServices } from './auto-registration.ts';
import { AGGREGATOR_USER, discoveryPath } from './availability.ts';
import { forwardedRequest, forwardedResponse } from './proxy-request.ts';
import { monitorRemotes } from './remote-monitor.ts';

export interface AggregatorOptions {
  readonly registry: Registry;
  readonly resources: ResourceSource;
  /** Group versions answered in this process that are in no catalog. */
  readonly inProcess: readonly { readonly group: string; readonly version: string }[];
  readonly connect: ConnectOutbound;
  readonly log: Logger;
}

/** What discovery shows of other servers. */
export interface RemoteDiscovery {
  readonly remote: readonly RemoteGroupVersion[];
  /** `group/version` of those that did not answer last time. */
  readonly stale: ReadonlySet<string>;
  readonly priorityOf: (group: string, version: string) => GroupPriority | undefined;
}

/** One OpenAPI v3 document of another server, by its path in the index (`apis/metrics.k8s.io/v1beta1`). */
export interface RemoteOpenApi {
  readonly path: string;
  readonly hash: string;
  readonly api: RemoteApi;
}

export interface Aggregator {
  /** The remote API that answers for a group version, undefined when this server does. */
  remote(group: string, version: string): RemoteApi | undefined;
  /** Passes an authorised request on. 503 in plain text when the far end is not there. */
  proxy(
    api: RemoteApi,
    request: ApiRequest,
    by: { readonly user: UserInfo; readonly auditId?: string },
  ): Promise<ApiResponse>;
  /** Asks a remote API in the server's own name: documents that are the same for everybody. */
  ask(api: RemoteApi, request: ApiRequest): Promise<ApiResponse>;
  /** Grows when any of the documents below change. */
  generation(): number;
  discovery(): RemoteDiscovery;
  openApi(): readonly RemoteOpenApi[];
  /** Swagger documents of the other servers, with the group version each is asked about. */
  swaggers(): readonly { readonly path: string; readonly document: Readonly<Record<string, unknown>> }[];
  /** Begins to register and to probe. Once. */
  start(): void;
  stop(): void;
}

/** Puts the layer together; it reads the objects at once and acts after `start`. */
export function createAggregator(options: AggregatorOptions): Aggregator {
  const { registry, resources, connect, log } = options;
  const { store, clock } = registry;
  const index = createApiServiceIndex(store);
  let monitor: ReturnType<typeof monitorRemotes> | undefined;
  let unregister = (): void => {};

  const send = async (api: RemoteApi, request: ApiRequest): Promise<ApiResponse> => {
    try {
      serviceAddresses(store, api.service);
    } catch {
      return plainText('service unavailable');
    }
    try {
      return forwardedResponse(await connect(api.target)(request));
    } catch (error) {
      if (request.signal.aborted) throw error;
      return plainText(`error trying to reach service: ${error instanceof Error ? error.message : String(error)}`);
    }
  };

  return {
    // Also for what is answered in this process: an APIService with a service gives it to that.
    remote: index.remote,
    proxy: async (api, request, by) =>
      api.available ? send(api, forwardedRequest(request, by)) : plainText('service unavailable'),
    ask: (api, request) => send(api, forwardedRequest(request, { user: AGGREGATOR_USER })),
    generation: () => index.generation() + (monitor?.generation() ?? 0),
    discovery: () => {
      const isStale = (api: RemoteApi): boolean => monitor?.stateOf(api).stale !== false;
      const resourcesOf = (api: RemoteApi) => monitor?.stateOf(api).documents?.resources ?? [];
      return {
        remote: index.remotes.map((api) => ({ group: api.group, version: api.version, resources: resourcesOf(api) })),
        stale: new Set(index.remotes.filter(isStale).map(({ group, version }) => `${group}/${version}`)),
        priorityOf: index.priorityOf,
      };
    },
    openApi: () =>
      index.remotes.flatMap((api) => {
        const hash = monitor?.stateOf(api).documents?.openApiHash;
        return hash === undefined ? [] : [{ path: discoveryPath(api).slice(1), hash, api }];
      }),
    swaggers: () =>
      index.remotes.flatMap((api) => {
        const document = monitor?.stateOf(api).documents?.swagger;
        return document ? [{ path: discoveryPath(api), document }] : [];
      }),
    start() {
      monitor ??= monitorRemotes({ store, index, connect, clock, log });
      unregister();
      unregister = keepApiServices({ registry, resources, index, more: options.inProcess, log });
    },
    stop() {
      monitor?.stop();
      unregister();
      index.stop();
    },
  };
}

const plainText = (text: string): ApiResponse => ({
  status: 503,
  headers: { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' },
  body: new TextEncoder().encode(`${text}\n`),
});
