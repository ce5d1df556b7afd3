/** Unpacks a file into another one, within bounds: what would be larger than the volume is broken off. */
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { programPath } from '@coracle/runtime/process/program';
import { runConfined } from '@coracle/runtime/process/run-confined';
import { FillError } from './fill-error.ts';
import { createHoleWriter, type HoleWriter } from './hole-writer.ts';
import type { Packing } from './image-format.ts';

export interface UnpackOptions {
  /** Bytes that the result may have. */
  readonly maxBytes: number;
  /** Private to the run. */
  readonly directory: string;
  readonly signal: AbortSignal;
  readonly onProgress: (bytes: number) => void;
}

const READ_BYTES = 1024 * 1024;
const OUT_BYTES = 256 * 1024;
/** What xz may take: a dictionary of 64 MiB, the largest of its presets, and more; hostile ones ask for 4 GiB. */
const XZ_MEMORY = 256 * 1024 * 1024;
const XZ_MS = 6 * 3_600_000;
/** A window of zstd beyond this (its command line's limit) is refused. */
const ZSTD_WINDOW_LOG = 27;

/** Throws FillError `Image`, or the signal's reason. */
export async function unpack(packing: Packing, from: string, to: string, options: UnpackOptions): Promise<void> {
  const { signal } = options;
  const file = await open(to, 'w', 0o600);
  try {
    const writer = createHoleWriter(file);
    const take = (chunk: Uint8Array): Promise<void> => bounded(writer, chunk, options);
    if (packing === 'xz') await unpackXz(from, take, options);
    else {
      const { constants } = await import('node:zlib');
      const decompressor =
        packing === 'gzip'
          ? createGunzip({ chunkSize: OUT_BYTES })
          : createZstdDecompress({
              chunkSize: OUT_BYTES,
              params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG },
            });
      const sink = new Writable({
        highWaterMark: OUT_BYTES,
        write: (chunk: Buffer, _encoding, done) => void take(chunk).then(() => done(), done),
      });
      await pipeline(createReadStream(from, { highWaterMark: READ_BYTES }), decompressor, sink, { signal });
    }
    await writer.end();
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof FillError || (error as NodeJS.ErrnoException).code === 'ENOSPC') throw error;
    const text = error instanceof Error ? error.message : String(error);
    throw new FillError('Image', `the ${packing} file cannot be unpacked: ${text}`, { cause: error });
  } finally {
    await file.close();
  }
}

async function bounded(
  writer: HoleWriter,
  chunk: Uint8Array,
  { maxBytes, onProgress }: Pick<UnpackOptions, 'maxBytes' | 'onProgress'>,
): Promise<void> {
  if (writer.position + chunk.length > maxBytes)
    throw new FillError('Image', `the source unpacks to more than the ${maxBytes} bytes that the volume has room for`);
  await writer.write(chunk);
  onProgress(writer.position);
}

/** Node has no decoder of xz. */
async function unpackXz(
  from: string,
  take: (chunk: Uint8Array) => Promise<void>,
  { directory, signal }: UnpackOptions,
): Promise<void> {
  const xz = programPath('xz');
  if (xz === undefined)
    throw new FillError('Image', 'the source is packed with xz, and this node has no program "xz" (package xz-utils)');
  let failure: unknown;
  const result = await runConfined(
    [xz, '--decompress', '--stdout', '--format=xz', `--memlimit-decompress=${XZ_MEMORY}`, '--', from],
    {
      cwd: directory,
      signal,
      timeoutMs: XZ_MS,
      onStdout: async (chunk) => {
        try {
          await take(chunk);
        } catch (error) {
          failure ??= error;
          throw error;
        }
      },
    },
  );
  if (failure !== undefined) throw failure;
  if (!result.ok) throw new FillError('Image', `the xz file cannot be unpacked: ${result.message}`);
}
