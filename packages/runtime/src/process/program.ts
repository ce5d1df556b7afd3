/** Programs of the host by name. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Where PATH has an executable file of that name; undefined when it has none. */
export function programPath(command: string): string | undefined {
  for (const place of (process.env['PATH'] ?? '').split(delimiter)) {
    if (place === '') continue;
    try {
      const path = join(place, command);
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not here.
    }
  }
  return undefined;
}

/** True when PATH has an executable file of that name. */
export const isProgram = (command: string): boolean => programPath(command) !== undefined;
