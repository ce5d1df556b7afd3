/**
 * /openapi/v2 and /openapi/v3: documents made when first asked for, kept as bytes until a resource of theirs changes.
 * A v3 document is named with its hash, so clients may keep it for ever.
 */

import { mergeSwagger } from '../../api/kinds/openapi/merge-swagger.ts';
import { encodeOpenApiV2, OPENAPI_V2_PROTO_TYPES } from '../../api/kinds/openapi/openapi-v2-proto.ts';
import { encodeOpenApiV3, OPENAPI_V3_PROTO_TYPES } from '../../api/kinds/openapi/openapi-v3-proto.ts';
import type { ResourceInfo } from '../../api/kinds/resource.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { ApiResponse } from '../../base/http/seam.ts';
import type { Aggregator, RemoteOpenApi } from '../aggregation/aggregator.ts';
import type { ResourceSource } from '../registry/resource-catalog.ts';
import { sha512Hex } from './discovery-routes.ts';
import type { Exchange } from './exchange.ts';
import { parseAccept } from './negotiation.ts';
import { JSON_HEADERS, pageNotFound, textResponse } from './responses.ts';

interface Page {
  readonly members: readonly ResourceInfo[];
  readonly hash: Promise<string>;
  /** By encoding, made when somebody asks. */
  json?: Uint8Array;
  protobuf?: Uint8Array;
}

const YEAR_MS = 365 * 24 * 3600 * 1000;
const JSON_TYPE = 'application/json';
const V2 = '/openapi/v2';
const V3 = '/openapi/v3';
const encoder = new TextEncoder();

/** What makes documents holds a text for every field: no process needs that before somebody asks. */
const version2 = () => import('../../api/kinds/openapi/openapi-v2.ts');
const version3 = () => import('../../api/kinds/openapi/openapi-v3.ts');

/** Answers the OpenAPI paths; undefined for any other path. */
export function createOpenApi({
  resources,
  aggregator,
  clock,
}: {
  readonly resources: ResourceSource;
  readonly aggregator: Pick<Aggregator, 'generation' | 'openApi' | 'swaggers' | 'ask'>;
  readonly clock: Clock;
}): (exchange: Exchange) => Promise<ApiResponse> | undefined {
  let pages = new Map<string, Page>();
  let generation = -1;
  /** The v2 document by media type. */
  let whole = new Map<string, Promise<{ bytes: Uint8Array; etag: string }>>();

  /** Brings the pages up to date with the catalog; pages whose resources are the same stay. */
  const current = async (): Promise<Map<string, Page>> => {
    const { openApiV3Hash, openApiV3Paths } = await version3();
    const now = resources.generation() + aggregator.generation();
    if (generation === now) return pages;
    generation = now;
    whole = new Map();
    const next = new Map<string, Page>();
    for (const [path, members] of openApiV3Paths(resources.all())) {
      const known = pages.get(path);
      const same = known && known.members.length === members.length && members.every((m, i) => m === known.members[i]);
      next.set(path, same ? known : { members, hash: openApiV3Hash(members) });
    }
    pages = next;
    return pages;
  };

  const index = async (): Promise<ApiResponse> => {
    const entries = [...(await current())].map(async ([path, { hash }]) => [
      path,
      { serverRelativeURL: `${V3}/${path}?hash=${await hash}` },
    ]);
    const remote = aggregator
      .openApi()
      .map(({ path, hash }) => [path, { serverRelativeURL: `${V3}/${path}${hash === '' ? '' : `?hash=${hash}`}` }]);
    const paths = Object.fromEntries([...(await Promise.all(entries)), ...remote]);
    const bytes = encoder.encode(JSON.stringify({ paths }));
    return { status: 200, headers: { ...JSON_HEADERS, etag: `"${await sha512Hex(bytes)}"` }, body: bytes };
  };

  const page = async (exchange: Exchange, path: string, type: string = JSON_TYPE): Promise<ApiResponse> => {
    const remote = aggregator.openApi().find((one) => one.path === path);
    if (remote) return remotePage(exchange, remote);
    const found = (await current()).get(path);
    if (!found) return pageNotFound();
    const hash = await found.hash;
    const asked = exchange.query.get('hash');
    if (asked !== null && asked !== hash) {
      return { status: 301, headers: { location: `${V3}/${path}?hash=${hash}` } };
    }
    const json = type === JSON_TYPE;
    const form = json ? 'json' : 'protobuf';
    const bytes = found[form] ?? encodeV3((await version3()).openApiV3(found.members), form);
    found[form] = bytes;
    // Clients ask with an `@` in the name, which Go's own media-type parser refuses in an answer.
    const media = json ? JSON_HEADERS : { 'content-type': OPENAPI_V3_PROTO_TYPES[0] };
    const keep = asked !== null && {
      'cache-control': 'public, immutable',
      expires: new Date(clock.now() + YEAR_MS).toUTCString(),
    };
    return validated(exchange, { bytes, etag: `"${hash}"`, headers: { ...media, ...keep } });
  };

  /** The far end's own document; it knows the hash and the media types. */
  const remotePage = (exchange: Exchange, { api }: RemoteOpenApi): Promise<ApiResponse> =>
    aggregator.ask(api, exchange.request);

  const swagger = async (exchange: Exchange, type: string): Promise<ApiResponse> => {
    await current();
    let made = whole.get(type);
    if (!made) {
      made = makeSwagger(resources.all(), { type, others: aggregator.swaggers() });
      whole.set(type, made);
    }
    return validated(exchange, {
      ...(await made),
      // Clients ask with an `@` in the name, which Go's own media-type parser refuses in an answer.
      headers: type === JSON_TYPE ? JSON_HEADERS : { 'content-type': OPENAPI_V2_PROTO_TYPES[0] },
    });
  };

  return (exchange) => {
    const { path } = exchange.request;
    if (path === V3 || path === `${V3}/`) return index();
    if (path !== V2 && !path.startsWith(`${V3}/`)) return undefined;
    if (path !== V2 && aggregator.openApi().some((one) => one.path === path.slice(V3.length + 1)))
      return page(exchange, path.slice(V3.length + 1));
    const type = acceptedType(exchange, [
      JSON_TYPE,
      ...(path === V2 ? OPENAPI_V2_PROTO_TYPES : OPENAPI_V3_PROTO_TYPES),
    ]);
    if (type === undefined) return Promise.resolve(textResponse(406, ''));
    return path === V2 ? swagger(exchange, type) : page(exchange, path.slice(V3.length + 1), type);
  };
}

const encodeV3 = (document: Record<string, unknown>, form: 'json' | 'protobuf'): Uint8Array =>
  form === 'json' ? encoder.encode(JSON.stringify(document)) : encodeOpenApiV3(document).slice();

async function makeSwagger(
  infos: readonly ResourceInfo[],
  { type, others }: { readonly type: string; readonly others: ReturnType<Aggregator['swaggers']> },
): Promise<{ bytes: Uint8Array; etag: string }> {
  const { openApiV2 } = await version2();
  const document = mergeSwagger(openApiV2(infos), others);
  const bytes = type === JSON_TYPE ? encoder.encode(JSON.stringify(document)) : encodeOpenApiV2(document).slice();
  return { bytes, etag: `"${await sha512Hex(bytes as Uint8Array<ArrayBuffer>)}"` };
}

/** The best media type that can be given; the first one when the client has no preference. */
function acceptedType(exchange: Exchange, offered: readonly string[]): string | undefined {
  const accept = exchange.request.headers['accept'];
  if (accept === undefined || accept === '') return offered[0];
  for (const { type } of parseAccept(accept)) {
    if (type === '*/*' || type === 'application/*') return offered[0];
    const found = offered.find((one) => one === type);
    if (found !== undefined) return found;
  }
  return undefined;
}

function validated(
  exchange: Exchange,
  document: { readonly bytes: Uint8Array; readonly etag: string; readonly headers: Readonly<Record<string, string>> },
): ApiResponse {
  const headers = { ...document.headers, etag: document.etag, vary: 'Accept' };
  if (exchange.request.headers['if-none-match'] === document.etag) return { status: 304, headers };
  return { status: 200, headers, body: document.bytes };
}
