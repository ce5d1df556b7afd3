/** What a server serves, by its discovery documents: for the few who act on every kind there is. */
import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import { apiVersionOf, parseApiVersion, qualifiedResource } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import type { Client } from '../client.ts';

/** One resource (never a subresource) in one version. */
export interface DiscoveredResource {
  readonly type: ResourceType<KubeObject>;
  readonly verbs: readonly string[];
  /** True in the version that stands for the resource: the group's preferred one, or the first that serves it. */
  readonly preferred: boolean;
}

export interface Discovery {
  readonly resources: readonly DiscoveredResource[];
  /** Group versions that could not be read, with the reason: what they serve is unknown, not gone. */
  readonly failures: readonly { readonly groupVersion: string; readonly error: string }[];
}

interface ApiGroupList {
  groups: { name: string; versions: { groupVersion: string }[]; preferredVersion?: { groupVersion: string } }[];
}

interface ApiResourceList {
  resources: { name: string; kind: string; namespaced: boolean; verbs: string[]; group?: string; version?: string }[];
}

/**
 * Reads all discovery documents. A group version that fails is listed in `failures`.
 * @throws ApiError when the list of groups itself cannot be read
 */
export async function discover(client: Client, signal: AbortSignal): Promise<Discovery> {
  const groups = (await client.raw('GET', '/apis', { signal })) as ApiGroupList;
  const core = (await client.raw('GET', '/api', { signal })) as { versions: string[] };
  /** Preferred version first within each group. */
  const groupVersions = [...core.versions];
  for (const { versions, preferredVersion } of groups.groups) {
    const names = versions.map((one) => one.groupVersion);
    const first = preferredVersion?.groupVersion;
    groupVersions.push(...(first === undefined ? names : [first, ...names.filter((one) => one !== first)]));
  }

  const failures: { groupVersion: string; error: string }[] = [];
  const lists = await Promise.all(
    groupVersions.map(async (groupVersion): Promise<ApiResourceList> => {
      const path = groupVersion.includes('/') ? `/apis/${groupVersion}` : `/api/${groupVersion}`;
      try {
        return (await client.raw('GET', path, { signal })) as ApiResourceList;
      } catch (error) {
        signal.throwIfAborted();
        failures.push({ groupVersion, error: error instanceof Error ? error.message : String(error) });
        return { resources: [] };
      }
    }),
  );

  const resources: DiscoveredResource[] = [];
  const seen = new Set<string>();
  lists.forEach((list, i) => {
    const { group, version } = parseApiVersion(groupVersions[i]!);
    for (const { name, kind, namespaced, verbs } of list.resources) {
      if (name.includes('/')) continue;
      const type: ResourceType<KubeObject> = { group, version, resource: name, kind, namespaced };
      const id = qualifiedResource(type);
      resources.push({ type, verbs, preferred: !seen.has(id) });
      seen.add(id);
    }
  });
  return { resources, failures };
}

/** The preferred resources that offer all of `verbs`. */
export const preferredWith = (discovery: Discovery, verbs: readonly string[]): ResourceType<KubeObject>[] =>
  discovery.resources
    .filter((one) => one.preferred && verbs.every((verb) => one.verbs.includes(verb)))
    .map((one) => one.type);

/** The resource of an apiVersion and kind, undefined when the server has none. */
export const findKind = (
  discovery: Discovery,
  apiVersion: string,
  kind: string,
): ResourceType<KubeObject> | undefined =>
  discovery.resources.find((one) => one.type.kind === kind && apiVersionOf(one.type) === apiVersion)?.type;
