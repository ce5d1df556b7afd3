/**
 * kustomize, or the one in kubectl, run on the files of a source in a private directory: regular files alone, no links, no
 * program to start, nothing fetched. What it prints is the source.
 */
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { programPath } from '@coracle/runtime/process/program';
import { runConfined } from '@coracle/runtime/process/run-confined';
import type { SourceFile, SourceTree } from '../git/source.ts';
import { isKustomization, TREE_LIMITS } from '../git/tree-rules.ts';
import { SyncFailure, syncError } from '../status/sync-error.ts';
import { checkKustomization } from './check-kustomization.ts';

export interface KustomizeOptions {
  /** The directory that is synced, '' for the root. */
  readonly dir: string;
  /** Private to one sync; a directory of ours is made in it for the time of a run. */
  readonly directory: string;
  readonly signal: AbortSignal;
  readonly maxMemory?: number;
  readonly timeoutMs?: number;
}

const RENDER_MS = 60_000;
const PLACE = 'render-';

/**
 * Renders all files of a source. `path` is the kustomization that asks for it, and the file that the objects are said to be of.
 * @throws SyncFailure KNV1068 for what cannot be rendered, or when the host has neither program
 */
export async function kustomize(
  { files }: SourceTree,
  path: string,
  { dir, directory, signal, maxMemory, timeoutMs = RENDER_MS }: KustomizeOptions,
): Promise<SourceTree> {
  const refuse = (text: string): SyncFailure => new SyncFailure([syncError(1068, text, [{ sourcePath: path }])]);
  const roots = checkKustomization(files, dir);
  const command = commandOf();
  if (!command)
    throw refuse(
      `${path} needs kustomize, and this host has neither kustomize nor kubectl in its PATH: install one, or commit the rendered files`,
    );
  await mkdir(directory, { recursive: true, mode: 0o700 });
  // What a killed process left.
  for (const old of await readdir(directory))
    if (old.startsWith(PLACE)) await rm(join(directory, old), { recursive: true, force: true });
  const place = await mkdtemp(join(directory, PLACE));
  try {
    const tree = join(place, 'source');
    await writeTree(files, roots, tree);
    const result = await runConfined([...command, join(tree, dir)], {
      cwd: place,
      signal,
      timeoutMs,
      maxStdout: TREE_LIMITS.totalBytes,
      ...(maxMemory !== undefined && { maxMemory }),
    });
    signal.throwIfAborted();
    if (result.ok) return { files: [{ path, bytes: result.stdout }], unread: [] };
    const said = (result.reason === 'exit' ? result.stderr : result.message).replaceAll(`${tree}/`, '').trim();
    throw refuse(`kustomize cannot build ${dir === '' ? 'the root' : dir}: ${said.slice(0, 2000)}`);
  } finally {
    await rm(place, { recursive: true, force: true });
  }
}

function commandOf(): string[] | undefined {
  const own = programPath('kustomize');
  if (own !== undefined) return [own, 'build'];
  const kubectl = programPath('kubectl');
  return kubectl === undefined ? undefined : [kubectl, 'kustomize'];
}

/** Of the directories that are rendered: kustomize reads no file outside of them. */
async function writeTree(files: readonly SourceFile[], roots: readonly string[], tree: string): Promise<void> {
  const isWanted = (path: string): boolean => roots.some((root) => root === '' || path.startsWith(`${root}/`));
  await mkdir(tree, { mode: 0o700 });
  for (const { path, bytes } of files) {
    if (!isWanted(path) || !isPlainPath(path)) continue;
    const at = join(tree, path);
    try {
      await mkdir(dirname(at), { recursive: true, mode: 0o700 });
      await writeFile(at, bytes, { mode: 0o600, flag: 'wx' });
    } catch (error) {
      // A name that is a file and a directory at once: kustomize misses it if it wants it.
      if (!['EEXIST', 'ENOTDIR', 'ENAMETOOLONG'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    }
  }
}

/** Names come from whoever wrote the source, also those that git would not check out. */
const isPlainPath = (path: string): boolean =>
  !path.includes('\0') &&
  path.split('/').every((part) => part !== '' && part !== '.' && part !== '..' && part.toLowerCase() !== '.git');

/** The kustomization of the directory that is synced; undefined when it has none. */
export const kustomizationOf = (paths: readonly string[], dir: string): string | undefined =>
  paths.find((path) => isKustomization(path) && !path.slice(dir === '' ? 0 : dir.length + 1).includes('/'));
