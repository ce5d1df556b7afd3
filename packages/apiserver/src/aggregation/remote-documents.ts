/** What a remote API says about itself: its part of discovery, and where its OpenAPI document is. */
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { ApiHandler } from '@coracle/runtime/http/seam';
import { readWhole } from '../outbound/read-whole.ts';
import type { RemoteApi } from './api-service-index.ts';
import { aggregatorRequest, discoveryPath } from './availability.ts';

const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
/** One document of a far end; those of kube-apiserver itself are far smaller. */
const MAX_DOCUMENT_BYTES = 32 * 1024 * 1024;
const decoder = new TextDecoder();

type Json = Readonly<Record<string, unknown>>;

export interface RemoteDocuments {
  /** Entries of an aggregated discovery document (APIResourceDiscovery). */
  readonly resources: readonly unknown[];
  /** Hash under which the OpenAPI v3 document may be kept; undefined when there is none. */
  readonly openApiHash: string | undefined;
  /** The OpenAPI v2 document, undefined when there is none. */
  readonly swagger: Json | undefined;
}

interface Source {
  readonly remote: RemoteApi;
  readonly handler: ApiHandler;
  readonly signal: AbortSignal;
}

/** Reads both; rejects with an Error that says which document could not be had. */
export async function fetchRemoteDocuments(source: Source): Promise<RemoteDocuments> {
  const resources = (await aggregatedResources(source)) ?? (await listedResources(source));
  const [openApiHash, swagger] = await Promise.all([openApiHashOf(source), swaggerOf(source)]);
  return { resources, openApiHash, swagger };
}

async function getJson(source: Source, path: string, accept = 'application/json'): Promise<Json | undefined> {
  const { handler, signal } = source;
  const response = await handler(aggregatorRequest(path, { signal, accept }));
  const bytes = await readWhole(response, { limit: MAX_DOCUMENT_BYTES, signal });
  if (response.status !== 200) return undefined;
  const value: unknown = JSON.parse(decoder.decode(bytes));
  return isJsonObject(value) ? value : undefined;
}

const objects = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isJsonObject) : []);

/** From the far end's own aggregated document; undefined when it has none (older servers answer the plain list). */
async function aggregatedResources(source: Source): Promise<readonly unknown[] | undefined> {
  const { group, version } = source.remote;
  const list = await getJson(source, group === '' ? '/api' : '/apis', AGGREGATED);
  if (list?.['kind'] !== 'APIGroupDiscoveryList') return undefined;
  const item = objects(list['items']).find(
    ({ metadata }) => isJsonObject(metadata) && (metadata['name'] ?? '') === group,
  );
  const found = objects(item?.['versions']).find((one) => one['version'] === version);
  return Array.isArray(found?.['resources']) ? found['resources'] : undefined;
}

/** From the APIResourceList every server has. */
async function listedResources(source: Source): Promise<readonly unknown[]> {
  const { group, version } = source.remote;
  const path = discoveryPath(source.remote);
  const list = await getJson(source, path);
  if (!list) throw new Error(`failed to download discovery for ${path}`);
  const entries = objects(list['resources']);
  const kindOf = (entry: Json) => ({
    group: entry['group'] ?? group,
    version: entry['version'] ?? version,
    kind: entry['kind'],
  });
  return entries
    .filter(({ name }) => !String(name).includes('/'))
    .map((entry) => {
      const subresources = entries
        .filter(({ name }) => String(name).startsWith(`${entry['name']}/`))
        .map((sub) => ({
          subresource: String(sub['name']).slice(String(entry['name']).length + 1),
          responseKind: kindOf(sub),
          verbs: sub['verbs'] ?? [],
        }));
      return {
        resource: entry['name'],
        responseKind: kindOf(entry),
        scope: entry['namespaced'] === true ? 'Namespaced' : 'Cluster',
        singularResource: entry['singularName'] ?? '',
        verbs: entry['verbs'] ?? [],
        ...(entry['shortNames'] !== undefined && { shortNames: entry['shortNames'] }),
        ...(entry['categories'] !== undefined && { categories: entry['categories'] }),
        ...(subresources.length > 0 && { subresources }),
      };
    });
}

/** OpenAPI is a help, not a condition: a far end without it still serves. */
async function openApiHashOf(source: Source): Promise<string | undefined> {
  const index = await getJson(source, '/openapi/v3').catch(() => undefined);
  const entry = isJsonObject(index?.['paths']) ? index['paths'][discoveryPath(source.remote).slice(1)] : undefined;
  const url = isJsonObject(entry) ? entry['serverRelativeURL'] : undefined;
  if (typeof url !== 'string') return undefined;
  return new URLSearchParams(url.split('?')[1] ?? '').get('hash') ?? '';
}

const swaggerOf = (source: Source): Promise<Json | undefined> => getJson(source, '/openapi/v2').catch(() => undefined);
