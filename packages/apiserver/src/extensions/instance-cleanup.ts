/**
 * The end of a definition: all its objects are deleted, in all namespaces; when the last one is gone (finalizers of
 * objects may take their time) the definition may go as well.
 */

import { ApiError } from '@coracle/apimachinery/meta/status';
import { type ResourceInfo, storagePrefix } from '@coracle/apimachinery/types/resource';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import { abortable } from '@coracle/runtime/signal/abortable';
import type { StoredObject } from '../cache/object-store.ts';
import { deleteObject } from '../registry/delete.ts';
import { ownWrite } from '../registry/write-call.ts';
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
    await deleteAll(registry, info, items);
    if (registry.store.count(prefix) === 0) return;
    const { promise: change, resolve } = Promise.withResolvers<void>();
    const watch = registry.store.watch(prefix, revision, () => resolve());
    await abortable(change, signal).finally(() => watch.stop());
  }
}

async function deleteAll(registry: Registry, info: ResourceInfo, items: readonly StoredObject[]): Promise<void> {
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
          ...ownWrite('kube-apiserver'),
          info,
          namespace,
          name,
          options: uid === undefined ? {} : { preconditions: { uid } },
        });
      } catch (error) {
        if (!(error instanceof ApiError) || (error.code !== 404 && error.reason !== 'Conflict')) throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
}
