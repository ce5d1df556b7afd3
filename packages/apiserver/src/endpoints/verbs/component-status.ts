/**
 * ComponentStatus, which nobody stores: made up when it is asked for. The store goes by the name that upstream's first
 * etcd has; what else there is, whoever put the server together tells.
 */
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { badRequest, notFound } from '@coracle/apimachinery/meta/status';
import { parseFieldSelector } from '@coracle/apimachinery/selector/field-selector';
import { matchesLabels, parseLabelSelector } from '@coracle/apimachinery/selector/label-selector';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import type { ComponentHealth } from '../component-health.ts';
import type { Exchange } from '../exchange.ts';
import { checkPartial, goTypeOf } from '../negotiation.ts';
import { parseListOptions } from '../query.ts';
import { encodedResponse, objectResponse, representationOf } from '../responses.ts';
import { parseIncludeObject, partialOf, tableOf } from '../table.ts';

const encoder = new TextEncoder();

/** GET of one, or of all. Throws ApiError 404, or 400 for a selector that makes no sense. */
export function componentStatusVerb(exchange: Exchange): ApiResponse | Promise<ApiResponse> {
  const { info, server } = exchange;
  const representation = representationOf(exchange);
  const all = [...server.components(), storeHealth(server.registry.store.fault())].map(statusOf);
  if (info.verb === 'get') {
    const object = all.find(({ metadata }) => metadata.name === info.name);
    if (!object) throw notFound(exchange.resource, info.name);
    return objectResponse(exchange, { status: 200, representation, object });
  }
  const { labelSelector, fieldSelector } = parseListOptions(exchange.query);
  const isChosen = nameSelector(fieldSelector);
  const matches = matchesLabels(parseLabelSelector(labelSelector), {});
  const objects = matches ? all.filter(({ metadata }) => isChosen(metadata.name ?? '')) : [];
  checkPartial(representation, { list: true, goType: goTypeOf(exchange.resource, true) });
  const { version } = representation;
  const metadata = {};
  const document =
    representation.as === 'table'
      ? tableOf(exchange.resource, {
          objects,
          version,
          includeObject: parseIncludeObject(exchange.query.get('includeObject')),
          now: server.clock.now(),
          definitions: true,
          metadata,
        })
      : representation.as === 'partial'
        ? {
            kind: 'PartialObjectMetadataList',
            apiVersion: `meta.k8s.io/${version}`,
            metadata,
            items: objects.map((one) => partialOf(one, version)),
          }
        : { kind: 'ComponentStatusList', apiVersion: 'v1', metadata, items: objects };
  return encodedResponse({ status: 200, bytes: encoder.encode(JSON.stringify(document)), representation });
}

/** Which names a field selector lets through. Throws ApiError 400 for other fields. */
function nameSelector(fieldSelector: string): (name: string) => boolean {
  const wanted = parseFieldSelector(fieldSelector);
  const other = wanted.find(({ field }) => field !== 'metadata.name');
  if (other) throw badRequest(`field label not supported: ${other.field}`);
  return (name) => wanted.every(({ op, value }) => (value === name) === (op === '='));
}

const storeHealth = (fault: string | undefined): ComponentHealth =>
  fault === undefined
    ? { name: 'etcd-0', status: 'True', message: 'ok' }
    : { name: 'etcd-0', status: 'False', message: fault };

const statusOf = ({ name, status, message }: ComponentHealth): UnstructuredObject => ({
  apiVersion: 'v1',
  kind: 'ComponentStatus',
  metadata: { name },
  conditions: [{ type: 'Healthy', status, message }],
});
