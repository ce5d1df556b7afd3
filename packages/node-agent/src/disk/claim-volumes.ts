/** Claims: a volume in the pool of the node, or a `disk.img` in the local path of the claim's volume. */
import { mkdir } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { quantityToBytes } from '@coracle/apimachinery/quantity/quantity';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolume, PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import { holdingOf } from '@coracle/apimachinery/types/volume-claims';
import { POOL_ATTRIBUTE, POOL_DRIVER } from '@coracle/cluster-rules/storage/pool-names';
import type { DiskFile } from '../qemu/argv.ts';
import type { Access } from '../storage/volume-users.ts';
import { noteClaim } from './claim-files.ts';
import { createQcow2 } from './empty-image.ts';
import { createRawImage, rawImageSize } from './raw-image.ts';
import { isUid } from './vm-directory.ts';
import { failedMount, VolumeError, type VolumeRequest } from './volume-request.ts';

const MIB = 1024 * 1024;
const FILE = 'disk.img';

type Bad = (why: string, cause?: unknown) => VolumeError;
type SizedDisk = DiskFile & { readonly size: number };

/** The disk of a claim: its volume in the pool of this node, or an image made sparse, with the size of the claim, when missing. */
export async function claimDisk(
  request: VolumeRequest,
  volume: string,
  claimName: string,
  access: Access,
): Promise<SizedDisk> {
  const bad: Bad = (why, cause) => failedMount(volume, `claim ${claimName}: ${why}`, cause);
  const namespace = request.vmi.metadata.namespace ?? '';
  const claim = await request.client
    .get(PERSISTENT_VOLUME_CLAIMS, { namespace, name: claimName }, { signal: request.signal })
    .catch((error: unknown) => {
      throw error instanceof ApiError ? bad(error.message, error) : error;
    });
  const spec = claim.spec;
  const uid = claim.metadata.uid ?? '';
  if (!isUid(uid)) throw bad('has no usable UID');

  const bound = spec?.volumeName ? await boundVolume(request, claim, { name: spec.volumeName, bad }) : undefined;
  const handle = poolHandle(request, bound, bad);
  if (handle === undefined && spec?.volumeMode === 'Block')
    throw bad('volumeMode Block is not supported for this volume; use Filesystem');
  try {
    if (handle !== undefined) return await poolDisk(request, handle, access);
    const path = localPath(bound);
    if (path !== undefined) return await localDisk(path, () => wantedBytes(claim, bad));
    if (!request.pool.has(uid)) await request.pool.ensureVolume(uid, wantedBytes(claim, bad));
    // What lies in a directory of ours goes with the claim, unless its volume is one to retain.
    if ((bound?.spec?.persistentVolumeReclaimPolicy ?? 'Delete') === 'Delete')
      await noteClaim(join(request.pool.directory, uid), spec?.storageClassName ?? '');
    return await poolDisk(request, uid, access);
  } catch (error) {
    if (error instanceof VolumeError) throw error;
    throw bad((error as Error).message, error);
  }
}

/** Has the guest have the volume; it is given back with all of its others when the guest has ended. */
async function poolDisk({ pool, vmi, nodeName }: VolumeRequest, handle: string, access: Access): Promise<SizedDisk> {
  const { disk, release } = await pool.reserve(handle, { vmi: vmi.metadata.uid ?? '', place: nodeName, access });
  if (access === 'shared' && disk.format !== 'raw') {
    release();
    throw new Error('a shareable disk needs a raw volume without snapshots; QEMU cannot share a qcow2 image');
  }
  return { ...disk, volume: handle };
}

async function localDisk(path: string, wanted: () => number): Promise<SizedDisk> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  const file = join(path, FILE);
  try {
    if ((await rawImageSize(file)) === undefined) await createRawImage(file, wanted());
    return { file, format: 'raw', size: (await rawImageSize(file)) ?? 0 };
  } catch (error) {
    throw error instanceof VolumeError ? error : new Error(`${FILE}: ${(error as Error).message}`, { cause: error });
  }
}

/** Bytes of an image that is made for a claim. */
function wantedBytes({ spec, status }: PersistentVolumeClaim, bad: Bad): number {
  const amounts = [spec?.resources?.requests?.['storage'], status?.capacity?.['storage']]
    .filter((amount) => amount !== undefined)
    .map((amount) => {
      try {
        return quantityToBytes(String(amount));
      } catch (error) {
        throw bad((error as Error).message, error);
      }
    });
  const wanted = Math.floor(Math.min(...amounts) / MIB) * MIB;
  if (!Number.isFinite(wanted) || wanted < MIB) throw bad('asks for less than 1Mi of storage');
  return wanted;
}

/** The handle of a volume that lies in a pool; undefined for one of another kind. Throws where the pool is not this node's. */
function poolHandle({ pool }: VolumeRequest, volume: PersistentVolume | undefined, bad: Bad): string | undefined {
  const { csi } = (volume?.spec ?? {}) as {
    csi?: { driver?: string; volumeHandle?: string; volumeAttributes?: Readonly<Record<string, string>> };
  };
  if (csi?.driver !== POOL_DRIVER) return undefined;
  const where = csi.volumeAttributes?.[POOL_ATTRIBUTE];
  if (where !== pool.id) throw bad(`its volume lies in pool ${where}, and this node has pool ${pool.id}`);
  return csi.volumeHandle ?? '';
}

/**
 * The volume of a claim. A claim names a volume as its writer likes; the volume is its own only where the volume says so,
 * by the claim's uid.
 */
async function boundVolume(
  request: VolumeRequest,
  claim: PersistentVolumeClaim,
  { name, bad }: { readonly name: string; readonly bad: Bad },
): Promise<PersistentVolume> {
  const volume = await request.client
    .get(PERSISTENT_VOLUMES, { namespace: '', name }, { signal: request.signal })
    .catch((error: unknown) => {
      // A node may read the volumes of its claims only: 403 says that this one is not bound to any of them.
      if (error instanceof ApiError && error.code === 403) throw bad(`volume ${name} is not bound to it`, error);
      throw error instanceof ApiError ? bad(error.message, error) : error;
    });
  if (holdingOf(volume, claim) !== 'bound') throw bad(`volume ${name} is not bound to it`);
  return volume;
}

/** The host path of a volume that has one: set by whoever may write PersistentVolumes, that is an administrator. */
function localPath(volume: PersistentVolume | undefined): string | undefined {
  const spec = volume?.spec as { hostPath?: { path?: string }; local?: { path?: string } } | undefined;
  const path = spec?.local?.path ?? spec?.hostPath?.path;
  return path !== undefined && isAbsolute(path) ? path : undefined;
}

/** A layer over the claim that is thrown away at stop. */
export async function ephemeralClaim(
  request: VolumeRequest,
  volume: string,
  claimName: string,
  prefix: string,
): Promise<DiskFile> {
  const { volume: _, size, ...backing } = await claimDisk(request, volume, claimName, 'read');
  const file = `${prefix}.qcow2`;
  await createQcow2(request, file, { size, backing });
  return { file, format: 'qcow2', backing };
}
