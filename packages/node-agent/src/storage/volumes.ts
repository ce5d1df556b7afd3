/** Volumes made and made larger. */
import { open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { CreateVolume, ExpandVolume, VolumeMade } from '@coracle/cluster-rules/storage/pool-calls';
import { syncDirectory } from '../image/atomic-file.ts';
import { checkUnused, copyFiles, FILL, makeLayer, newLayerId, resizeLayer } from './layer-files.ts';
import { chainOf, type PoolContext, settleVolume } from './pool-context.ts';
import { PoolError } from './pool-error.ts';
import type { Volume } from './pool-state.ts';
import { openLayers, resizeRunning } from './running-disk.ts';
import { freezeVolumes } from './take-snapshots.ts';
import type { TakenImage } from './taken-image.ts';

/**
 * Makes a volume, empty or over the layer of its source; one that is there is made large enough. `file` is the name of
 * its image where that is not ours to choose.
 */
export async function createVolume(context: PoolContext, request: CreateVolume, file?: string): Promise<VolumeMade> {
  const { store, directory, step, clock } = context;
  const { handle, mode, source } = request;
  const provisional = request.provisional === true && { provisionalSince: new Date(clock.now()).toISOString() };
  const bytes = checkedBytes(request.bytes);
  if ((mode !== 'Filesystem' && mode !== 'Block') || (request.format !== 'raw' && request.format !== 'qcow2'))
    throw new PoolError('Invalid', 'mode is Filesystem or Block, format raw or qcow2');
  // Whoever asks for it by this call says when it goes.
  if (file === undefined) await rm(join(directory, handle, 'claim.json'), { force: true });
  if (store.state.volumes[handle]) return expandVolume(context, { handle, bytes });
  const from = source && (await sourceLayer(context, source));
  if (from && bytes < from.bytes)
    throw new PoolError('Invalid', `the source has ${from.bytes} bytes, the volume would have ${bytes}`);
  const format = from ? 'qcow2' : request.format;
  const id = file === undefined ? newLayerId(handle, format) : `${handle}/${file}`;
  const backing = from && chainOf(context, from.layer);
  await makeLayer(join(directory, id), { format, bytes, ...(backing && { backing }) });
  step('layer made');
  if (source && mode === 'Filesystem') {
    await copyFiles(join(directory, source.handle), join(directory, handle));
    step('files copied');
  }
  await store.commit((state) => ({
    ...state,
    layers: { ...state.layers, [id]: { format, ...(from && { parent: from.layer }) } },
    volumes: { ...state.volumes, [handle]: { top: id, bytes, mode, ...provisional } },
  }));
  return { handle, bytes, format };
}

/** Makes a volume of an image that is ready (`Pool.takeVolume`). */
export async function takeVolume(
  { store, directory, step, clock }: PoolContext,
  handle: string,
  { file, format, bytes, mode }: TakenImage,
): Promise<VolumeMade> {
  const before = store.state.volumes[handle];
  if (before) {
    await store.commit((state) => state, [`${handle}/${FILL}`]);
    return { handle, bytes: before.bytes, format: store.state.layers[before.top]?.format ?? 'raw' };
  }
  const id = newLayerId(handle, format);
  const image = await open(file, 'r+');
  await image.sync().finally(() => image.close());
  await rename(file, join(directory, id));
  await syncDirectory(join(directory, handle));
  await syncDirectory(directory);
  step('image in place');
  const provisionalSince = new Date(clock.now()).toISOString();
  await store.commit(
    (state) => ({
      ...state,
      layers: { ...state.layers, [id]: { format } },
      volumes: { ...state.volumes, [handle]: { top: id, bytes: checkedBytes(bytes), mode, provisionalSince } },
    }),
    [`${handle}/${FILL}`],
  );
  return { handle, bytes: checkedBytes(bytes), format };
}

/** Something stands for the volume from now on; nothing to do for one that is not provisional, or not there. */
export async function confirmVolume({ store }: PoolContext, handle: string): Promise<void> {
  if (store.state.volumes[handle]?.provisionalSince === undefined) return;
  await store.commit((state) => {
    const { provisionalSince: _, ...volume } = state.volumes[handle] ?? {};
    const found = state.volumes[handle] && (volume as Volume);
    return found ? { ...state, volumes: { ...state.volumes, [handle]: found } } : state;
  });
}

function checkedBytes(bytes: unknown): number {
  if (typeof bytes !== 'number' || !Number.isSafeInteger(bytes) || bytes <= 0)
    throw new PoolError('Invalid', 'bytes is a whole number above 0');
  // Disks have sectors.
  return Math.ceil(bytes / 512) * 512;
}

/** The layer that a new volume lies on; a volume as source goes on with one of its own. */
async function sourceLayer(
  context: PoolContext,
  { kind, handle }: NonNullable<CreateVolume['source']>,
): Promise<{ readonly layer: string; readonly bytes: number }> {
  const { snapshots, volumes } = context.store.state;
  if (kind === 'snapshot') {
    const snapshot = snapshots[handle];
    if (!snapshot) throw new PoolError('NotFound', `snapshot ${handle} is not in this pool`);
    return snapshot;
  }
  const volume = kind === 'volume' ? volumes[handle] : undefined;
  if (!volume) throw new PoolError('NotFound', `volume ${handle} is not in this pool`);
  const { [handle]: layer = '' } = await freezeVolumes(context, [handle], (state) => state);
  return { layer, bytes: volume.bytes };
}

/** Makes a volume at least so large; never smaller. */
export async function expandVolume(context: PoolContext, request: ExpandVolume): Promise<VolumeMade> {
  const { store, directory, signal, step, users } = context;
  const { handle } = request;
  const bytes = checkedBytes(request.bytes);
  const before = store.state.volumes[handle];
  if (!before) throw new PoolError('NotFound', `volume ${handle} is not in this pool`);
  const format = store.state.layers[before.top]?.format ?? 'raw';
  if (before.bytes >= bytes) return { handle, bytes: before.bytes, format };
  const reach = users.reach(handle);
  await settleVolume(context, handle);
  const chain = chainOf(context, store.state.volumes[handle]?.top ?? before.top);
  if (reach.how === 'online') {
    const { root } = await openLayers(reach.disk, directory);
    await resizeRunning(reach.disk, root, bytes);
  } else {
    if (users.isUsed(handle)) throw new PoolError('Conflict', `volume ${handle} is in use by guests that read it`);
    await checkUnused(chain, signal);
    await resizeLayer(chain, bytes, signal);
  }
  step('layer resized');
  await store.commit((state) => {
    const volume = state.volumes[handle];
    return volume ? { ...state, volumes: { ...state.volumes, [handle]: { ...volume, bytes } } } : state;
  });
  return { handle, bytes, format: chain.format };
}
