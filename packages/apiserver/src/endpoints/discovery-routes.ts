/** /api, /apis and below: discovery documents, made when first asked for and kept until the catalog changes. */

import { hexOf } from '@coracle/apimachinery/meta/hex';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { customStrategy } from '@coracle/apimachinery/types/strategy';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import {
  aggregatedDiscovery,
  apiGroup,
  apiGroupList,
  apiResourceList,
  apiVersionsDocument,
  type DiscoveryOptions,
} from '../kinds/discovery/discovery.ts';
import { storageVersionHashes } from '../kinds/discovery/storage-version-hash.ts';
import { type AggregatedApi, aggregatedApi } from './aggregated-api.ts';
import type { Exchange, Server } from './exchange.ts';
import { ACCEPTED_MEDIA_TYPES, parseAccept } from './negotiation.ts';
import { encodedResponse, pageNotFound, representationOf } from './responses.ts';

export interface DiscoveryParts extends Pick<Server, 'resources' | 'aggregated' | 'aggregator'> {
  /** `host:port` as clients reach the server. */
  readonly serverAddress: string;
}

export interface KeptDocument {
  readonly bytes: Uint8Array;
  /** In quotes. */
  readonly etag: string;
}

const AGGREGATED_TYPE = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
const encoder = new TextEncoder();

/** Answers discovery paths; undefined for any other path. */
export function createDiscovery(parts: DiscoveryParts): (exchange: Exchange) => Promise<ApiResponse> | undefined {
  const { resources } = parts;
  const aggregatedInfos = parts.aggregated.flatMap(infosOf);
  let documents = new Map<string, Promise<KeptDocument | undefined>>();
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
  ): Promise<KeptDocument | undefined> => {
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
      const own = isOurs({ group, version }) ? aggregatedApi(parts.aggregated, { group, version }) : undefined;
      if (!own) return apiResourceList(infos, { ...known, group, version });
      const groupVersion = `${group}/${version}`;
      return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources: own.discovery };
    })();
    return document && withEtag(encoder.encode(JSON.stringify(document)));
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
  document: KeptDocument | undefined,
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

/** A document with the tag that it is known by: its SHA-512 in upper-case hex. */
export async function withEtag(bytes: Uint8Array): Promise<KeptDocument> {
  const digest = await crypto.subtle.digest('SHA-512', bytes as Uint8Array<ArrayBuffer>);
  return { bytes, etag: `"${hexOf(new Uint8Array(digest)).toUpperCase()}"` };
}

/** The entries of an aggregated API as resources, so that the group documents list them like any other. */
function infosOf({ group, versions, discovery }: AggregatedApi): ResourceInfo[] {
  const byResource = Map.groupBy(discovery, ({ name }) => name.split('/', 1)[0]!);
  return versions.flatMap((version) =>
    [...byResource].map(([resource, entries]): ResourceInfo => {
      const main = entries.find(({ name }) => name === resource);
      const subresources = entries.filter((entry) => entry !== main);
      return {
        group,
        version,
        resource,
        singular: main?.singularName ?? '',
        kind: main?.kind ?? '',
        listKind: '',
        namespaced: (main ? [main] : entries).some(({ namespaced }) => namespaced),
        verbs: main?.verbs ?? [],
        shortNames: [],
        categories: [],
        subresources: subresources.map(({ name, kind, verbs }) => ({
          name: name.slice(resource.length + 1),
          kind,
          verbs,
        })),
        schema: {},
        columns: [],
        selectableFields: {},
        strategy: NOT_STORED,
      };
    }),
  );
}

const NOT_STORED = customStrategy({ generation: 'none' });
