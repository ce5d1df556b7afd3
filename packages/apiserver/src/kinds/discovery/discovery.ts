/**
 * The discovery documents, from what is served to what clients read: the RESTMapper of kubectl is built from these and
 * nothing else. Pure: the same resources give the same documents, byte for byte, so an ETag over them is stable.
 */
import { apiVersionOf } from '@coracle/apimachinery/meta/gvk';
import type { ResourceInfo, SubresourceInfo } from '@coracle/apimachinery/types/resource';
import priorities from './priorities.json' with { type: 'json' };
import { type StorageVersionHashes, storedKindText } from './storage-version-hash.ts';

export interface GroupPriority {
  /** Higher comes first (APIService spec.groupPriorityMinimum). */
  readonly group: number;
  /** Higher comes first within the group (APIService spec.versionPriority). */
  readonly version: number;
}

/** Priority of a group version that no APIService speaks about, and of those made for custom resources. */
export const CUSTOM_PRIORITY: GroupPriority = { group: 1000, version: 100 };

/** As kube-apiserver registers its own groups: the one table, for discovery and for APIService objects. */
const BUILTIN_PRIORITIES: Readonly<Record<string, number>> = priorities.groups;
/** Versions that are not at 15, where a first stable version stands. */
const BUILTIN_VERSION_PRIORITIES: Readonly<Record<string, number>> = priorities.versions;

/** The aggregator puts its own group before all others, whatever priority they ask for. */
const FIRST_GROUP = 'apiregistration.k8s.io';

/** The priorities kube-apiserver gives its own group versions; undefined for others, those of definitions in its groups too. */
export function builtinPriority(group: string, version: string): GroupPriority | undefined {
  const key = apiVersionOf({ group, version });
  const isOwn = version === 'v1' || Object.hasOwn(BUILTIN_VERSION_PRIORITIES, key);
  if (!isOwn || !Object.hasOwn(BUILTIN_PRIORITIES, group)) return undefined;
  return { group: BUILTIN_PRIORITIES[group]!, version: BUILTIN_VERSION_PRIORITIES[key] ?? 15 };
}

/** A version of a group that another server serves; `resources` are entries of its own aggregated document. */
export interface RemoteGroupVersion {
  readonly group: string;
  readonly version: string;
  readonly resources: readonly unknown[];
}

export interface DiscoveryOptions {
  readonly hashes: StorageVersionHashes;
  /** Priority of group versions beyond the built-in ones; undefined = that of custom resources. */
  readonly priorityOf?: (group: string, version: string) => GroupPriority | undefined;
  /** Group versions whose server does not answer (`group/version`): served, but marked stale. */
  readonly stale?: ReadonlySet<string>;
  /** Group versions of other servers; one of them takes the place of a local one of its name. */
  readonly remote?: readonly RemoteGroupVersion[];
}

interface VersionOfGroup {
  readonly version: string;
  readonly resources: readonly ResourceInfo[];
  readonly remote?: readonly unknown[];
}

interface Group {
  readonly group: string;
  readonly versions: readonly VersionOfGroup[];
}

const KUBE_VERSION = /^v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?$/;
const STAGES: Readonly<Record<string, number>> = { alpha: 0, beta: 1 };

/** Newest and most stable first: v2, v1, v1beta2, v1beta1, v1alpha1, then other names in order. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [KUBE_VERSION.exec(a), KUBE_VERSION.exec(b)];
  if (left === null && right === null) return a < b ? -1 : Number(a > b);
  const [x, y] = [rankOf(left), rankOf(right)];
  return y[0] - x[0] || y[1] - x[1] || y[2] - x[2];
}

/** Stage, major and minor number; those of a name that is no version of Kubernetes come behind all others. */
const rankOf = (match: RegExpExecArray | null): [number, number, number] =>
  match === null ? [-1, 0, 0] : [STAGES[match[2] ?? ''] ?? 2, Number(match[1]), Number(match[3] ?? 0)];

function groupsOf(infos: readonly ResourceInfo[], options: DiscoveryOptions): Group[] {
  const priority = (group: string, version: string): GroupPriority =>
    options.priorityOf?.(group, version) ?? builtinPriority(group, version) ?? CUSTOM_PRIORITY;
  const groupRank = ({ group, versions }: Group): number =>
    group === FIRST_GROUP
      ? Number.POSITIVE_INFINITY
      : Math.max(...versions.map(({ version }) => priority(group, version).group));
  const remote = new Map((options.remote ?? []).map((one) => [apiVersionOf(one), one.resources]));
  const local = Map.groupBy(infos, apiVersionOf);
  const all = new Map([...(options.remote ?? []), ...infos].map((one) => [apiVersionOf(one), one]));
  const versionOf = ({ group, version }: { readonly group: string; readonly version: string }): VersionOfGroup => {
    const name = apiVersionOf({ group, version });
    const elsewhere = remote.get(name);
    return { version, resources: (local.get(name) ?? []).sort(byName), ...(elsewhere && { remote: elsewhere }) };
  };
  return [...Map.groupBy(all.values(), ({ group }) => group)]
    .map(([group, versions]) => ({
      group,
      versions: versions
        .map(versionOf)
        .sort(
          (a, b) =>
            priority(group, b.version).version - priority(group, a.version).version ||
            compareVersions(a.version, b.version),
        ),
    }))
    .sort((a, b) => groupRank(b) - groupRank(a) || (a.group < b.group ? -1 : 1));
}

const byName = (a: ResourceInfo, b: ResourceInfo): number =>
  a.resource < b.resource ? -1 : a.resource > b.resource ? 1 : 0;

/** `/api`. `serverAddress` is `host:port` as clients reach it. */
export const apiVersionsDocument = (serverAddress: string): Record<string, unknown> => ({
  kind: 'APIVersions',
  versions: ['v1'],
  serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress }],
});

function groupEntry({ group, versions }: Group): Record<string, unknown> {
  const entries = versions.map(({ version }) => ({ groupVersion: `${group}/${version}`, version }));
  return { name: group, versions: entries, preferredVersion: entries[0] };
}

/** `/apis`: the core group is not in it. */
export const apiGroupList = (infos: readonly ResourceInfo[], options: DiscoveryOptions): Record<string, unknown> => ({
  kind: 'APIGroupList',
  apiVersion: 'v1',
  groups: groupsOf(infos, options)
    .filter(({ group }) => group !== '')
    .map(groupEntry),
});

/** `/apis/<group>`; undefined when nothing of the group is served. */
export function apiGroup(
  infos: readonly ResourceInfo[],
  options: DiscoveryOptions & { readonly group: string },
): Record<string, unknown> | undefined {
  const found = groupsOf(infos, options).find(({ group }) => group === options.group);
  return found === undefined ? undefined : { kind: 'APIGroup', apiVersion: 'v1', ...groupEntry(found) };
}

/** `/api/v1` and `/apis/<group>/<version>`; undefined when that group version is not served. */
export function apiResourceList(
  infos: readonly ResourceInfo[],
  options: DiscoveryOptions & { readonly group: string; readonly version: string },
): Record<string, unknown> | undefined {
  const resources = infos
    .filter((info) => info.group === options.group && info.version === options.version)
    .sort(byName);
  if (resources.length === 0) return undefined;
  return {
    kind: 'APIResourceList',
    ...(options.group !== '' && { apiVersion: 'v1' }),
    groupVersion: apiVersionOf(options),
    resources: resources.flatMap((info) => [
      resourceEntry(info, options.hashes),
      ...info.subresources.map((sub) => subresourceEntry(info, sub)),
    ]),
  };
}

const sorted = (verbs: readonly string[]): string[] => [...verbs].sort();

/** As the controller that tells of custom resources has them; all others are sorted. */
const CUSTOM_VERBS = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'];

const verbsOf = ({ verbs, strategy }: ResourceInfo): string[] =>
  strategy.custom && verbs.length === CUSTOM_VERBS.length ? CUSTOM_VERBS : sorted(verbs);

function resourceEntry(info: ResourceInfo, hashes: StorageVersionHashes): Record<string, unknown> {
  // Only what is stored has a storage version: reviews and bindings are created and forgotten.
  const hash = info.verbs.includes('get') ? hashes.get(storedKindText(info)) : undefined;
  return {
    name: info.resource,
    singularName: info.singular,
    namespaced: info.namespaced,
    kind: info.kind,
    verbs: verbsOf(info),
    ...(info.shortNames.length > 0 && { shortNames: info.shortNames }),
    ...(info.categories.length > 0 && { categories: info.categories }),
    ...(hash !== undefined && { storageVersionHash: hash }),
  };
}

const subresourceEntry = (info: ResourceInfo, sub: SubresourceInfo): Record<string, unknown> => ({
  name: `${info.resource}/${sub.name}`,
  singularName: '',
  namespaced: info.namespaced,
  ...(sub.group !== undefined && { group: sub.group }),
  ...(sub.version !== undefined && { version: sub.version }),
  kind: sub.kind,
  verbs: sorted(sub.verbs),
});

/**
 * `/api` (`core: true`) or `/apis` in the aggregated form, apidiscovery.k8s.io/v2. Built-in kinds leave group and
 * version of their own kind empty, custom resources name them: so do the two kinds of server upstream.
 */
export function aggregatedDiscovery(
  infos: readonly ResourceInfo[],
  options: DiscoveryOptions & { readonly core: boolean },
): Record<string, unknown> {
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: 'apidiscovery.k8s.io/v2',
    metadata: {},
    items: groupsOf(infos, options)
      .filter(({ group }) => (group === '') === options.core)
      .map(({ group, versions }) => ({
        metadata: group === '' ? {} : { name: group },
        versions: versions.map(({ version, resources, remote }) => ({
          version,
          resources: remote ?? resources.map(aggregatedResource),
          freshness: options.stale?.has(apiVersionOf({ group, version })) ? 'Stale' : 'Current',
        })),
      })),
  };
}

function aggregatedResource(info: ResourceInfo): Record<string, unknown> {
  const own = info.strategy.custom ? { group: info.group, version: info.version } : { group: '', version: '' };
  return {
    resource: info.resource,
    responseKind: { ...own, kind: info.kind },
    scope: info.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: info.singular,
    verbs: verbsOf(info),
    ...(info.shortNames.length > 0 && { shortNames: info.shortNames }),
    ...(info.categories.length > 0 && { categories: info.categories }),
    ...(info.subresources.length > 0 && {
      subresources: info.subresources.map((sub) => ({
        subresource: sub.name,
        responseKind: { group: sub.group ?? own.group, version: sub.version ?? own.version, kind: sub.kind },
        verbs: sorted(sub.verbs),
      })),
    }),
  };
}
