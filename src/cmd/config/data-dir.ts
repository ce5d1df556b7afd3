/** Where a control plane keeps everything, and the names of the files in it (docs/on-disk.md lists them). */
import { chmodSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';

export interface DataDir {
  readonly root: string;
  /** SQLite store and its lock. */
  readonly state: string;
  /** CA, signing key, certificates. */
  readonly pki: string;
  /** Admin kubeconfig. */
  readonly kubeconfig: string;
  /** What the running process says of itself; absent when none runs. */
  readonly running: string;
  /** Log of a detached process. */
  readonly log: string;
  /** Image store, shared by all nodes. */
  readonly images: string;
  /** One directory a node: VM directories, probe results. */
  readonly nodes: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The default data directory: `$XDG_DATA_HOME/coracle`, else `~/.local/share/coracle` (XDG Base Directory). */
export function defaultDataDir(environment: Environment): string {
  const base = environment['XDG_DATA_HOME'];
  return join(base && isAbsolute(base) ? base : join(environment['HOME'] || homedir(), '.local/share'), 'coracle');
}

/** Paths below a data directory. */
export function dataDirAt(path: string): DataDir {
  const root = resolve(path);
  return {
    root,
    state: join(root, 'state'),
    pki: join(root, 'pki'),
    kubeconfig: join(root, 'kubeconfig'),
    running: join(root, 'running.json'),
    log: join(root, 'coracle.log'),
    images: join(root, 'images'),
    nodes: join(root, 'nodes'),
  };
}

/** Makes the directory, closed to others. */
export function ensurePrivateDir(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  chmodSync(path, 0o700);
}
