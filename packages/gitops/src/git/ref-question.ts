/** Which commit is wanted now, asked of the origin once every period. */
import type { Clock } from '@coracle/runtime/clock/clock';
import { type GitAccess, gitOutput } from './git-command.ts';
import { quickLook } from './quick-look.ts';
import { isCommit } from './repository-url.ts';
import { SourceError } from './source.ts';

export interface WantedRef {
  /** A branch; looked at when `revision` is absent. */
  readonly branch: string;
  /** A branch, tag or ref. */
  readonly revision?: string;
}

export interface RemoteRef {
  /** In full. */
  readonly ref: string;
  readonly commit: string;
}

/** `held`: the commit that the last question of it led to, which is in the mirror. Rejects with SourceError. */
export type RefQuestion = (
  wanted: WantedRef,
  held: string | undefined,
  access: GitAccess,
  signal: AbortSignal,
) => Promise<RemoteRef>;

const MAX_REFS_BYTES = 4 * 1024 * 1024;
const LS_MS = 60_000;
/** An origin of which a quick look learned nothing is left to git for so long. */
const BLIND_MS = 10 * 60_000;

/** Makes it for one mirror; where the origin can be asked without a program, none is started. */
export function createRefQuestion({
  directory,
  clock,
}: {
  readonly directory: string;
  readonly clock: Clock;
}): RefQuestion {
  /** Until when (monotonic) git alone asks. */
  let blindUntil = 0;
  return async (wanted, held, access, signal) => {
    // The first time git says what is wrong, if something is.
    if (wanted.revision === undefined && held !== undefined && clock.monotonic() >= blindUntil) {
      const ref = `refs/heads/${wanted.branch}`;
      const commit = await quickLook(ref, access, { clock, known: held, signal });
      if (commit !== undefined) return { ref, commit };
      blindUntil = clock.monotonic() + BLIND_MS;
    }
    return remoteRef(wanted, access, { directory, signal });
  };
}

/** The ref that is meant and the commit it leads to now: a full ref, else a tag, else a branch. */
async function remoteRef(
  { branch, revision }: WantedRef,
  access: GitAccess,
  { directory, signal }: { readonly directory: string; readonly signal: AbortSignal },
): Promise<RemoteRef> {
  const names =
    revision === undefined
      ? [`refs/heads/${branch}`]
      : [...(revision.startsWith('refs/') ? [revision] : []), `refs/tags/${revision}`, `refs/heads/${revision}`];
  const out = await gitOutput(['ls-remote', '--quiet', 'origin', ...names.flatMap((name) => [name, `${name}^{}`])], {
    directory,
    access,
    signal,
    timeoutMs: LS_MS,
    maxStdout: MAX_REFS_BYTES,
  });
  const refs = new Map<string, string>();
  for (const line of Buffer.from(out).toString('utf8').split('\n')) {
    const [commit = '', name = ''] = line.split('\t');
    if (isCommit(commit)) refs.set(name, commit);
  }
  for (const ref of names) {
    // Of an annotated tag the commit, not the tag.
    const commit = refs.get(`${ref}^{}`) ?? refs.get(ref);
    if (commit !== undefined) return { ref, commit };
  }
  throw new SourceError(
    revision === undefined
      ? `the repository has no branch ${JSON.stringify(branch)}`
      : `the repository has no branch, tag or ref ${JSON.stringify(revision)}`,
  );
}
