/**
 * /openapi/v2 and /openapi/v3: documents made when first asked for, kept as bytes until a resource of theirs changes.
 * A v3 document is named with its hash, so clients may keep it for ever.
 */

import { openApiV2 } from '../../api/kinds/openapi/openapi-v2.ts';
import { encodeOpenApiV2, OPENAPI_V2_PROTO_TYPES } from '../../api/kinds/openapi/openapi-v2-proto.ts';
import { openApiV3, openApiV3Hash, openApiV3Paths } from '../../api/kinds/openapi/openapi-v3.ts';
import type { ResourceInfo } from '../../api/kinds/resource.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { ApiResponse } from '../../base/http/seam.ts';
import type { ResourceSource } from '../registry/resource-catalog.ts';
import { sha512Hex } from './discovery-routes.ts';
import type { Exchange } from './exchange.ts';
import { parseAccept } from './negotiation.ts';
import { JSON_HEADERS, pageNotFound, textResponse } from './responses.ts';

interface Page {
  readonly members: readonly ResourceInfo[];
  readonly hash: Promise<string>;
  /** Made when somebody asks. */
  bytes?: Uint8Array;
}

const YEAR_MS = 365 * 24 * 3600 * 1000;
const JSON_TYPE = 'application/json';
const V2 = '/openapi/v2';
const V3 = '/openapi/v3';
const encoder = new TextEncoder();

/** Answers the OpenAPI paths; undefined for any other path. */
export function createOpenApi(
  resources: ResourceSource,
  clock: Clock,
): (exchange: Exchange) => Promise<ApiResponse> | undefined {
  let pages = new Map<string, Page>();
  let generation = -1;
  /** The v2 document by media type. */
  let whole = new Map<string, Promise<{ bytes: Uint8Array; etag: string }>>();

  /** Brings the pages up to date with the catalog; pages whose resources are the same stay. */
  const current = (): Map<string, Page> => {
    if (generation === resources.generation()) return pages;
    generation = resources.generation();
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
    const entries = [...current()].map(async ([path, { hash }]) => [
      path,
      { serverRelativeURL: `${V3}/${path}?hash=${await hash}` },
    ]);
    const bytes = encoder.encode(JSON.stringify({ paths: Object.fromEntries(await Promise.all(entries)) }));
    return { status: 200, headers: { ...JSON_HEADERS, etag: `"${await sha512Hex(bytes)}"` }, body: bytes };
  };

  const page = async (exchange: Exchange, path: string): Promise<ApiResponse> => {
    const found = current().get(path);
    if (!found) return pageNotFound();
    const hash = await found.hash;
    const asked = exchange.query.get('hash');
    if (asked !== null && asked !== hash) {
      return { status: 301, headers: { location: `${V3}/${path}?hash=${hash}` } };
    }
    found.bytes ??= encoder.encode(JSON.stringify(openApiV3(found.members)));
    const keep = asked !== null && {
      'cache-control': 'public, immutable',
      expires: new Date(clock.now() + YEAR_MS).toUTCString(),
    };
    return validated(exchange, { bytes: found.bytes, etag: `"${hash}"`, headers: { ...JSON_HEADERS, ...keep } });
  };

  const swagger = async (exchange: Exchange, type: string): Promise<ApiResponse> => {
    current();
    let made = whole.get(type);
    if (!made) {
      made = makeSwagger(resources.all(), type);
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
    const type = acceptedType(exchange, path === V2 ? [JSON_TYPE, ...OPENAPI_V2_PROTO_TYPES] : [JSON_TYPE]);
    if (type === undefined) return Promise.resolve(textResponse(406, ''));
    return path === V2 ? swagger(exchange, type) : page(exchange, path.slice(V3.length + 1));
  };
}

async function makeSwagger(infos: readonly ResourceInfo[], type: string): Promise<{ bytes: Uint8Array; etag: string }> {
  const document = openApiV2(infos);
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
