/**
 * /openapi/v2 and /openapi/v3: documents made when first asked for, kept as bytes until a resource of theirs changes.
 * A v3 document is named with its hash, so clients may keep it for ever.
 */

import { encodeJsonInPieces } from '@coracle/apimachinery/meta/json-pieces';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { Clock } from '@coracle/runtime/clock/clock';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import type { Aggregator, RemoteOpenApi } from '../aggregation/aggregator.ts';
import { OPENAPI_V3_PROTO_TYPES } from '../kinds/openapi/gnostic.ts';
import type { ResourceSource } from '../registry/resource-catalog.ts';
import type { AggregatedApi } from './aggregated-api.ts';
import { swaggersOf } from './aggregated-swagger.ts';
import { sha512Hex } from './discovery-routes.ts';
import { inForm, type WriteElsewhere } from './document-forms.ts';
import type { Exchange } from './exchange.ts';
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

/** Answers the OpenAPI paths; undefined for any other path. */
export function createOpenApi({
  resources,
  aggregated = [],
  aggregator,
  clock,
  swagger2,
  writeElsewhere,
}: {
  readonly resources: ResourceSource;
  /** APIs of this process beside the resources. */
  readonly aggregated?: readonly AggregatedApi[];
  readonly aggregator: Pick<Aggregator, 'generation' | 'openApi' | 'swaggers' | 'ask' | 'remote'>;
  readonly clock: Clock;
  readonly swagger2: MakeSwagger | undefined;
  /** Writes large documents in protobuf, on nobody's account: they are kept for all. Absent = written here. */
  readonly writeElsewhere: WriteElsewhere | undefined;
}): (exchange: Exchange) => Promise<ApiResponse> | undefined {
  let pages: Promise<ReadonlyMap<string, Page>> = Promise.resolve(new Map());
  let generation = -1;
  /** The v2 document by form. */
  let whole = new Map<string, Promise<{ bytes: Uint8Array; etag: string }>>();

  const current = (): Promise<ReadonlyMap<string, Page>> => {
    const now = resources.generation() + aggregator.generation();
    if (generation === now) return pages;
    generation = now;
    whole = new Map();
    pages = upToDate(pages, resources.all());
    return pages;
  };

  const index = async (exchange: Exchange): Promise<ApiResponse> => {
    const entries = [...(await current())].map(async ([path, { hash }]) => [
      path,
      { serverRelativeURL: `${V3}/${path}?hash=${await hash}` },
    ]);
    const remote = aggregator
      .openApi()
      .map(({ path, hash }) => [path, { serverRelativeURL: `${V3}/${path}${hash === '' ? '' : `?hash=${hash}`}` }]);
    const paths = Object.fromEntries([...(await Promise.all(entries)), ...remote]);
    const bytes = encoder.encode(JSON.stringify({ paths }));
    return validated(exchange, { bytes, etag: `"${await sha512Hex(bytes)}"`, headers: JSON_HEADERS });
  };

  const page = async (exchange: Exchange, path: string, type: string = JSON_TYPE): Promise<ApiResponse> => {
    const remote = aggregator.openApi().find((one) => one.path === path);
    if (remote) return remotePage(exchange, remote);
    const found = (await current()).get(path);
    if (!found) return pageNotFound();
    const hash = await found.hash;
    const asked = exchange.query.get('hash') || null;
    if (asked !== null && asked !== hash) {
      return { status: 301, headers: { location: `${V3}/${path}?hash=${hash}` } };
    }
    const json = type === JSON_TYPE;
    const form = json ? 'json' : 'protobuf';
    found[form] ??= makeVersion3(resources.all(), { path, members: found.members, form, writeElsewhere });
    const bytes = await found[form];
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

  /** Those that are given to another server are that one's to describe. */
  const own = () =>
    aggregated.flatMap((api) =>
      swaggersOf(api).filter(({ version }) => aggregator.remote(api.group, version) === undefined),
    );

  const swagger = async (
    exchange: Exchange,
    type: string,
    { make, protobufTypes }: MakeSwagger,
  ): Promise<ApiResponse> => {
    await current();
    const form = type === JSON_TYPE ? 'json' : 'protobuf';
    let made = whole.get(form);
    if (!made) {
      const document = make(resources.all(), {
        form,
        others: [...aggregator.swaggers(), ...own()],
        writeElsewhere,
      });
      made = document.then(async (bytes) => ({ bytes, etag: `"${await sha512Hex(bytes)}"` }));
      whole.set(form, made);
    }
    return validated(exchange, {
      ...(await made),
      // Clients ask with an `@` in the name, which Go's own media-type parser refuses in an answer.
      headers: form === 'json' ? JSON_HEADERS : { 'content-type': protobufTypes[0]! },
    });
  };

  return (exchange) => {
    const { path } = exchange.request;
    if (path === V3 || path === `${V3}/`) return index(exchange);
    if (path !== V2 && !path.startsWith(`${V3}/`)) return undefined;
    if (path !== V2 && aggregator.openApi().some((one) => one.path === path.slice(V3.length + 1)))
      return page(exchange, path.slice(V3.length + 1));
    if (path === V2 && swagger2 === undefined) return undefined;
    const protobufTypes = path === V2 && swagger2 !== undefined ? swagger2.protobufTypes : OPENAPI_V3_PROTO_TYPES;
    const type = acceptedType(exchange, [JSON_TYPE, ...protobufTypes]);
    if (type === undefined) return Promise.resolve(textResponse(406, ''));
    if (path === V2 && swagger2 !== undefined) return swagger(exchange, type, swagger2);
    return page(exchange, path.slice(V3.length + 1), type);
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

async function makeVersion3(
  infos: readonly ResourceInfo[],
  {
    path,
    members,
    form,
    writeElsewhere,
  }: {
    readonly path: string;
    readonly form: 'json' | 'protobuf';
    readonly writeElsewhere: WriteElsewhere | undefined;
  } & Pick<Page, 'members'>,
): Promise<Uint8Array> {
  const { openApiV3Discovery, openApiV3 } = await version3();
  const discovery = members.length === 0 ? openApiV3Discovery(infos, path) : undefined;
  const document = discovery ?? (await openApiV3(members, nextTurn));
  const json = await encodeJsonInPieces(document, nextTurn);
  return form === 'json' ? json : (await inForm({ json, form: { type: 'openapi-v3' } }, writeElsewhere))!;
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
