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

export interface Expectations {
  /** Expects `count` more dependents of `key` to show up. */
  expectCreations(key: string, count: number): void;
  /** Expects the dependents with these uids to vanish. */
  expectDeletions(key: string, uids: readonly string[]): void;
  observeCreation(key: string): void;
  observeDeletion(key: string, uid: string): void;
  /** The create call failed: nothing will show up. */
  creationFailed(key: string): void;
  /** The delete call failed: it will not vanish by it. */
  deletionFailed(key: string, uid: string): void;
  /** True when everything expected was seen, or waiting for it has become pointless. */
  satisfied(key: string): boolean;
  /** Forgets the key: its object is gone. */
  forget(key: string): void;
}

interface Pending {
  creations: number;
  readonly deletions: Set<string>;
  since: number;
}

/** As kube-controller-manager: a watch that lags more than this has lost the event. */
const EXPIRE_MS = 5 * 60_000;

/** Makes an empty set; one for each controller. Holds only keys with something pending. */
export function createExpectations(clock: Clock): Expectations {
  const pending = new Map<string, Pending>();

  const expect = (key: string): Pending => {
    let entry = pending.get(key);
    if (!entry) {
      entry = { creations: 0, deletions: new Set(), since: 0 };
      pending.set(key, entry);
    }
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
    expectCreations: (key, count) => {
      if (count > 0) expect(key).creations += count;
    },
    expectDeletions: (key, uids) => {
      if (uids.length === 0) return;
      const entry = expect(key);
      for (const uid of uids) entry.deletions.add(uid);
    },
    observeCreation: creationDone,
    observeDeletion: deletionDone,
    creationFailed: creationDone,
    deletionFailed: deletionDone,
    satisfied(key) {
      const entry = pending.get(key);
      if (!entry) return true;
      if (clock.monotonic() - entry.since < EXPIRE_MS) return false;
      pending.delete(key);
      return true;
    },
    forget: (key) => {
      pending.delete(key);
    },
  };
}
