/**
 * An image from a web server into a file: goes on where an earlier try stopped if the server still has the very same
 * bytes, checks the checksum on the way, and leaves holes where there are zeros.
 *
 * What is on the disk for certain stands in a note beside the file. After a power cut the rest is fetched again.
 */
import { open, readFile, rm, truncate } from 'node:fs/promises';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { CheckedResponse, Resolve } from '@coracle/runtime/oci/checked-request';
import { writeFileAtomic } from '../image/atomic-file.ts';
import { createChecksum } from './checksum.ts';
import { FillError } from './fill-error.ts';
import { createHoleWriter, type HoleWriter } from './hole-writer.ts';
import { getImage, type HttpSource } from './http-exchange.ts';
import { watchStall } from './watch-stall.ts';

export interface DownloadSource extends HttpSource {
  readonly checksum?: string;
}

export interface DownloadOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly resolve: Resolve;
  /** More than this is no image for the volume. */
  readonly maxBytes: number;
  /** Hears of bytes there, and of all of them where the server says how many. */
  readonly onProgress: (done: number, total: number | undefined) => void;
  /** Shows the first bytes, once. */
  readonly onHead: (head: Uint8Array) => void;
  /** As of `watchStall`. */
  readonly stallMs?: number;
}

/** What a resumed download needs to know. */
interface Note {
  readonly url: string;
  /** A strong ETag, else the Last-Modified: what proves that the bytes are the same. */
  readonly validator: string;
  readonly synced: number;
}

/** What is written is made durable, and noted, so often. */
const SYNC_BYTES = 64 * 1024 * 1024;

/** Fills `path`. Throws FillError, or the signal's reason; what is there stays for the next try. */
export async function download(source: DownloadSource, path: string, options: DownloadOptions): Promise<void> {
  const notePath = `${path}.json`;
  const checksum = source.checksum === undefined ? undefined : createChecksum(source.checksum);
  const note = await readNote(notePath, source.url);
  const watch = watchStall('the server', options);
  try {
    const { response, from } = await ask(source, note, { ...options, signal: watch.signal });
    const validator = validatorOf(response);
    const length = Number(response.header('content-length') ?? Number.NaN);
    const total = Number.isSafeInteger(length) ? from + length : undefined;
    if (total !== undefined && total > options.maxBytes) {
      response.cancel();
      throw tooLarge(total, options.maxBytes);
    }
    await checksum?.updateFrom(path, from, options.signal);
    const file = await open(path, from > 0 ? 'r+' : 'w', 0o600);
    try {
      const writer = createHoleWriter(file, from);
      const marks = createMarks(writer, (synced) =>
        validator === undefined ? undefined : writeNote(notePath, { url: source.url, validator, synced }),
      );
      let isFirst = from === 0;
      for await (const chunk of response.body) {
        watch.alive();
        if (isFirst) options.onHead(chunk);
        isFirst = false;
        checksum?.update(chunk);
        await writer.write(chunk);
        if (writer.position > options.maxBytes) throw tooLarge(writer.position, options.maxBytes);
        options.onProgress(writer.position, total);
        await marks.pass(writer.position);
      }
      await writer.end();
      await marks.settled();
      if (total !== undefined && writer.position < total)
        throw new FillError('Source', `the connection ended after ${writer.position} of ${total} bytes`);
    } catch (error) {
      await keepRest(file, { notePath, url: source.url, validator });
      throw error;
    } finally {
      await file.close();
    }
    try {
      checksum?.verify();
    } catch (error) {
      await rm(path, { force: true });
      await rm(notePath, { force: true });
      throw error;
    }
  } catch (error) {
    options.signal.throwIfAborted();
    if (watch.signal.aborted) throw new FillError('Source', (watch.signal.reason as Error).message);
    if (error instanceof FillError || (error as NodeJS.ErrnoException).code === 'ENOSPC') throw error;
    const text = error instanceof Error ? error.message : String(error);
    throw new FillError('Source', `the download broke off: ${text}`, { cause: error });
  } finally {
    watch.stop();
  }
}

export const tooLarge = (bytes: number, maxBytes: number): FillError =>
  new FillError('Image', `the source has at least ${bytes} bytes, and the volume has room for an image of ${maxBytes}`);

/** Has what is written made durable now and then, beside the download, and noted once it is. */
function createMarks(
  writer: HoleWriter,
  note: (synced: number) => Promise<void> | undefined,
): { pass(position: number): Promise<void>; settled(): Promise<void> } {
  let marked = writer.position;
  let pending: Promise<void> = Promise.resolve();
  let isBusy = false;
  return {
    async pass(position) {
      if (isBusy || position - marked < SYNC_BYTES) return;
      marked = position;
      isBusy = true;
      const { synced } = await writer.startSync();
      pending = synced
        .then(() => note(position))
        .finally(() => {
          isBusy = false;
        });
      // Whoever waits for the end hears of it.
      pending.catch(() => {});
    },
    settled: () => pending,
  };
}

/** Notes how much of a download that ends here is on the disk: the next try goes on from it. */
async function keepRest(
  file: Awaited<ReturnType<typeof open>>,
  {
    notePath,
    url,
    validator,
  }: { readonly notePath: string; readonly url: string; readonly validator: string | undefined },
): Promise<void> {
  if (validator === undefined) return;
  try {
    await file.datasync();
    await writeNote(notePath, { url, validator, synced: (await file.stat()).size });
  } catch {
    // A full disk: what was noted before still holds.
  }
}

/** Asks for the rest of what is there, or for all of it. */
async function ask(
  source: DownloadSource,
  note: Note | undefined,
  options: DownloadOptions,
): Promise<{ readonly response: CheckedResponse; readonly from: number }> {
  if (note && note.synced > 0) {
    const headers = { range: `bytes=${note.synced}-`, 'if-range': note.validator };
    const response = await getImage(source, headers, options);
    const start = /^bytes (\d+)-\d+\//.exec(response.header('content-range') ?? '')?.[1];
    if (response.status === 206 && Number(start) === note.synced && validatorOf(response) === note.validator)
      return { response, from: note.synced };
    if (response.status === 200) return { response, from: 0 };
    // All bytes are there already, or the server has less now: from the start.
    response.cancel();
  }
  const response = await getImage(source, {}, options);
  if (response.status === 200) return { response, from: 0 };
  response.cancel();
  const hint = response.status === 401 || response.status === 403 ? '; secretRef names credentials' : '';
  throw new FillError('Source', `expected status code 200, got ${response.status} from ${hostOf(source.url)}${hint}`);
}

const hostOf = (url: string): string => URL.parse(url)?.host ?? url;

function validatorOf(response: CheckedResponse): string | undefined {
  const etag = response.header('etag');
  // A weak one does not promise the same bytes.
  if (etag?.startsWith('"')) return etag;
  return response.header('last-modified');
}

async function readNote(path: string, url: string): Promise<Note | undefined> {
  try {
    const note = JSON.parse(await readFile(path, 'utf8')) as Partial<Note>;
    const isSound = note.url === url && typeof note.validator === 'string' && Number.isSafeInteger(note.synced);
    if (!isSound) return undefined;
    const file = path.replace(/\.json$/, '');
    await truncate(file, note.synced);
    return note as Note;
  } catch {
    return undefined;
  }
}

const writeNote = (path: string, note: Note): Promise<void> => writeFileAtomic(path, JSON.stringify(note));
