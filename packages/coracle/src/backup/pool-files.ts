/** The files of volumes that a backup takes, while no guest writes to them. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { kindOfPath } from './manifest.ts';

/** A file to be kept: where it is, and its path below a restored data directory. */
export interface SourceFile {
  readonly source: string;
  readonly path: string;
}

/** Volumes at one point in time. */
export interface PoolView {
  readonly files: readonly SourceFile[];
  readonly notes: readonly string[];
  /** No agent serves the pool: nobody writes to it. */
  readonly unserved?: true;
  /** Lets the pool go on as before. */
  release(): Promise<void>;
}

/** The files below `claims/`, as they lie. */
export async function restingPool(claimsDirectory: string): Promise<PoolView> {
  const entries = await readdir(claimsDirectory, { recursive: true, withFileTypes: true }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    },
  );
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const source = join(entry.parentPath, entry.name);
      return { source, path: `claims${source.slice(claimsDirectory.length)}` };
    })
    .filter(({ path }) => kindOfPath(path) === 'chunked');
  return { files, notes: [], release: async () => {} };
}
