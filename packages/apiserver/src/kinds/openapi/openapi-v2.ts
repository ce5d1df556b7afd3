/** The Swagger 2.0 document of everything: helm, older kubectl and tools without OpenAPI 3 read it. */
import { NO_PAUSE, type Pause } from '@coracle/apimachinery/meta/pause';
import { versionInfo } from '@coracle/apimachinery/meta/version-info';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { Definitions, type OpenApiObject } from './definitions.ts';
import { discoveryPaths } from './discovery-paths.ts';
import { answerSchema, answerTypes, bodySchema, moreResponses, patchTypes, STATUS } from './openapi-v3.ts';
import { groupVersionsOf, type Operation, operationTag, renderPaths } from './operations.ts';
import { queryParameters } from './query-parameters.ts';

/**
 * Builds the whole document at each call, about 2 MB of JSON: keep the result until the resources change. `pause` is awaited
 * every few milliseconds: there may be kinds of very many fields, and very many kinds.
 */
export async function openApiV2(infos: readonly ResourceInfo[], pause: Pause = NO_PAUSE): Promise<OpenApiObject> {
  const definitions = new Definitions('v2', groupVersionsOf(infos));
  definitions.builtin(STATUS);
  for (const info of infos) {
    definitions.kind(info);
    await definitions.rest(pause);
  }
  const render = {
    parameter: pathParameter,
    operation: (operation: Operation) => renderOperation(operation, definitions),
  };
  const paths = await renderPaths(infos, render, pause);
  await pause();
  return {
    swagger: '2.0',
    info: { title: 'Kubernetes', version: versionInfo().gitVersion },
    paths: Object.fromEntries(
      Object.entries({ ...paths, ...discoveryPaths(infos, definitions) }).sort(([a], [b]) => (a < b ? -1 : 1)),
    ),
    definitions: definitions.toObject(),
    securityDefinitions: { BearerToken: { type: 'apiKey', name: 'authorization', in: 'header' } },
    security: [{ BearerToken: [] }],
  };
}

const pathParameter = (name: string): OpenApiObject => ({
  name,
  in: 'path',
  required: true,
  type: 'string',
  uniqueItems: true,
  description: `${name} of the object`,
});

function renderOperation(operation: Operation, definitions: Definitions): OpenApiObject {
  const { info, gvk } = operation;
  const schema = answerSchema(operation, definitions);
  const body = bodySchema(operation, definitions);
  const ok = { description: 'OK', schema };
  const parameters = [
    ...(body === undefined
      ? []
      : [{ name: 'body', in: 'body', schema: body, ...(operation.body !== 'deleteOptions' && { required: true }) }]),
    ...queryParameters(operation).map(({ name, type, description }) => ({
      name,
      in: 'query',
      type,
      uniqueItems: true,
      description,
    })),
  ];
  return {
    tags: [operationTag(info)],
    description: operation.description,
    operationId: operation.operationId,
    schemes: ['https'],
    consumes: operation.body === 'patch' ? patchTypes(info) : ['*/*'],
    produces: answerTypes(operation),
    ...(parameters.length > 0 && { parameters }),
    responses: {
      '200': ok,
      ...moreResponses(operation, { schema }),
      '401': { description: 'Unauthorized' },
    },
    'x-kubernetes-action': operation.action,
    'x-kubernetes-group-version-kind': { group: gvk.group, kind: gvk.kind, version: gvk.version },
  };
}
