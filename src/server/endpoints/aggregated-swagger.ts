/** What `/openapi/v2` says of an API that is answered in this process and has no kinds of its own. */
import type { AggregatedApi, ApiResourceEntry } from './aggregated-api.ts';

const METHODS: Readonly<Record<string, 'get' | 'put'>> = { get: 'get', update: 'put' };

const parameter = (name: string, description: string) => ({
  uniqueItems: true,
  type: 'string',
  description,
  name,
  in: 'path',
  required: true,
});
const NAMESPACE = parameter('namespace', 'Object name and auth scope, such as for teams and projects');
const NAME = parameter('name', 'Name of the resource');

/** One document for each version of the API. */
export const swaggersOf = (
  api: AggregatedApi,
): { readonly path: string; readonly version: string; readonly document: Readonly<Record<string, unknown>> }[] =>
  api.versions.map((version) => {
    const path = `/apis/${api.group}/${version}`;
    const entries = api.discovery.map((entry) => [`${path}${placeOf(entry)}`, entry] as const);
    const grouped = Map.groupBy(entries, ([place]) => place);
    const paths = Object.fromEntries(
      [...grouped].map(([place, found]) => [
        place,
        pathItem(
          version,
          found.map(([, entry]) => entry),
        ),
      ]),
    );
    return { path, version, document: { paths, definitions: {} } };
  });

function placeOf({ name, namespaced }: ApiResourceEntry): string {
  const [resource = '', ...below] = name.split('/');
  if (!namespaced) return `/${name}`;
  const scope = `/namespaces/{namespace}/${resource}`;
  return below.length === 0 ? scope : `${scope}/{name}/${below.join('/')}`;
}

function pathItem(version: string, entries: readonly ApiResourceEntry[]): Record<string, unknown> {
  const item: Record<string, unknown> = {};
  for (const entry of entries) {
    for (const verb of entry.verbs) {
      const method = METHODS[verb];
      if (method !== undefined) item[method] = operation(version, method, entry);
    }
  }
  const { name = '', namespaced = false } = entries[0] ?? {};
  const parameters = namespaced ? [NAMESPACE, ...(name.includes('/') ? [NAME] : [])] : [];
  return { ...item, ...(parameters.length > 0 && { parameters }) };
}

const operation = (version: string, method: 'get' | 'put', { name }: ApiResourceEntry) => ({
  operationId: `${version}${name
    .split(/[^a-z0-9]+/i)
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join('')}`,
  produces: ['application/json'],
  responses: {
    200: { description: 'OK', ...(method === 'get' && { schema: { type: 'string' } }) },
    401: { description: 'Unauthorized' },
  },
});
