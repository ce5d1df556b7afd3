/**
 * Takes named files out of the layers of an image. Layers are untrusted tar streams: entry names are compared, never
 * used as paths of the host; links are never followed or made; counts and bytes are bounded.
 */
import { createReadStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { LAYER_READ, removes, walkLayer } from '@coracle/runtime/oci/walk-layer';
import { type SparseResult, writeSparse } from './sparse-writer.ts';

/** Files below one wanted directory; a container disk has one. */
const MAX_FILES = 8;

/** Path in the image -> where it was put. */
export type Extracted = ReadonlyMap<string, SparseResult & { readonly file: string }>;

/**
 * Applies the layers in order, keeping regular files that are one of `paths` or lie below one of them; later layers
 * replace and (by whiteouts) remove. New files are made in `directory` with names of our own. `maxBytes` is for all of
 * them together, and for what a layer is once unpacked, extracted or not.
 */
export async function extractFiles(
  layers: readonly string[],
  paths: readonly string[],
  {
    directory,
    maxBytes,
    signal,
  }: { readonly directory: string; readonly maxBytes: number; readonly signal: AbortSignal },
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
    const bytes = { open: () => createReadStream(layer, LAYER_READ), head: () => headOf(layer) };
    await walkLayer(bytes, { maxUnpackedBytes: maxBytes }, signal, async (entry) => {
      const { kind, name } = entry;
      if (kind === 'whiteout' || kind === 'opaque') return drop((kept) => removes(entry, kept));
      if (!wanted(name)) return;
      if (kind === 'link' || kind === 'symlink')
        throw new Error(`${name} in the image is a link; it must be a regular file`);
      if (kind !== 'file') return;
      await drop((kept) => kept === name);
      if (found.size >= MAX_FILES)
        throw new Error(`the image holds more than ${MAX_FILES} files where one is expected`);
      const file = join(directory, `file-${serial++}`);
      const result = await writeSparse(file, entry.body, { maxBytes: maxBytes - total, signal });
      total += result.size;
      found.set(name, { ...result, file });
    });
  }
  return found;
}

async function headOf(path: string): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of createReadStream(path, { end: 3 })) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
