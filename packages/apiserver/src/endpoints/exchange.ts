/** One request on its way through the stages: what is known about it so far. */

import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { ParsedJson } from '@coracle/apimachinery/schema/parse-json';
import type { ResourceInfo, SubresourceInfo } from '@coracle/apimachinery/types/resource';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Compressor } from '@coracle/runtime/http/gzip-blocks';
import type { ApiHandler, ApiRequest, ApiResponse } from '@coracle/runtime/http/seam';
import type { Logger } from '@coracle/runtime/log/log';
import { createLinkedController, type LinkedController } from '@coracle/runtime/signal/linked-controller';
import type { AdmissionMetrics } from '../admission/admission-metrics.ts';
import type { AdmissionPlugin } from '../admission/plugin.ts';
import type { Aggregator } from '../aggregation/aggregator.ts';
import type { Auditor } from '../audit/auditor.ts';
import type { AuditRecord } from '../audit/record.ts';
import type { Authenticator, AuthorizationDecision, Authorizer, UserInfo } from '../auth/identity.ts';
import { shareOwner } from '../auth/share-owner.ts';
import { growsLarge, isLargeBody } from '../registry/large-write.ts';
import type { ResourceSource } from '../registry/resource-catalog.ts';
import type { Registry } from '../registry/write-contract.ts';
import type { AggregatedApi } from './aggregated-api.ts';
import type { WriteElsewhere } from './document-forms.ts';
import { ONE_SEAT, type Work } from './flow-control/work-estimate.ts';
import type { JoinedLists } from './joined-lists.ts';
import type { OpenWatches } from './open-watches.ts';
import type { CorsPolicy } from './origin.ts';
import type { CheckHost } from './own-hosts.ts';
import type { PackedLists } from './packed-lists.ts';
import { parseQuery, type Query } from './query.ts';
import type { ReadElsewhere } from './read-elsewhere.ts';
import type { RequestInfo } from './request-info.ts';
import type { RequestMetrics } from './request-metrics.ts';
import type { Flow, FlowControl } from './request-seats.ts';
import { WarningRecorder } from './warnings.ts';
import type { FrameCache } from './watch-frames.ts';
import type { WatchPace } from './watch-pace.ts';

/** Decodes a body of one media type; `info` is the resource it is meant for. Throws ApiError 400. */
export type BodyDecoder = (bytes: Uint8Array, info: ResourceInfo | undefined) => ParsedJson;

/** Answers a POST to a subresource outside of the registry with a new object: the token of an account. */
export type SubresourceHandler = (
  call: Pick<Exchange, 'info' | 'annotate'> & {
    readonly body: UnstructuredObject;
    /** Asks validating admission about the body, once it is whole. Rejects with ApiError to refuse. */
    validate(): Promise<void>;
  },
) => Promise<Readonly<Record<string, unknown>>>;

/** Answers a review: gets the decoded object, returns it with its status. Stored nowhere. */
export type CreateOnlyHandler = (
  object: UnstructuredObject,
  user: UserInfo,
  namespace: string,
) => Promise<Readonly<Record<string, unknown>>>;

/** The parts of the server that stages and verbs use. */
export interface Server {
  readonly registry: Registry;
  readonly resources: ResourceSource;
  readonly authenticate: Authenticator;
  readonly authorize: Authorizer;
  readonly admission: readonly AdmissionPlugin[];
  readonly admissionMetrics: AdmissionMetrics | undefined;
  readonly aggregated: readonly AggregatedApi[];
  /** Groups that other servers answer for. */
  readonly aggregator: Aggregator;
  readonly flowControl: FlowControl;
  /** Absent = nothing is audited. */
  readonly auditor: Auditor | undefined;
  /** Absent = pages of other origins get nothing. */
  readonly cors: CorsPolicy | undefined;
  /** Absent = any name will do. */
  readonly checkHost: CheckHost | undefined;
  readonly subresourceHandlers: ReadonlyMap<string, SubresourceHandler>;
  readonly createOnlyHandlers: ReadonlyMap<string, CreateOnlyHandler>;
  /** Absent = no node runs anything. */
  readonly connectNode: ((nodeName: string) => Promise<ApiHandler>) | undefined;
  readonly bodyDecoders: ReadonlyMap<string, BodyDecoder>;
  /** Absent = large bodies are read on this thread. */
  readonly readElsewhere: ReadElsewhere | undefined;
  /** Absent = large answers are written on this thread. */
  readonly writeElsewhere: WriteElsewhere | undefined;
  /** Absent = answers go out as they are. */
  readonly compressor: Compressor | undefined;
  readonly packedLists: PackedLists | undefined;
  readonly joinedLists: JoinedLists;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: RequestMetrics;
  readonly watches: OpenWatches;
  readonly frames: FrameCache;
  readonly pace: WatchPace;
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
  /** Stage `deadline`: when its time is over, in monotonic milliseconds; undefined for long-running requests. */
  deadline: number | undefined;
  /** Set by `answer`; monotonic milliseconds. */
  startedAt = 0;
  /** Set by `answer` where somebody audits; milliseconds since the epoch. */
  receivedAt = 0;
  /** Stage `authentication`: who shows the credential, whoever the request is for. */
  authenticated: UserInfo | undefined;
  /** Stage `authentication`, then `impersonation`. */
  user!: UserInfo;
  /** Stage `audit`; undefined where nobody audits or the policy wants nothing of this request. */
  audit: AuditRecord | undefined;
  /** Stage `cors`: headers for a page of an allowed origin. */
  cors: Readonly<Record<string, string>> | undefined;
  /** What the authorizer said of it, asked once: stage `arrival` where a body is on its way, else `authorisation`. */
  decision: AuthorizationDecision | Promise<AuthorizationDecision> | undefined;
  /** Stage `flow-control`: what the request was matched to, what it costs, and whether it holds its seats. */
  flow: Flow | undefined;
  work: Work = ONE_SEAT;
  seated = false;
  /** Stage `routing`: set for resource requests that the registry answers. */
  resource!: ResourceInfo;
  subresource: SubresourceInfo | undefined;
  /** A large body that is no object of the resource, read before the verb: gives it, or throws what reading it threw. */
  document: (() => ParsedJson) | undefined;
  /** What admission wants in the audit event, and what of that belongs there only at the levels that show bodies. */
  annotations: Map<string, string> | undefined;
  annotationDetails: Map<string, string> | undefined;
  #isLarge: boolean | undefined;
  #isOver = false;
  #gone: LinkedController | undefined;
  #query: Query | undefined;
  #warnings: WarningRecorder | undefined;

  constructor(request: ApiRequest, server: Server) {
    this.request = request;
    this.server = server;
  }

  /** True when the body is one for another thread, where there is one. Asked once the resource is known. */
  get isLarge(): boolean {
    const { body, headers } = this.request;
    // Where a webhook converts, stages of a write wait for it, which they only can on this thread.
    this.#isLarge ??=
      this.server.registry.elsewhere !== undefined &&
      this.resource.remote === undefined &&
      (isLargeBody(body, headers['content-type'] ?? '') || growsLarge(this.resource, body));
    return this.#isLarge;
  }

  /** On whose account its work is done. */
  get owner(): string {
    return shareOwner(this.authenticated ?? this.user);
  }

  /** Aborts when the client goes or its time is over. Most requests never need it, and making one costs. */
  get signal(): AbortSignal {
    this.#gone ??= createLinkedController(this.request.signal);
    if (this.#isOver) this.#gone.abort();
    return this.#gone.signal;
  }

  /** Its time is over. */
  expire(): void {
    this.#isOver = true;
    this.#gone?.abort();
  }

  /** Nobody works on it any more. */
  release(): void {
    this.#gone?.release();
    this.#gone = undefined;
  }

  /** As the server's, on the account of whoever sends the request. */
  get readElsewhere(): ReadElsewhere | undefined {
    const read = this.server.readElsewhere;
    return read && ((body) => read(body, this));
  }

  /** As the server's, on the account of whoever sends the request. */
  get writeElsewhere(): WriteElsewhere | undefined {
    const write = this.server.writeElsewhere;
    return write && ((work) => write(work, this));
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

  /** For the audit event. Bound, as `warn` is. */
  readonly annotate = (key: string, value: string, detail = false): void => {
    if (detail) {
      this.annotationDetails ??= new Map();
      this.annotationDetails.set(key, value);
      return;
    }
    this.annotations ??= new Map();
    this.annotations.set(key, value);
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
