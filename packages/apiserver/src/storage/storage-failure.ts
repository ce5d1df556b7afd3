/** What SQLite and the file system say, in the words of `StorageError`. */
import { StorageError, type StorageFailure } from './backend.ts';

/** SQLite's primary result codes, and the errno of the few calls of our own. */
const SQLITE_KIND: Readonly<Record<number, StorageFailure>> = {
  5: 'in-use',
  6: 'in-use',
  8: 'read-only',
  11: 'corrupt',
  13: 'no-space',
  26: 'corrupt',
};
const ERRNO_KIND: Readonly<Record<string, StorageFailure>> = {
  EROFS: 'read-only',
  ENOSPC: 'no-space',
  EDQUOT: 'no-space',
};

/** The failure as a StorageError that names `file`; one that is a StorageError already stays as it is. */
export function toStorageError(error: unknown, file: string): StorageError {
  if (error instanceof StorageError) return error;
  const { errcode, code, message } = error as { errcode?: number; code?: string; message?: string };
  const kind = errcode !== undefined ? (SQLITE_KIND[errcode & 0xff] ?? 'io') : (ERRNO_KIND[code ?? ''] ?? 'io');
  const detail = errcode === undefined ? '' : ` (SQLite code ${errcode})`;
  const what = WHAT[kind]?.(file) ?? `cannot write to ${file}`;
  return new StorageError(kind, `${what}: ${message ?? String(error)}${detail}`, { cause: error });
}

const WHAT: Partial<Record<StorageFailure, (file: string) => string>> = {
  'no-space': (file) => `no space left for ${file}`,
  'in-use': (file) => `${file} is locked by another program`,
  corrupt: (file) => `${file} is damaged (restore it from a backup, or run "sqlite3 store.db .recover")`,
};
