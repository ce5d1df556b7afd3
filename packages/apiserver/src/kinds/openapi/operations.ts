/** The operations of a resource: one list for both dialects, so that neither forgets one. */
import { apiVersionOf, type GroupVersionKind } from '@coracle/apimachinery/meta/gvk';
import type { Pause } from '@coracle/apimachinery/meta/pause';
import type { ResourceInfo, SubresourceInfo } from '@coracle/apimachinery/types/resource';
import { operationId } from './operation-names.ts';

export type HttpMethod = 'get' | 'post' | 'put' | 'patch' | 'delete' | 'head' | 'options';
/** `x-kubernetes-action`. */
export type Action =
  | 'get'
  | 'list'
  | 'watch'
  | 'watchlist'
  | 'post'
  | 'put'
  | 'patch'
  | 'delete'
  | 'deletecollection'
  | 'connect';

export interface Operation {
  readonly path: string;
  readonly method: HttpMethod;
  readonly action: Action;
  readonly operationId: string;
  readonly gvk: GroupVersionKind;
  readonly description: string;
  /** What the body and the answer are: the resource's kind, its list, a Status, or a kind that lives elsewhere. */
  readonly body?: 'kind' | 'patch' | 'deleteOptions' | { readonly definition: string };
  readonly answer: 'kind' | 'list' | 'status' | 'text' | { readonly definition: string };
  readonly info: ResourceInfo;
  /** Absent for what is no subresource. */
  readonly subresource?: string;
}

export const WATCH_EVENT = 'io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent';

const CONNECT = new Set(['attach', 'exec', 'portforward', 'proxy']);

/** Kinds that only subresources use, by the definition they are published under. */
const SUBRESOURCE_TYPES: Readonly<Record<string, string>> = {
  'autoscaling/v1/Scale': 'io.k8s.api.autoscaling.v1.Scale',
  'policy/v1/Eviction': 'io.k8s.api.policy.v1.Eviction',
  'authentication.k8s.io/v1/TokenRequest': 'io.k8s.api.authentication.v1.TokenRequest',
  '/v1/Binding': 'io.k8s.api.core.v1.Binding',
};

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

export const groupVersionPath = (gv: { readonly group: string; readonly version: string }): string =>
  gv.group === '' ? `/api/${gv.version}` : `/apis/${apiVersionOf(gv)}`;

/** Every operation that a resource and its subresources offer, in the order of their paths. */
export function operationsOf(info: ResourceInfo): Operation[] {
  const base = groupVersionPath(info);
  const collection = info.namespaced ? `${base}/namespaces/{namespace}/${info.resource}` : `${base}/${info.resource}`;
  const item = `${collection}/{name}`;
  const has = (verb: string): boolean => info.verbs.includes(verb);
  const scope = info.namespaced ? 'Namespaced' : '';
  const id = (verb: string, suffix = ''): string => operationId(info, verb, `${scope}${info.kind}${suffix}`);
  const gvk = { group: info.group, version: info.version, kind: info.kind };
  const common = { gvk, info };
  const operations: Operation[] = [];
  const add = (enabled: boolean, operation: Omit<Operation, 'gvk' | 'info'>): void => {
    if (enabled) operations.push({ ...common, ...operation });
  };
  const { kind } = info;
  add(has('list'), {
    path: collection,
    method: 'get',
    action: 'list',
    operationId: id('list'),
    description: `list or watch objects of kind ${kind}`,
    answer: 'list',
  });
  add(has('create'), {
    path: collection,
    method: 'post',
    action: 'post',
    operationId: id('create'),
    description: `create a ${kind}`,
    body: 'kind',
    answer: 'kind',
  });
  add(has('deletecollection'), {
    path: collection,
    method: 'delete',
    action: 'deletecollection',
    operationId: operationId(info, 'delete', `Collection${scope}${kind}`),
    description: `delete the selected objects of kind ${kind}`,
    body: 'deleteOptions',
    answer: 'status',
  });
  add(has('get'), {
    path: item,
    method: 'get',
    action: 'get',
    operationId: id('read'),
    description: `read the ${kind}`,
    answer: 'kind',
  });
  add(has('update'), {
    path: item,
    method: 'put',
    action: 'put',
    operationId: id('replace'),
    description: `replace the ${kind}`,
    body: 'kind',
    answer: 'kind',
  });
  add(has('patch'), {
    path: item,
    method: 'patch',
    action: 'patch',
    operationId: id('patch'),
    description: `change parts of the ${kind}`,
    body: 'patch',
    answer: 'kind',
  });
  add(has('delete'), {
    path: item,
    method: 'delete',
    action: 'delete',
    operationId: id('delete'),
    description: `delete the ${kind}`,
    body: 'deleteOptions',
    answer: info.strategy.deleteReturnsObject ? 'kind' : 'status',
  });
  add(has('list') && info.namespaced, {
    path: `${base}/${info.resource}`,
    method: 'get',
    action: 'list',
    operationId: operationId(info, 'list', `${kind}ForAllNamespaces`),
    description: `list or watch objects of kind ${kind}`,
    answer: 'list',
  });
  // Old paths of watches: clients that are made from this document use them. Custom resources never had theirs published.
  const watches = has('watch') && !info.strategy.custom;
  const changes = (path: string, action: 'watch' | 'watchlist', id: string): void =>
    add(watches && has(action === 'watch' ? 'get' : 'list'), {
      path,
      method: 'get',
      action,
      operationId: id,
      description: `watch changes of objects of kind ${kind}; deprecated: list with the parameter watch`,
      answer: { definition: WATCH_EVENT },
    });
  const watched = collection.replace(base, `${base}/watch`);
  changes(watched, 'watchlist', id('watch', 'List'));
  changes(`${watched}/{name}`, 'watch', id('watch'));
  if (info.namespaced)
    changes(`${base}/watch/${info.resource}`, 'watchlist', operationId(info, 'watch', `${kind}ListForAllNamespaces`));
  for (const sub of info.subresources) operations.push(...subresourceOperations(info, { sub, item, id }));
  return operations;
}

interface SubresourcePlace {
  readonly sub: SubresourceInfo;
  readonly item: string;
  readonly id: (verb: string, suffix?: string) => string;
}

/** What a proxy hands on beside the verbs of the others. */
const PROXY_METHODS: readonly HttpMethod[] = ['head', 'options'];

const METHODS: readonly (readonly [string, HttpMethod, Action, string])[] = [
  ['get', 'get', 'get', 'read'],
  ['create', 'post', 'post', 'create'],
  ['update', 'put', 'put', 'replace'],
  ['patch', 'patch', 'patch', 'patch'],
  ['delete', 'delete', 'delete', 'delete'],
];

function subresourceOperations(info: ResourceInfo, { sub, item, id }: SubresourcePlace): Operation[] {
  const gvk = { group: sub.group ?? info.group, version: sub.version ?? info.version, kind: sub.kind };
  if (CONNECT.has(sub.name)) return connections(info, { sub, item, id }, gvk);
  const foreign = SUBRESOURCE_TYPES[`${gvk.group}/${gvk.version}/${gvk.kind}`];
  const content = sub.kind === info.kind ? 'kind' : foreign === undefined ? undefined : { definition: foreign };
  return METHODS.filter(([verb]) => sub.verbs.includes(verb)).map(([, method, action, word]): Operation => {
    const text = sub.name === 'log' || content === undefined;
    const writes = method !== 'get' && method !== 'delete' && !text;
    return {
      path: `${item}/${sub.name}`,
      method,
      action,
      operationId: id(word, capital(sub.name)),
      gvk,
      description: `${word} ${sub.name} of the ${info.kind}`,
      ...(writes && { body: method === 'patch' ? ('patch' as const) : content }),
      answer: text ? 'text' : content,
      info,
      subresource: sub.name,
    };
  });
}

/** Calls that become a connection to a pod, service or node; a proxy also has a path of the other side. */
function connections(info: ResourceInfo, { sub, item }: SubresourcePlace, gvk: GroupVersionKind): Operation[] {
  const proxy = sub.name === 'proxy';
  const methods = METHODS.filter(([verb]) => sub.verbs.includes(verb)).map(([, method]) => method);
  const scope = info.namespaced ? 'Namespaced' : '';
  return (proxy ? ['', '/{path}'] : ['']).flatMap((rest) =>
    [...methods, ...(proxy ? PROXY_METHODS : [])].map((method): Operation => {
      const name = `${scope}${info.kind}${capital(sub.name)}${rest === '' ? '' : 'WithPath'}`;
      return {
        path: `${item}/${sub.name}${rest}`,
        method,
        action: 'connect',
        operationId: operationId(info, 'connect', `${capital(method)}${name}`),
        gvk,
        description: `connect ${method.toUpperCase()} to ${sub.name} of ${info.kind}`,
        answer: 'text',
        info,
        subresource: sub.name,
      };
    }),
  );
}

const pathParameters = (path: string): string[] => [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '');

/**
 * The path items of a document, in order: each holds its path parameters and one entry for each method. What is empty
 * is left out, as Go's `omitempty` does: clients compare documents that went through their own types. `pause` is awaited
 * between some resources.
 */
export async function renderPaths(
  infos: readonly ResourceInfo[],
  render: {
    readonly parameter: (name: string) => Record<string, unknown>;
    readonly operation: (operation: Operation) => Record<string, unknown>;
  },
  pause: Pause,
): Promise<Record<string, Record<string, unknown>>> {
  const items = new Map<string, Record<string, unknown>>();
  let rendered = 0;
  for (const info of infos) {
    if (++rendered % TOGETHER === 0) await pause();
    for (const operation of operationsOf(info)) {
      let item = items.get(operation.path);
      if (!item) {
        const parameters = pathParameters(operation.path).map(render.parameter);
        item = parameters.length > 0 ? { parameters } : {};
        items.set(operation.path, item);
      }
      item[operation.method] = render.operation(operation);
    }
  }
  await pause();
  return Object.fromEntries([...items].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Resources whose operations are rendered in one go. */
const TOGETHER = 20;

/** The distinct group versions of some resources. */
export const groupVersionsOf = (
  infos: readonly ResourceInfo[],
): { readonly group: string; readonly version: string }[] => [
  ...new Map(infos.map(({ group, version }) => [apiVersionOf({ group, version }), { group, version }])).values(),
];
