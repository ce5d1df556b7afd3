/**
 * One volume filled from its source, in the directory that the pool keeps for it:
 *
 *     download or link > what is it? > unpack > what is it? > convert, or as it is > a volume of the pool
 *
 * Each step begins with files of its own, so that a crash leaves at most the download to go on from.
 */
import { copyFile, constants as files, link, rename, rm, stat, statfs, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type FillReport,
  type FillVolume,
  maxImageBytes,
  type VolumeMade,
} from '@coracle/cluster-rules/storage/pool-calls';
import type { Clock } from '@coracle/runtime/clock/clock';
import { type Resolve, resolveName } from '@coracle/runtime/oci/checked-request';
import { guardDisk, spaceOf } from '../image/disk-guard.ts';
import { ImageError, type ImageStore } from '../image/image-store.ts';
import { qemuImg } from '../storage/layer-files.ts';
import type { Pool } from '../storage/pool.ts';
import { convert } from './convert.ts';
import { download } from './download.ts';
import { asFillError, FillError } from './fill-error.ts';
import { createFillProgress } from './fill-progress.ts';
import { type ImageFormat, imageFormat, packingOf } from './image-format.ts';
import { type IncomingImage, receive, wasReceived } from './receive.ts';
import { unpack } from './unpack.ts';

export interface FillJobOptions {
  readonly pool: Pool;
  readonly images: ImageStore;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly resolve?: Resolve;
  readonly stallMs?: number;
  /** What is sent, for a source of type `upload`; without it goes on what was received before. */
  readonly incoming?: IncomingImage;
  /** Called between any two steps that a crash may come between. For tests. */
  readonly onStep?: (step: string) => void;
}

export interface FillJob {
  report(): FillReport;
  /** Resolves when it has ended, however. */
  readonly ended: Promise<void>;
}

/** Begins. */
export function startFill(request: FillVolume, options: FillJobOptions): FillJob {
  const progress = createFillProgress(options.clock);
  let report: FillReport | undefined;
  const ended = fill(request, options, progress).then(
    (volume) => {
      report = { state: 'done', volume };
    },
    (error: unknown) => {
      const { problem, message } = asFillError(error);
      report = { state: 'failed', problem, message };
    },
  );
  return { report: () => report ?? progress.report(), ended };
}

type Progress = ReturnType<typeof createFillProgress>;

async function fill(request: FillVolume, options: FillJobOptions, progress: Progress): Promise<VolumeMade> {
  const { handle, bytes, mode } = request;
  const { pool, clock, onStep: step = () => {} } = options;
  const directory = await pool.fillDirectory(handle);
  const guard = await guardDisk(directory, { space: () => spaceOf(directory), clock, signal: options.signal });
  try {
    guard.signal.throwIfAborted();
    const at = (name: string): string => join(directory, name);
    for (const name of ['unpacked', 'converted']) await rm(at(name), { force: true });
    step('directory made');
    const within = { ...options, signal: guard.signal, directory, bytes, progress };
    let image = await fetchImage(request, at('part'), within);
    step('fetched');
    let format = await imageFormat(image.path);
    if (format.type !== 'packed') checkSize(format, bytes);
    options.incoming?.received();
    if (format.type === 'packed') {
      const packed = image;
      image = { path: at('unpacked'), isOurs: true };
      progress.begin('unpack');
      await unpack(format.packing, packed.path, image.path, {
        maxBytes: maxImageBytes(bytes),
        directory,
        signal: guard.signal,
        onProgress: progress.unpacked,
      });
      step('unpacked');
      format = await imageFormat(image.path);
    }
    const ready = await toVolumeFormat(request, { format, image, at, progress, signal: guard.signal });
    step('ready');
    const made = await pool.takeVolume(handle, { file: ready.path, format: ready.format, bytes, mode });
    step('taken');
    return made;
  } catch (error) {
    options.signal.throwIfAborted();
    const shortage = guard.problem();
    const failure = shortage === undefined ? asFillError(error) : new FillError('NoSpace', shortage, { cause: error });
    await dropWork(directory, request.source.type === 'upload' || failure.problem !== 'Source');
    throw failure;
  } finally {
    guard.stop();
  }
}

/** What cannot serve the next attempt goes: after a full disk, and of what was sent, that is all of it. */
async function dropWork(directory: string, isAll: boolean): Promise<void> {
  const goes = ['unpacked', 'converted', ...(isAll ? ['part', 'part.json'] : [])];
  for (const name of goes) await rm(join(directory, name), { force: true }).catch(() => {});
}

interface Fetched {
  readonly path: string;
  /** False for a file that others have too. */
  readonly isOurs: boolean;
  /** Nobody can be asked for it again: it keeps its name until the pool has it. */
  readonly isKept?: boolean;
}

async function fetchImage(
  { source, bytes }: FillVolume,
  path: string,
  options: FillJobOptions & { readonly progress: Progress },
): Promise<Fetched> {
  const { clock, signal, progress, images, incoming, resolve = resolveName, stallMs } = options;
  progress.begin('download');
  const transfer = {
    clock,
    signal,
    maxBytes: maxImageBytes(bytes),
    onProgress: progress.downloaded,
    onHead: (head: Uint8Array) =>
      progress.expect(packingOf(head) !== undefined || head[0] === 0x51 || head[0] === 0x4b),
    ...(stallMs !== undefined && { stallMs }),
  };
  switch (source.type) {
    case 'http':
      await download(source, path, { ...transfer, resolve });
      return { path, isOurs: true };
    case 'upload':
      if (incoming) await receive(incoming, path, transfer);
      else if (!(await wasReceived(path)))
        throw new FillError('Source', 'the upload broke off: it has to be sent again');
      return { path, isOurs: true, isKept: true };
    case 'registry':
      return fetchFromRegistry(source, path, { images, signal, progress });
    default:
      return source satisfies never;
  }
}

async function fetchFromRegistry(
  { reference, credentials }: Extract<FillVolume['source'], { type: 'registry' }>,
  path: string,
  {
    images,
    signal,
    progress,
  }: { readonly images: ImageStore; readonly signal: AbortSignal; readonly progress: Progress },
): Promise<Fetched> {
  try {
    const { disk } = await images.ensure({
      reference,
      wanted: { disk: '/disk' },
      signal,
      onProgress: progress.downloaded,
      ...(credentials && { credentials }),
    });
    if (!disk) throw new FillError('Image', `image ${reference} holds no disk below /disk`);
    await rm(path, { force: true });
    // The store may drop its file at any time; the link stays.
    await link(disk.path, path);
    return { path, isOurs: false };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ImageError) throw new FillError('Source', error.message, { cause: error });
    throw error;
  }
}

function checkSize({ virtualSize }: Exclude<ImageFormat, { type: 'packed' }>, bytes: number): void {
  if (virtualSize > bytes)
    throw new FillError(
      'Image',
      `Virtual image size ${virtualSize} is larger than the reported available storage ${bytes}. A larger PVC is required.`,
    );
}

/** The image as a file of its own in a format of the pool, as large as the volume. */
async function toVolumeFormat(
  { bytes, format: wanted }: FillVolume,
  {
    format,
    image,
    at,
    progress,
    signal,
  }: {
    readonly format: ImageFormat;
    readonly image: Fetched;
    readonly at: (name: string) => string;
    readonly progress: Progress;
    readonly signal: AbortSignal;
  },
): Promise<{ readonly path: string; readonly format: 'raw' | 'qcow2' }> {
  if (format.type === 'packed') throw new FillError('Image', 'the source is packed more than once');
  checkSize(format, bytes);
  const path = at('converted');
  if (format.type === 'raw') {
    // A layer may be raw whatever the class says: nothing is copied.
    if (image.isOurs) await (image.isKept ? link : rename)(image.path, path);
    else {
      await roomFor(image.path, at('.'));
      await copyFile(image.path, path, files.COPYFILE_FICLONE);
    }
    await truncate(path, bytes);
    return { path, format: 'raw' };
  }
  progress.begin('convert');
  await convert({
    from: { path: image.path, format: format.format },
    to: { path, format: wanted },
    bytes,
    directory: at('.'),
    signal,
    onProgress: progress.converted,
  });
  if (wanted === 'raw') await truncate(path, bytes);
  else await qemuImg(['resize', '-q', '-f', 'qcow2', path, String(bytes)], signal);
  return { path, format: wanted };
}

/** A copy that cannot fit is not begun. */
async function roomFor(path: string, directory: string): Promise<void> {
  const { blocks } = await stat(path);
  const { bavail, bsize } = await statfs(directory);
  if (blocks * 512 > bavail * bsize) throw new FillError('NoSpace', 'no room is left on the disk of the pool');
}
