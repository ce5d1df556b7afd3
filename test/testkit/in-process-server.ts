/**
 * The embedded API server in one process, on the memory backend, without a port: what feature tests talk to. Everyone
 * may do everything unless a test brings its own authenticator or authorizer.
 */

import type { KubeObject } from '../../packages/apimachinery/src/meta/object.ts';
import type { defaultPlugins } from '../../packages/apiserver/src/admission/default-plugins.ts';
import { namespaceLifecycle } from '../../packages/apiserver/src/admission/namespace-lifecycle.ts';
import type { AdmissionPlugin } from '../../packages/apiserver/src/admission/plugin.ts';
import { podSecurity } from '../../packages/apiserver/src/admission/pod-security/pod-security.ts';
import { policyPlugins } from '../../packages/apiserver/src/admission/policy/policy-plugins.ts';
import { resourceQuota } from '../../packages/apiserver/src/admission/resource-quota.ts';
import { webhookPlugins } from '../../packages/apiserver/src/admission/webhook/webhook-plugins.ts';
import { createAggregator } from '../../packages/apiserver/src/aggregation/aggregator.ts';
import type { Access } from '../../packages/apiserver/src/assembly/access.ts';
import {
  type AssemblyOptions,
  assembleServer,
  type ServerExtension,
} from '../../packages/apiserver/src/assembly/assemble-server.ts';
import type { ServerParts } from '../../packages/apiserver/src/assembly/server-parts.ts';
import { createObjectStore, type ObjectStoreOptions } from '../../packages/apiserver/src/cache/create-object-store.ts';
import type { HistoryLimit } from '../../packages/apiserver/src/cache/history.ts';
import type { ObjectStore } from '../../packages/apiserver/src/cache/object-store.ts';
import type { Endpoints } from '../../packages/apiserver/src/endpoints/create-endpoints.ts';
import { createFlowControl } from '../../packages/apiserver/src/endpoints/flow-control/flow-control.ts';
import { swagger2 } from '../../packages/apiserver/src/endpoints/openapi-v2-document.ts';
import { type ConnectOutbound, noOutbound } from '../../packages/apiserver/src/outbound/outbound.ts';
import { renewStored } from '../../packages/apiserver/src/registry/renew-stored.ts';
import type { ResourceCatalog } from '../../packages/apiserver/src/registry/resource-catalog.ts';
import type { Backend } from '../../packages/apiserver/src/storage/backend.ts';
import { createMemoryBackend } from '../../packages/apiserver/src/storage/memory-backend.ts';
import type { Clock } from '../../packages/runtime/src/clock/clock.ts';
import {
  type ApiRequest,
  type ApiResponse,
  type ByteSink,
  NEVER,
  NO_BYTES,
} from '../../packages/runtime/src/http/seam.ts';
import { type Logger, silentLogger } from '../../packages/runtime/src/log/log.ts';
import { promptClock } from './prompt-clock.ts';

export interface RequestOptions {
  /** A string or bytes are sent as they are, anything else as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  readonly json: any;
  readonly text: string;
}

/** An open watch: events are taken one by one. */
export interface WatchReader {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The next event, or undefined when the server has ended the stream. */
  next(): Promise<WatchFrame | undefined>;
  /** Events that have arrived and were not taken yet. */
  pending(): readonly WatchFrame[];
  /** Goes away, as a client does. */
  close(): void;
}

export interface WatchFrame {
  readonly type: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into events of every shape.
  readonly object: any;
}

export interface InProcessServer {
  readonly handler: Endpoints['handler'];
  readonly server: Endpoints;
  readonly store: ObjectStore;
  readonly catalog: ResourceCatalog;
  request(method: string, pathAndQuery: string, options?: RequestOptions): Promise<Answer>;
  watch(pathAndQuery: string, options?: RequestOptions): Promise<WatchReader>;
  /** Creates an object and returns it; throws when the server refuses. */
  create<T extends object = KubeObject>(collection: string, object: T): Promise<T & KubeObject>;
  stop(): Promise<void>;
}

export interface StartOptions
  extends Omit<AssemblyOptions, 'parts' | 'extend'>,
    Partial<Pick<Access, 'authenticate' | 'authorize'>>,
    Omit<Access['endpoints'], 'paths'>,
    Pick<ServerExtension, 'aggregated' | 'connectNode' | 'deletesWhole'>,
    Pick<ServerParts, 'auditor' | 'bodyDecoders'> {
  readonly clock?: Clock;
  readonly log?: Logger;
  readonly connectOutbound?: ConnectOutbound;
  /** True runs every default plug-in; a Pod then needs a service account. Otherwise only NamespaceLifecycle runs. */
  readonly defaultAdmission?: boolean;
  /** Plug-ins that stand where webhooks stand. */
  readonly admission?: readonly AdmissionPlugin[];
  /** False leaves the server as it is before it is ready. */
  readonly ready?: boolean;
  /** Where the state lies; an empty one of its own when absent. */
  readonly backend?: Backend;
  /** Bounds of the log in memory, where the defaults are too wide. */
  readonly historyLimit?: Partial<HistoryLimit>;
  readonly byteLimits?: ObjectStoreOptions['byteLimits'];
  /** Bounds of the bytes of objects in memory, where the defaults are too wide. */
  readonly heldLimits?: ObjectStoreOptions['heldLimits'];
  /** Puts something between the server and its store: for tests that break it on purpose. */
  readonly betweenStore?: (store: ObjectStore) => ObjectStore;
}

const PARTS: ServerParts = {
  policies: policyPlugins,
  webhooks: webhookPlugins,
  aggregation: createAggregator,
  flowControl: createFlowControl,
  swagger2,
};

const lifecycleAlone: typeof defaultPlugins = (store, { more = [] }) => [namespaceLifecycle(store), ...more];

/** Starts a server with the bootstrap objects in place. */
export async function startServer(options: StartOptions = {}): Promise<InProcessServer> {
  const { clock = promptClock, log = silentLogger, connectOutbound: connect = noOutbound } = options;
  const { defaultAdmission = false, auditor, bodyDecoders, subresourceHandlers, createOnlyHandlers } = options;
  const { historyLimit, byteLimits, heldLimits, aggregated, connectNode, deletesWhole } = options;
  const stopped = new AbortController();
  const opened = await createObjectStore({
    backend: options.backend ?? createMemoryBackend(),
    clock,
    log,
    renew: renewStored,
    ...(historyLimit && { historyLimit }),
    ...(byteLimits && { byteLimits }),
    ...(heldLimits && { heldLimits }),
    signal: stopped.signal,
  });
  const store = options.betweenStore?.(opened) ?? opened;
  const access: Access = {
    authenticate:
      options.authenticate ??
      (async () => ({ username: 'tester', groups: ['system:masters', 'system:authenticated'] })),
    authorize: options.authorize ?? (() => ({ allowed: true, reason: '' })),
    admission: [],
    endpoints: {
      ...(subresourceHandlers && { subresourceHandlers }),
      ...(createOnlyHandlers && { createOnlyHandlers }),
    },
  };
  const parts: ServerParts = {
    ...PARTS,
    ...(defaultAdmission && { podSecurity, quota: resourceQuota }),
    ...(auditor && { auditor }),
    ...(bodyDecoders && { bodyDecoders }),
  };
  const extension: ServerExtension = {
    admission: options.admission ?? [],
    ...(aggregated && { aggregated }),
    ...(connectNode && { connectNode }),
    ...(deletesWhole && { deletesWhole }),
  };
  const assembled = assembleServer(
    store,
    { ...options, parts, extend: () => extension },
    { clock, log, connect, access, ...(!defaultAdmission && { plugins: lifecycleAlone }) },
  );
  if (options.ready ?? true) await assembled.start();
  const { endpoints: server, resources: catalog } = assembled;
  const { handler } = server;
  const request: InProcessServer['request'] = async (method, pathAndQuery, how = {}) =>
    readAnswer(await handler(makeRequest(method, pathAndQuery, how)));
  return {
    handler,
    server,
    store,
    catalog,
    request,
    watch: async (pathAndQuery, how = {}) => openWatch(handler, makeRequest('GET', pathAndQuery, how)),
    async create(collection, object) {
      const answer = await request('POST', collection, { body: object });
      if (answer.status !== 201) throw new Error(`cannot create at ${collection}: ${answer.status} ${answer.text}`);
      return answer.json;
    },
    async stop() {
      await assembled.stop(AbortSignal.timeout(5000));
      stopped.abort();
      await store.close();
    },
  };
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function makeRequest(method: string, pathAndQuery: string, { body, headers = {} }: RequestOptions): ApiRequest {
  const question = pathAndQuery.indexOf('?');
  const bytes =
    body === undefined
      ? NO_BYTES
      : body instanceof Uint8Array
        ? body
        : encoder.encode(typeof body === 'string' ? body : JSON.stringify(body));
  const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
  return {
    method,
    path: question < 0 ? pathAndQuery : pathAndQuery.slice(0, question),
    query: question < 0 ? '' : pathAndQuery.slice(question + 1),
    headers: { ...(body !== undefined && { 'content-type': type }), ...headers },
    body: bytes,
    peer: { address: '' },
    signal: NEVER,
  };
}

function readAnswer({ status, headers, body }: ApiResponse): Answer {
  if (typeof body === 'function') throw new Error('the answer is a stream: use watch()');
  const chunks = body === undefined ? [] : body instanceof Uint8Array ? [body] : body;
  const text = chunks.map((chunk) => decoder.decode(chunk)).join('');
  const isJson = headers['content-type']?.startsWith('application/json') && headers['content-encoding'] === undefined;
  return { status, headers, text, json: isJson && text !== '' ? JSON.parse(text) : undefined };
}

async function openWatch(handler: Endpoints['handler'], request: ApiRequest): Promise<WatchReader> {
  const response = await handler(request);
  if (typeof response.body !== 'function') {
    throw new Error(`the watch was refused: ${response.status} ${readAnswer(response).text}`);
  }
  const gone = new AbortController();
  const frames: WatchFrame[] = [];
  let ended = false;
  let text = '';
  let wake = (): void => {};
  const sink: ByteSink = {
    buffered: 0,
    signal: gone.signal,
    drained: () => Promise.resolve(),
    write(chunk) {
      text += decoder.decode(chunk, { stream: true });
      const lines = text.split('\n');
      text = lines.pop()!;
      for (const line of lines) frames.push(JSON.parse(line));
      wake();
      return true;
    },
    end() {
      ended = true;
      wake();
    },
  };
  response.body(sink);
  return {
    status: response.status,
    headers: response.headers,
    pending: () => frames,
    close: () => gone.abort(),
    async next() {
      while (frames.length === 0 && !ended) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      return frames.shift();
    },
  };
}
