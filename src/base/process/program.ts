/** Programs of the host by name. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** True when PATH has an executable file of that name. */
export function isProgram(command: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((place) => {
    if (place === '') return false;
    try {
      accessSync(join(place, command), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
