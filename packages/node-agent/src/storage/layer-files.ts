/**
 * The files of layers, made here and changed with qemu-img: formats are always named, from our own metadata, and a name is
 * never text of a user's. What is made is on the disk when it is there (fsync).
 */
import { randomBytes } from 'node:crypto';
import { cp, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import type { VolumeFormat } from '@coracle/cluster-rules/storage/pool-calls';
import { run } from '@coracle/runtime/process/run';
import { syncDirectory } from '../image/atomic-file.ts';
import { emptyQcow2 } from './empty-qcow2.ts';
import { PoolError } from './pool-error.ts';

const TIMEOUT_MS = 60_000;
/** A merge copies what a guest has written: hours on a slow disk, and it may be stopped at any time. */
const COPY_TIMEOUT_MS = 24 * 3_600_000;
const BLOCK_BYTES = 512;
/** Most bytes of `files/` of a volume. */
export const MAX_FILES_BYTES = 16 * 1024 * 1024;
export const FILES = 'files';
/** What a volume in the making is made in. */
export const FILL = 'fill';

/** An image and what lies below it, as QEMU's block layer takes it; paths are absolute. */
export interface LayerChain {
  /** In the metadata of the pool. */
  readonly id: string;
  readonly file: string;
  readonly format: VolumeFormat;
  readonly backing?: LayerChain;
}

/** Runs qemu-img. Throws PoolError: `InUse` where QEMU's lock is held, `NoSpace` where the disk is full. */
export async function qemuImg(argv: readonly string[], signal: AbortSignal, timeoutMs = TIMEOUT_MS): Promise<string> {
  const result = await run(['qemu-img', ...argv], { signal, timeoutMs });
  if (result.ok) return new TextDecoder().decode(result.stdout);
  signal.throwIfAborted();
  if (/Failed to (get|lock) .*(another process|lock)/s.test(result.stderr))
    throw new PoolError('InUse', 'a process that is not looked after here has the volume open');
  if (/No space left/.test(result.stderr)) throw new PoolError('NoSpace', 'no room is left for the volume');
  throw new Error(result.message);
}

function orNoSpace(error: NodeJS.ErrnoException): never {
  if (error.code === 'ENOSPC') throw new PoolError('NoSpace', 'no room is left for the volume');
  throw error;
}

/** A name for a new layer in the directory of `handle`: its id. */
export const newLayerId = (handle: string, format: VolumeFormat): string =>
  `${handle}/layer-${randomBytes(6).toString('hex')}.${format}`;

/** Makes an empty image, or one over `backing`; the file must not be there yet. */
export async function makeLayer(
  path: string,
  {
    format,
    bytes,
    backing,
  }: {
    readonly format: VolumeFormat;
    readonly bytes: number;
    /** It is not opened: a running guest may hold its lock. */
    readonly backing?: LayerChain;
  },
): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const over = backing && { name: relative(dirname(path), backing.file), format: backing.format };
  const image = format === 'raw' ? { length: bytes, parts: [] } : emptyQcow2({ bytes, ...(over && { backing: over }) });
  const file = await open(path, 'wx', 0o600).catch(orNoSpace);
  try {
    await file.truncate(image.length).catch(orNoSpace);
    for (const { at, bytes: part } of image.parts) await file.write(part, 0, part.length, at).catch(orNoSpace);
    await file.sync().catch(orNoSpace);
  } finally {
    await file.close();
  }
  await syncDirectory(dirname(path));
  await syncDirectory(dirname(dirname(path)));
}

/** The image with all below it for a tool, every format named. */
export const imageText = (chain: LayerChain): string => `json:${JSON.stringify(blockGraph(chain))}`;

/** The same as QEMU's `BlockdevOptions`. */
function blockGraph(chain: LayerChain): object {
  return {
    driver: chain.format,
    file: { driver: 'file', filename: chain.file },
    ...(chain.format === 'qcow2' && { backing: chain.backing ? blockGraph(chain.backing) : null }),
  };
}

/**
 * Throws PoolError `InUse` while any process has this one image open for writing; what lies below it is not looked at.
 * A raw image may be read beside its writer, so QEMU's locks are asked by name: no writer beside us.
 */
export const checkUnused = async ({ file, format }: LayerChain, signal: AbortSignal): Promise<void> => {
  const alone = {
    driver: format,
    file: { driver: 'file', filename: file },
    ...(format === 'qcow2' && { backing: null }),
  };
  const asked = { driver: 'blkdebug', 'unshare-child-perms': ['write'], image: alone };
  await qemuImg(['info', `json:${JSON.stringify(asked)}`], signal);
};

/** Makes what a guest sees of an image larger. */
export async function resizeLayer(chain: LayerChain, bytes: number, signal: AbortSignal): Promise<void> {
  await qemuImg(['resize', '-q', imageText(chain), String(bytes)], signal);
}

/** Copies what the upper image holds into the one below it; the upper one stays whole and reads the same. */
export const commitLayer = async (chain: LayerChain, signal: AbortSignal): Promise<void> => {
  await qemuImg(['commit', '-q', '-d', imageText(chain)], signal, COPY_TIMEOUT_MS);
};

/** Copies into the image what lies between it and `base`, the lowest of its chain, and has it lie on that one. */
export const rebaseLayer = async (chain: LayerChain, base: LayerChain, signal: AbortSignal): Promise<void> => {
  const under = (name: string): string[] => ['rebase', '-q', '-b', name, '-F', base.format];
  await qemuImg([...under(base.file), imageText(chain)], signal, COPY_TIMEOUT_MS);
  // For those who read headers: a directory that was moved is as good as before.
  const name = relative(dirname(chain.file), base.file);
  await qemuImg([...under(name), '-u', '-f', chain.format, chain.file], signal);
};

/** Bytes on the disk; 0 for what is not there. */
export const usedBytes = (path: string): Promise<number> =>
  stat(path).then(
    ({ blocks }) => blocks * BLOCK_BYTES,
    () => 0,
  );

/** Bytes that a guest sees of a raw image of an older version; undefined when there is none. */
export const rawBytes = (path: string): Promise<number | undefined> =>
  stat(path).then(
    (found) => (found.isFile() && found.size > 0 ? Math.ceil(found.size / BLOCK_BYTES) * BLOCK_BYTES : undefined),
    () => undefined,
  );

/** Copies `files/` of one handle for another, whole or not at all. Throws PoolError `Invalid` when they are too large. */
export async function copyFiles(from: string, to: string): Promise<void> {
  const source = join(from, FILES);
  const entries = await readdir(source, { recursive: true, withFileTypes: true }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw error;
    },
  );
  if (!entries) return;
  let bytes = 0;
  for (const entry of entries) {
    if (!entry.isFile() && !entry.isDirectory()) throw new PoolError('Invalid', `${entry.name} is not a regular file`);
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name))).size;
  }
  if (bytes > MAX_FILES_BYTES) throw new PoolError('Invalid', `the files of the volume take more than 16 MiB`);
  const made = join(to, `copy-${randomBytes(6).toString('hex')}`);
  await mkdir(to, { recursive: true, mode: 0o700 });
  await cp(source, made, { recursive: true });
  for (const entry of entries.filter((one) => one.isFile())) {
    const file = await open(join(made, relative(source, join(entry.parentPath, entry.name))), 'r');
    await file.sync().finally(() => file.close());
  }
  await rm(join(to, FILES), { recursive: true, force: true });
  await rename(made, join(to, FILES));
  await syncDirectory(to);
}
