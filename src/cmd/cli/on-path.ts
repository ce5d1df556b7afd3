import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Whether a program of this name can be run from `$PATH`. */
export function isOnPath(command: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((place) => {
    try {
      accessSync(join(place, command), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
