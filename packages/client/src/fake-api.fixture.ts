/**
 * A small API server for unit tests of controllers: any resource, resourceVersions, uids, finalizers, watch, merge patch,
 * discovery. It checks preconditions as the real one does; it knows no schema, admission or authorisation.
 */

import { cloneJson } from '../../apimachinery/src/meta/deep-clone.ts';
import { apiVersionOf, type ResourceType } from '../../apimachinery/src/meta/gvk.ts';
import type { KubeObject, UnstructuredObject } from '../../apimachinery/src/meta/object.ts';
import { ApiError, alreadyExists, conflict, notFound } from '../../apimachinery/src/meta/status.ts';
import { applyJsonPatch } from '../../apimachinery/src/patch/json-patch.ts';
import type { ApiHandler, ApiRequest, ApiResponse, ByteSink } from '../../runtime/src/http/seam.ts';

export interface FakeApi {
  readonly handler: ApiHandler;
  /** `METHOD path?query`, watches and discovery left out. */
  readonly requests: string[];
  put(object: object): UnstructuredObject;
  get(type: ResourceType<unknown>, namespace: string, name: string): UnstructuredObject | undefined;
  all(type: ResourceType<unknown>): UnstructuredObject[];
  remove(type: ResourceType<unknown>, namespace: string, name: string): void;
  /** Called before each request; throws ApiError to refuse it. */
  intercept: (request: ApiRequest) => void;
}

interface Watcher {
  readonly prefix: string;
  readonly namespace: string | undefined;
  readonly sink: ByteSink;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const reply = (status: number, body: unknown): ApiResponse => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: encoder.encode(JSON.stringify(body)),
});

/** Makes a server of these resources with no objects. */
export function createFakeApi(types: readonly ResourceType<unknown>[]): FakeApi {
  const objects = new Map<string, UnstructuredObject>();
  const watchers = new Set<Watcher>();
  const requests: string[] = [];
  let version = 100;
  let uids = 0;

  const prefixOf = (type: ResourceType<unknown>): string =>
    type.group === ''
      ? `/api/${type.version}/${type.resource}`
      : `/apis/${type.group}/${type.version}/${type.resource}`;
  const typeOf = (object: KubeObject): ResourceType<unknown> => {
    const type = types.find((one) => apiVersionOf(one) === object.apiVersion && one.kind === object.kind);
    if (!type) throw new Error(`fake API has no ${object.kind}`);
    return type;
  };
  const idOf = (type: ResourceType<unknown>, namespace: string, name: string): string =>
    `${prefixOf(type)}|${namespace}|${name}`;

  const send = (sink: ByteSink, type: string, object: unknown): void => {
    sink.write(encoder.encode(`${JSON.stringify({ type, object })}\n`));
  };
  const emit = (event: string, type: ResourceType<unknown>, object: UnstructuredObject): void => {
    for (const watcher of watchers) {
      if (watcher.prefix !== prefixOf(type)) continue;
      if (watcher.namespace !== undefined && watcher.namespace !== object.metadata.namespace) continue;
      send(watcher.sink, event, object);
    }
  };
  const store = (object: UnstructuredObject, event: 'ADDED' | 'MODIFIED'): UnstructuredObject => {
    const type = typeOf(object);
    object.metadata.resourceVersion = String(++version);
    const { namespace = '', name = '' } = object.metadata;
    const done =
      object.metadata.deletionTimestamp !== undefined &&
      (object.metadata.finalizers ?? []).length === 0 &&
      !holds(object);
    if (done) {
      objects.delete(idOf(type, namespace, name));
      emit('DELETED', type, object);
    } else {
      objects.set(idOf(type, namespace, name), object);
      emit(event, type, object);
    }
    return object;
  };
  /** Namespaces stay for their own finalizers, Pods on a node for their grace period. */
  const holds = (object: UnstructuredObject): boolean => {
    if (object.kind === 'Namespace')
      return ((object['spec'] as { finalizers?: string[] } | undefined)?.finalizers ?? []).length > 0;
    return object.kind === 'Pod' && (object.metadata.deletionGracePeriodSeconds ?? 0) > 0;
  };

  const create = (body: UnstructuredObject): UnstructuredObject => {
    const object = cloneJson<UnstructuredObject>(body);
    const type = typeOf(object);
    const { namespace = '', name = '' } = object.metadata;
    if (objects.has(idOf(type, namespace, name))) throw alreadyExists(type, name);
    object.metadata.uid ??= `uid-${++uids}`;
    object.metadata.creationTimestamp ??= '2030-01-01T00:00:00Z';
    return store(object, 'ADDED');
  };

  interface DeleteBody {
    propagationPolicy?: string;
    gracePeriodSeconds?: number;
    preconditions?: { uid?: string; resourceVersion?: string };
  }
  const remove = (type: ResourceType<unknown>, held: UnstructuredObject, options: DeleteBody): void => {
    const { uid, resourceVersion } = options.preconditions ?? {};
    const name = held.metadata.name ?? '';
    if (uid !== undefined && uid !== held.metadata.uid)
      throw conflict(type, name, 'Precondition failed: UID in precondition');
    if (resourceVersion !== undefined && resourceVersion !== held.metadata.resourceVersion) throw conflict(type, name);
    const object = cloneJson<UnstructuredObject>(held);
    const finalizer = { Orphan: 'orphan', Foreground: 'foregroundDeletion' }[options.propagationPolicy ?? ''];
    const rest = (object.metadata.finalizers ?? []).filter((one) => one !== 'orphan' && one !== 'foregroundDeletion');
    object.metadata.finalizers = finalizer ? [...rest, finalizer] : rest;
    object.metadata.deletionTimestamp ??= '2030-01-01T00:00:01Z';
    const bound =
      object.kind === 'Pod' && ((object['spec'] as { nodeName?: string } | undefined)?.nodeName ?? '') !== '';
    if (bound) object.metadata.deletionGracePeriodSeconds = options.gracePeriodSeconds ?? 30;
    if (object.kind === 'Namespace') object['status'] = { phase: 'Terminating' };
    store(object, 'MODIFIED');
  };

  const merge = (target: unknown, patch: unknown): unknown => {
    if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
    const out: Record<string, unknown> =
      typeof target === 'object' && target !== null && !Array.isArray(target) ? { ...target } : {};
    for (const [key, value] of Object.entries(patch)) {
      if (value === null) delete out[key];
      else out[key] = merge(out[key], value);
    }
    return out;
  };

  const discovery = (path: string): unknown => {
    const groupVersions = [...new Set(types.map((one) => apiVersionOf(one)))];
    if (path === '/api') return { kind: 'APIVersions', versions: ['v1'] };
    if (path === '/apis') {
      const grouped = groupVersions.filter((one) => one.includes('/'));
      const groups = grouped.map((groupVersion) => ({
        name: groupVersion.split('/')[0],
        versions: [{ groupVersion }],
        preferredVersion: { groupVersion },
      }));
      return { kind: 'APIGroupList', groups };
    }
    const groupVersion = path.replace(/^\/apis?\//, '');
    if (!groupVersions.includes(groupVersion)) return undefined;
    const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];
    const resources = types
      .filter((one) => apiVersionOf(one) === groupVersion)
      .map((one) => ({ name: one.resource, kind: one.kind, namespaced: one.namespaced, verbs }));
    return { kind: 'APIResourceList', groupVersion, resources };
  };

  const watch = (request: ApiRequest, type: ResourceType<unknown>, namespace: string | undefined): ApiResponse => ({
    status: 200,
    headers: {},
    body: (sink) => {
      const watcher: Watcher = { prefix: prefixOf(type), namespace, sink };
      if (request.query.includes('sendInitialEvents=true')) {
        for (const object of inScope(type, namespace)) send(sink, 'ADDED', object);
        const metadata = { resourceVersion: String(version), annotations: { 'k8s.io/initial-events-end': 'true' } };
        send(sink, 'BOOKMARK', { kind: type.kind, apiVersion: apiVersionOf(type), metadata });
      }
      watchers.add(watcher);
      sink.signal.addEventListener('abort', () => watchers.delete(watcher));
    },
  });
  const inScope = (type: ResourceType<unknown>, namespace: string | undefined): UnstructuredObject[] =>
    [...objects]
      .filter(
        ([id, object]) =>
          id.startsWith(`${prefixOf(type)}|`) && (namespace === undefined || object.metadata.namespace === namespace),
      )
      .map(([, object]) => object);

  const route = (request: ApiRequest): ApiResponse => {
    const { method, path } = request;
    const found = method === 'GET' ? discovery(path) : undefined;
    if (found !== undefined) return reply(200, found);
    const match =
      /^(\/api\/v1|\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/([^/]+)(?=\/[a-z]))?\/([^/]+)(?:\/([^/]+))?(?:\/(.+))?$/.exec(
        path,
      );
    const [, base = '', scoped, resource = '', name, subresource] = match ?? [];
    // /namespaces/x/finalize is a subresource of the namespace, not a resource in it.
    const ofNamespace = scoped !== undefined && ['finalize', 'status'].includes(resource) && name === undefined;
    const type = types.find((one) => prefixOf(one) === `${base}/${ofNamespace ? 'namespaces' : resource}`);
    if (!type) throw new ApiError({ code: 404, reason: 'NotFound', message: `no route ${path}` });
    if (method === 'GET' && request.query.includes('watch=true')) return watch(request, type, scoped);
    requests.push(`${method} ${path}${request.query === '' ? '' : `?${request.query}`}`);
    const body = (request.body.length > 0 ? JSON.parse(decoder.decode(request.body)) : {}) as UnstructuredObject;

    if (method === 'POST' && name === undefined) return reply(201, create(body));
    if (method === 'GET' && name === undefined && !ofNamespace) {
      return reply(200, {
        kind: `${type.kind}List`,
        apiVersion: apiVersionOf(type),
        metadata: { resourceVersion: String(version) },
        items: inScope(type, scoped),
      });
    }
    if (method === 'DELETE' && name === undefined) {
      for (const object of inScope(type, scoped)) remove(type, object, body as DeleteBody);
      return reply(200, { kind: 'Status', status: 'Success' });
    }
    const target = ofNamespace ? scoped : (name ?? '');
    const held = objects.get(idOf(type, ofNamespace ? '' : (scoped ?? ''), target));
    if (!held) throw notFound(type, target);
    if (method === 'GET') return reply(200, held);
    if (method === 'DELETE') {
      remove(type, held, body as DeleteBody);
      return reply(200, { kind: 'Status', status: 'Success' });
    }
    if (method === 'POST' && subresource === 'binding') {
      const spec = { ...(held['spec'] as object), nodeName: (body['target'] as { name: string }).name };
      if ((held['spec'] as { nodeName?: string }).nodeName) throw conflict(type, target, 'already bound');
      return reply(201, store({ ...cloneJson<UnstructuredObject>(held), spec }, 'MODIFIED'));
    }
    const isJsonPatch = request.headers['content-type'] === 'application/json-patch+json';
    const patched = isJsonPatch ? (applyJsonPatch(held, body) as UnstructuredObject) : undefined;
    const sent = (patched ?? body).metadata ?? {};
    if (sent.uid !== undefined && sent.uid !== held.metadata.uid)
      throw conflict(type, target, 'Precondition failed: UID in precondition');
    if (sent.resourceVersion !== undefined && sent.resourceVersion !== held.metadata.resourceVersion)
      throw conflict(type, target);
    const changed =
      patched ??
      (method === 'PUT' ? cloneJson<UnstructuredObject>(body) : (merge(cloneJson(held), body) as UnstructuredObject));
    return reply(200, store(changed, 'MODIFIED'));
  };

  const api: FakeApi = {
    requests,
    intercept: () => {},
    handler: async (request) => {
      try {
        api.intercept(request);
        return route(request);
      } catch (error) {
        if (error instanceof ApiError) return reply(error.code, error.status);
        throw error;
      }
    },
    put: (object) => {
      const given = cloneJson(object) as UnstructuredObject;
      const { namespace = '', name = '' } = given.metadata;
      const held = objects.get(idOf(typeOf(given), namespace, name));
      if (!held) return create(given);
      return store({ ...given, metadata: { ...held.metadata, ...given.metadata } }, 'MODIFIED');
    },
    get: (type, namespace, name) => objects.get(idOf(type, namespace, name)),
    all: (type) => inScope(type, undefined),
    remove: (type, namespace, name) => {
      const held = objects.get(idOf(type, namespace, name));
      if (!held) return;
      objects.delete(idOf(type, namespace, name));
      emit('DELETED', type, { ...held, metadata: { ...held.metadata, resourceVersion: String(++version) } });
    },
  };
  return api;
}
