/**
 * The entries of one layer of an image, one by one. Layers are untrusted tar streams: names are compared and never used
 * as paths of the host, links are reported and never followed or made, entries and bytes are bounded.
 */
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { extract as tarExtract } from 'tar-stream';

/** Where the bytes of a layer are: read from the start each time it is opened. */
export interface LayerBytes {
  /** Its first four bytes, or fewer. */
  head(): Promise<Uint8Array>;
  open(): Readable;
}

export interface LayerEntry {
  /** From the root of the image, as `/a/b`; of a whiteout what it removes. */
  readonly name: string;
  /** 'opaque' removes what lower layers have below `name`; 'other' is a directory, device, pipe or anything else. */
  readonly kind: 'file' | 'symlink' | 'link' | 'whiteout' | 'opaque' | 'other';
  /** Of links. */
  readonly target: string;
  /** Of a file; read to its end or not at all. */
  readonly body: AsyncIterable<Uint8Array>;
}

export interface WalkLimits {
  /** Bytes of the layer once unpacked, looked at or not. */
  readonly maxUnpackedBytes: number;
  readonly maxEntries?: number;
  /** Hears of bytes as they are unpacked. */
  readonly onUnpacked?: (bytes: number) => void;
}

/** Entries of one layer that are looked at. */
const MAX_ENTRIES = 200_000;
const READ_BYTES = 1024 * 1024;

/** How much a layer is read at a time. */
export const LAYER_READ = { highWaterMark: READ_BYTES } as const;

/** `./disk//a` -> `/disk/a`; undefined for a name that climbs or is absurd. */
export function normalEntryName(name: string): string | undefined {
  if (name.length > 4096 || name.includes('\0')) return undefined;
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  return parts.includes('..') ? undefined : `/${parts.join('/')}`;
}

/**
 * Shows `visit` each entry in order; the next one waits for it. Entries whose name climbs are left out.
 * Rejects with the signal's reason, what `visit` threw, or an Error that says what is wrong with the layer.
 */
export async function walkLayer(
  layer: LayerBytes,
  { maxUnpackedBytes, maxEntries = MAX_ENTRIES, onUnpacked = () => {} }: WalkLimits,
  signal: AbortSignal,
  visit: (entry: LayerEntry) => Promise<void>,
): Promise<void> {
  let entries = 0;
  let unpacked = 0;
  const archive = tarExtract();
  const feed = pipeline(
    layer.open(),
    ...decompressor(await layer.head()),
    async function* (source: AsyncIterable<Buffer>) {
      for await (const chunk of source) {
        unpacked += chunk.length;
        onUnpacked(chunk.length);
        if (unpacked > maxUnpackedBytes) throw new Error(`a layer unpacks to more than ${maxUnpackedBytes} bytes`);
        yield chunk;
      }
    },
    archive,
    { signal },
  );
  // The loop below reports the failure; this keeps it from being an unhandled one.
  feed.catch(() => {});
  for await (const entry of archive) {
    if (++entries > maxEntries) throw new Error(`a layer holds more than ${maxEntries} entries`);
    const seen = describe(entry.header);
    if (seen) await visit({ ...seen, body: entry as AsyncIterable<Uint8Array> });
    entry.resume();
  }
  await feed;
}

function describe(header: {
  readonly name: string;
  readonly type?: string | null;
  readonly linkname?: string | null;
}): Omit<LayerEntry, 'body'> | undefined {
  const name = normalEntryName(header.name);
  if (name === undefined) return undefined;
  const slash = name.lastIndexOf('/');
  const base = name.slice(slash + 1);
  const parent = name.slice(0, slash);
  if (base === '.wh..wh..opq') return { name: parent, kind: 'opaque', target: '' };
  if (base.startsWith('.wh.')) return { name: `${parent}/${base.slice('.wh.'.length)}`, kind: 'whiteout', target: '' };
  const target = header.linkname ?? '';
  if (header.type === 'symlink' || header.type === 'link') return { name, kind: header.type, target };
  const isFile = header.type === 'file' || header.type === 'contiguous-file';
  return { name, kind: isFile ? 'file' : 'other', target };
}

/** True when a whiteout or opaque entry takes a name of lower layers away. */
export const removes = ({ kind, name }: Pick<LayerEntry, 'kind' | 'name'>, kept: string): boolean =>
  kept.startsWith(`${name}/`) || (kind === 'whiteout' && kept === name);

/** By the first bytes: media types lie. */
function decompressor(head: Uint8Array): NodeJS.ReadWriteStream[] {
  if (head[0] === 0x1f && head[1] === 0x8b) return [createGunzip()];
  if (head[0] === 0x28 && head[1] === 0xb5 && head[2] === 0x2f && head[3] === 0xfd) return [createZstdDecompress()];
  return [];
}
