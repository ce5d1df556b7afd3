/** One request on its way through the stages: what is known about it so far. */

import type { ResourceInfo, SubresourceInfo } from '../../api/kinds/resource.ts';
import type { UnstructuredObject } from '../../api/meta/object.ts';
import type { ParsedJson } from '../../api/schema/parse-json.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { ApiRequest, ApiResponse } from '../../base/http/seam.ts';
import type { Logger } from '../../base/log/log.ts';
import type { AdmissionPlugin } from '../admission/plugin.ts';
import type { Authenticator, Authorizer, UserInfo } from '../auth/identity.ts';
import type { ResourceSource } from '../registry/resource-catalog.ts';
import type { Registry } from '../registry/write-call.ts';
import type { AggregatedApi } from './aggregated-api.ts';
import type { OpenWatches } from './open-watches.ts';
import { parseQuery, type Query } from './query.ts';
import type { RequestInfo } from './request-info.ts';
import type { RequestMetrics } from './request-metrics.ts';
import { WarningRecorder } from './warnings.ts';
import type { FrameCache } from './watch-frames.ts';

/** Decodes a body of one media type; `info` is the resource it is meant for. Throws ApiError 400. */
export type BodyDecoder = (bytes: Uint8Array, info: ResourceInfo | undefined) => ParsedJson;

/** What a subresource outside the registry (token, log, exec, ...) is asked. */
export interface SubresourceCall {
  readonly request: ApiRequest;
  readonly user: UserInfo;
  readonly info: RequestInfo;
  readonly resource: ResourceInfo;
  /** The decoded body of a create or update; undefined when there was none. */
  readonly body: UnstructuredObject | undefined;
  readonly dryRun: boolean;
  warn(text: string): void;
}

/** Answers with a whole response, or with an object to be encoded as the client asked. */
export type SubresourceHandler = (
  call: SubresourceCall,
) => Promise<ApiResponse | { readonly status: number; readonly object: Readonly<Record<string, unknown>> }>;

/** Answers a review: gets the decoded object, returns it with its status. Stored nowhere. */
export type CreateOnlyHandler = (
  object: UnstructuredObject,
  user: UserInfo,
  call: { readonly info: RequestInfo; readonly dryRun: boolean; warn(text: string): void },
) => Promise<Readonly<Record<string, unknown>>>;

/** The parts of the server that stages and verbs use. */
export interface Server {
  readonly registry: Registry;
  readonly resources: ResourceSource;
  readonly authenticate: Authenticator;
  readonly authorize: Authorizer;
  readonly admission: readonly AdmissionPlugin[];
  readonly aggregated: readonly AggregatedApi[];
  readonly subresourceHandlers: ReadonlyMap<string, SubresourceHandler>;
  readonly createOnlyHandlers: ReadonlyMap<string, CreateOnlyHandler>;
  readonly bodyDecoders: ReadonlyMap<string, BodyDecoder>;
  readonly compress: ((bytes: Uint8Array) => Promise<Uint8Array>) | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: RequestMetrics;
  readonly watches: OpenWatches;
  readonly frames: FrameCache;
  /** Answers what is no resource: discovery, health, version, OpenAPI, metrics. Undefined = no such path. */
  readonly documents: (exchange: Exchange) => ApiResponse | Promise<ApiResponse> | undefined;
  readonly ready: () => boolean;
}

/** The mutable record of one request. Fields are filled by the stage that is named beside them. */
export class Exchange {
  readonly request: ApiRequest;
  readonly server: Server;
  /** Stage `audit-id`. */
  auditId = '';
  /** Stage `request-info`. */
  info!: RequestInfo;
  /** Stage `deadline`; undefined for long-running requests. */
  deadlineMs: number | undefined;
  /** Stage `authentication`. */
  user!: UserInfo;
  /** Stage `routing`: set for resource requests that the registry answers. */
  resource!: ResourceInfo;
  subresource: SubresourceInfo | undefined;
  #query: Query | undefined;
  #warnings: WarningRecorder | undefined;

  constructor(request: ApiRequest, server: Server) {
    this.request = request;
    this.server = server;
  }

  get query(): Query {
    this.#query ??= parseQuery(this.request.query);
    return this.#query;
  }

  /** Bound, so that it can be handed on as it is. */
  readonly warn = (text: string): void => {
    this.#warnings ??= new WarningRecorder();
    this.#warnings.add(text);
  };

  /** Value of the Warning header, undefined without warnings. */
  warningHeader(): string | undefined {
    return this.#warnings?.header();
  }

  /** Namespace of the object in the store: '' for cluster-scoped kinds, a namespace itself included. */
  get namespace(): string {
    return this.resource.namespaced ? this.info.namespace : '';
  }
}
