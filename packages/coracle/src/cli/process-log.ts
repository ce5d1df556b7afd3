import { copyFileSync, fstatSync, ftruncateSync, statSync, writeSync } from 'node:fs';
import type { Clock } from '@coracle/runtime/clock/clock';
import { createLogger, formatRecord, type Logger, type LogLevel } from '@coracle/runtime/log/log';
import type { CommandContext } from './command.ts';

const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
const STDERR = 2;
/** A log file that has grown past this is put aside once: two of these is what logs take on the disk. */
const MAX_LOG_BYTES = 32 * 1024 * 1024;
/** The file's size is looked at after so much has been written. */
const LOOK_EVERY_BYTES = 256 * 1024;

/**
 * Records go to standard error as JSON lines; $CORACLE_LOG sets the level (default: warn). `boundedFile`: where standard error
 * goes when the process runs in the background; kept within a size then.
 */
export function processLog(
  environment: CommandContext['environment'],
  clock: Clock,
  { boundedFile }: { readonly boundedFile?: string } = {},
): Logger {
  const wanted = environment['CORACLE_LOG'] as LogLevel | undefined;
  const level = wanted && LOG_LEVELS.includes(wanted) ? wanted : 'warn';
  let unseen = LOOK_EVERY_BYTES;
  return createLogger((record) => {
    const line = formatRecord(record, clock.now());
    try {
      writeSync(STDERR, line);
    } catch {
      return; // A full disk, a closed pipe: what cannot be logged must not stop what was to be logged about.
    }
    unseen += line.length;
    if (boundedFile === undefined || unseen < LOOK_EVERY_BYTES) return;
    unseen = 0;
    boundLogFile(boundedFile);
  }, level);
}

/**
 * Copies the file aside and empties it, where standard error is that file. It is opened for appending, so that writing
 * goes on at its new end; renaming it would leave this process writing into the old one.
 */
export function boundLogFile(path: string, maxBytes = MAX_LOG_BYTES): void {
  try {
    const { ino, dev, size } = fstatSync(STDERR);
    if (size < maxBytes) return;
    const file = statSync(path);
    if (file.ino !== ino || file.dev !== dev) return;
    copyFileSync(path, `${path}.1`);
    ftruncateSync(STDERR, 0);
  } catch {
    // No such file, or no space for the copy: the log goes on as it is.
  }
}
