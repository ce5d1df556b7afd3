/**
 * What is served right now: every resource of every version, changeable at run time (CustomResourceDefinitions come and
 * go). Lookups walk three maps and allocate nothing.
 */
import type { ResourceInfo, SubresourceInfo } from '@coracle/apimachinery/types/resource';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';

export interface CatalogChange {
  readonly added: readonly ResourceInfo[];
  readonly removed: readonly ResourceInfo[];
}

/** The reading side of the catalog. */
export interface ResourceSource {
  lookup(group: string, version: string, resource: string): ResourceInfo | undefined;
  /** True when at least one resource of this group and version is served. */
  serves(group: string, version: string): boolean;
  /** Every served resource, in the order of registration. The same array until the next change. */
  all(): readonly ResourceInfo[];
  /** Grows with every change: the key of documents derived from the catalog. */
  generation(): number;
  /** Calls `listener` after each change; the returned function ends that. */
  onChange(listener: (change: CatalogChange) => void): () => void;
}

export interface ResourceCatalog extends ResourceSource {
  /** Adds resources; one of the same group, version and plural is replaced (and reported as removed and added). */
  add(...infos: readonly ResourceInfo[]): void;
  /** Takes resources out; unknown ones are ignored. */
  remove(...infos: readonly ResourceKey[]): void;
  /** Both at once, seen by readers as one change. */
  update(change: { readonly add?: readonly ResourceInfo[]; readonly remove?: readonly ResourceKey[] }): void;
}

type ResourceKey = Pick<ResourceInfo, 'group' | 'version' | 'resource'>;
type Versions = Map<string, Map<string, ResourceInfo>>;

/** Makes a catalog that holds `initial`. */
export function createResourceCatalog(initial: readonly ResourceInfo[]): ResourceCatalog {
  const groups = new Map<string, Versions>();
  const listeners = new Set<(change: CatalogChange) => void>();
  let generation = 0;
  let flat: readonly ResourceInfo[] | undefined;

  const put = (info: ResourceInfo): ResourceInfo | undefined => {
    const versions: Versions = getOrInsert(groups, info.group, () => new Map());
    const resources = getOrInsert(versions, info.version, () => new Map());
    const before = resources.get(info.resource);
    resources.set(info.resource, info);
    return before;
  };
  const take = (key: ResourceKey): ResourceInfo | undefined => {
    const versions = groups.get(key.group);
    const resources = versions?.get(key.version);
    const before = resources?.get(key.resource);
    if (!versions || !resources || !before) return undefined;
    resources.delete(key.resource);
    if (resources.size === 0) versions.delete(key.version);
    if (versions.size === 0) groups.delete(key.group);
    return before;
  };
  const update: ResourceCatalog['update'] = ({ add = [], remove = [] }) => {
    const removed = [...remove.map(take), ...add.map(put)].filter((before) => before !== undefined);
    if (removed.length === 0 && add.length === 0) return;
    generation++;
    flat = undefined;
    for (const listener of [...listeners]) listener({ added: add, removed });
  };

  update({ add: initial });
  return {
    lookup: (group, version, resource) => groups.get(group)?.get(version)?.get(resource),
    serves: (group, version) => groups.get(group)?.has(version) === true,
    all: () => {
      flat ??= [...groups.values()].flatMap((v) => [...v.values()].flatMap((r) => [...r.values()]));
      return flat;
    },
    generation: () => generation,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    add: (...infos) => update({ add: infos }),
    remove: (...infos) => update({ remove: infos }),
    update,
  };
}

/** The entry of one subresource, or undefined when the resource does not have it. */
export const subresourceOf = (info: ResourceInfo, name: string): SubresourceInfo | undefined =>
  info.subresources.find((sub) => sub.name === name);
