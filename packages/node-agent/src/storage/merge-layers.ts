/**
 * Merges layers in the background, one piece of work at a time. Each may be broken off at any moment, by a crash as well:
 * until it is through and written down the layers read as before, and its last step only forgets a layer that nobody
 * needs any more. Every call to the pool comes first.
 */
import { createLinkedController, type LinkedController } from '@coracle/runtime/signal/linked-controller';
import type { KeyedLock } from './keyed-lock.ts';
import { checkUnused, commitLayer, rebaseLayer } from './layer-files.ts';
import { type MergePlan, mergePlans } from './merge-plan.ts';
import { closeNodes, endMerges, mergeRunning } from './merge-running.ts';
import { chainOf, type PoolContext, reportLayers } from './pool-context.ts';
import { chainFrom, mergeDown } from './pool-state.ts';
import { openLayers, type RunningDisk } from './running-disk.ts';

/** What could not be merged is tried again after a while: a guest may have ended. */
const RETRY_MS = 60_000;

export interface Merger {
  /** Looks for what may be merged, soon. */
  wake(): void;
  /** Runs a call on these handles while nothing is merged that concerns them. */
  giveWay<T>(handles: readonly string[], work: () => Promise<T>): Promise<T>;
  /** Ends what an earlier agent had the QEMU of this disk do. */
  recover(disk: RunningDisk): Promise<void>;
  settled(): Promise<void>;
  close(): Promise<void>;
}

/** Makes it; nothing happens before the first call or `wake`. */
export function createMerger(
  context: PoolContext,
  { lock, maxLayers }: { readonly lock: KeyedLock; readonly maxLayers: number },
): Merger {
  const { store, users, signal, clock, log } = context;
  /** How many calls want a handle now. */
  const wanted = new Map<string, number>();
  let current: { readonly keys: readonly string[]; readonly stop: LinkedController } | undefined;
  let running: Promise<void> | undefined;
  let again = false;
  let cancelRetry = (): void => {};
  const want = (handles: readonly string[], step: 1 | -1): void => {
    for (const handle of handles) {
      const count = (wanted.get(handle) ?? 0) + step;
      if (count === 0) wanted.delete(handle);
      else wanted.set(handle, count);
    }
  };

  const work = async (plan: MergePlan): Promise<boolean> =>
    lock.run(plan.keys, async () => {
      const isStale = !mergePlans(store.state, { isUsed: users.isUsed, maxLayers }).some((one) => same(one, plan));
      if (isStale || plan.keys.some((key) => wanted.has(key))) return false;
      const stop = createLinkedController(signal);
      current = { keys: plan.keys, stop };
      try {
        await merge(context, plan, stop.signal);
        return true;
      } catch (error) {
        if (!stop.signal.aborted) log.info('layers not merged', { ...plan, keys: '', error: (error as Error).message });
        return false;
      } finally {
        current = undefined;
        stop.release();
      }
    });
  const look = async (): Promise<void> => {
    const failed = new Set<string>();
    while (!signal.aborted) {
      again = false;
      const plan = mergePlans(store.state, { isUsed: users.isUsed, maxLayers }).find(
        (one) => !failed.has(JSON.stringify(one)) && !one.keys.some((key) => wanted.has(key)),
      );
      if (!plan) {
        if (again) continue;
        break;
      }
      if (!(await work(plan))) failed.add(JSON.stringify(plan));
    }
    if (failed.size > 0 && !signal.aborted) cancelRetry = clock.schedule(RETRY_MS, wake);
  };
  const wake = (): void => {
    again = true;
    if (running || signal.aborted) return;
    cancelRetry();
    running = look()
      .catch((error: Error) => log.warn('layers not merged', { error: error.message }))
      .finally(() => {
        running = undefined;
        if (again) wake();
      });
  };

  return {
    wake,
    async giveWay(handles, call) {
      want(handles, 1);
      if (current?.keys.some((key) => handles.includes(key))) current.stop.abort(new Error('a call comes first'));
      try {
        return await lock.run(handles, call);
      } finally {
        want(handles, -1);
        wake();
      }
    },
    async recover(disk) {
      await endMerges(disk, clock);
      // Layers that went while nobody could tell QEMU: it would keep their space.
      const { nodes } = await openLayers(disk, context.directory);
      const gone = [...nodes].filter(([id]) => !store.state.layers[id]).map(([, node]) => node);
      await closeNodes(disk, gone);
    },
    async settled() {
      while (running) await running;
    },
    async close() {
      cancelRetry();
      await running;
    },
  };
}

const same = (a: MergePlan, b: MergePlan): boolean => JSON.stringify(a) === JSON.stringify(b);

async function merge(context: PoolContext, plan: MergePlan, signal: AbortSignal): Promise<void> {
  const { store, users, step } = context;
  const disk = plan.by === undefined ? undefined : reachOnline(context, plan.by);
  const { clock, directory } = context;
  if (plan.kind === 'commit') {
    const { upper, lower } = plan;
    if (disk) await mergeRunning(disk, { kind: 'commit', upper, lower }, { clock, directory, signal });
    else {
      for (const volume of plan.keys)
        if (store.state.volumes[volume]) await checkUnused(chainOf(context, store.state.volumes[volume].top), signal);
      await commitLayer(chainOf(context, upper), signal);
    }
    step('layers merged');
    await store.commit((state) => mergeDown(state, upper, lower));
  } else {
    const top = store.state.volumes[plan.volume]?.top ?? '';
    if (disk)
      await mergeRunning(
        disk,
        { kind: 'flatten', base: plan.base, between: chainFrom(store.state, top).slice(1, -1) },
        { clock, directory, signal },
      );
    else if (users.isUsed(plan.volume)) throw new Error('a guest reads the volume');
    else await rebaseLayer(chainOf(context, top), chainOf(context, plan.base), signal);
    step('layers merged');
    await store.commit((state) => {
      const layer = state.layers[top];
      return layer ? { ...state, layers: { ...state.layers, [top]: { ...layer, parent: plan.base } } } : state;
    });
  }
  for (const key of plan.keys) await reportLayers(context, key);
}

function reachOnline(context: PoolContext, volume: string): RunningDisk {
  const reach = context.users.reach(volume);
  if (reach.how === 'offline') throw new Error('a guest reads the volume');
  return reach.disk;
}
