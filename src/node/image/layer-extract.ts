/**
 * Takes named files out of the layers of an image. Layers are untrusted tar streams: entry names are compared, never
 * used as paths of the host; links are never followed or made; counts and bytes are bounded.
 */
import { createReadStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { extract as tarExtract } from 'tar-stream';
import { type SparseResult, writeSparse } from './sparse-writer.ts';

export interface ExtractLimits {
  /** Bytes of all extracted files together. */
  readonly maxBytes: number;
  /** Bytes of a layer once unpacked, extracted or not. */
  readonly maxUnpackedBytes: number;
}

/** Entries of one layer that are looked at. */
const MAX_ENTRIES = 200_000;
/** Files below one wanted directory; a container disk has one. */
const MAX_FILES = 8;

/** Path in the image -> where it was put. */
export type Extracted = ReadonlyMap<string, SparseResult & { readonly file: string }>;

/** `./disk//a` -> `/disk/a`; undefined for a name that climbs or is absurd. */
export function normalEntryName(name: string): string | undefined {
  if (name.length > 4096 || name.includes('\0')) return undefined;
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  return parts.includes('..') ? undefined : `/${parts.join('/')}`;
}

/**
 * Applies the layers in order, keeping regular files that are one of `paths` or lie below one of them; later layers
 * replace and (by whiteouts) remove. New files are made in `directory` with names of our own.
 */
export async function extractFiles(
  layers: readonly string[],
  paths: readonly string[],
  options: { readonly directory: string; readonly limits: ExtractLimits; readonly signal: AbortSignal },
): Promise<Extracted> {
  const found = new Map<string, SparseResult & { file: string }>();
  let serial = 0;
  let total = 0;
  const wanted = (name: string): boolean => paths.some((path) => name === path || name.startsWith(`${path}/`));
  const drop = async (test: (name: string) => boolean): Promise<void> => {
    for (const [name, { file, size }] of found) {
      if (!test(name)) continue;
      found.delete(name);
      total -= size;
      await rm(file, { force: true });
    }
  };

  for (const layer of layers) {
    let entries = 0;
    let unpacked = 0;
    const archive = tarExtract();
    const feed = pipeline(
      createReadStream(layer, { highWaterMark: 1024 * 1024 }),
      ...(await decompressor(layer)),
      async function* (source: AsyncIterable<Buffer>) {
        for await (const chunk of source) {
          unpacked += chunk.length;
          if (unpacked > options.limits.maxUnpackedBytes)
            throw new Error(`a layer unpacks to more than ${options.limits.maxUnpackedBytes} bytes`);
          yield chunk;
        }
      },
      archive,
      { signal: options.signal },
    );
    // The loop below reports the failure; this keeps it from being an unhandled one.
    feed.catch(() => {});
    for await (const entry of archive) {
      if (++entries > MAX_ENTRIES) throw new Error(`a layer holds more than ${MAX_ENTRIES} entries`);
      const name = normalEntryName(entry.header.name);
      const base = name?.slice(name.lastIndexOf('/') + 1) ?? '';
      if (name !== undefined && base.startsWith('.wh.')) {
        const parent = name.slice(0, name.lastIndexOf('/'));
        const target = `${parent}/${base.slice('.wh.'.length)}`;
        await drop((kept) =>
          base === '.wh..wh..opq' ? kept.startsWith(`${parent}/`) : kept === target || kept.startsWith(`${target}/`),
        );
      } else if (name !== undefined && wanted(name)) {
        const { type } = entry.header;
        if (type === 'link' || type === 'symlink')
          throw new Error(`${name} in the image is a link; it must be a regular file`);
        if (type === 'file' || type === 'contiguous-file') {
          await drop((kept) => kept === name);
          if (found.size >= MAX_FILES)
            throw new Error(`the image holds more than ${MAX_FILES} files where one is expected`);
          const file = join(options.directory, `file-${serial++}`);
          const result = await writeSparse(file, entry as AsyncIterable<Uint8Array>, {
            maxBytes: options.limits.maxBytes - total,
            signal: options.signal,
          });
          total += result.size;
          found.set(name, { ...result, file });
          continue;
        }
      }
      entry.resume();
    }
    await feed;
  }
  return found;
}

/** Told by the first bytes: media types lie. */
async function decompressor(path: string): Promise<NodeJS.ReadWriteStream[]> {
  const head: number[] = [];
  for await (const chunk of createReadStream(path, { end: 3 })) head.push(...(chunk as Buffer));
  if (head[0] === 0x1f && head[1] === 0x8b) return [createGunzip()];
  if (head[0] === 0x28 && head[1] === 0xb5 && head[2] === 0x2f && head[3] === 0xfd) return [createZstdDecompress()];
  return [];
}
