/** Admission of connections: exec, attach, portforward and proxy are asked about with their options as the object. */
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { admissionHooks } from './admission-hooks.ts';
import type { Exchange } from './exchange.ts';
import type { Query } from './query.ts';
import { isTrue } from './request-info.ts';

type Fields = Record<string, unknown>;

const streams = (query: Query): Fields => ({
  ...Object.fromEntries(
    ['stdin', 'stdout', 'stderr', 'tty'].filter((name) => isTrue(query.get(name))).map((name) => [name, true]),
  ),
  ...(query.get('container') && { container: query.get('container') }),
});

const OPTIONS: Readonly<Record<string, (query: Query, path: string) => Fields>> = {
  exec: (query) => ({
    ...streams(query),
    ...(query.getAll('command').length > 0 && { command: query.getAll('command') }),
  }),
  attach: streams,
  portforward: (query) => {
    const ports = query.getAll('ports').flatMap((text) => text.split(',').map(Number));
    return ports.length > 0 ? { ports } : {};
  },
  proxy: (_query, path) => (path === '' ? {} : { path }),
};

/** Asks admission about the connection. Throws ApiError to refuse. */
export async function admitConnection(exchange: Exchange): Promise<void> {
  const { info, resource, subresource, query } = exchange;
  const rest = info.parts.slice(3).join('/');
  const slash = info.path.endsWith('/') && rest !== '' ? '/' : '';
  const object = {
    kind: subresource?.kind ?? resource.kind,
    apiVersion: 'v1',
    ...OPTIONS[info.subresource]!(query, rest === '' ? '' : `/${rest}${slash}`),
  } as UnstructuredObject;
  const hooks = admissionHooks(exchange, { info: resource, subresource: info.subresource, dryRun: false });
  const subject = { name: info.name, object, oldObject: undefined };
  await hooks.mutate('CONNECT', subject);
  await hooks.validate('CONNECT', subject);
}
