/**
 * Snapshots: the layer that a guest writes to becomes one that nobody writes to, under a new and empty one. Of a guest
 * that runs its QEMU does that, for all of its volumes at one moment.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { CreateSnapshots, SnapshotsMade } from '@coracle/cluster-rules/storage/pool-calls';
import { checkUnused, copyFiles, FILES, makeLayer, newLayerId } from './layer-files.ts';
import { chainOf, type PoolContext, reportLayers, settleState, settleVolume } from './pool-context.ts';
import { PoolError } from './pool-error.ts';
import type { PoolState, Snapshot } from './pool-state.ts';
import { dropLayer, openLayers, type RunningDisk, switchLayers } from './running-disk.ts';

/** Volumes of one call: disks of one VM. */
const MAX_SNAPSHOTS = 256;

/** Takes all of them at one point in time, or none. Those that are there already are those that were taken then. */
export async function createSnapshots(context: PoolContext, request: CreateSnapshots): Promise<SnapshotsMade> {
  const { store, directory, clock, step } = context;
  const wanted = request.snapshots;
  if (wanted.length === 0 || wanted.length > MAX_SNAPSHOTS)
    throw new PoolError('Invalid', `a call takes 1 to ${MAX_SNAPSHOTS} snapshots`);
  if (new Set(wanted.flatMap(({ handle, volume }) => [handle, volume])).size !== 2 * wanted.length)
    throw new PoolError('Invalid', 'a handle or a volume is named twice');
  const known = wanted.flatMap(({ handle }) => store.state.snapshots[handle] ?? []);
  for (const [at, { handle, volume }] of wanted.entries()) {
    const other = store.state.snapshots[handle];
    if (other && other.volume !== volume)
      throw new PoolError('Invalid', `snapshot ${handle} was taken of volume ${other.volume}`);
    if (!other && !store.state.volumes[volume])
      throw new PoolError('NotFound', `volume ${wanted[at]?.volume} is not in this pool`);
  }
  if (known.length === 0) await takeAll();
  else if (known.length < wanted.length)
    throw new PoolError('Invalid', 'some of the snapshots were taken earlier: they cannot be of one point in time');
  return {
    snapshots: wanted.map(({ handle }) => {
      const { bytes, createdAt } = store.state.snapshots[handle] as Snapshot;
      return { handle, bytes, createdAt };
    }),
  };

  async function takeAll(): Promise<void> {
    const freeze = (): Promise<Record<string, string>> =>
      freezeVolumes(
        context,
        wanted.map(({ volume }) => volume),
        (state, frozen) => {
          const createdAt = new Date(clock.now()).toISOString();
          const taken = wanted.map(({ handle, volume }): [string, Snapshot] => [
            handle,
            { layer: frozen[volume] ?? '', bytes: state.volumes[volume]?.bytes ?? 0, createdAt, volume },
          ]);
          return { ...state, snapshots: { ...state.snapshots, ...Object.fromEntries(taken) } };
        },
      );
    try {
      for (const { handle, volume } of wanted) await copyFiles(join(directory, volume), join(directory, handle));
      step('files copied');
      await freeze();
    } catch (error) {
      for (const { handle } of wanted)
        if (!store.state.snapshots[handle])
          await rm(join(directory, handle, FILES), { recursive: true, force: true }).catch(() => {});
      throw error;
    }
  }
}

interface Switch {
  readonly handle: string;
  readonly layer: string;
  readonly overlay: string;
  readonly disk?: RunningDisk;
  readonly root?: string;
}

/**
 * Puts a new layer on each of the volumes, at one point in time for those of one guest; resolves to the layers that they
 * had. `record` makes its own change in the same write. Throws PoolError, and then all volumes are as they were, or will
 * be found to be when they are used next.
 */
export async function freezeVolumes(
  context: PoolContext,
  handles: readonly string[],
  record: (state: PoolState, frozen: Readonly<Record<string, string>>) => PoolState,
): Promise<Record<string, string>> {
  const { store, directory, signal, step } = context;
  const switches = await Promise.all(handles.map((handle) => planSwitch(context, handle)));
  try {
    // Both at once: one is a process of its own, and whoever waits for a snapshot waits for the longer one only.
    const works = switches.flatMap(({ handle, layer, overlay, disk }) => [
      makeLayer(join(directory, overlay), {
        format: 'qcow2',
        bytes: store.state.volumes[handle]?.bytes ?? 0,
        backing: chainOf(context, layer),
      }),
      ...(disk ? [] : [checkUnused(chainOf(context, layer), signal)]),
    ]);
    const failed = (await Promise.allSettled(works)).find(({ status }) => status === 'rejected');
    if (failed?.status === 'rejected') throw failed.reason;
    step('overlays made');
    const online = switches.filter(({ disk }) => disk);
    if (online.length > 0) await switchOnline(context, online);
  } catch (error) {
    for (const { overlay } of switches)
      if (!store.state.layers[overlay]) await rm(join(directory, overlay), { force: true }).catch(() => {});
    throw error;
  }
  const frozen = Object.fromEntries(switches.map(({ handle, layer }) => [handle, layer]));
  await store.commit((state) =>
    switches.reduce((sum, { handle }) => settleState(sum, handle, true), withNext(record(state, frozen), switches)),
  );
  for (const { handle } of switches) await reportLayers(context, handle);
  return frozen;
}

/** Looks how a volume can be reached; that nobody unknown has one open which is not running is still to be checked. */
async function planSwitch(context: PoolContext, handle: string): Promise<Switch> {
  const { store, users, directory } = context;
  const reach = users.reach(handle);
  await settleVolume(context, handle);
  const layer = store.state.volumes[handle]?.top ?? '';
  const plan = { handle, layer, overlay: newLayerId(handle, 'qcow2') };
  if (reach.how === 'offline') return plan;
  const { root, nodes } = await openLayers(reach.disk, directory);
  if (nodes.get(layer) !== root)
    throw new PoolError('Conflict', `volume ${handle}: the guest writes to another layer than it is known to`);
  return { ...plan, disk: reach.disk, root };
}

/** The overlays as what the volumes will be switched to. */
const withNext = (state: PoolState, switches: readonly Switch[]): PoolState => ({
  ...state,
  layers: {
    ...state.layers,
    ...Object.fromEntries(switches.map(({ overlay, layer }) => [overlay, { format: 'qcow2' as const, parent: layer }])),
  },
  volumes: {
    ...state.volumes,
    ...Object.fromEntries(
      switches.flatMap(({ handle, overlay }) => {
        const volume = state.volumes[handle];
        return volume ? [[handle, { ...volume, next: overlay }]] : [];
      }),
    ),
  },
});

/** Written down first: whatever becomes of us or of QEMU, both layers are known. */
async function switchOnline(context: PoolContext, switches: readonly Switch[]): Promise<void> {
  const { store, step, directory } = context;
  await store.commit((state) => withNext(state, switches));
  step('switch noted');
  const done: Switch[] = [];
  try {
    for (const vmi of new Set(switches.map(({ disk }) => disk?.vmi))) {
      const own = switches.filter(({ disk }) => disk?.vmi === vmi);
      const overlays = own.flatMap(({ disk, overlay, root }) =>
        disk && root !== undefined ? [{ disk, id: overlay, file: join(directory, overlay), root }] : [],
      );
      const pausedMs = await switchLayers(overlays, context.clock);
      context.log.info('volumes switched to new layers', { vmi, volumes: own.length, pausedMs });
      done.push(...own);
      step('guest switched');
    }
  } catch (error) {
    // What QEMU refused did not happen. Where it did not answer nobody knows: the next use of the volume finds out.
    for (const { handle, disk, overlay } of switches) {
      const taken = done.some((one) => one.handle === handle);
      if (!taken && disk) await dropLayer(disk, overlay).catch(() => {});
      await settleVolume(context, handle).catch(() => {});
    }
    throw error;
  }
}
