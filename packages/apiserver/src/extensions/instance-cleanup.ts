/**
 * The end of a definition: all its objects are deleted, in all namespaces; when the last one is gone (finalizers of
 * objects may take their time) the definition may go as well.
 */

import { ApiError } from '@coracle/apimachinery/meta/status';
import { type ResourceInfo, storagePrefix } from '@coracle/apimachinery/types/resource';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import type { StoredObject } from '../cache/object-store.ts';
import { deleteObject } from '../registry/delete.ts';
import { NO_ADMISSION } from '../registry/write-call.ts';
import type { Registry } from '../registry/write-contract.ts';

/** Deletes in flight at once. */
const CONCURRENCY = 16;
/** Objects whose metadata is read in one go. */
const TOGETHER = 200;

/** Resolves when no object of `info` is left. Rejects with the signal's reason, or with what kept an object from being deleted. */
export async function deleteInstances(registry: Registry, info: ResourceInfo, signal: AbortSignal): Promise<void> {
  const prefix = storagePrefix(info);
  for (;;) {
    signal.throwIfAborted();
    const { items, revision } = registry.store.list(prefix);
    // Creates that were decided and are not durable yet still come.
    if (items.length === 0 && registry.store.count(prefix) === 0) return;
    await deleteAll(registry, { info, items });
    if (registry.store.count(prefix) === 0) return;
    await changeOf(registry, { prefix, from: revision, signal });
  }
}

async function deleteAll(
  registry: Registry,
  { info, items }: { readonly info: ResourceInfo; readonly items: readonly StoredObject[] },
): Promise<void> {
  const queue = items.values();
  let looked = 0;
  const worker = async (): Promise<void> => {
    for (const { namespace, name, metadata } of queue) {
      const { uid, deletionTimestamp } = metadata;
      if (deletionTimestamp !== undefined) {
        if (++looked % TOGETHER === 0) await nextTurn();
        continue;
      }
      if (registry.clock.turnIsLong()) await nextTurn();
      try {
        await deleteObject(registry, {
          info,
          subresource: '',
          namespace,
          name,
          dryRun: false,
          manager: 'kube-apiserver',
          admission: NO_ADMISSION,
          warn: () => {},
          options: uid === undefined ? {} : { preconditions: { uid } },
        });
      } catch (error) {
        if (!(error instanceof ApiError) || (error.code !== 404 && error.reason !== 'Conflict')) throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
}

/** Resolves at the next change under `prefix` after revision `from`. */
function changeOf(
  { store }: Registry,
  { prefix, from, signal }: { readonly prefix: string; readonly from: number; readonly signal: AbortSignal },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = (settle: () => void): void => {
      watch.stop();
      signal.removeEventListener('abort', onAbort);
      settle();
    };
    const onAbort = (): void => done(() => reject(signal.reason as Error));
    const watch = store.watch(prefix, from, () => done(resolve));
    signal.addEventListener('abort', onAbort, { once: true });
  });
}
