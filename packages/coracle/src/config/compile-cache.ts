/** The compile cache of Node, bounded: Node itself never removes what it has written there. */
import { readdir, rm, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

export interface CompileCacheLimits {
  /** Files of one version of Node, each about 6 KiB. Beyond them the oldest go until half are left. */
  readonly entries: number;
  /** Versions of Node that wrote nothing for so long go whole; ms. */
  readonly unusedMs: number;
}

/** Ten checkouts' worth, and a month: what is removed costs one slower start. */
export const COMPILE_CACHE_LIMITS: CompileCacheLimits = { entries: 16_384, unusedMs: 30 * 24 * 3_600_000 };

/** Nodes name their folders so: `v26.1.0-x64-ef3ce0b9-0`. Nothing else is touched. */
const FOLDER_OF_NODE = /^v\d+\.\d+\.\d+\S*-[0-9a-f]{8}-\d+$/;
/** Looked at or removed at a time: it is nobody's hurry. */
const AT_ONCE = 32;

/**
 * Removes what is too much or too old. `current` is the folder that this Node writes (`module.getCompileCacheDir()`), `now`
 * in ms since the epoch. Resolves to how many files and folders went; what cannot be removed stays.
 */
export async function pruneCompileCache(
  current: string,
  { now, limits = COMPILE_CACHE_LIMITS }: { readonly now: number; readonly limits?: CompileCacheLimits },
): Promise<number> {
  if (!FOLDER_OF_NODE.test(basename(current))) return 0;
  let removed = 0;
  for (const entry of await readdir(dirname(current), { withFileTypes: true })) {
    if (!entry.isDirectory() || !FOLDER_OF_NODE.test(entry.name) || entry.name === basename(current)) continue;
    const folder = join(dirname(current), entry.name);
    if (now - (await stat(folder)).mtimeMs <= limits.unusedMs) continue;
    await rm(folder, { recursive: true, force: true });
    removed++;
  }
  const names = await readdir(current);
  if (names.length <= limits.entries) return removed;
  const written: { readonly path: string; readonly at: number }[] = [];
  await eachOf(names, async (name) => {
    const path = join(current, name);
    const found = await stat(path).catch(() => undefined);
    if (found?.isFile()) written.push({ path, at: found.mtimeMs });
  });
  written.sort((one, other) => one.at - other.at);
  const surplus = written.slice(0, Math.max(0, written.length - (limits.entries >> 1)));
  await eachOf(surplus, ({ path }) => unlink(path).catch(() => {}));
  return removed + surplus.length;
}

async function eachOf<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += AT_ONCE) await Promise.all(items.slice(at, at + AT_ONCE).map(act));
}
