/**
 * Read, change, compare and swap, again when the object moved meanwhile: what PUT, PATCH, the writing subresources and DELETE
 * share (storage.GuaranteedUpdate). Admission runs outside the store, so the swap checks that nobody wrote in between.
 */

import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { conflict, notFound } from '@coracle/apimachinery/meta/status';
import { storagePrefix } from '@coracle/apimachinery/types/resource';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import type { StoredObject, StoreKey } from '../cache/object-store.ts';
import { refuseWhenDurable } from './refuse-when-durable.ts';
import { prepareViews, viewObject } from './versioned-view.ts';
import { ObjectMoved } from './write-call.ts';
import type { Registry, WriteCall } from './write-contract.ts';

/** The newest decided state of what is written. */
export interface WriteTarget {
  readonly key: StoreKey;
  readonly current: StoredObject;
  /** As the resource of the call shows it. */
  readonly old: Readonly<UnstructuredObject>;
  /** Set where a write in between is a conflict, not a reason to repeat. */
  pinned: boolean;
}

/** How often an update, patch or delete without a pinned resourceVersion is tried before it answers 409. */
const MAX_CONFLICT_RETRIES = 5;

/** `create` is for an object that is not there; absent = 404. Throws ApiError 404, 409, or what the attempt throws. */
export function writeNewest<T>(
  { store }: Registry,
  { info, namespace, name }: WriteCall,
  {
    attempt,
    create,
  }: {
    readonly attempt: (target: WriteTarget) => Promise<T>;
    readonly create?: (() => Promise<T>) | undefined;
  },
): Promise<T> {
  const key: StoreKey = { prefix: storagePrefix(info), namespace, name };
  return refuseWhenDurable(store, key, async () => {
    for (let attempts = 1; ; attempts++) {
      const current = store.peek(key);
      if (!current) {
        if (create) return create();
        throw notFound(info, name);
      }
      // Awaited only when there is something to wait for: without it, reading and writing are one step nobody gets into.
      const loading = current.load(nextTurn);
      if (loading) await loading;
      const viewing = prepareViews(info, [current], { again: false });
      if (viewing) await viewing;
      const target = { key, current, old: viewObject(info, current), pinned: false };
      try {
        return await attempt(target);
      } catch (error) {
        if (!(error instanceof ObjectMoved)) throw error;
        if (target.pinned || attempts >= MAX_CONFLICT_RETRIES) throw conflict(info, name);
      }
    }
  });
}
