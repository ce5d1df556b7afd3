/** How `down` tells the running process whether guests stay: a file beside a SIGTERM. A bare SIGTERM keeps them. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { DataDir } from './data-dir.ts';
import { readFileIfAny } from './write-file.ts';

export const stopRequestPath = (dir: DataDir): string => join(dir.root, 'stop.json');

/** Reads and removes the request. */
export function takeStopRequest(dir: DataDir): { keepVms: boolean } {
  const text = readFileIfAny(stopRequestPath(dir));
  rmSync(stopRequestPath(dir), { force: true });
  try {
    return { keepVms: text === undefined || (JSON.parse(text) as { keepVms?: unknown }).keepVms !== false };
  } catch {
    return { keepVms: true };
  }
}
