/** What `/openapi/v2` says of an API that is answered in this process and has no kinds of its own. */
import type { AggregatedApi, ApiOperation } from './aggregated-api.ts';

/** What parts of a path in braces mean. */
const DESCRIPTIONS: Readonly<Record<string, string>> = {
  namespace: 'Object name and auth scope, such as for teams and projects',
  name: 'Name of the resource',
  port: 'Port of the guest',
  protocol: 'tcp or udp',
};

/** One document for each version of the API. */
export const swaggersOf = (
  api: AggregatedApi,
): { readonly path: string; readonly version: string; readonly document: Readonly<Record<string, unknown>> }[] =>
  api.versions.map((version) => {
    const path = `/apis/${api.group}/${version}`;
    const byPath = Map.groupBy(api.operations, (operation) => operation.path);
    const paths = Object.fromEntries(
      [...byPath].map(([below, found]) => [`${path}/${below}`, pathItem(version, found)]),
    );
    return { path, version, document: { paths, definitions: {} } };
  });

function pathItem(version: string, operations: readonly ApiOperation[]): Record<string, unknown> {
  const item: Record<string, unknown> = {};
  for (const { method, id } of operations) item[method] = operation(method, `${version}${id}`);
  const parameters = [...(operations[0]?.path ?? '').matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    uniqueItems: true,
    type: 'string',
    description: DESCRIPTIONS[name] ?? name,
    name,
    in: 'path',
    required: true,
  }));
  return { ...item, ...(parameters.length > 0 && { parameters }) };
}

const operation = (method: 'get' | 'put', operationId: string) => ({
  operationId,
  produces: ['application/json'],
  responses: {
    200: { description: 'OK', ...(method === 'get' && { schema: { type: 'string' } }) },
    401: { description: 'Unauthorized' },
  },
});
