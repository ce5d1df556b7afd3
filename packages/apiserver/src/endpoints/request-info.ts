/** What a request is about, read from its path, method and query (apiserver's RequestInfo). */

import { parseFieldSelector } from '@coracle/apimachinery/selector/field-selector';
import type { ApiRequest } from '@coracle/runtime/http/seam';

export interface RequestInfo {
  /** False for `/healthz`, `/apis/apps` and everything else outside a group version's resources. */
  readonly isResource: boolean;
  /** `get`, `list`, `watch`, `create`, ...; the lower-case HTTP method when it is no resource. */
  readonly verb: string;
  /** Percent-encoded, as sent. */
  readonly path: string;
  /** '' for the core group. */
  readonly group: string;
  readonly version: string;
  /** '' when cluster-scoped or across all namespaces. For a namespace itself, its own name. */
  readonly namespace: string;
  readonly resource: string;
  /** First segment behind the name, '' when there is none. */
  readonly subresource: string;
  readonly name: string;
  /** All segments from the resource on, decoded: `['virtualmachineinstances', 'vm', 'portforward', '22', 'tcp']`. */
  readonly parts: readonly string[];
}

const NAMESPACE_SUBRESOURCES = new Set(['status', 'finalize']);
const SPECIAL_VERBS = new Set(['watch', 'proxy']);
const NO_PARTS: readonly string[] = Object.freeze([]);

/** Never throws: what does not parse is no resource request. */
export function parseRequestInfo(request: Pick<ApiRequest, 'method' | 'path' | 'query'>): RequestInfo {
  const { method, path } = request;
  const segments = splitPath(path);
  const prefix = segments[0];
  const offset = prefix === 'api' ? 2 : prefix === 'apis' ? 3 : 0;
  if (offset === 0 || segments.length <= offset) return nonResource(method, path, segments);
  const group = offset === 3 ? segments[1]! : '';
  const version = segments[offset - 1]!;

  let at = offset;
  let verb = '';
  // Legacy `/api/v1/watch/pods` and `/api/v1/proxy/...`: the verb stands in the path.
  if (SPECIAL_VERBS.has(segments[at]!) && segments.length > at + 1) verb = segments[at++]!;

  let namespace = '';
  if (segments[at] === 'namespaces' && segments.length > at + 1) {
    namespace = segments[at + 1]!;
    if (segments.length > at + 2 && !NAMESPACE_SUBRESOURCES.has(segments[at + 2]!)) at += 2;
  }
  const resource = segments[at]!;
  let name = segments[at + 1] ?? '';
  const subresource = segments[at + 2] ?? '';
  if (verb === '') verb = verbOf(method, name, request.query);
  if (name === '' && request.query !== '' && (verb === 'list' || verb === 'watch' || verb === 'deletecollection')) {
    name = selectedName(request.query);
  }
  return {
    isResource: true,
    verb,
    path,
    group,
    version,
    namespace,
    resource,
    subresource,
    name,
    parts: at === 0 ? segments : segments.slice(at),
  };
}

function nonResource(method: string, path: string, segments: readonly string[]): RequestInfo {
  return {
    isResource: false,
    verb: method.toLowerCase(),
    path,
    group: segments[0] === 'apis' ? (segments[1] ?? '') : '',
    version: '',
    namespace: '',
    resource: '',
    subresource: '',
    name: '',
    parts: NO_PARTS,
  };
}

function splitPath(path: string): string[] {
  const segments: string[] = [];
  let start = 1;
  while (start <= path.length) {
    let end = path.indexOf('/', start);
    if (end < 0) end = path.length;
    if (end > start) segments.push(decodeSegment(path.slice(start, end)));
    start = end + 1;
  }
  return segments;
}

/** A broken escape stays as it is: no object has a '%' in its name, so it ends in a 404. */
function decodeSegment(segment: string): string {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function verbOf(method: string, name: string, query: string): string {
  switch (method) {
    case 'GET':
    case 'HEAD':
      if (name !== '') return 'get';
      return query !== '' && isTrue(new URLSearchParams(query).get('watch')) ? 'watch' : 'list';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return name === '' ? 'deletecollection' : 'delete';
    default:
      return method.toLowerCase();
  }
}

/** A boolean query value as apimachinery reads it: absent, `0` and `false` are false, anything else is true. */
export const isTrue = (value: string | null): boolean =>
  value !== null && value !== '0' && value.toLowerCase() !== 'false';

/** The one name a field selector allows, '' when it allows more: RBAC's resourceNames then apply to lists as well. */
function selectedName(query: string): string {
  const selector = query.includes('fieldSelector') ? new URLSearchParams(query).get('fieldSelector') : null;
  if (!selector) return '';
  try {
    const found = parseFieldSelector(selector).find(({ field, op }) => field === 'metadata.name' && op === '=');
    return found?.value ?? '';
  } catch {
    // The verb answers a selector that does not parse, after authorisation.
    return '';
  }
}

/** True for requests without a time limit of their own: watches, and connections to something that runs. */
export const isLongRunning = (info: RequestInfo): boolean =>
  info.verb === 'watch' || info.verb === 'proxy' || LONG_RUNNING.has(info.subresource);

const LONG_RUNNING = new Set(['attach', 'exec', 'proxy', 'log', 'portforward']);
