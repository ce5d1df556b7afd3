/**
 * The last attempts of a sync, in an annotation of it: upstream's schema has no place for them in the status, and events are
 * gone after an hour. Clients that know nothing of it carry it along.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { formatTime } from '@coracle/apimachinery/meta/object';
import type { Sync, SyncError } from '../kinds/kinds.ts';

/** Annotation: JSON of `Attempt`s, the newest first. */
export const SYNC_HISTORY = 'coracle.dev/sync-history';

/** One attempt; those in a row that ended alike are one entry, of the first of them. */
export interface Attempt {
  /** When it ended, RFC 3339. */
  readonly at: string;
  /** Empty where the source named none. */
  readonly commit: string;
  readonly result: 'Synced' | 'Failed';
  readonly errors: number;
  /** Of its errors, without repeats: `1060`. */
  readonly codes: readonly string[];
}

/** Attempts that are kept. */
const MAX_ATTEMPTS = 10;
/** Codes that are kept of one. */
const MAX_CODES = 10;

/** Those that the annotation names; none where somebody has made it unreadable. */
export function attemptsOf({ metadata }: Pick<DeepReadonly<Sync>, 'metadata'>): Attempt[] {
  try {
    const found: unknown = JSON.parse(metadata.annotations?.[SYNC_HISTORY] ?? '[]');
    return Array.isArray(found) ? found.filter(isAttempt).slice(0, MAX_ATTEMPTS) : [];
  } catch {
    return [];
  }
}

function isAttempt(value: unknown): value is Attempt {
  const { at, commit, result, errors, codes } = (value ?? {}) as Partial<Attempt>;
  return (
    typeof at === 'string' &&
    typeof commit === 'string' &&
    (result === 'Synced' || result === 'Failed') &&
    typeof errors === 'number' &&
    Array.isArray(codes) &&
    codes.every((code) => typeof code === 'string')
  );
}

/** How an attempt at a commit ended. `now` in milliseconds. */
export function attemptAt(commit: string, errors: readonly SyncError[], now: number): Attempt {
  const codes = [...new Set(errors.map(({ code }) => code))].slice(0, MAX_CODES);
  return {
    at: formatTime(now),
    commit,
    result: errors.length === 0 ? 'Synced' : 'Failed',
    errors: errors.length,
    codes,
  };
}

/** The value of the annotation with one more attempt; undefined where it ended as the one before it. */
export function withAttempt(sync: Pick<DeepReadonly<Sync>, 'metadata'>, attempt: Attempt): string | undefined {
  const before = attemptsOf(sync);
  const outcome = ({ commit, result, codes, errors }: Attempt): string =>
    JSON.stringify([commit, result, errors, [...codes].sort()]);
  if (before[0] && outcome(before[0]) === outcome(attempt)) return undefined;
  return JSON.stringify([attempt, ...before].slice(0, MAX_ATTEMPTS));
}
