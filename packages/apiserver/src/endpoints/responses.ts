/** Turns objects, lists and failures into responses: the one place that writes bodies. */

import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { ApiError, internalError, type Status } from '@coracle/apimachinery/meta/status';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import type { StoredObject } from '../cache/object-store.ts';
import { lineOf } from '../cache/stored-object.ts';
import { PROTOBUF } from '../kinds/protobuf/documents.ts';
import { encodeObject, viewBytes, viewObject } from '../registry/versioned-view.ts';
import { StorageError } from '../storage/backend.ts';
import { inForm, writeForm } from './document-forms.ts';
import type { Exchange } from './exchange.ts';
import {
  ACCEPTED_MEDIA_TYPES,
  checkPartial,
  type NegotiationScope,
  negotiate,
  PRODUCED_BY_LISTS,
  type Representation,
  wantsPretty,
} from './negotiation.ts';
import { parseIncludeObject, partialOf, tableOf } from './table.ts';

const encoder = new TextEncoder();

export const NEWLINE = encoder.encode('\n');
/** Shared header objects: the last stage copies them once into the final headers. */
export const JSON_HEADERS: Readonly<Record<string, string>> = Object.freeze({ 'content-type': 'application/json' });
/** Of a body that is compressed already. */
export const JSON_GZIP_HEADERS: Readonly<Record<string, string>> = Object.freeze({
  ...JSON_HEADERS,
  'content-encoding': 'gzip',
  vary: 'Accept-Encoding',
});
export const YAML_HEADERS: Readonly<Record<string, string>> = Object.freeze({ 'content-type': 'application/yaml' });
export const PROTOBUF_HEADERS: Readonly<Record<string, string>> = Object.freeze({ 'content-type': PROTOBUF });
export const TEXT_HEADERS: Readonly<Record<string, string>> = Object.freeze({
  'content-type': 'text/plain; charset=utf-8',
});

/** Content types of a stream of events; YAML is never agreed on for one. */
export const WATCH_HEADERS: Readonly<Record<Representation['encoding'], Readonly<Record<string, string>>>> = {
  json: JSON_HEADERS,
  yaml: JSON_HEADERS,
  protobuf: Object.freeze({ 'content-type': `${PROTOBUF};stream=watch` }),
};

/** The representation the client asked for. Throws ApiError 406. */
export function representationOf(exchange: Exchange, scope: NegotiationScope = {}): Representation {
  const { headers, query } = exchange.request;
  return negotiate(headers, {
    ...routeScope(exchange),
    ...scope,
    pretty: wantsPretty(headers, query === '' ? null : exchange.query.get('pretty')),
  });
}

/** One handler serves all custom resources; all others have routes of their own, which say what they produce. */
function routeScope(exchange: Exchange): NegotiationScope {
  const resource: ResourceInfo | undefined = exchange.resource;
  if (resource === undefined) return NOTHING;
  if (resource.strategy.custom) return CUSTOM;
  const { verb } = exchange.info;
  return verb === 'list' || verb === 'watch' ? ROUTED_LIST : ROUTED;
}

const NOTHING: NegotiationScope = { protobuf: 'none' };
const CUSTOM: NegotiationScope = { protobuf: 'metadata' };
const ROUTED: NegotiationScope = { protobuf: 'all', produces: ACCEPTED_MEDIA_TYPES };
const ROUTED_LIST: NegotiationScope = { protobuf: 'all', produces: PRODUCED_BY_LISTS };

/**
 * One object of the exchange's resource, in the representation asked for. The common case sends the stored bytes; a promise
 * only for a large one in another form.
 */
export function objectResponse(
  exchange: Exchange,
  result: {
    readonly status: number;
    readonly representation: Representation;
    readonly stored?: StoredObject | undefined;
    /** Needed when there is no `stored`. */
    readonly object?: Readonly<UnstructuredObject>;
  },
): ApiResponse | Promise<ApiResponse> {
  const { status, representation, stored } = result;
  const info = exchange.resource;
  if (representation.as === 'object') {
    const bytes = stored ? viewBytes(info, stored) : encodeObject(result.object!);
    return largeResponse(exchange, { status, bytes, representation });
  }
  const answer = (): ApiResponse | Promise<ApiResponse> => {
    const shown = shownObject(exchange, stored ? viewObject(info, stored) : result.object!, representation);
    return largeResponse(exchange, { status, bytes: encodeObject(shown), representation });
  };
  const loading = stored?.load(nextTurn);
  return loading ? loading.then(answer) : answer();
}

/** The document that shows an object: itself, its metadata or a Table, of its resource's columns. Throws ApiError 406. */
export function shownObject(
  exchange: Exchange,
  object: Readonly<UnstructuredObject>,
  representation: Representation,
  columns: Pick<ResourceInfo, 'columns' | 'rows'> = exchange.resource,
): Readonly<Record<string, unknown>> {
  const { as, version } = representation;
  if (as === 'object') return object;
  checkPartial(representation, false);
  if (as === 'partial') return partialOf(object, version);
  return tableOf(columns, {
    objects: [object],
    version,
    includeObject: parseIncludeObject(exchange.query.get('includeObject')),
    now: exchange.server.clock.now(),
    definitions: true,
    metadata: object.metadata.resourceVersion ? { resourceVersion: object.metadata.resourceVersion } : {},
  });
}

interface Encoding {
  readonly status: number;
  /** A JSON document without newline. */
  readonly bytes: Uint8Array;
  readonly representation: Pick<Representation, 'encoding' | 'pretty'>;
}

/** A JSON document in the encoding asked for. */
export function encodedResponse(result: Encoding): ApiResponse {
  const type = formType(result);
  return formedResponse(result, type && writeForm({ json: result.bytes, form: { type } }));
}

/** The same for a document that may be large: a promise where it is, and another thread writes its form. */
export function largeResponse(exchange: Exchange, result: Encoding): ApiResponse | Promise<ApiResponse> {
  const type = formType(result);
  const made = type && inForm({ json: result.bytes, form: { type } }, exchange.writeElsewhere);
  return made instanceof Promise ? made.then((body) => formedResponse(result, body)) : formedResponse(result, made);
}

/** Undefined for JSON as it is. */
function formType({ representation: { encoding, pretty } }: Encoding): 'yaml' | 'protobuf' | 'indented' | undefined {
  if (encoding !== 'json') return encoding;
  return pretty ? 'indented' : undefined;
}

const HEADERS: Readonly<Record<Representation['encoding'], Readonly<Record<string, string>>>> = {
  json: JSON_HEADERS,
  yaml: YAML_HEADERS,
  protobuf: PROTOBUF_HEADERS,
};

/** `body` is its form, where it has one. */
function formedResponse(result: Encoding, body: Uint8Array | undefined): ApiResponse {
  const { status, bytes, representation } = result;
  const { encoding, pretty } = representation;
  if (body !== undefined) return { status, headers: HEADERS[encoding], body };
  // What has no form in protobuf goes out as JSON.
  if (encoding !== 'json' && pretty)
    return encodedResponse({ ...result, representation: { encoding: 'json', pretty } });
  // JSON of one line ends with a newline, as upstream's encoder writes it; what is indented does not.
  return { status, headers: JSON_HEADERS, body: lineOf(bytes) ?? [bytes, NEWLINE] };
}

/** Any document that is no stored object. A promise only for a large one in another form. */
export const documentResponse = (
  exchange: Exchange,
  result: { readonly status: number; readonly object: Readonly<Record<string, unknown>> },
): ApiResponse | Promise<ApiResponse> =>
  largeResponse(exchange, {
    status: result.status,
    bytes: encodeObject(result.object),
    representation: representationOf(exchange, { transforms: false, protobuf: 'all' }),
  });

export const textResponse = (status: number, text: string, headers = TEXT_HEADERS): ApiResponse => ({
  status,
  headers,
  body: encoder.encode(text),
});

/** A line of text that no browser takes for a page. */
export const lineResponse = (status: number, line: string, headers: ApiResponse['headers'] = {}): ApiResponse =>
  textResponse(status, `${line}\n`, { ...TEXT_HEADERS, 'x-content-type-options': 'nosniff', ...headers });

/** What mux answers for a path nobody serves; clients turn it into NotFound themselves. */
export const pageNotFound = (): ApiResponse => lineResponse(404, '404 page not found');

/** What a request gets that found no seat: plain text, as upstream's filter answers before anything is negotiated. */
export const tooManyRequests = (): ApiResponse =>
  lineResponse(429, 'Too many requests, please try again later.', { 'retry-after': '1' });

/** A Status as a response, in JSON. */
export function statusResponse(status: Status, { pretty }: { readonly pretty: boolean }): ApiResponse {
  const retryAfter = status.details?.retryAfterSeconds;
  const text = pretty ? JSON.stringify(status, null, 2) : `${JSON.stringify(status)}\n`;
  return {
    status: status.code,
    headers: retryAfter ? { ...JSON_HEADERS, 'retry-after': String(retryAfter) } : JSON_HEADERS,
    body: encoder.encode(text),
  };
}

/** 503 of a server that cannot answer yet, or no more. */
export const unavailable = (message: string): ApiResponse =>
  statusResponse(
    new ApiError({ code: 503, reason: 'ServiceUnavailable', message, details: { retryAfterSeconds: 1 } }).status,
    { pretty: false },
  );

/** The ApiError behind anything thrown: what is no ApiError is a bug or a broken disk, and says no more than that. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof StorageError) return storageFailure(error);
  return internalError(error instanceof Error ? error.message : String(error), error);
}

function storageFailure(error: StorageError): ApiError {
  const full = error.kind === 'no-space';
  return new ApiError(
    {
      code: full ? 507 : 503,
      reason: full ? 'InsufficientStorage' : 'ServiceUnavailable',
      message: `the store cannot take the write: ${error.message}`,
      details: { retryAfterSeconds: 5 },
    },
    { cause: error },
  );
}

/** `{status: "Success"}` about an object: answers of delete, binding and eviction. */
export const successStatus = (
  code: number,
  about?: { readonly info: ResourceInfo; readonly name: string; readonly uid?: string | undefined },
): Record<string, unknown> => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Success',
  ...(about && {
    details: {
      name: about.name,
      ...(about.info.group !== '' && { group: about.info.group }),
      kind: about.info.resource,
      ...(about.uid !== undefined && { uid: about.uid }),
    },
  }),
  ...(code !== 200 && { code }),
});
