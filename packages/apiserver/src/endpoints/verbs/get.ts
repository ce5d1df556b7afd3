/** GET of one object: one look-up, stored bytes out. */

import { badRequest, notFound } from '@coracle/apimachinery/meta/status';
import { storagePrefix } from '@coracle/apimachinery/types/resource';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import type { StoredObject } from '../../cache/object-store.ts';
import { parseResourceVersion, waitForRevision } from '../../registry/resource-version.ts';
import { prepareViews } from '../../registry/versioned-view.ts';
import type { Exchange } from '../exchange.ts';
import type { Representation } from '../negotiation.ts';
import { isTrue } from '../request-info.ts';
import { objectResponse, representationOf } from '../responses.ts';

export function getVerb(exchange: Exchange): ApiResponse | Promise<ApiResponse> {
  const representation = representationOf(exchange);
  if (exchange.request.query === '') return respond(exchange, representation);
  // What clients before 1.18 could ask (handlers/get.go).
  if (isTrue(exchange.query.get('export'))) {
    throw badRequest('the export parameter, deprecated since v1.14, is no longer supported');
  }
  const version = exchange.query.get('resourceVersion');
  if (version) {
    const wait = waitForRevision(exchange.server.registry, parseResourceVersion(version), exchange.request.signal);
    if (wait) return wait.then(() => respond(exchange, representation));
  }
  return respond(exchange, representation);
}

function respond(exchange: Exchange, representation: Representation): ApiResponse | Promise<ApiResponse> {
  const stored = storedObject(exchange);
  const views = prepareViews(exchange.resource, [stored], { again: true });
  const answer = (): ApiResponse | Promise<ApiResponse> =>
    objectResponse(exchange, { status: 200, representation, stored });
  return views ? views.then(answer) : answer();
}

/** The object the URL names, or one of another name beside it. Throws ApiError 404. */
export function storedObject(exchange: Exchange, name: string = exchange.info.name): StoredObject {
  const { resource, server } = exchange;
  const stored = server.registry.store.get({ prefix: storagePrefix(resource), namespace: exchange.namespace, name });
  if (!stored) throw notFound(resource, name);
  return stored;
}
