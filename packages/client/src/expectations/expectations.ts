/**
 * What a controller has asked for and its informer has not yet shown. A controller that counts dependents in a lagging
 * cache would otherwise create the same one twice.
 *
 * Flow: `expectCreations(key, 1)` > create (on failure `creationFailed`) > the informer's `added` calls
 * `observeCreation` > `satisfied(key)` is true again. Deletions the same, by uid.
 * Guarantees: while `satisfied` is false, the cache is known to lag. Caveats: an observation that never comes (a watch
 * that skipped it) expires after five minutes, and the pass goes on with what the cache shows.
 */

import type { Clock } from '@coracle/runtime/clock/clock';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';

export type Expectations = ReturnType<typeof createExpectations>;

interface Pending {
  creations: number;
  readonly deletions: Set<string>;
  since: number;
}

/** As kube-controller-manager: a watch that lags more than this has lost the event. */
const EXPIRE_MS = 5 * 60_000;

/** Makes an empty set; one for each controller. Holds only keys with something pending. */
export function createExpectations(clock: Clock) {
  const pending = new Map<string, Pending>();

  const expect = (key: string): Pending => {
    const entry = getOrInsert<string, Pending>(pending, key, () => ({ creations: 0, deletions: new Set(), since: 0 }));
    entry.since = clock.monotonic();
    return entry;
  };
  const settle = (key: string, entry: Pending): void => {
    if (entry.creations <= 0 && entry.deletions.size === 0) pending.delete(key);
  };
  const creationDone = (key: string): void => {
    const entry = pending.get(key);
    if (!entry) return;
    if (entry.creations > 0) entry.creations--;
    settle(key, entry);
  };
  const deletionDone = (key: string, uid: string): void => {
    const entry = pending.get(key);
    if (!entry) return;
    entry.deletions.delete(uid);
    settle(key, entry);
  };

  return {
    /** Expects `count` more dependents of `key` to show up. */
    expectCreations(key: string, count: number): void {
      if (count > 0) expect(key).creations += count;
    },
    /** Expects the dependents with these uids to vanish. */
    expectDeletions(key: string, uids: readonly string[]): void {
      for (const uid of uids) expect(key).deletions.add(uid);
    },
    observeCreation: creationDone,
    observeDeletion: deletionDone,
    /** The create call failed: nothing will show up. */
    creationFailed: creationDone,
    /** The delete call failed: it will not vanish by it. */
    deletionFailed: deletionDone,
    /** True when everything expected was seen, or waiting for it has become pointless. */
    satisfied(key: string): boolean {
      const entry = pending.get(key);
      if (!entry) return true;
      if (clock.monotonic() - entry.since < EXPIRE_MS) return false;
      pending.delete(key);
      return true;
    },
    /** Forgets the key: its object is gone. */
    forget: (key: string): void => void pending.delete(key),
  };
}
