/** The typed client over an ApiHandler: paths, JSON, watch frames and errors; see `client.ts` for the contract. */
import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import { apiVersionOf } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject, ObjectKey, ObjectList } from '@coracle/apimachinery/meta/object';
import type { ApiHandler } from '@coracle/runtime/http/seam';
import { NEVER } from '@coracle/runtime/http/seam';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import { type ApiCalls, type Call, type ClientOptions, createApiCalls, JSON_TYPE } from './api-call.ts';
import { isNotFound } from './api-failure.ts';
import type { Client, ListCallOptions, Patch, SubresourceOptions, WatchCallOptions, WatchEvent } from './client.ts';
import { queryText, resourcePath } from './resource-path.ts';
import { createStatusEndpoints, storedNothing } from './status-endpoint.ts';
import { createLineSplitter } from './transport/line-splitter.ts';
import { bodyParts } from './transport/response-body.ts';

const METADATA = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';
const METADATA_LIST = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';

const PATCH_TYPES: Record<Patch['type'], string> = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  // JSON is YAML, so the body may stay what it is.
  apply: 'application/apply-patch+yaml',
};

/**
 * Makes a client. It holds no state but the handler and what discovery said of kinds whose `/status` is optional: make as
 * many as there are user agents or tokens.
 */
export function createClient(handler: ApiHandler, options: ClientOptions = {}): Client {
  const calls = createApiCalls(handler, options);
  const { call } = calls;
  const statusEndpoints = createStatusEndpoints((path, signal) => call({ method: 'GET', path, signal }));

  return {
    impersonating: (user) => createClient(handler, { ...options, impersonate: user }),

    get: async (type, key, request = {}) =>
      call({
        method: 'GET',
        path: resourcePath(type, { ...key, subresource: request.subresource }),
        ...(request.metadataOnly && { accept: METADATA }),
        signal: request.signal,
      }),

    list: async <T extends KubeObject>(type: ResourceType<T>, request: ListCallOptions = {}) => {
      const list = await call<ObjectList<T>>({
        method: 'GET',
        path: resourcePath(type, { namespace: request.namespace }),
        query: queryText(picked(request, LIST_QUERY)),
        ...(request.metadataOnly && { accept: METADATA_LIST }),
        signal: request.signal,
      });
      // An empty list of metadata has null here, as a nil slice of Go is written.
      list.items ??= [];
      // Typed lists leave apiVersion and kind off their items; here every object says what it is.
      const apiVersion = apiVersionOf(type);
      for (const item of list.items) {
        item.apiVersion ??= apiVersion;
        item.kind ??= type.kind;
      }
      return list;
    },

    create: (type, object, request = {}) => write(call, 'POST', type, object, request),
    update: (type, object, request = {}) => write(call, 'PUT', type, object, request),

    patch: (type, key, patch, request = {}) =>
      isOptionalStatus(type, request)
        ? patchOptionalStatus(call, statusEndpoints, type, key, patch, request)
        : patchAt(call, type, key, patch, request),

    delete: async (type, key, request = {}) => {
      const { gracePeriodSeconds, propagationPolicy, preconditions, dryRun } = request;
      await call({
        method: 'DELETE',
        path: resourcePath(type, key),
        body: {
          apiVersion: 'v1',
          kind: 'DeleteOptions',
          ...(gracePeriodSeconds !== undefined && { gracePeriodSeconds }),
          ...(propagationPolicy !== undefined && { propagationPolicy }),
          ...(preconditions !== undefined && { preconditions }),
          ...(dryRun && { dryRun: ['All'] }),
        },
        signal: request.signal,
      });
    },

    watch: (type, request) => watchEvents(calls, type, request),

    raw: (method, path, request = {}) => {
      if (!path.startsWith('/'))
        return Promise.reject(new TypeError(`Cannot send request: path "${path}" lacks the leading /`));
      return call({
        method,
        path,
        query: request.query ?? '',
        ...(request.body !== undefined && { body: request.body }),
        ...(method === 'PATCH' && { contentType: PATCH_TYPES.merge }),
        accept: `${JSON_TYPE}, */*`,
        signal: request.signal,
      });
    },
  };
}

async function write<T extends KubeObject>(
  call: ApiCalls['call'],
  method: 'POST' | 'PUT',
  type: ResourceType<T>,
  object: T,
  request: SubresourceOptions,
): Promise<T> {
  const { name = '', namespace } = object.metadata;
  const { subresource } = request;
  const named = method === 'PUT' || (subresource !== undefined && subresource !== '');
  return call({
    method,
    path: resourcePath(type, { namespace, ...(named && { name }), subresource }),
    query: queryText(writeQuery(request)),
    body: object,
    ...(request.metadataOnly && { accept: METADATA }),
    signal: request.signal,
  });
}

async function patchAt<T extends KubeObject>(
  call: ApiCalls['call'],
  type: ResourceType<T>,
  key: ObjectKey,
  patch: Patch,
  request: SubresourceOptions,
): Promise<T> {
  return call({
    method: 'PATCH',
    path: resourcePath(type, { ...key, subresource: request.subresource }),
    query: queryText({
      ...writeQuery(request),
      ...(patch.type === 'apply' && { fieldManager: patch.fieldManager, force: patch.force }),
    }),
    body: patch.body,
    contentType: PATCH_TYPES[patch.type],
    ...(request.metadataOnly && { accept: METADATA }),
    signal: request.signal,
  });
}

/** Patches the status of a kind that may have no endpoint for it: what was known of that may be out of date. */
async function patchOptionalStatus<T extends KubeObject>(
  call: ApiCalls['call'],
  statusEndpoints: ReturnType<typeof createStatusEndpoints>,
  type: ResourceType<T>,
  key: ObjectKey,
  patch: Patch,
  request: SubresourceOptions,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const subresource = await statusEndpoints.endpointOf(type, request.signal ?? NEVER);
    const outcome = await patchAt(call, type, key, patch, { ...request, subresource }).catch((error: unknown) => {
      // The object is gone, or the endpoint is.
      if (subresource === '' || attempt > 1 || !isNotFound(error)) throw error;
    });
    if (outcome !== undefined && (subresource !== '' || attempt > 1 || !storedNothing(patch, outcome))) return outcome;
    statusEndpoints.forget(type);
    const now = await statusEndpoints.endpointOf(type, request.signal ?? NEVER);
    if (now === subresource && outcome !== undefined) return outcome;
  }
}

/** The events of one watch, until the signal aborts or the server ends it. */
async function* watchEvents<T extends KubeObject>(
  { send, failure }: ApiCalls,
  type: ResourceType<T>,
  request: WatchCallOptions,
): AsyncGenerator<WatchEvent<T>> {
  if (request.signal?.aborted) return;
  const linked = createLinkedController(request.signal);
  const watchCall: Call = {
    method: 'GET',
    path: resourcePath(type, { namespace: request.namespace }),
    query: queryText({ watch: true, ...picked(request, WATCH_QUERY) }),
    ...(request.metadataOnly && { accept: METADATA }),
  };
  try {
    const response = await send(watchCall, linked.signal);
    if (response.status !== 200) throw await failure(watchCall, response, linked.signal);
    const splitter = createLineSplitter();
    const documents = request.readOnly === true;
    for await (const part of bodyParts(response, linked.signal, { documents })) {
      if (part instanceof Uint8Array) for (const line of splitter.push(part)) yield JSON.parse(line) as WatchEvent<T>;
      else yield part as unknown as WatchEvent<T>;
    }
    // What follows the last newline is half a frame: the stream broke, and the watch is resumed before it.
  } catch (error) {
    if (!request.signal?.aborted) throw error;
  } finally {
    linked.release();
    linked.abort(new DOMException('watch ended', 'AbortError'));
  }
}

const isOptionalStatus = (type: ResourceType<unknown>, { subresource }: SubresourceOptions): boolean =>
  type.statusIsOptional === true && subresource === 'status';

const writeQuery = (request: SubresourceOptions) => ({
  dryRun: request.dryRun ? 'All' : undefined,
  fieldManager: request.fieldManager,
  fieldValidation: request.fieldValidation,
});

const SELECTION = ['labelSelector', 'fieldSelector', 'limit', 'continue'] as const;
const LIST_QUERY = [...SELECTION, 'resourceVersion', 'resourceVersionMatch'] as const;
const WATCH_QUERY = [...LIST_QUERY, 'allowWatchBookmarks', 'sendInitialEvents', 'timeoutSeconds'] as const;

const picked = <O, N extends keyof O & string>(request: O, names: readonly N[]) =>
  Object.fromEntries(names.map((name) => [name, request[name]])) as Pick<O, N>;
