/** A file whose contents count while the process runs: read again whenever something happens around it. */
import { type FSWatcher, readFileSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from '@coracle/runtime/clock/clock';

/** Not every file system tells; after this time it is looked at in any case. */
const POLL_MS = 60_000;
/** Writers write in pieces: what comes within this time is looked at once. */
const GATHER_MS = 50;

/**
 * Calls `changed` with each new text of the file, after the one it has at first (`initial`). What cannot be read is reported
 * to `failed`, and looked at again. The directory is watched: files are replaced by others of their name.
 */
export function watchFile(
  path: string,
  options: {
    readonly initial: string;
    readonly clock: Clock;
    readonly changed: (text: string) => void;
    readonly failed: (error: Error) => void;
  },
): { stop(): void } {
  const { clock, changed, failed } = options;
  let last = options.initial;
  let cancel = (): void => {};
  /** A look is due within the time of one change: what else happens meanwhile must not put it off. */
  let isDue = false;
  let watcher: FSWatcher | undefined;
  const look = (): void => {
    isDue = false;
    after(POLL_MS);
    try {
      const text = readFileSync(path, 'utf8');
      if (text === last) return;
      last = text;
      changed(text);
    } catch (error) {
      failed(error as Error);
    }
  };
  const after = (ms: number): void => {
    cancel();
    cancel = clock.schedule(ms, look);
  };
  try {
    watcher = watch(dirname(path), { persistent: false }, () => {
      if (!isDue) after(GATHER_MS);
      isDue = true;
    });
    watcher.on('error', () => watcher?.close());
  } catch (error) {
    failed(error as Error);
  }
  after(POLL_MS);
  return {
    stop() {
      cancel();
      watcher?.close();
    },
  };
}
