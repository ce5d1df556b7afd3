/** The operations of a resource: one list for both dialects, so that neither forgets one. */
import { apiVersionOf, type GroupVersionKind } from '@coracle/apimachinery/meta/gvk';
import type { Pause } from '@coracle/apimachinery/meta/pause';
import type { ResourceInfo, SubresourceInfo } from '@coracle/apimachinery/types/resource';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import table from './operations.json' with { type: 'json' };

type HttpMethod = 'get' | 'post' | 'put' | 'patch' | 'delete' | 'head' | 'options';
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

/** A group version, or a group. Operations are named as kube-openapi does: generated clients call their functions so. */
type OfGroup = GroupVersion | { readonly group: string };
type GroupVersion = { readonly group: string; readonly version: string };

/** Letters and digits of `text`; what follows another character is capital. */
const word = (text: string): string => text.replace(/[^A-Za-z0-9_]+(.?)/g, (_, next: string) => next.toUpperCase());

const groupWord = ({ group }: { readonly group: string }): string =>
  group === '' ? 'core' : group.replace(/\.k8s\.io$/, '');

/** `delete`, `CollectionNamespacedPod` -> `deleteCoreV1CollectionNamespacedPod`. Without a version: of the group. */
export const operationId = (gv: OfGroup, verb: string, rest: string): string =>
  `${verb}${capital(word(groupWord(gv)))}${'version' in gv ? capital(word(gv.version)) : ''}${rest}`;

/** `core_v1`, `rbacAuthorization_v1`, `kubevirtIo_v1`. Without a version: of the group. */
export const operationTag = (gv: OfGroup): string =>
  `${word(groupWord(gv))}${'version' in gv ? `_${word(gv.version)}` : ''}`;

export const groupVersionPath = (gv: GroupVersion): string =>
  gv.group === '' ? `/api/${gv.version}` : `/apis/${apiVersionOf(gv)}`;

/** A row of `operations.json`; words in braces stand for what a resource has there. */
interface OperationRow extends Pick<Operation, 'path' | 'method' | 'action' | 'description' | 'body'> {
  /** That a resource has to have, all of them. */
  readonly verbs: readonly string[];
  /** The verb of the operation id, and what it is about. */
  readonly id: string;
  readonly namespaced?: boolean;
  readonly answer: 'kind' | 'list' | 'status' | 'deleted' | 'event';
}

/** Every operation that a resource and its subresources offer, in the order of their paths. */
function operationsOf(info: ResourceInfo): Operation[] {
  const { kind, namespaced, resource, strategy } = info;
  const values: Readonly<Record<string, string>> = {
    base: groupVersionPath(info),
    scope: namespaced ? '/namespaces/{namespace}' : '',
    Scope: namespaced ? 'Namespaced' : '',
    kind,
    resource,
  };
  const filled = (text: string): string => text.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
  const answers = {
    deleted: strategy.deleteReturnsObject ? 'kind' : 'status',
    event: { definition: WATCH_EVENT },
  } as const;
  const operations = (table as readonly OperationRow[])
    .filter(({ verbs, ...row }) => {
      // Old paths of watches: clients that are made from this document use them. Custom resources never had theirs published.
      const isPublished = row.answer !== 'event' || !strategy.custom;
      return isPublished && (namespaced || !row.namespaced) && verbs.every((verb) => info.verbs.includes(verb));
    })
    .map(({ verbs: _, namespaced: __, id, answer, ...row }): Operation => {
      const [verb = '', subject = ''] = filled(id).split(' ');
      return {
        ...row,
        gvk: { group: info.group, version: info.version, kind },
        info,
        path: filled(row.path),
        operationId: operationId(info, verb, subject),
        description: filled(row.description),
        answer: answer === 'deleted' || answer === 'event' ? answers[answer] : answer,
      };
    });
  return [...operations, ...info.subresources.flatMap((sub) => subresourceOperations(info, { sub, filled }))];
}

interface SubresourcePlace {
  readonly sub: SubresourceInfo;
  /** Fills in what stands in braces. */
  readonly filled: (text: string) => string;
}

const ITEM = '{base}{scope}/{resource}/{name}';

/** What a proxy hands on beside the verbs of the others. */
const PROXY_METHODS: readonly HttpMethod[] = ['head', 'options'];

const METHODS: readonly (readonly [string, HttpMethod, Action, string])[] = [
  ['get', 'get', 'get', 'read'],
  ['create', 'post', 'post', 'create'],
  ['update', 'put', 'put', 'replace'],
  ['patch', 'patch', 'patch', 'patch'],
  ['delete', 'delete', 'delete', 'delete'],
];

function subresourceOperations(info: ResourceInfo, { sub, filled }: SubresourcePlace): Operation[] {
  const gvk = { group: sub.group ?? info.group, version: sub.version ?? info.version, kind: sub.kind };
  if (CONNECT.has(sub.name)) return connections(info, { sub, filled }, gvk);
  const foreign = SUBRESOURCE_TYPES[`${gvk.group}/${gvk.version}/${gvk.kind}`];
  const content = sub.kind === info.kind ? 'kind' : foreign === undefined ? undefined : { definition: foreign };
  return METHODS.filter(([verb]) => sub.verbs.includes(verb)).map(([, method, action, word]): Operation => {
    const text = sub.name === 'log' || content === undefined;
    const writes = method !== 'get' && method !== 'delete' && !text;
    return {
      path: `${filled(ITEM)}/${sub.name}`,
      method,
      action,
      operationId: operationId(info, word, `${filled('{Scope}{kind}')}${capital(sub.name)}`),
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
function connections(info: ResourceInfo, { sub, filled }: SubresourcePlace, gvk: GroupVersionKind): Operation[] {
  const proxy = sub.name === 'proxy';
  const methods = METHODS.filter(([verb]) => sub.verbs.includes(verb)).map(([, method]) => method);
  return (proxy ? ['', '/{path}'] : ['']).flatMap((rest) =>
    [...methods, ...(proxy ? PROXY_METHODS : [])].map((method): Operation => {
      const name = `${filled('{Scope}{kind}')}${capital(sub.name)}${rest === '' ? '' : 'WithPath'}`;
      return {
        path: `${filled(ITEM)}/${sub.name}${rest}`,
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
      const item = getOrInsert(items, operation.path, (path) => {
        const parameters = pathParameters(path).map(render.parameter);
        return parameters.length > 0 ? { parameters } : {};
      });
      item[operation.method] = render.operation(operation);
    }
  }
  await pause();
  return Object.fromEntries([...items].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Resources whose operations are rendered in one go. */
const TOGETHER = 20;

/** The distinct group versions of some resources. */
export const groupVersionsOf = (infos: readonly ResourceInfo[]): GroupVersion[] => [
  ...new Map(infos.map(({ group, version }) => [apiVersionOf({ group, version }), { group, version }])).values(),
];
