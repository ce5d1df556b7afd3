/** Where a control plane keeps everything, and the names of the files in it (docs/on-disk.md lists them). */
import { chmodSync, mkdirSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { distrust } from './trusted-dir.ts';

export type DataDir = Readonly<ReturnType<typeof dataDirAt>>;

type Environment = Readonly<Record<string, string | undefined>>;

/** The default data directory: `$XDG_DATA_HOME/coracle`, else `~/.local/share/coracle` (XDG Base Directory). */
export function defaultDataDir(environment: Environment): string {
  const base = environment['XDG_DATA_HOME'];
  return join(base && isAbsolute(base) ? base : join(environment['HOME'] || homedir(), '.local/share'), 'coracle');
}

/** Paths below a data directory. */
export function dataDirAt(path: string) {
  const root = resolve(path);
  return {
    root,
    /** SQLite store and its lock. */
    state: join(root, 'state'),
    /** CA, signing key, certificates. */
    pki: join(root, 'pki'),
    /** Admin kubeconfig. */
    kubeconfig: join(root, 'kubeconfig'),
    /** What the running process says of itself; absent when none runs. */
    running: join(root, 'running.json'),
    /** Log of a detached process. */
    log: join(root, 'coracle.log'),
    /** Image store, shared by all nodes. */
    images: join(root, 'images'),
    /** One directory a node: VM directories, probe results. */
    nodes: join(root, 'nodes'),
    /** Mirrors of Git repositories. */
    gitops: join(root, 'gitops'),
  };
}

/**
 * Makes the directory, closed to others. Throws what the file system says of the first part that cannot be made, and one
 * line where somebody else owns it, or may write to it or above it: keys and state are kept in no such place.
 */
export function ensurePrivateDir(path: string): void {
  const problem = distrust(path);
  if (problem !== undefined) throw new Error(`${path} is not used: ${problem}`);
  makePrivateDirs(path);
  chmodSync(path, 0o700);
}

/**
 * Makes the directory and those above it that are missing, closed to others. Not with `recursive`: below /proc, where a
 * directory that is there takes no new ones and answers ENOENT, Node 26 tries for ever, and on a read-only disk it says
 * ENOENT too.
 */
export function makePrivateDirs(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || dirname(path) === path) throw error;
    makePrivateDirs(dirname(path));
    mkdirSync(path, { mode: 0o700 });
  }
}
