/**
 * A file of lines, closed to others, that is put aside when it has reached a size. Lines of one turn of the event loop
 * are written together. A disk that refuses costs lines, never a request: it is reported once until it takes some again.
 */
import { closeSync, fstatSync, openSync, readdirSync, renameSync, unlinkSync, writeSync } from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';

export interface RotatingFileOptions {
  /** The file is put aside before it grows past this. */
  readonly maxBytes: number;
  /** This many files are kept aside, the newest; 0 keeps all. */
  readonly maxBackups: number;
  readonly now: () => number;
  /** Called for a write that failed. */
  readonly onError: (error: Error) => void;
}

/** Lines that wait for a turn are written at once past this. */
const FLUSH_AT = 1024 * 1024;

/** Opens (or goes on with) the file. Throws when it cannot be opened. */
export function openRotatingFile(path: string, options: RotatingFileOptions) {
  let file = openSync(path, 'a', 0o600);
  let size = fstatSync(file).size;
  let waiting: string[] = [];
  let waitingLength = 0;
  let planned = false;
  let failing = false;
  const rotate = (): void => {
    closeSync(file);
    renameSync(path, backupPath(path, options.now()));
    removeOld(path, options.maxBackups);
    file = openSync(path, 'a', 0o600);
    size = 0;
  };
  const flush = (): void => {
    planned = false;
    if (waiting.length === 0) return;
    const bytes = Buffer.from(waiting.join(''));
    waiting = [];
    waitingLength = 0;
    try {
      if (size > 0 && size + bytes.length > options.maxBytes) rotate();
      for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
      size += bytes.length;
      failing = false;
    } catch (error) {
      if (!failing) options.onError(error as Error);
      failing = true;
    }
  };
  return {
    write(line: string): void {
      waiting.push(line);
      waitingLength += line.length;
      if (waitingLength >= FLUSH_AT) flush();
      else if (!planned) {
        planned = true;
        setImmediate(flush);
      }
    },
    /** Writes what is waiting and closes. */
    close(): void {
      flush();
      closeSync(file);
    },
  };
}

/** `audit-2026-01-02T03-04-05.678.log` beside `audit.log`, as upstream's rotation names it. */
function backupPath(path: string, now: number): string {
  const extension = extname(path);
  const stamp = new Date(now).toISOString().slice(0, 23).replaceAll(':', '-');
  return join(dirname(path), `${basename(path, extension)}-${stamp}${extension}`);
}

function removeOld(path: string, keep: number): void {
  if (keep === 0) return;
  const extension = extname(path);
  const stem = `${basename(path, extension)}-`;
  const stamp = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}$/;
  const old = readdirSync(dirname(path))
    .filter((name) => name.startsWith(stem) && name.endsWith(extension))
    .filter((name) => stamp.test(name.slice(stem.length, name.length - extension.length)))
    .sort()
    .slice(0, -keep);
  for (const name of old) unlinkSync(join(dirname(path), name));
}
