/**
 * A bare mirror of one repository: what is fetched into it is read by `git cat-file`, so that nothing is ever checked
 * out: no hooks, no filters, no submodules, no links that lead out.
 */
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '@coracle/runtime/clock/clock';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import { type GitAccess, git, gitOutput } from './git-command.ts';
import { createRefQuestion } from './ref-question.ts';
import { isCommit } from './repository-url.ts';
import { SourceError } from './source.ts';

export interface MirrorOptions {
  /** Of the bare repository; its parent is private to us. */
  readonly directory: string;
  readonly clock: Clock;
  /** Bytes that the mirror may take. */
  readonly maxBytes?: number;
}

export interface Wanted {
  /** A branch; looked at when `revision` is absent. */
  readonly branch: string;
  /** A branch, tag, ref or commit. */
  readonly revision?: string;
  /** Commits of history; 0 = all of them. */
  readonly depth: number;
}

export interface Mirror {
  /** The commit that is wanted now, fetched if need be. Rejects with SourceError. */
  fetch(wanted: Wanted, access: GitAccess, signal: AbortSignal): Promise<string>;
  readonly directory: string;
}

const MAX_BYTES = 2 * 1024 ** 3;
const FETCH_MS = 10 * 60_000;
const LOCAL_MS = 60_000;
const SIZE_MS = 250;
/** Fetches after which what is no longer needed is taken out. */
const FETCHES_TO_CLEAN = 50;
const HEAD_REF = 'refs/coracle/wanted';

/** Opens the mirror; nothing is made before the first fetch. What a killed process left half done is taken away. */
export function openMirror({ directory, clock, maxBytes = MAX_BYTES }: MirrorOptions): Mirror {
  let fetches = 0;
  /** A commit that is in the mirror, as far as nobody took that away. */
  let held: string | undefined;
  const ask = createRefQuestion({ directory, clock });
  if (existsSync(directory) && hasLocks(directory)) rmSync(directory, { recursive: true, force: true });

  const make = async (signal: AbortSignal): Promise<void> => {
    if (existsSync(join(directory, 'HEAD'))) return;
    held = undefined;
    await rm(directory, { recursive: true, force: true });
    await mkdir(dirname(directory), { recursive: true, mode: 0o700 });
    // Made beside its place, so that it is there as a whole or not at all.
    const made = await mkdtemp(`${directory}.new-`);
    await gitOutput(['init', '--quiet', '--bare', '--template='], { directory: made, signal, timeoutMs: LOCAL_MS });
    await rename(made, directory);
  };

  const has = async (commit: string, signal: AbortSignal): Promise<boolean> =>
    (await git(['cat-file', '-e', `${commit}^{tree}`], { directory, signal, timeoutMs: LOCAL_MS })).ok;

  /** Fetches, and gives up once the mirror has grown beyond its bound. */
  const bounded = async (args: readonly string[], access: GitAccess, signal: AbortSignal): Promise<void> => {
    const linked = createLinkedController(signal);
    let isTooLarge = false;
    const watch = (): (() => void) =>
      clock.schedule(SIZE_MS, () => {
        if (sizeOf(directory) <= maxBytes) stop = watch();
        else {
          isTooLarge = true;
          linked.abort(new Error('the repository is too large'));
        }
      });
    let stop = watch();
    try {
      await gitOutput(['fetch', '--quiet', '--no-tags', '--no-write-fetch-head', '--force', ...args], {
        directory,
        access,
        signal: linked.signal,
        timeoutMs: FETCH_MS,
      });
      if (sizeOf(directory) > maxBytes) isTooLarge = true;
    } catch (error) {
      signal.throwIfAborted();
      if (!isTooLarge) throw error;
    } finally {
      stop();
      linked.release();
    }
    if (!isTooLarge) return;
    await rm(directory, { recursive: true, force: true });
    throw new SourceError(`the repository is larger than ${maxBytes} bytes`);
  };

  const clean = async (signal: AbortSignal): Promise<void> => {
    if (++fetches % FETCHES_TO_CLEAN !== 0) return;
    await git(['gc', '--quiet', '--prune=now'], { directory, signal, timeoutMs: FETCH_MS });
  };

  const depthArgs = (depth: number): string[] => {
    if (depth > 0) return [`--depth=${depth}`];
    return existsSync(join(directory, 'shallow')) ? ['--unshallow'] : [];
  };

  const fetchCommit = async (
    commit: string,
    depth: number,
    access: GitAccess,
    signal: AbortSignal,
  ): Promise<string> => {
    if (await has(commit, signal)) return commit;
    try {
      await bounded([...depthArgs(depth), 'origin', `+${commit}:${HEAD_REF}`], access, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof SourceError)) throw error;
      // Some servers give out refs alone.
      await make(signal);
      await bounded(
        [...depthArgs(0), 'origin', '+refs/heads/*:refs/heads/*', '+refs/tags/*:refs/tags/*'],
        access,
        signal,
      );
    }
    if (!(await has(commit, signal))) throw new SourceError(`the repository has no commit ${commit}`);
    return commit;
  };

  return {
    directory,
    async fetch({ branch, revision, depth }, access, signal) {
      await make(signal);
      if (revision !== undefined && isCommit(revision)) return fetchCommit(revision, depth, access, signal);
      const { ref, commit } = await ask({ branch, ...(revision !== undefined && { revision }) }, held, access, signal);
      if (commit === held) return commit;
      await bounded([...depthArgs(depth), 'origin', `+${ref}:${HEAD_REF}`], access, signal);
      await clean(signal);
      held = commit;
      if (readRef(directory) === commit) return commit;
      // A tag, or something that was pushed since.
      const out = await gitOutput(['rev-parse', '--verify', '--quiet', '--end-of-options', `${HEAD_REF}^{commit}`], {
        directory,
        signal,
        timeoutMs: LOCAL_MS,
      });
      held = Buffer.from(out).toString('latin1').trim();
      return held;
    },
  };
}

/** What the ref that is fetched into leads to, where git keeps it in a file of its own. */
function readRef(directory: string): string | undefined {
  try {
    return readFileSync(join(directory, HEAD_REF), 'latin1').trim();
  } catch {
    return undefined;
  }
}

function hasLocks(directory: string): boolean {
  try {
    return readdirSync(directory).some((name) => name.endsWith('.lock'));
  } catch {
    return false;
  }
}

/** Of the files in it, bytes. */
function sizeOf(directory: string): number {
  let bytes = 0;
  for (const place of [directory, join(directory, 'objects', 'pack')]) {
    try {
      for (const name of readdirSync(place)) bytes += statSync(join(place, name)).size;
    } catch {
      // A file that went meanwhile.
    }
  }
  return bytes;
}
