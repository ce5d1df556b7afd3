/** The files of an image store and the records that name them: taken over, looked for, and dropped when there is no room. */
import { chmod, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { syncDirectory, writeFileAtomic } from './atomic-file.ts';
import {
  type FileEntry,
  fileNameOf,
  filesOf,
  type ImageEntry,
  type ImageFiles,
  readImageEntries,
} from './store-entries.ts';

const MAX_BYTES = 100 * 1024 ** 3;
/** A file without a record is abandoned after this long. */
const UNNAMED_MS = 10 * 60_000;

/** The files of the store at `directory`, which is there already. */
export function createStoreFiles(
  directory: string,
  options: { readonly clock: Clock; readonly log: Logger; readonly maxBytes?: number | undefined },
) {
  const { clock, log } = options;
  /** A path within the store. */
  const at = (...names: string[]): string => join(directory, ...names);

  const present = async (file: FileEntry): Promise<boolean> =>
    stat(at('files', fileNameOf(file.digest))).then(
      (s) => s.size === file.size,
      () => false,
    );
  /** The entry, if all its files are there. */
  const complete = async (entry: ImageEntry | undefined): Promise<ImageEntry | undefined> => {
    if (!entry) return undefined;
    for (const file of filesOf(entry.files)) if (!(await present(file))) return undefined;
    return entry;
  };
  /** Takes finished files over: moves them. */
  const moveIn = async (files: ImageFiles, paths: readonly string[]): Promise<void> => {
    for (const [i, file] of filesOf(files).entries()) {
      const from = paths[i] ?? '';
      await chmod(from, 0o400);
      await rename(from, at('files', fileNameOf(file.digest)));
    }
    await syncDirectory(at('files'));
  };

  /**
   * Removes files that no record names, then, while over the bound, the pulled image that was used longest ago. A file
   * nobody names yet may be one whose record is being written this moment, so only old ones, and those of `dropped`, go
   * at once.
   */
  const sweep = async (dropped: readonly ImageEntry[] = []): Promise<void> => {
    const pulled = (await readImageEntries(at('pulled'))).sort((a, b) => a.entry.usedAt - b.entry.usedAt);
    const local = await readImageEntries(at('local'));
    const bound = options.maxBytes ?? MAX_BYTES;
    const gone = new Set(dropped.flatMap((entry) => filesOf(entry.files).map((file) => fileNameOf(file.digest))));
    for (;;) {
      const files = [...pulled, ...local].flatMap(({ entry }) => filesOf(entry.files));
      const named = new Map(files.map(({ digest, size }) => [fileNameOf(digest), size]));
      const total = named.values().reduce((sum, size) => sum + size, 0);
      if (total <= bound || pulled.length <= 1) {
        for (const name of await readdir(at('files'))) {
          if (named.has(name)) continue;
          const age = clock.now() - (await stat(at('files', name))).ctimeMs;
          if (gone.has(name) || age > UNNAMED_MS) await rm(at('files', name), { force: true });
        }
        return;
      }
      const oldest = pulled.shift();
      if (!oldest) return;
      log.info('image dropped to make room', { image: oldest.entry.reference });
      await rm(oldest.path, { force: true });
      for (const file of filesOf(oldest.entry.files)) gone.add(fileNameOf(file.digest));
    }
  };

  /** Writes down that the image of this record is used. */
  const touch = async (path: string, entry: ImageEntry): Promise<void> => {
    // Once an hour is enough to order images by use.
    if (clock.now() - entry.usedAt > 3600_000)
      await writeFileAtomic(path, JSON.stringify({ ...entry, usedAt: clock.now() }));
  };

  return { at, complete, moveIn, sweep, touch };
}

export type StoreFiles = ReturnType<typeof createStoreFiles>;
