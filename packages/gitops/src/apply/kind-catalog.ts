/** What the server serves, as it was a moment ago: discovery is read again when a kind is not found, and now and then. */

import { apiVersionOf, type ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import type { Client } from '@coracle/client/client';
import { type Discovery, discover } from '@coracle/client/discovery/discover';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { ObjectRef } from '../kinds/kinds.ts';

export interface ServedKinds {
  byVersion(apiVersion: string, kind: string): ResourceType<KubeObject> | undefined;
  /** In the version that stands for it; undefined when it is not served, 'unknown' when its group could not be asked. */
  byRef(ref: Pick<ObjectRef, 'group' | 'kind'>): ResourceType<KubeObject> | 'unknown' | undefined;
  /** Every resource that can be listed, in one version each. */
  readonly listable: readonly ResourceType<KubeObject>[];
}

export interface KindCatalog {
  /** What is served; read anew when what is held is older than `maxAgeMs`. Rejects with ApiError. */
  kinds(signal: AbortSignal, maxAgeMs?: number): Promise<ServedKinds>;
}

const MAX_AGE_MS = 30_000;

/** Makes a catalog; callers at the same time share one look. */
export function createKindCatalog(client: Client, clock: Clock): KindCatalog {
  let held: { readonly kinds: ServedKinds; readonly at: number } | undefined;
  let looking: Promise<ServedKinds> | undefined;
  const look = async (signal: AbortSignal): Promise<ServedKinds> => {
    const at = clock.monotonic();
    const kinds = servedKinds(await discover(client, signal));
    held = { kinds, at };
    return kinds;
  };
  return {
    async kinds(signal, maxAgeMs = MAX_AGE_MS) {
      if (held && clock.monotonic() - held.at < maxAgeMs) return held.kinds;
      looking ??= look(signal).finally(() => {
        looking = undefined;
      });
      return looking;
    },
  };
}

function servedKinds({ resources, failures }: Discovery): ServedKinds {
  const versions = new Map<string, ResourceType<KubeObject>>();
  const kinds = new Map<string, ResourceType<KubeObject>>();
  for (const { type, verbs, preferred } of resources) {
    if (!verbs.includes('get')) continue;
    versions.set(`${apiVersionOf(type)}/${type.kind}`, type);
    if (preferred && !kinds.has(`${type.group}/${type.kind}`)) kinds.set(`${type.group}/${type.kind}`, type);
  }
  const failed = new Set(
    failures.map(({ groupVersion }) => (groupVersion.includes('/') ? groupVersion.split('/')[0]! : '')),
  );
  return {
    byVersion: (apiVersion, kind) => versions.get(`${apiVersion}/${kind}`),
    byRef: ({ group, kind }) => kinds.get(`${group}/${kind}`) ?? (failed.has(group) ? 'unknown' : undefined),
    listable: resources.filter((one) => one.preferred && one.verbs.includes('list')).map(({ type }) => type),
  };
}
