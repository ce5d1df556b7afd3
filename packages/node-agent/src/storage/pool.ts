/**
 * A pool of volumes in one directory, for all agents of a process: volumes, snapshots and what they share. What it holds
 * stands in `pool-state`, on the disk in `pool-store`; each call here is one change of it, and a crash in the middle of
 * any leaves the old or the new.
 */
import { mkdir, readdir, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type {
  CreateSnapshots,
  CreateVolume,
  DeleteHandle,
  ExpandVolume,
  PoolFacts,
  SnapshotsMade,
  VolumeMade,
} from '@coracle/cluster-rules/storage/pool-calls';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import { createKeyedLock } from './keyed-lock.ts';
import { FILES, FILL, type LayerChain, rawBytes, usedBytes } from './layer-files.ts';
import { createMerger, type Merger } from './merge-layers.ts';
import { chainOf, type PoolContext, settleVolume } from './pool-context.ts';
import { PoolError } from './pool-error.ts';
import { isHandle } from './pool-state.ts';
import { adopt, OLD_IMAGE, openPoolStore } from './pool-store.ts';
import { layerTag, type RunningDisk } from './running-disk.ts';
import { createSnapshots } from './take-snapshots.ts';
import type { TakenImage } from './taken-image.ts';
import { type Access, createVolumeUsers } from './volume-users.ts';
import { confirmVolume, createVolume, expandVolume, takeVolume } from './volumes.ts';

/** A layer with all below it, for QEMU. Formats are those of our metadata. */
export interface VolumeDisk {
  /** Absolute. */
  readonly file: string;
  readonly format: 'raw' | 'qcow2';
  readonly backing?: VolumeDisk;
  /** Tells the node of a layer below the top in QEMU. */
  readonly tag?: string;
}

export interface Pool {
  /** Made once for the directory: value of the label POOL_LABEL. */
  readonly id: string;
  readonly directory: string;
  /** The calls of `domain/storage/pool-calls`; each throws PoolError. */
  createVolume(request: CreateVolume): Promise<VolumeMade>;
  confirmVolume(request: DeleteHandle): Promise<void>;
  expandVolume(request: ExpandVolume): Promise<VolumeMade>;
  deleteVolume(request: DeleteHandle): Promise<void>;
  createSnapshots(request: CreateSnapshots): Promise<SnapshotsMade>;
  deleteSnapshot(request: DeleteHandle): Promise<void>;
  inspect(): Promise<PoolFacts>;
  /** Makes a raw volume `disk.img` of so many bytes where there is none: for claims that nobody provisions. */
  ensureVolume(handle: string, bytes: number): Promise<void>;
  has(handle: string): boolean;
  /** The directory `fill/` of a handle, for a volume in the making; made when it is missing, gone with the volume. */
  fillDirectory(handle: string): Promise<string>;
  /** Handles that have one and no volume yet. */
  fills(): Promise<readonly string[]>;
  /**
   * Takes over (moves) a finished image as a volume that is provisional; one that is there stays as it is, without the
   * file. The image holds `bytes` for a guest.
   */
  takeVolume(handle: string, image: TakenImage): Promise<VolumeMade>;
  /** The volume's layers and the bytes a guest sees. Throws PoolError `NotFound`. Only `reserve` keeps them as they are. */
  diskOf(handle: string): VolumeDisk & { readonly size: number };
  /** The same of a snapshot; nobody writes to it. */
  diskOfSnapshot(handle: string): VolumeDisk & { readonly size: number };
  /** The directory `files/` of a volume of mode Filesystem, made when it is missing. */
  filesOf(handle: string): Promise<string>;
  /**
   * Has a guest have the volume until `release`. From then on its layers change through that guest's QEMU alone, once it
   * is attached, and not at all before. Throws PoolError `InUse` while another guest has it.
   */
  reserve(
    handle: string,
    user: {
      readonly vmi: string;
      readonly place: string;
      readonly access: Access;
      /** A reader that is no guest: called when one takes the volume, which is then not reserved any more. */
      readonly giveWay?: () => void;
    },
  ): Promise<{ readonly disk: VolumeDisk & { readonly size: number }; release(): void }>;
  /** Connects a volume with the QEMU that has it open (also after a restart of the agent). The result detaches it. */
  attach(handle: string, disk: RunningDisk): Promise<() => void>;
  /** Ends the use of a volume by a guest that has let go of it. */
  release(handle: string, user: { readonly vmi: string; readonly place: string }): void;
  /** Ends the use of all volumes that a guest had: it has ended, or does not start. */
  releaseAll(user: { readonly vmi: string; readonly place: string }): void;
  /** Resolves once nothing is left to merge, or what is left cannot be now. For tests and tools. */
  settled(): Promise<void>;
  /** Stops what is under way and waits for it. */
  close(): Promise<void>;
}

/** Layers of a volume; with more the upper ones are copied into one. QEMU opens each of them. */
const MAX_LAYERS = 32;

export interface PoolOptions {
  readonly directory: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Default MAX_LAYERS. */
  readonly maxLayers?: number;
  /** Called between any two steps that a crash may come between. For tests. */
  readonly onStep?: (step: string) => void;
}

/** Opens the pool in a directory that nobody else has open. */
export async function openPool(options: PoolOptions): Promise<Pool> {
  const { directory, clock, log } = options;
  const life = createLinkedController(options.signal);
  const store = await openPoolStore(directory, options);
  const lock = createKeyedLock();
  const context: PoolContext = {
    directory,
    store,
    clock,
    log,
    signal: life.signal,
    users: createVolumeUsers(),
    step: (name) => options.onStep?.(name),
  };
  const merger = createMerger(context, { lock, maxLayers: options.maxLayers ?? MAX_LAYERS });
  const change: Change = (handles, work) =>
    merger.giveWay(handles, async () => {
      for (const handle of handles) await adoptLate(context, handle);
      return work();
    });

  return {
    id: store.state.id,
    directory,
    ...changesOf(context, change),
    ...viewsOf(context),
    ...usesOf(context, { change, merger }),
    settled: () => merger.settled(),
    async close() {
      life.abort(new DOMException('the pool is closed', 'AbortError'));
      life.release();
      await merger.close();
    },
  };
}

/** Background work on any of these stops first, and what may be merged is looked for afterwards. */
type Change = <T>(handles: readonly string[], work: () => Promise<T>) => Promise<T>;

/** What makes, changes and removes volumes and snapshots. */
function changesOf(
  context: PoolContext,
  change: Change,
): Pick<
  Pool,
  | 'createVolume'
  | 'confirmVolume'
  | 'expandVolume'
  | 'deleteVolume'
  | 'createSnapshots'
  | 'deleteSnapshot'
  | 'ensureVolume'
  | 'takeVolume'
> {
  const { directory, store, users } = context;
  return {
    createVolume: async (request) =>
      change([checked(request.handle), ...(request.source ? [checked(request.source.handle)] : [])], () =>
        createVolume(context, request),
      ),
    confirmVolume: async ({ handle }) => change([checked(handle)], () => confirmVolume(context, handle)),
    expandVolume: async (request) => change([checked(request.handle)], () => expandVolume(context, request)),
    deleteVolume: async ({ handle }) =>
      change([checked(handle)], async () => {
        const volume = store.state.volumes[handle];
        if (users.isUsed(handle)) throw new PoolError('InUse', `volume ${handle} is in use by a guest`);
        if (volume) await settleVolume(context, handle, 'check');
        // Also what is left where a claim had no image yet.
        const isThere = volume || (await stat(join(directory, handle)).catch(() => undefined)) !== undefined;
        await store.commit(
          ({ volumes: { [handle]: _, ...volumes }, ...state }) => ({ ...state, volumes }),
          isThere ? [FILES, FILL, 'backups', 'memory-dumps', 'claim.json'].map((name) => `${handle}/${name}`) : [],
        );
      }),
    createSnapshots: async (request) => {
      const { snapshots } = request;
      if (!Array.isArray(snapshots) || !snapshots.every((one) => typeof one === 'object' && one !== null))
        throw new PoolError('Invalid', 'snapshots is a list of objects');
      return change(
        [...snapshots.map(({ volume }) => checked(volume)), ...snapshots.map(({ handle }) => checked(handle))],
        () => createSnapshots(context, request),
      );
    },
    deleteSnapshot: async ({ handle }) =>
      change([checked(handle)], () =>
        store.commit(
          ({ snapshots: { [handle]: gone, ...snapshots }, ...state }) => ({ ...state, snapshots }),
          store.state.snapshots[handle] ? [`${handle}/${FILES}`] : [],
        ),
      ),
    takeVolume: async (handle, image) => change([checked(handle)], () => takeVolume(context, handle, image)),
    ensureVolume: async (handle, bytes) =>
      change([checked(handle)], async () => {
        if (!store.state.volumes[handle])
          await createVolume(context, { handle, bytes, mode: 'Filesystem', format: 'raw' }, OLD_IMAGE);
      }),
  };
}

/** What only reads. */
function viewsOf(
  context: PoolContext,
): Pick<Pool, 'inspect' | 'has' | 'diskOf' | 'diskOfSnapshot' | 'filesOf' | 'fillDirectory' | 'fills'> {
  const { directory, store } = context;
  return {
    async inspect() {
      const { volumes, snapshots } = store.state;
      const { bavail, blocks, bsize } = await statfs(directory);
      const used = (id: string): Promise<number> => usedBytes(join(directory, id));
      return {
        pool: store.state.id,
        freeBytes: bavail * bsize,
        totalBytes: blocks * bsize,
        volumes: await Promise.all(
          Object.entries(volumes).map(async ([handle, { top, bytes, provisionalSince }]) => ({
            handle,
            bytes,
            usedBytes: await used(top),
            ...(provisionalSince !== undefined && { provisionalSince }),
          })),
        ),
        snapshots: await Promise.all(
          Object.entries(snapshots).map(async ([handle, { layer }]) => ({ handle, usedBytes: await used(layer) })),
        ),
      };
    },
    has: (handle) => store.state.volumes[handle] !== undefined,
    diskOf(handle) {
      const volume = volumeOf(context, handle);
      return { ...diskFrom(chainOf(context, volume.next ?? volume.top)), size: volume.bytes };
    },
    diskOfSnapshot(handle) {
      const snapshot = store.state.snapshots[handle];
      if (!snapshot) throw new PoolError('NotFound', `snapshot ${handle} is not in this pool`);
      return { ...diskFrom(chainOf(context, snapshot.layer)), size: snapshot.bytes };
    },
    async fillDirectory(handle) {
      const path = join(directory, checked(handle), FILL);
      await mkdir(path, { recursive: true, mode: 0o700 });
      return path;
    },
    async fills() {
      const handles = (await readdir(directory)).filter((name) => isHandle(name) && !store.state.volumes[name]);
      const isFill = await Promise.all(
        handles.map((handle) =>
          stat(join(directory, handle, FILL)).then(
            () => true,
            () => false,
          ),
        ),
      );
      return handles.filter((_, at) => isFill[at]);
    },
    async filesOf(handle) {
      if (volumeOf(context, handle).mode !== 'Filesystem')
        throw new PoolError('Invalid', `volume ${handle} is of mode Block and holds no files`);
      const path = join(directory, handle, FILES);
      await mkdir(path, { recursive: true, mode: 0o700 });
      return path;
    },
  };
}

/** What guests do with volumes. */
function usesOf(
  context: PoolContext,
  { change, merger }: { readonly change: Change; readonly merger: Merger },
): Pick<Pool, 'reserve' | 'attach' | 'release' | 'releaseAll'> {
  const { users, log } = context;
  return {
    reserve: async (handle, user) =>
      change([checked(handle)], async () => {
        volumeOf(context, handle);
        users.add(handle, user);
        try {
          await settleVolume(context, handle);
        } catch (error) {
          users.remove(handle, user);
          throw error;
        }
        const volume = volumeOf(context, handle);
        return {
          disk: { ...diskFrom(chainOf(context, volume.top)), size: volume.bytes },
          release: () => {
            users.remove(handle, user);
            merger.wake();
          },
        };
      }),
    attach: async (handle, disk) =>
      change([checked(handle)], async () => {
        volumeOf(context, handle);
        users.attach(handle, disk);
        await merger
          .recover(disk)
          .catch((error: Error) => log.debug('jobs of a guest not ended', { error: error.message }));
        await settleVolume(context, handle).catch((error: Error) =>
          log.warn('layers of a volume not settled', { volume: handle, error: error.message }),
        );
        return () => users.detach(handle, disk);
      }),
    release(handle, user) {
      users.remove(handle, user);
      merger.wake();
    },
    releaseAll(user) {
      users.removeAll(user);
      merger.wake();
    },
  };
}

function checked(handle: string): string {
  if (!isHandle(handle)) throw new PoolError('Invalid', 'a handle is a UID');
  return handle;
}

function volumeOf(context: PoolContext, handle: string) {
  const volume = context.store.state.volumes[handle];
  if (!volume) throw new PoolError('NotFound', `volume ${handle} is not in this pool`);
  return volume;
}

/** An image that somebody of an older version made since the pool was opened. */
async function adoptLate({ directory, store }: PoolContext, handle: string): Promise<void> {
  if (store.state.volumes[handle] || store.state.layers[`${handle}/${OLD_IMAGE}`]) return;
  const bytes = await rawBytes(join(directory, handle, OLD_IMAGE));
  if (bytes !== undefined) await store.commit((state) => adopt(state, handle, bytes));
}

function diskFrom(chain: LayerChain): VolumeDisk {
  const below = (layer: LayerChain): VolumeDisk => ({ ...diskFrom(layer), tag: layerTag(layer.id) });
  return { file: chain.file, format: chain.format, ...(chain.backing && { backing: below(chain.backing) }) };
}

/** Absolute paths of a disk and of all below it. */
export const filesOfDisk = (disk: VolumeDisk): string[] => [
  disk.file,
  ...(disk.backing ? filesOfDisk(disk.backing) : []),
];
