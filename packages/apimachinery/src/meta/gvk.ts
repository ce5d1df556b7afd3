/** Names of things: group-version-kind and group-version-resource. */

export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/**
 * What a client must know to talk about one resource. Constants of this type live in `apiserver/kinds`; `T` ties them to the
 * object's TypeScript type.
 */
export interface ResourceType<T = unknown> {
  readonly group: string;
  readonly version: string;
  /** Plural, lower-case: `virtualmachines`. */
  readonly resource: string;
  readonly kind: string;
  readonly namespaced: boolean;
  /** Some servers have no `/status` for it: its status is then written through the object itself. */
  readonly statusIsOptional?: true;
  /** Never present: carries `T`. */
  readonly _object?: T;
}

/** `apps/v1`, or `v1` for the core group. */
export const apiVersionOf = (gv: { readonly group: string; readonly version: string }): string =>
  gv.group === '' ? gv.version : `${gv.group}/${gv.version}`;

/** Splits `apps/v1` into group and version; the core group is ''. */
export function parseApiVersion(apiVersion: string): { group: string; version: string } {
  const slash = apiVersion.indexOf('/');
  return slash < 0
    ? { group: '', version: apiVersion }
    : { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}

/** `deployments.apps`, or `pods` for the core group: how messages name a resource. */
export const qualifiedResource = (gr: { readonly group: string; readonly resource: string }): string =>
  gr.group === '' ? gr.resource : `${gr.resource}.${gr.group}`;

const typeIn =
  (namespaced: boolean) =>
  <T>(apiVersion: string, resource: string, kind: string): ResourceType<T> =>
    Object.freeze({ ...parseApiVersion(apiVersion), resource, kind, namespaced });

/** The type of objects that lie in namespaces, from `apps/v1`, its plural and its kind. */
export const namespacedType = typeIn(true);
/** The type of objects of the whole cluster. */
export const clusterType = typeIn(false);
