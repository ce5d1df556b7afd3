/** What the calls of a pool share: its metadata, who has its volumes open, and the state of one volume made certain. */
import { join } from 'node:path';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { checkUnused, type LayerChain } from './layer-files.ts';
import { PoolError } from './pool-error.ts';
import type { PoolStore } from './pool-store.ts';
import { dropLayer, openLayers } from './running-disk.ts';
import type { VolumeUsers } from './volume-users.ts';

export interface PoolContext {
  readonly directory: string;
  readonly store: PoolStore;
  readonly users: VolumeUsers;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly step: (name: string) => void;
}

/** A layer with all below it. */
export function chainOf({ directory, store }: Pick<PoolContext, 'directory' | 'store'>, id: string): LayerChain {
  const layer = store.state.layers[id];
  if (!layer) throw new Error(`layer ${id} is not in the pool`);
  return {
    id,
    file: join(directory, id),
    format: layer.format,
    ...(layer.parent !== undefined && { backing: chainOf({ directory, store }, layer.parent) }),
  };
}

/** Absolute paths of the layers of a chain, from the top down. */
export const filesOfChain = (chain: LayerChain): string[] => [
  chain.file,
  ...(chain.backing ? filesOfChain(chain.backing) : []),
];

/**
 * Finds out which layer is the top of a volume, where a switch of a running guest was not seen to its end: the one that
 * its QEMU writes to; the new one when there is no QEMU any more, as it is empty or holds what is newest. With 'check' also
 * makes sure that no process has a volume open that nobody here knows of. Throws PoolError `InUse` or `Conflict`.
 */
export async function settleVolume(context: PoolContext, handle: string, check?: 'check'): Promise<void> {
  const { store, users, directory } = context;
  const volume = store.state.volumes[handle];
  if (!volume) throw new PoolError('NotFound', `volume ${handle} is not in this pool`);
  const { next } = volume;
  const disk = users.writer(handle);
  if (next === undefined) {
    if (check && !disk) await untilUnused(context, volume.top);
    return;
  }
  let taken = true;
  if (disk) {
    const { root, nodes } = await openLayers(disk, directory);
    taken = nodes.get(next) === root;
    if (!taken) await dropLayer(disk, next);
  } else for (const id of [next, volume.top]) await untilUnused(context, id);
  await store.commit((state) => settleState(state, handle, taken));
  if (disk) await reportLayers(context, handle);
}

/** A QEMU that was killed gives its locks back a moment after it counts as gone: this long they are waited for. */
const LOCKED_MS = 2000;
const LOCKED_POLL_MS = 50;

/** Throws PoolError `InUse` while a process has the layer open for writing. */
async function untilUnused(context: PoolContext, id: string): Promise<void> {
  const { clock, signal } = context;
  const deadline = clock.monotonic() + LOCKED_MS;
  for (;;) {
    try {
      await checkUnused(chainOf(context, id), signal);
      return;
    } catch (error) {
      if (!(error instanceof PoolError && error.reason === 'InUse') || clock.monotonic() > deadline) throw error;
    }
    await clock.sleep(LOCKED_POLL_MS, signal);
  }
}

/** The state in which a switch has happened, or has not. */
export function settleState(state: PoolStore['state'], handle: string, taken: boolean): PoolStore['state'] {
  const volume = state.volumes[handle];
  if (!volume) return state;
  const { next, ...rest } = volume;
  const top = taken && next !== undefined ? next : rest.top;
  return { ...state, volumes: { ...state.volumes, [handle]: { ...rest, top } } };
}

/** Tells the guest's launcher which files the guest has open now. */
export async function reportLayers(context: PoolContext, handle: string): Promise<void> {
  const volume = context.store.state.volumes[handle];
  if (volume) await context.users.writer(handle)?.onLayers?.(filesOfChain(chainOf(context, volume.top)));
}
