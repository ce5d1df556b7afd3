/** Errors of a sync, as its status shows them: a code of upstream's, a text, the objects it is about. */

import { ApiError } from '@coracle/apimachinery/meta/status';
import type { ErrorSummary, ObjectRef, SyncError, SyncErrorResource } from '../kinds/kinds.ts';

const MORE = 'For more information, see https://g.co/cloud/acm-errors#knv';
/** Errors that are kept of one stage; the rest is counted. */
const MAX_ERRORS = 1000;

/** Makes one. `code` as in KNV1060. */
export const syncError = (code: number, body: string, resources: readonly SyncErrorResource[] = []): SyncError => ({
  code: String(code),
  errorMessage: `KNV${code}: ${body}\n\n${MORE}${code}`,
  ...(resources.length > 0 && { errorResources: [...resources] }),
});

/** An object as errors name it. */
export const errorResource = (
  ref: ObjectRef,
  { version = '', path }: { readonly version?: string; readonly path?: string | undefined } = {},
): SyncErrorResource => ({
  ...(path !== undefined && { sourcePath: path }),
  name: ref.name,
  ...(ref.namespace !== '' && { namespace: ref.namespace }),
  gvk: { group: ref.group, version, kind: ref.kind },
});

/** An error that stops a whole attempt. */
export class SyncFailure extends Error {
  override readonly name = 'SyncFailure';
  readonly errors: readonly SyncError[];

  constructor(errors: readonly SyncError[]) {
    super(errors.map(({ errorMessage }) => errorMessage.split('\n')[0]).join('; '));
    this.errors = errors;
  }
}

/** What the API refused, as an error of the sync: want of rights has a code of its own. */
export function apiSyncError(error: unknown, doing: string, resources: readonly SyncErrorResource[] = []): SyncError {
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof ApiError && error.code === 403 && error.reason === 'Forbidden' ? 2013 : 2009;
  return syncError(code, `${doing}: ${message}`, resources);
}

/** How many there are, and how many are shown. */
export const summaryOf = (errors: readonly SyncError[], shown = errors.length): ErrorSummary => ({
  totalCount: errors.length,
  truncated: shown < errors.length,
  errorCountAfterTruncation: shown,
});

/** Those that are shown. */
export const shownErrors = (errors: readonly SyncError[]): SyncError[] => errors.slice(0, MAX_ERRORS);

/** KNV1060. */
export const isConflictError = ({ code }: SyncError): boolean => code === '1060';

/** Errors of the attempt and those that the watches found: conflicts are in both. */
export function withFights(errors: readonly SyncError[], found: readonly SyncError[]): readonly SyncError[] {
  const known = new Set(errors.map(({ errorMessage }) => errorMessage));
  return [...errors, ...found.filter(({ errorMessage }) => !known.has(errorMessage))];
}
