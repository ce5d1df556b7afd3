/**
 * The task of one sync: one loop, one thing at a time; whatever changes wakes it, and what was begun for an older spec is cut
 * off. What it does is in `sync-life.ts`.
 */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, KubeObject } from '@coracle/apimachinery/meta/object';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import type { Sync } from '../kinds/kinds.ts';
import { relevantState } from './relevant-state.ts';
import type { SyncLife, SyncLifeOptions } from './sync-life.ts';

export interface SyncTask {
  /** The sync as it is now: what it was doing for an older spec is cut off. */
  changed(object: DeepReadonly<Sync> | undefined): void;
  /** Something that it goes by has changed: it begins anew. */
  interrupt(): void;
  /** Another sync is gone: what that had may be free. */
  retryConflicts(): void;
  /** The guard of declared fields was turned on or off. */
  guardChanged(): void;
  /** Versions of the objects that it keeps as they are declared. */
  declaredVersions(): readonly Pick<ResourceType<KubeObject>, 'group' | 'version'>[];
  /** A namespace came, went or has other labels: selectors may mean others now. */
  namespacesChanged(): void;
  /** Resolves when it has ended: the sync is gone, or the signal aborted. */
  readonly ended: Promise<void>;
}

/** Starts it. */
export function startSyncTask(options: SyncLifeOptions): SyncTask {
  const { clock, signal } = options;
  let newest: string | undefined;
  let wakeUp = (): void => {};
  let interrupt = (): void => {};
  let life: SyncLife | undefined;
  const run = async (): Promise<void> => {
    // Git, Helm, OCI, rendering and applying: 4 MiB that a process without syncs does not hold.
    const module = await import('./sync-life.ts');
    life = new module.SyncLife(options, () => wakeUp());
    for (;;) {
      signal.throwIfAborted();
      const linked = createLinkedController(signal);
      const woken = new Promise<void>((resolve) => {
        wakeUp = resolve;
      });
      interrupt = () => linked.abort(new Error('the sync has changed'));
      let waitMs: number | undefined;
      try {
        waitMs = await life.step(linked.signal);
      } catch (error) {
        signal.throwIfAborted();
        // A change of the sync cut it off: it begins anew.
        if (!linked.signal.aborted) throw error;
        waitMs = 0;
      } finally {
        interrupt = () => {};
        linked.release();
      }
      if (waitMs === undefined) return;
      const pause = createLinkedController(signal);
      await Promise.race([woken, clock.sleep(waitMs, pause.signal).catch(() => {})]);
      pause.abort(new Error('woken'));
      pause.release();
    }
  };
  const ended = run()
    .catch((error: unknown) => {
      if (!signal.aborted)
        options.log.error('the task of a sync has failed', { error: String((error as Error)?.stack ?? error) });
    })
    .finally(() => life?.stop())
    .finally(() => options.metrics.forget());
  return {
    ended,
    changed(object) {
      const now = relevantState(object);
      if (now === newest) return;
      newest = now;
      interrupt();
      wakeUp();
    },
    interrupt() {
      interrupt();
      wakeUp();
    },
    retryConflicts: () => life?.retryConflicts(),
    guardChanged: () => wakeUp(),
    declaredVersions: () => life?.declaredVersions() ?? [],
    namespacesChanged: () => life?.namespacesChanged(),
  };
}
