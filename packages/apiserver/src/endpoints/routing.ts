/** From a parsed request to the verb that answers it. */

import {
  type ApiError,
  badRequest,
  methodNotAllowed,
  methodNotSupported,
  notFound,
} from '@coracle/apimachinery/meta/status';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import { subresourceOf } from '../registry/resource-catalog.ts';
import { readDocument } from './body.ts';
import type { Exchange } from './exchange.ts';
import { pageNotFound } from './responses.ts';
import { bindingVerb } from './verbs/binding.ts';
import { createVerb } from './verbs/create.ts';
import { deleteCollectionVerb, deleteVerb } from './verbs/delete.ts';
import { evictionVerb } from './verbs/eviction.ts';
import { getVerb } from './verbs/get.ts';
import { listVerb } from './verbs/list.ts';
import { registeredSubresourceVerb, reviewVerb } from './verbs/other-rooms.ts';
import { patchVerb } from './verbs/patch.ts';
import { runtimeSubresourceVerb } from './verbs/runtime-subresource.ts';
import { getScaleVerb, patchScaleVerb, updateScaleVerb } from './verbs/scale.ts';
import { updateVerb } from './verbs/update.ts';
import { watchVerb } from './verbs/watch.ts';

export type Verb = (exchange: Exchange) => ApiResponse | Promise<ApiResponse>;

const VERBS: ReadonlyMap<string, Verb> = new Map<string, Verb>([
  ['get', getVerb],
  ['list', listVerb],
  ['watch', watchVerb],
  ['create', createVerb],
  ['update', updateVerb],
  ['patch', patchVerb],
  ['delete', ofDocument(deleteVerb)],
  ['deletecollection', ofDocument(deleteCollectionVerb)],
]);

/** Subresources in the shape of their parent. */
const WHOLE_OBJECT = new Set(['status', 'finalize', 'approval', 'ephemeralcontainers', 'resize']);
const WHOLE_OBJECT_VERBS: ReadonlyMap<string, Verb> = new Map<string, Verb>([
  ['get', getVerb],
  ['update', updateVerb],
  ['patch', patchVerb],
]);
const SCALE_VERBS: ReadonlyMap<string, Verb> = new Map<string, Verb>([
  ['get', getScaleVerb],
  ['update', updateScaleVerb],
  ['patch', patchScaleVerb],
]);

const NOWHERE: Verb = () => pageNotFound();

/** A verb whose body is a document of its own: a large one is read in pieces before. */
function ofDocument(verb: Verb): Verb {
  return (exchange) => (exchange.isLarge ? readDocument(exchange).then(() => verb(exchange)) : verb(exchange));
}

/**
 * The verb of a resource request; sets `resource` and `subresource` of the exchange. A path nobody serves gets the
 * verb that says so. Throws ApiError 405 when the resource exists and cannot do that.
 */
export function routeResource(exchange: Exchange): Verb {
  const { info, server } = exchange;
  const resource = server.resources.lookup(info.group, info.version, info.resource);
  if (!resource || !pathFits(exchange, resource.namespaced)) return NOWHERE;
  exchange.resource = resource;
  // Upstream's router knows no HEAD but of a proxy; the handler of all custom resources takes it for a GET.
  if (exchange.request.method === 'HEAD' && !resource.strategy.custom && info.subresource !== 'proxy')
    throw methodNotAllowed();
  if (resource.deprecationWarning !== undefined) exchange.warn(resource.deprecationWarning);
  return info.subresource === '' ? routeMain(exchange) : routeSubresource(exchange);
}

/** A namespaced object has a namespace in its path, a cluster-scoped one has none. */
function pathFits({ info }: Exchange, namespaced: boolean): boolean {
  if (!namespaced) return info.namespace === '' || info.resource === 'namespaces';
  return info.namespace !== '' || info.parts.length === 1;
}

function routeMain(exchange: Exchange): Verb {
  const { info, resource, server } = exchange;
  const { verb } = info;
  const onCollection = info.parts.length === 1;
  const across = resource.namespaced && info.namespace === '';
  // One handler serves all custom resources: it looks at the verb first, and then for what the verb needs.
  if (resource.strategy.custom) {
    if (across && verb !== 'list' && verb !== 'watch' && verb !== 'get') return NOWHERE;
    if (onCollection && (verb === 'update' || verb === 'patch')) throw badRequest('name must be provided');
  }
  const misplaced =
    verb === 'create'
      ? (!onCollection && !resource.strategy.custom) || across
      : verb === 'deletecollection'
        ? across
        : onCollection && (verb === 'update' || verb === 'patch');
  const review = server.createOnlyHandlers.get(`${info.group}/${info.resource}`);
  if (review && verb === 'create' && !misplaced) return (e) => reviewVerb(e, review);
  if (verb === 'create' && info.group === '' && info.resource === 'bindings') return bindingVerb;
  const found = VERBS.get(verb);
  if (!found || misplaced || !resource.verbs.includes(verb)) throw refusedMethod(resource, verb);
  return found;
}

function routeSubresource(exchange: Exchange): Verb {
  const { info, resource, server } = exchange;
  const subresource = subresourceOf(resource, info.subresource);
  if (!subresource) {
    // The handler of all custom resources says so by the object; the router of built-in kinds knows no such path.
    if (resource.strategy.custom && info.parts.length > 2) throw notFound(resource, info.name);
    return NOWHERE;
  }
  exchange.subresource = subresource;
  const handler = server.subresourceHandlers.get(`${info.group}/${info.resource}/${info.subresource}`);
  if (handler) {
    if (!subresource.verbs.includes(info.verb)) throw refusedMethod(resource, info.verb);
    return (e) => registeredSubresourceVerb(e, handler);
  }
  const runtime = info.group === '' ? runtimeSubresourceVerb(info.resource, info.subresource) : undefined;
  // A proxy takes OPTIONS as well, which is no verb of anything else.
  const verbs = info.subresource === 'proxy' ? [...subresource.verbs, 'options'] : subresource.verbs;
  if (runtime && verbs.includes(info.verb)) return runtime;
  if (info.parts.length > 3 && !resource.strategy.custom) return NOWHERE;
  const found = subresourceVerb(info.subresource, info.verb, resource.resource);
  if (!found || !subresource.verbs.includes(info.verb)) throw refusedMethod(resource, info.verb);
  return found;
}

/** Built-in kinds are refused by upstream's router, custom resources by the handler that serves them all. */
const refusedMethod = (resource: ResourceInfo, verb: string): ApiError =>
  resource.strategy.custom ? methodNotSupported(resource, KNOWN_VERBS.has(verb) ? verb : '') : methodNotAllowed();

/** Those that a method stands for: OPTIONS and TRACE are no verb upstream. */
const KNOWN_VERBS: ReadonlySet<string> = new Set([...VERBS.keys()]);

function subresourceVerb(name: string, verb: string, parent: string): Verb | undefined {
  if (WHOLE_OBJECT.has(name)) return WHOLE_OBJECT_VERBS.get(verb);
  if (name === 'scale') return SCALE_VERBS.get(verb);
  if (parent !== 'pods' || verb !== 'create') return undefined;
  if (name === 'binding') return bindingVerb;
  return name === 'eviction' ? evictionVerb : undefined;
}
