/** Writes the status of one sync: read, change, write if it differs, and again when somebody was faster. */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { ObjectKey } from '@coracle/apimachinery/meta/object';
import { isConflict, isNotFound, orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { commit } from '@coracle/client/commit/commit';
import type { Sync, SyncStatus } from '../kinds/kinds.ts';

export interface SyncObject {
  readonly type: ResourceType<Sync>;
  readonly key: ObjectKey;
  readonly uid: string;
}

const ATTEMPTS = 5;

/** The sync as it is stored; undefined when it is gone or another one of that name. Rejects with ApiError. */
export async function readSync(
  client: Client,
  { type, key, uid }: SyncObject,
  signal: AbortSignal,
): Promise<Sync | undefined> {
  const found = await orAbsent(client.get(type, key, { signal }));
  return found?.metadata.uid === uid ? found : undefined;
}

export interface SyncChange {
  readonly signal: AbortSignal;
  readonly subresource?: '' | 'status';
  /** As it was read or written last; read anew where that is absent or no longer so. */
  readonly known?: Sync | undefined;
}

/**
 * Changes the status, or with `subresource: ''` the rest, and returns what is stored then. Does nothing when the sync is gone.
 * Rejects with ApiError.
 */
export async function changeSync(
  client: Client,
  sync: SyncObject,
  change: (copy: Sync & { status: SyncStatus }) => void,
  { signal, subresource = 'status', known }: SyncChange,
): Promise<Sync | undefined> {
  for (let attempt = 1; ; attempt++) {
    const before = attempt === 1 && known ? known : await readSync(client, sync, signal);
    if (!before) return undefined;
    const after = cloneJson(before) as Sync & { status: SyncStatus };
    if (subresource === 'status') after.status ??= {};
    change(after);
    try {
      return (await commit(client, sync.type, { before, after, subresource, signal })) ?? before;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      if (!isConflict(error) || attempt >= ATTEMPTS) throw error;
    }
  }
}
