/**
 * /openapi/v2 and /openapi/v3: documents made when first asked for, kept as bytes until a resource of theirs changes.
 * A v3 document is named with its hash, so clients may keep it for ever.
 */

import { encodeJsonInPieces } from '@coracle/apimachinery/meta/json-pieces';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import type { Aggregator } from '../aggregation/aggregator.ts';
import { OPENAPI_V3_PROTO_TYPES } from '../kinds/openapi/gnostic.ts';
import { swaggersOf } from './aggregated-swagger.ts';
import { type KeptDocument, withEtag } from './discovery-routes.ts';
import { inForm, type WriteElsewhere } from './document-forms.ts';
import type { Exchange, Server } from './exchange.ts';
import { parseAccept } from './negotiation.ts';
import { JSON_HEADERS, pageNotFound, textResponse } from './responses.ts';

interface Page {
  readonly members: readonly ResourceInfo[];
  readonly hash: Promise<string>;
  /** By encoding, made when somebody asks. */
  json?: Promise<Uint8Array>;
  protobuf?: Promise<Uint8Array>;
}

const YEAR_MS = 365 * 24 * 3600 * 1000;
const JSON_TYPE = 'application/json';
const V2 = '/openapi/v2';
const V3 = '/openapi/v3';
const encoder = new TextEncoder();

/** What makes documents holds a text for every field: no process needs that before somebody asks. */
const version3 = () => import('../kinds/openapi/openapi-v3.ts');

/** Makes the document at /openapi/v2 (`openapi-v2-document.ts`). */
export interface MakeSwagger {
  /** Media types beside JSON. */
  readonly protobufTypes: readonly string[];
  /** The document of these resources, with those of other servers in it: as JSON, or as the first of `protobufTypes`. */
  make(
    infos: readonly ResourceInfo[],
    how: {
      readonly form: 'json' | 'protobuf';
      readonly others: ReturnType<Aggregator['swaggers']>;
      readonly writeElsewhere: WriteElsewhere | undefined;
    },
  ): Promise<Uint8Array>;
}

export interface OpenApiParts extends Pick<Server, 'resources' | 'aggregator' | 'aggregated' | 'clock'> {
  readonly swagger2: MakeSwagger | undefined;
  /** Writes large documents in protobuf, on nobody's account: they are kept for all. Absent = written here. */
  readonly writeElsewhere: WriteElsewhere | undefined;
}

/** How a document is asked for. */
interface Asked {
  readonly form: 'json' | 'protobuf';
  readonly headers: Readonly<Record<string, string>>;
}

/** Answers the OpenAPI paths; undefined for any other path. */
export function createOpenApi(parts: OpenApiParts): (exchange: Exchange) => Promise<ApiResponse> | undefined {
  const { resources, aggregated, aggregator, clock, swagger2, writeElsewhere } = parts;
  let pages: Promise<ReadonlyMap<string, Page>> = Promise.resolve(new Map());
  let generation = -1;
  /** The v2 document by form. */
  let whole = new Map<string, Promise<KeptDocument>>();

  const current = (): Promise<ReadonlyMap<string, Page>> => {
    const now = resources.generation() + aggregator.generation();
    if (generation === now) return pages;
    generation = now;
    whole = new Map();
    pages = upToDate(pages, resources.all());
    return pages;
  };

  const index = async (exchange: Exchange): Promise<ApiResponse> => {
    const own = (await current()).entries().map(async ([path, { hash }]) => ({ path, hash: await hash }));
    const entries = [...(await Promise.all(own)), ...aggregator.openApi()].map(({ path, hash }) => [
      path,
      { serverRelativeURL: `${V3}/${path}${hash === '' ? '' : `?hash=${hash}`}` },
    ]);
    const bytes = encoder.encode(JSON.stringify({ paths: Object.fromEntries(entries) }));
    return validated(exchange, { ...(await withEtag(bytes)), headers: JSON_HEADERS });
  };

  const makePage = async (path: string, { members }: Page, form: Asked['form']): Promise<Uint8Array> => {
    const { openApiV3Discovery, openApiV3 } = await version3();
    const discovery = members.length === 0 ? openApiV3Discovery(resources.all(), path) : undefined;
    const json = await encodeJsonInPieces(discovery ?? (await openApiV3(members, nextTurn)), nextTurn);
    return form === 'json' ? json : (await inForm({ json, form: { type: 'openapi-v3' } }, writeElsewhere))!;
  };

  const page = async (exchange: Exchange, path: string, { form, headers }: Asked): Promise<ApiResponse> => {
    const found = (await current()).get(path);
    if (!found) return pageNotFound();
    const hash = await found.hash;
    const asked = exchange.query.get('hash') || null;
    if (asked !== null && asked !== hash) {
      return { status: 301, headers: { location: `${V3}/${path}?hash=${hash}` } };
    }
    found[form] ??= makePage(path, found, form);
    const keep = asked !== null && {
      'cache-control': 'public, immutable',
      expires: new Date(clock.now() + YEAR_MS).toUTCString(),
    };
    return validated(exchange, { bytes: await found[form], etag: `"${hash}"`, headers: { ...headers, ...keep } });
  };

  /** Those that are given to another server are that one's to describe. */
  const own = () =>
    aggregated.flatMap((api) =>
      swaggersOf(api).filter(({ version }) => aggregator.remote(api.group, version) === undefined),
    );

  const swagger = async (exchange: Exchange, { make }: MakeSwagger, { form, headers }: Asked): Promise<ApiResponse> => {
    await current();
    const made = getOrInsert(whole, form, () => {
      const others = [...aggregator.swaggers(), ...own()];
      return make(resources.all(), { form, others, writeElsewhere }).then(withEtag);
    });
    return validated(exchange, { ...(await made), headers });
  };

  return (exchange) => {
    const { path } = exchange.request;
    if (path === V3 || path === `${V3}/`) return index(exchange);
    const version2 = path === V2 ? swagger2 : undefined;
    if (!version2 && !path.startsWith(`${V3}/`)) return undefined;
    const name = path.slice(V3.length + 1);
    const remote = version2 ? undefined : aggregator.openApi().find((one) => one.path === name);
    // The far end's own document; it knows the hash and the media types.
    if (remote) return aggregator.ask(remote.api, exchange.request);
    const protobufTypes = version2?.protobufTypes ?? OPENAPI_V3_PROTO_TYPES;
    const type = acceptedType(exchange, [JSON_TYPE, ...protobufTypes]);
    if (type === undefined) return Promise.resolve(textResponse(406, ''));
    const asked: Asked =
      type === JSON_TYPE
        ? { form: 'json', headers: JSON_HEADERS }
        : // Clients ask with an `@` in the name, which Go's own media-type parser refuses in an answer.
          { form: 'protobuf', headers: { 'content-type': protobufTypes[0]! } };
    return version2 ? swagger(exchange, version2, asked) : page(exchange, name, asked);
  };
}

/** Pages whose hashes are asked for in one go. */
const TOGETHER = 50;

/** The pages of these resources; those whose resources are the same stay. */
async function upToDate(
  before: Promise<ReadonlyMap<string, Page>>,
  infos: readonly ResourceInfo[],
): Promise<ReadonlyMap<string, Page>> {
  const { openApiV3Hash, openApiV3Paths } = await version3();
  const pages = await before;
  const next = new Map<string, Page>();
  let made = 0;
  for (const [path, members] of openApiV3Paths(infos)) {
    const known = pages.get(path);
    const same = known && known.members.length === members.length && members.every((m, i) => m === known.members[i]);
    next.set(path, same ? known : { members, hash: openApiV3Hash(members, nextTurn) });
    if (!same && ++made % TOGETHER === 0) await nextTurn();
  }
  return next;
}

/** The best media type that can be given; the first one when the client has no preference. */
function acceptedType(exchange: Exchange, offered: readonly string[]): string | undefined {
  const accept = exchange.request.headers['accept'];
  if (accept === undefined || accept === '') return offered[0];
  for (const { type } of parseAccept(accept)) {
    if (type === '*/*' || type === 'application/*') return offered[0];
    if (offered.includes(type)) return type;
  }
  return undefined;
}

function validated(
  exchange: Exchange,
  { bytes, etag, ...document }: KeptDocument & { readonly headers: Readonly<Record<string, string>> },
): ApiResponse {
  const headers = { ...document.headers, etag, vary: 'Accept' };
  if (exchange.request.headers['if-none-match'] === etag) return { status: 304, headers };
  return { status: 200, headers, body: bytes };
}
