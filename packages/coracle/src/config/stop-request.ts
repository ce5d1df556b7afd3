/** How `down` tells the running process whether guests stay: a file beside a SIGTERM. A bare SIGTERM keeps them. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { DataDir } from './data-dir.ts';
import { readFileIfAny } from './write-file.ts';

export interface StopRequest {
  readonly keepVms: boolean;
  /** Guests end at once, without their grace periods. */
  readonly force: boolean;
}

export const stopRequestPath = (dir: DataDir): string => join(dir.root, 'stop.json');

/** Reads and removes the request. */
export function takeStopRequest(dir: DataDir): StopRequest {
  const text = readFileIfAny(stopRequestPath(dir));
  rmSync(stopRequestPath(dir), { force: true });
  try {
    const request = JSON.parse(text ?? '{}') as { keepVms?: unknown; force?: unknown };
    return { keepVms: request.keepVms !== false, force: request.keepVms === false && request.force === true };
  } catch {
    return { keepVms: true, force: false };
  }
}
