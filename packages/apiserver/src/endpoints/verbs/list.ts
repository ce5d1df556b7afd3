/** GET of a collection: the stored items joined into one buffer, or a Table, or metadata only. */

import { apiVersionOf } from '@coracle/apimachinery/meta/gvk';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import type { StoredObject } from '../../cache/object-store.ts';
import { type ListCall, type ListResult, listObjects } from '../../registry/list.ts';
import { validateListOptions } from '../../registry/list-options.ts';
import { createSelection } from '../../registry/selection.ts';
import { itemBytes, joinItems, prepareViews, viewObject } from '../../registry/versioned-view.ts';
import type { Exchange } from '../exchange.ts';
import { haveBytes } from '../list-size.ts';
import { isLong, type ListEnvelope, type ListOutline, longList } from '../long-list.ts';
import { acceptsGzip, COMPRESS_FROM_BYTES, checkPartial, type Representation } from '../negotiation.ts';
import { parseListOptions } from '../query.ts';
import { JSON_GZIP_HEADERS, JSON_HEADERS, largeResponse, representationOf } from '../responses.ts';
import { isLeftOnDisk, streamedList } from '../streamed-list.ts';
import { parseIncludeObject, partialOf, tableOf } from '../table.ts';

const encoder = new TextEncoder();

export function listVerb(exchange: Exchange): ApiResponse | Promise<ApiResponse> {
  const representation = representationOf(exchange);
  const result = listObjects(exchange.server.registry, listCall(exchange));
  return result instanceof Promise
    ? result.then((listed) => packedOrPlain(exchange, { listed, representation }))
    : packedOrPlain(exchange, { listed: result, representation });
}

interface Page {
  readonly listed: ListResult;
  readonly representation: Representation;
}

function packedOrPlain(exchange: Exchange, page: Page): ApiResponse | Promise<ApiResponse> {
  const { resource: info, audit } = exchange;
  // What a webhook converts is asked for anew for each list, and an audit event wants to show the body.
  const isSequence = isPlainJson(page.representation) && info.remote === undefined && !audit?.wantsResponse;
  const packed = isSequence
    ? (streamedResponse(info, page.listed) ?? packedResponse(exchange, page.listed))
    : undefined;
  return packed ?? listResponse(exchange, page);
}

/** A page of which much lies on the disk, read while it is sent; undefined for others. */
function streamedResponse(info: ResourceInfo, listed: ListResult): ApiResponse | undefined {
  if (info.view !== undefined || !isLeftOnDisk(listed.items)) return undefined;
  const body = streamedList({ info, items: listed.items, ...envelope(info, listed) });
  return { status: 200, headers: JSON_HEADERS, body };
}

/**
 * A page as gzip, of parts that were compressed before or are shared with others who ask now; undefined when it is
 * small, and when the client does not read gzip.
 */
function packedResponse(
  { server: { packedLists }, request, resource: info }: Exchange,
  listed: ListResult,
): ApiResponse | Promise<ApiResponse> | undefined {
  if (!packedLists || !acceptsGzip(request.headers)) return undefined;
  const { items } = listed;
  const { head, tail } = envelope(info, listed);
  // With the commas between them; of those not shown as they are stored, by their stored size.
  const shownSize = ({ size, headLength }: StoredObject): number =>
    info.strategy.custom ? size + 1 : size - headLength + 2;
  if (!haveBytes(items, COMPRESS_FROM_BYTES - head.length - tail.length + 1, shownSize)) return undefined;
  const packed = packedLists.pack({
    info,
    items,
    head,
    tail,
    get signal() {
      return request.signal;
    },
  });
  const response = (body: readonly Uint8Array[]): ApiResponse => ({ status: 200, headers: JSON_GZIP_HEADERS, body });
  return packed instanceof Promise ? packed.then(response) : response(packed);
}

const isPlainJson = ({ as, encoding, pretty }: Representation): boolean =>
  as === 'object' && encoding === 'json' && !pretty;

/** What stands before and behind the items of a list. */
function envelope(info: ResourceInfo, listed: ListResult): { readonly head: string; readonly tail: string } {
  const metadata = JSON.stringify(metadataOf(info, listed));
  return {
    head: `{"kind":${JSON.stringify(info.listKind)},"apiVersion":${JSON.stringify(apiVersionOf(info))},"metadata":${metadata},"items":[`,
    tail: ']}\n',
  };
}

/** A list of custom resources is a map upstream, in which the token is there when it is empty. */
const metadataOf = (info: ResourceInfo, listed: ListResult): Readonly<Record<string, unknown>> => ({
  ...(info.strategy.custom && { continue: '' }),
  ...listMetadata(listed),
});

const listMetadata = (listed: ListResult): Readonly<Record<string, unknown>> => ({
  resourceVersion: String(listed.revision),
  ...(listed.continue !== '' && { continue: listed.continue }),
  ...(listed.remaining !== undefined && { remainingItemCount: listed.remaining }),
});

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
export function listResponse(exchange: Exchange, { listed, representation }: Page): ApiResponse | Promise<ApiResponse> {
  const info = exchange.resource;
  // What has to be converted is not picked together in no time.
  if (isPlainJson(representation) && (info.view === undefined || !isLong(listed.items))) {
    const body = exchange.server.joinedLists.parts({ info, items: listed.items, ...envelope(info, listed) });
    return { status: 200, headers: JSON_HEADERS, body };
  }
  if (representation.as !== 'object') checkPartial(representation, true);
  const outline = outlineOf(exchange, { listed, representation });
  const compare = representation.as === 'table' ? info.rows?.compare : undefined;
  const items = compare
    ? listed.items.toSorted((a, b) => compare(viewObject(info, a), viewObject(info, b)))
    : listed.items;
  if (isLong(items)) return longList(exchange, items, { outline, representation });
  const around = { before: `${JSON.stringify(outline.head).slice(0, -1)},"${outline.member}":`, after: '}' };
  // Go's slice that nothing was put into.
  const isNull = items.length === 0 && representation.as === 'partial';
  const bytes = isNull
    ? encoder.encode(`${around.before}null}`)
    : outline.items(items, { before: `${around.before}[`, after: ']}' });
  return largeResponse(exchange, { status: 200, bytes, representation });
}

function outlineOf(exchange: Exchange, { listed, representation }: Page): ListOutline {
  const info = exchange.resource;
  const { as, version } = representation;
  const prepare: ListOutline['prepare'] = (some) => prepareViews(info, some, { again: false });
  if (as === 'table') return tableOutline(exchange, { listed, version, prepare });
  if (as === 'partial') {
    const apiVersion = `meta.k8s.io/${version}`;
    return {
      head: { kind: 'PartialObjectMetadataList', apiVersion, metadata: listMetadata(listed) },
      member: 'items',
      prepare,
      items: (some, around) =>
        jsonItems(
          some.map((item) => partialOf(viewObject(info, item), version)),
          around,
        ),
    };
  }
  return {
    head: { kind: info.listKind, apiVersion: apiVersionOf(info), metadata: metadataOf(info, listed) },
    member: 'items',
    prepare,
    items: (some, { before: head, after: tail }) =>
      joinItems(
        some.map((item) => itemBytes(info, item)),
        { head, tail },
      ),
  };
}

function tableOutline(
  exchange: Exchange,
  { listed, version, prepare }: Pick<Page, 'listed'> & Pick<Representation, 'version'> & Pick<ListOutline, 'prepare'>,
): ListOutline {
  const info = exchange.resource;
  const options = {
    version,
    includeObject: parseIncludeObject(exchange.query.get('includeObject')),
    now: exchange.server.clock.now(),
    metadata: listMetadata(listed),
  };
  const { rows: _, ...head } = tableOf(info, { ...options, objects: [], definitions: true });
  return {
    head: head as ListOutline['head'],
    member: 'rows',
    prepare,
    items: (some, around) => {
      const objects = some.map((item) => viewObject(info, item));
      return jsonItems(tableOf(info, { ...options, objects, definitions: false })['rows'] as unknown[], around);
    },
  };
}

const jsonItems = (items: readonly unknown[], { before, after }: ListEnvelope): Uint8Array =>
  encoder.encode(`${before}${JSON.stringify(items).slice(1, -1)}${after}`);
