/** Images put into the store by hand: `localhost/NAME[:tag]`, and the list of all that is there. */
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isLocal, parseReference, referenceText } from '@coracle/runtime/oci/reference';
import { inspectDisk } from './disk-header.ts';
import type { ImageStore } from './image-store.ts';
import { checkDiskSource } from './import-source.ts';
import { writeSparse } from './sparse-writer.ts';
import { type FileEntry, filesOf, type ImageEntry } from './store-entries.ts';

export interface ImportOptions {
  /** A kernel image (bzImage) for kernelBoot. */
  readonly kernel?: string;
  readonly initrd?: string;
  /** Called with each whole percent of the disk that is copied. */
  readonly onPercent?: (percent: number) => void;
  readonly signal: AbortSignal;
}

export interface ImageSummary {
  /** `localhost/name:tag`, or the reference it was pulled by. */
  readonly reference: string;
  readonly digest: string;
  readonly local: boolean;
  /** Bytes in the store. */
  readonly size: number;
  /** Bytes of the disk as a guest sees it; 0 without a disk. */
  readonly virtualSize: number;
  readonly format: 'raw' | 'qcow2' | '';
  readonly kernel: boolean;
  readonly createdAt: number;
}

const MAX_IMPORT = 1024 ** 4;

/** `name`, `name:tag` or `localhost/name:tag` in full. Throws on a name with another registry. */
function localReference(name: string): string {
  const given = parseReference(name);
  const ref = isLocal(given) ? given : parseReference(`localhost/${name}`);
  if ((!isLocal(given) && given.registry !== 'docker.io') || ref.digest !== '')
    throw new Error(`${name}: a local image is called NAME or NAME:TAG`);
  return referenceText(ref);
}

/**
 * Copies `file` (and kernel, initrd) into the store as `localhost/NAME[:tag]`, replacing what had that name. `file` may
 * be undefined for an image that only boots a kernel. Throws when a file is missing or no disk we accept.
 */
export async function importImage(
  store: ImageStore,
  name: string,
  file: string | undefined,
  options: ImportOptions,
): Promise<ImageSummary> {
  const reference = localReference(name);
  if (file !== undefined) await checkDiskSource(file);
  const scratch = await store.scratch();
  try {
    const paths: string[] = [];
    const take = async (source: string | undefined, kind: string): Promise<FileEntry | undefined> => {
      if (source === undefined) return undefined;
      const target = join(scratch, kind);
      const input = await open(source, 'r').catch((error: NodeJS.ErrnoException) => {
        const why = error.message.replace(/^E[A-Z]+: |, open '.*'$/g, '');
        throw new Error(`cannot read ${kind} ${source}: ${why}`, { cause: error });
      });
      const { size } = await input.stat();
      const chunks = input.createReadStream({ highWaterMark: 1024 * 1024 });
      const copied = await writeSparse(target, kind === 'disk' ? counted(chunks, size, options.onPercent) : chunks, {
        maxBytes: MAX_IMPORT,
        signal: options.signal,
      });
      const format = kind === 'disk' ? await inspectDisk(target) : { format: 'raw' as const, virtualSize: copied.size };
      paths.push(target);
      return { ...copied, ...format };
    };
    const disk = await take(file, 'disk');
    const kernel = await take(options.kernel, 'kernel');
    const initrd = await take(options.initrd, 'initrd');
    const files = { ...(disk && { disk }), ...(kernel && { kernel }), ...(initrd && { initrd }) };
    return summaryOf(await store.adopt(reference, files, paths), true);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function* counted(
  chunks: AsyncIterable<Uint8Array>,
  size: number,
  onPercent: ImportOptions['onPercent'],
): AsyncIterable<Uint8Array> {
  let [done, last] = [0, 0];
  for await (const chunk of chunks) {
    yield chunk;
    done += chunk.length;
    const percent = Math.min(100, Math.floor((done * 100) / Math.max(size, done)));
    if (percent !== last) onPercent?.(percent);
    last = percent;
  }
}

const summaryOf = (entry: ImageEntry, local: boolean): ImageSummary => ({
  reference: entry.reference,
  digest: entry.digest,
  local,
  size: filesOf(entry.files).reduce((sum, file) => sum + file.size, 0),
  virtualSize: entry.files.disk?.virtualSize ?? 0,
  format: entry.files.disk?.format ?? '',
  kernel: entry.files.kernel !== undefined,
  createdAt: entry.createdAt,
});

/** Everything in the store, by reference. */
export async function listImages(store: Pick<ImageStore, 'entries'>): Promise<ImageSummary[]> {
  return (await store.entries())
    .map(({ entry, local }) => summaryOf(entry, local))
    .sort((a, b) => (a.reference < b.reference ? -1 : a.reference > b.reference ? 1 : 0));
}

/** Removes an image by reference; false when there was none. Guests that run from it are not touched. */
export async function removeImage(store: ImageStore, name: string): Promise<boolean> {
  const full = new Set<string>();
  for (const read of [localReference, (text: string) => referenceText(parseReference(text))])
    try {
      full.add(read(name));
    } catch {
      // Not a local name, or not a reference at all.
    }
  const matches = (await store.entries()).filter(({ entry }) => full.has(entry.reference));
  await store.remove(matches.map(({ path }) => path));
  return matches.length > 0;
}
