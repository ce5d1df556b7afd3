/** The hash by which clients notice that a resource's storage version moved. */
import { encodeBase64 } from '@coracle/apimachinery/meta/base64';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';

type Stored = Pick<ResourceInfo, 'group' | 'version' | 'kind' | 'storageVersion'>;

/** `group/version/Kind` as it is stored; the core group is ''. */
export function storedKindText(info: Stored): string {
  const stored = info.storageVersion ?? `${info.group}/${info.version}`;
  return `${stored.includes('/') ? stored : `/${stored}`}/${info.kind}`;
}

/** Hashes by stored kind. Web crypto only digests asynchronously, so hashes are made before documents are. */
export type StorageVersionHashes = ReadonlyMap<string, string>;

/** Hashes for these resources; pass those already known and only new kinds are digested. */
export async function storageVersionHashes(
  infos: readonly Stored[],
  known: StorageVersionHashes = new Map(),
): Promise<StorageVersionHashes> {
  const encoder = new TextEncoder();
  const texts = [...new Set(infos.map(storedKindText))];
  const entries = texts.map(async (text): Promise<[string, string]> => {
    const hit = known.get(text);
    if (hit !== undefined) return [text, hit];
    const digest = await crypto.subtle.digest('SHA-256', encoder.encode(text));
    return [text, encodeBase64(new Uint8Array(digest, 0, 8))];
  });
  return new Map(await Promise.all(entries));
}
