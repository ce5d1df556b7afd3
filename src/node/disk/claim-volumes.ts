/** Claims: a `disk.img` for each, in the local path of the claim's volume, or in a directory of our own. */
import { mkdir } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '../../api/kinds/builtin/resource-types.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/kinds/builtin/types.ts';
import { holdingOf } from '../../api/kinds/builtin/volume-claims.ts';
import { ApiError } from '../../api/meta/status.ts';
import { quantityToBytes } from '../../api/quantity/quantity.ts';
import type { DiskFile } from '../qemu/argv.ts';
import { noteClaim } from './claim-files.ts';
import { createOverlay } from './qemu-img.ts';
import { createRawImage, rawImageSize } from './raw-image.ts';
import { isUid } from './vm-directory.ts';
import { VolumeError, type VolumeRequest } from './volume-request.ts';

const MIB = 1024 * 1024;
const FILE = 'disk.img';

/** The image of a claim; made sparse, with the size of the claim, when missing. */
export async function claimDisk(
  request: VolumeRequest,
  volume: string,
  claimName: string,
): Promise<DiskFile & { readonly size: number }> {
  const bad = (why: string, cause?: unknown): VolumeError =>
    new VolumeError('FailedMount', volume, `volume ${volume}: claim ${claimName}: ${why}`, { cause });
  const namespace = request.vmi.metadata.namespace ?? '';
  const options = { signal: request.signal };
  const claim = await request.client
    .get(PERSISTENT_VOLUME_CLAIMS, { namespace, name: claimName }, options)
    .catch((error: unknown) => {
      throw error instanceof ApiError ? bad(error.message, error) : error;
    });
  const spec = claim.spec;
  if (spec?.volumeMode === 'Block') throw bad('volumeMode Block is not supported; use Filesystem');
  const uid = claim.metadata.uid ?? '';
  if (!isUid(uid)) throw bad('has no usable UID');

  const bound = spec?.volumeName ? await boundVolume(request, claim, { name: spec.volumeName, bad }) : undefined;
  const directory = localPath(bound) ?? join(request.claimsDirectory, uid);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  // What lies in a directory of ours goes with the claim, unless its volume is one to retain.
  if (localPath(bound) === undefined && (bound?.spec?.persistentVolumeReclaimPolicy ?? 'Delete') === 'Delete')
    await noteClaim(directory, spec?.storageClassName ?? '');
  const file = join(directory, FILE);
  const amounts = [spec?.resources?.requests?.['storage'], claim.status?.capacity?.['storage']]
    .filter((amount) => amount !== undefined)
    .map((amount) => {
      try {
        return quantityToBytes(String(amount));
      } catch (error) {
        throw bad((error as Error).message, error);
      }
    });
  const wanted = Math.floor(Math.min(...amounts) / MIB) * MIB;
  try {
    if ((await rawImageSize(file)) === undefined) {
      if (!Number.isFinite(wanted) || wanted < MIB) throw bad('asks for less than 1Mi of storage');
      await createRawImage(file, wanted);
    }
    return { file, format: 'raw', size: (await rawImageSize(file)) ?? 0 };
  } catch (error) {
    if (error instanceof VolumeError) throw error;
    throw bad(`${FILE}: ${(error as Error).message}`, error);
  }
}

/**
 * The volume of a claim. A claim names a volume as its writer likes; the volume is its own only where the volume says so,
 * by the claim's uid.
 */
async function boundVolume(
  request: VolumeRequest,
  claim: PersistentVolumeClaim,
  { name, bad }: { readonly name: string; readonly bad: (why: string, cause?: unknown) => VolumeError },
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
  const base = await claimDisk(request, volume, claimName);
  const file = `${prefix}.qcow2`;
  await createOverlay(file, {
    directory: request.directory,
    backing: base.file,
    backingFormat: base.format,
    size: base.size,
    signal: request.signal,
  });
  return { file, format: 'qcow2', backing: { file: base.file, format: base.format } };
}
