/** What a client gets when the disk does not take its write, and which failures end all writing. */
import { ApiError } from '@coracle/apimachinery/meta/status';
import { type Backend, type DiskNeed, StorageError } from '../storage/backend.ts';

/** True when nothing more can be written until the process starts again. */
export function isFatal(error: unknown): boolean {
  if (!(error instanceof StorageError)) return true;
  switch (error.kind) {
    case 'no-space':
    case 'read-only':
    case 'in-use':
      return false;
    case 'fenced':
    case 'poisoned':
    case 'io':
    case 'corrupt':
      return true;
    default:
      return error.kind satisfies never;
  }
}

const MIB = 1024 * 1024;

/** ` (84 MiB more in /data)`, for a sentence that asks to free space. */
const shortOf = (need: DiskNeed | undefined): string =>
  need ? ` (${Math.ceil(need.bytes / MIB)} MiB more in ${need.directory})` : '';

/** The answer to a write whose commit failed; `need` as the backend saw it last. */
export function commitFailure(error: unknown, need?: DiskNeed): ApiError {
  const kind = error instanceof StorageError ? error.kind : 'io';
  switch (kind) {
    case 'no-space':
      return noStorage(
        `no space is left on the disk that holds the state; free some there${shortOf(need)} and try again`,
        error,
      );
    case 'read-only':
      return noStorage(
        'the file system that holds the state is read-only; make it writable and start the server again',
        error,
      );
    case 'in-use':
      return unavailable('the state file is locked by another program; close that and try again', error);
    case 'fenced':
      return unavailable('another server has taken over the state directory; use that one, and stop this one', error);
    case 'corrupt':
      return unavailable('the state file is damaged; see the log of the server', error);
    case 'poisoned':
    case 'io':
      return unavailable('an earlier write could not be stored; the server must be started again', error);
    default:
      return kind satisfies never;
  }
}

/** Refuses a write before it is tried, or lets it pass. */
export function diskRefusal(backend: Pick<Backend, 'diskState' | 'diskNeed'>, isCreate: boolean): ApiError | undefined {
  const state = backend.diskState();
  switch (state) {
    case 'ok':
      return undefined;
    case 'refuse-creates':
      return isCreate
        ? noStorage(
            `the disk that holds the state is nearly full: no new objects are accepted; delete some or free space there${shortOf(backend.diskNeed?.())}`,
          )
        : undefined;
    case 'read-only':
      return noStorage(
        `the disk that holds the state is full or read-only: no writes are accepted; free space there${shortOf(backend.diskNeed?.())}`,
      );
    default:
      return state satisfies never;
  }
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
