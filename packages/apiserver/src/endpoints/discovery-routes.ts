/** /api, /apis and below: discovery documents, made when first asked for and kept until the catalog changes. */

import type { ResourceInfo, SubresourceInfo } from '@coracle/apimachinery/types/resource';
import { customStrategy } from '@coracle/apimachinery/types/strategy';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import type { Aggregator } from '../aggregation/aggregator.ts';
import {
  aggregatedDiscovery,
  apiGroup,
  apiGroupList,
  apiResourceList,
  apiVersionsDocument,
  type DiscoveryOptions,
} from '../kinds/discovery/discovery.ts';
import { storageVersionHashes } from '../kinds/discovery/storage-version-hash.ts';
import type { ResourceSource } from '../registry/resource-catalog.ts';
import type { AggregatedApi } from './aggregated-api.ts';
import type { Exchange } from './exchange.ts';
import { ACCEPTED_MEDIA_TYPES, parseAccept } from './negotiation.ts';
import { encodedResponse, pageNotFound, representationOf } from './responses.ts';

export interface DiscoveryParts {
  readonly resources: ResourceSource;
  readonly aggregated: readonly AggregatedApi[];
  readonly aggregator: Pick<Aggregator, 'generation' | 'discovery' | 'remote'>;
  /** `host:port` as clients reach the server. */
  readonly serverAddress: string;
}

interface CachedDocument {
  readonly bytes: Uint8Array;
  readonly etag: string;
}

const AGGREGATED_TYPE = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
const encoder = new TextEncoder();

/** Answers discovery paths; undefined for any other path. */
export function createDiscovery(parts: DiscoveryParts): (exchange: Exchange) => Promise<ApiResponse> | undefined {
  const { resources } = parts;
  const aggregatedInfos = parts.aggregated.flatMap(infosOf);
  let documents = new Map<string, Promise<CachedDocument | undefined>>();
  let generation = -1;
  let options: Promise<DiscoveryOptions> | undefined;

  const cached = (key: string, path: readonly string[], form: 'plain' | 'aggregated') => {
    // Both only grow: the sum is another one after each change.
    const now = resources.generation() + parts.aggregator.generation();
    if (generation !== now) {
      generation = now;
      documents = new Map();
      options = undefined;
    }
    let document = documents.get(key);
    if (!document) {
      options ??= storageVersionHashes(resources.all()).then((hashes) => ({ hashes, ...parts.aggregator.discovery() }));
      document = options.then((known) => makeDocument(path, form, known));
      // Unknown groups are not kept: there is no end of them.
      if (path.length === 1 || resources.serves(path[1]!, path[2] ?? '')) documents.set(key, document);
    }
    return document;
  };

  const isCustom = (group: string): boolean =>
    resources.all().some((info) => info.group === group && info.strategy.custom);

  const makeDocument = async (
    path: readonly string[],
    form: 'plain' | 'aggregated',
    known: DiscoveryOptions,
  ): Promise<CachedDocument | undefined> => {
    // What is given to another server shows what that has.
    const isOurs = (api: { readonly group: string; readonly version: string }): boolean =>
      parts.aggregator.remote(api.group, api.version) === undefined;
    const infos = [...resources.all(), ...aggregatedInfos.filter(isOurs)];
    const [root, group = '', version = ''] = path;
    const document = ((): Record<string, unknown> | undefined => {
      if (form === 'aggregated') return aggregatedDiscovery(infos, { ...known, core: root === 'api' });
      if (root === 'api') {
        return group === ''
          ? apiVersionsDocument(parts.serverAddress)
          : apiResourceList(infos, { ...known, group: '', version: group });
      }
      if (group === '') return apiGroupList(infos, known);
      if (version === '') return apiGroup(infos, { ...known, group });
      const own = isOurs({ group, version }) ? aggregatedList(parts.aggregated, group, version) : undefined;
      return own ?? apiResourceList(infos, { ...known, group, version });
    })();
    return document && withEtag(document);
  };

  return (exchange) => {
    const path = exchange.request.path.split('/').filter((part) => part !== '');
    const [root] = path;
    if (root !== 'api' && root !== 'apis') return undefined;
    if (path.length > (root === 'api' ? 2 : 3)) return undefined;
    const form = path.length === 1 && wantsAggregated(exchange) ? 'aggregated' : 'plain';
    // The pages of definitions and those that list groups are made by handlers, all others stand behind a route.
    const routed = root === 'api' || (path.length === 3 && !isCustom(path[1]!));
    return cached(`${form} ${path.join('/')}`, path, form).then((document) =>
      respond(exchange, document, { form, routed }),
    );
  };
}

/** The first clause of Accept that can be met decides; versions of the aggregated form other than v2 are passed over. */
function wantsAggregated(exchange: Exchange): boolean {
  const accept = exchange.request.headers['accept'];
  if (accept === undefined || !accept.includes('APIGroupDiscoveryList')) return false;
  for (const { type, parameters } of parseAccept(accept)) {
    if (type !== 'application/json' && type !== '*/*' && type !== 'application/*') continue;
    const as = parameters.get('as');
    if (as === undefined) return false;
    const group = parameters.get('g');
    if (as === 'APIGroupDiscoveryList' && group === 'apidiscovery.k8s.io' && parameters.get('v') === 'v2') return true;
  }
  return false;
}

function respond(
  exchange: Exchange,
  document: CachedDocument | undefined,
  { form, routed }: { readonly form: string; readonly routed: boolean },
): ApiResponse {
  if (!document) return pageNotFound();
  const validators = { etag: document.etag, vary: 'Accept' };
  const sent = exchange.request.headers['if-none-match'];
  if (sent?.split(',').some((tag) => tag.trim() === document.etag)) return { status: 304, headers: validators };
  const representation =
    form === 'aggregated'
      ? ({ encoding: 'json', pretty: false } as const)
      : representationOf(exchange, { transforms: false, ...(routed && { produces: ACCEPTED_MEDIA_TYPES }) });
  const response = encodedResponse({ status: 200, bytes: document.bytes, representation });
  return {
    ...response,
    headers: {
      ...response.headers,
      ...validators,
      ...(form === 'aggregated' && { 'content-type': AGGREGATED_TYPE, 'cache-control': 'public' }),
    },
  };
}

async function withEtag(document: Record<string, unknown>): Promise<CachedDocument> {
  const bytes = encoder.encode(JSON.stringify(document));
  return { bytes, etag: `"${await sha512Hex(bytes)}"` };
}

/** Upper-case hex of the SHA-512. */
export async function sha512Hex(bytes: Uint8Array): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-512', bytes as Uint8Array<ArrayBuffer>));
  let text = '';
  for (const byte of digest) text += byte.toString(16).padStart(2, '0');
  return text.toUpperCase();
}

const aggregatedList = (
  apis: readonly AggregatedApi[],
  group: string,
  version: string,
): Record<string, unknown> | undefined => {
  const api = apis.find((one) => one.group === group && one.versions.includes(version));
  return (
    api && {
      kind: 'APIResourceList',
      apiVersion: 'v1',
      groupVersion: `${group}/${version}`,
      resources: api.discovery,
    }
  );
};

/** The entries of an aggregated API as resources, so that the group documents list them like any other. */
function infosOf(api: AggregatedApi): ResourceInfo[] {
  return api.versions.flatMap((version) => {
    const byResource = new Map<
      string,
      { entry: AggregatedApi['discovery'][number] | undefined; subs: SubresourceInfo[] }
    >();
    for (const entry of api.discovery) {
      const [resource = '', ...sub] = entry.name.split('/');
      const found = byResource.get(resource) ?? { entry: undefined, subs: [] };
      byResource.set(resource, found);
      if (sub.length === 0) found.entry = entry;
      else found.subs.push({ name: sub.join('/'), kind: entry.kind, verbs: entry.verbs });
    }
    return [...byResource].map(([resource, { entry, subs }]): ResourceInfo => {
      const namespaced =
        entry?.namespaced ?? api.discovery.some((one) => one.name.startsWith(`${resource}/`) && one.namespaced);
      return {
        group: api.group,
        version,
        resource,
        singular: entry?.singularName ?? '',
        kind: entry?.kind ?? '',
        listKind: '',
        namespaced,
        verbs: entry?.verbs ?? [],
        shortNames: [],
        categories: [],
        subresources: subs,
        schema: {},
        columns: [],
        selectableFields: {},
        strategy: NOT_STORED,
      };
    });
  });
}

const NOT_STORED = customStrategy({ generation: 'none' });
