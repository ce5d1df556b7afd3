/** GET of a collection: the stored items joined into one buffer, or a Table, or metadata only. */

import { apiVersionOf } from '../../../api/meta/gvk.ts';
import type { ApiResponse } from '../../../base/http/seam.ts';
import { type ListCall, type ListResult, listObjects } from '../../registry/list.ts';
import { validateListOptions } from '../../registry/list-options.ts';
import { createSelection } from '../../registry/selection.ts';
import { itemBytes, itemChunks, joinItems, viewObject } from '../../registry/versioned-view.ts';
import type { Exchange } from '../exchange.ts';
import { checkPartial, goTypeOf, type Representation } from '../negotiation.ts';
import { parseListOptions } from '../query.ts';
import { encodedResponse, JSON_HEADERS, representationOf } from '../responses.ts';
import { parseIncludeObject, partialOf, tableOf } from '../table.ts';

const encoder = new TextEncoder();

export function listVerb(exchange: Exchange): ApiResponse | Promise<ApiResponse> {
  const representation = representationOf(exchange);
  const result = listObjects(exchange.server.registry, listCall(exchange));
  return result instanceof Promise
    ? result.then((listed) => listResponse(exchange, { listed, representation }))
    : listResponse(exchange, { listed: result, representation });
}

/** The validated list of the request's query. Throws ApiError 400 and 422. */
export function listCall(exchange: Exchange): ListCall {
  const options = parseListOptions(exchange.query);
  validateListOptions(options, { watch: false });
  return {
    info: exchange.resource,
    namespace: exchange.namespace,
    options,
    selection: createSelection(exchange.resource, options),
    get signal() {
      return exchange.request.signal;
    },
  };
}

/** A page of items as a response. */
export function listResponse(
  exchange: Exchange,
  { listed, representation }: { readonly listed: ListResult; readonly representation: Representation },
): ApiResponse {
  const info = exchange.resource;
  const metadata = {
    resourceVersion: String(listed.revision),
    ...(listed.continue !== '' && { continue: listed.continue }),
    ...(listed.remaining !== undefined && { remainingItemCount: listed.remaining }),
  };
  if (representation.as === 'object') {
    const head = `{"kind":${JSON.stringify(info.listKind)},"apiVersion":${JSON.stringify(apiVersionOf(info))},"metadata":${JSON.stringify(metadata)},"items":[`;
    const items = listed.items.map((item) => itemBytes(info, item));
    if (representation.encoding === 'json' && !representation.pretty) {
      return { status: 200, headers: JSON_HEADERS, body: itemChunks(items, { head, tail: ']}\n' }) };
    }
    return encodedResponse({ status: 200, bytes: joinItems(items, { head, tail: ']}' }), representation });
  }
  checkPartial(representation, { list: true, goType: goTypeOf(info, true) });
  const document = representation.as === 'table' ? listTable : partialList;
  const bytes = encoder.encode(JSON.stringify(document(exchange, { listed, representation, metadata })));
  return encodedResponse({ status: 200, bytes, representation });
}

interface ListShape {
  readonly listed: ListResult;
  readonly representation: Representation;
  readonly metadata: Readonly<Record<string, unknown>>;
}

const listTable = (exchange: Exchange, { listed, representation, metadata }: ListShape): object =>
  tableOf(exchange.resource, {
    objects: listed.items.map((item) => viewObject(exchange.resource, item)),
    version: representation.version,
    includeObject: parseIncludeObject(exchange.query.get('includeObject')),
    now: exchange.server.clock.now(),
    definitions: true,
    metadata,
  });

const partialList = (exchange: Exchange, { listed, representation, metadata }: ListShape): object => ({
  kind: 'PartialObjectMetadataList',
  apiVersion: `meta.k8s.io/${representation.version}`,
  metadata,
  items: listed.items.map((item) => partialOf(viewObject(exchange.resource, item), representation.version)),
});
