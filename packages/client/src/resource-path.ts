/** URL paths and queries of API resources. */
import type { ResourceType } from '@coracle/apimachinery/meta/gvk';

/** What one path names: a collection when `name` is absent. */
interface ResourcePathOptions {
  /** All namespaces, or a cluster-scoped resource, when undefined or ''. */
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  /** May have several segments: `proxy/metrics`. */
  readonly subresource?: string | undefined;
}

/**
 * One path segment from text of unknown origin. Dots and slashes are refused rather than encoded: no API name has them,
 * and a proxy on the way may decode them.
 */
function segment(text: string, what: string): string {
  if (text === '' || text === '.' || text === '..' || text.includes('/') || text.includes('%')) {
    throw new TypeError(`Cannot build request path: ${what} ${JSON.stringify(text)} is not a path segment`);
  }
  return encodeURIComponent(text);
}

/** `/apis/<group>/<version>[/namespaces/<ns>]/<resource>[/<name>[/<subresource>]]`. Throws TypeError on an impossible name. */
export function resourcePath(type: ResourceType<unknown>, options: ResourcePathOptions = {}): string {
  const { namespace, name, subresource } = options;
  let path = type.group === '' ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`;
  if (type.namespaced && namespace !== undefined && namespace !== '') {
    path += `/namespaces/${segment(namespace, 'namespace')}`;
  } else if (type.namespaced && name !== undefined) {
    throw new TypeError(`Cannot build request path: ${type.kind} "${name}" needs a namespace`);
  }
  path += `/${type.resource}`;
  if (name !== undefined) path += `/${segment(name, 'name')}`;
  if (subresource !== undefined && subresource !== '') {
    for (const part of subresource.split('/')) path += `/${segment(part, 'subresource')}`;
  }
  return path;
}

/** `a=1&b=x%20y` of the members that are neither undefined nor ''. */
export function queryText(parameters: Readonly<Record<string, string | number | boolean | undefined>>): string {
  return Object.entries(parameters)
    .filter(([, value]) => value !== undefined && value !== '')
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`)
    .join('&');
}
