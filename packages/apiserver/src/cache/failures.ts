/** What a client gets when the disk does not take its write, and which failures end all writing. */
import { ApiError } from '@coracle/apimachinery/meta/status';
import {
  type Backend,
  type DiskNeed,
  PASSING_FAILURES,
  StorageError,
  type StorageFailure,
} from '../storage/backend.ts';

/** True when nothing more can be written until the process starts again. */
export const isFatal = (error: unknown): boolean =>
  !(error instanceof StorageError && PASSING_FAILURES.has(error.kind));

const MIB = 1024 * 1024;

/** ` (84 MiB more in /data)`, for a sentence that asks to free space. */
const shortOf = (need: DiskNeed | undefined): string =>
  need ? ` (${Math.ceil(need.bytes / MIB)} MiB more in ${need.directory})` : '';

/** The answer to a write whose commit failed; `need` as the backend saw it last. */
export function commitFailure(error: unknown, need?: DiskNeed): ApiError {
  const kind = error instanceof StorageError ? error.kind : 'io';
  const answer = kind === 'no-space' || kind === 'read-only' ? noStorage : unavailable;
  return answer(
    WHY[kind].replace('{short}', () => shortOf(need)),
    error,
  );
}

const RESTART = 'an earlier write could not be stored; the server must be started again';
const WHY: Readonly<Record<StorageFailure, string>> = {
  'no-space': 'no space is left on the disk that holds the state; free some there{short} and try again',
  'read-only': 'the file system that holds the state is read-only; make it writable and start the server again',
  'in-use': 'the state file is locked by another program; close that and try again',
  fenced: 'another server has taken over the state directory; use that one, and stop this one',
  corrupt: 'the state file is damaged; see the log of the server',
  poisoned: RESTART,
  io: RESTART,
};

/** Refuses a write before it is tried, or lets it pass. */
export function diskRefusal(backend: Pick<Backend, 'diskState' | 'diskNeed'>, isCreate: boolean): ApiError | undefined {
  const state = backend.diskState();
  if (state === 'ok' || (state === 'refuse-creates' && !isCreate)) return undefined;
  const why =
    state === 'read-only'
      ? 'full or read-only: no writes are accepted; free space there'
      : 'nearly full: no new objects are accepted; delete some or free space there';
  return noStorage(`the disk that holds the state is ${why}${shortOf(backend.diskNeed?.())}`);
}

/** 429 for a writer that would have to wait behind too many others. */
export const tooManyWrites = (queued: number): ApiError =>
  new ApiError({
    code: 429,
    reason: 'TooManyRequests',
    message: `the write was not stored: ${queued} writes are waiting for the disk already; try again later`,
    details: { retryAfterSeconds: 1 },
  });

export const unavailable = (why: string, cause?: unknown): ApiError =>
  new ApiError(
    {
      code: 503,
      reason: 'ServiceUnavailable',
      message: `the write was not stored: ${why}`,
      details: { retryAfterSeconds: 1 },
    },
    { cause },
  );

const noStorage = (why: string, cause?: unknown): ApiError =>
  new ApiError({ code: 507, reason: 'InsufficientStorage', message: `the write was not stored: ${why}` }, { cause });
