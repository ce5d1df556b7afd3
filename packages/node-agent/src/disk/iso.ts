/** ISO 9660 images as files. File names are checked here: they come from constant lists or from keys of objects. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '@coracle/runtime/clock/clock';
import { type IsoFiles, isoImage } from './iso-image.ts';

const PART = /^[A-Za-z0-9_.-]{1,253}$/;
const LABEL = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$/;

/** True for a relative path that stays where it is put. */
export const isSafePath = (path: string): boolean =>
  path.split('/').every((part) => PART.test(part) && part !== '.' && part !== '..');

/** Makes `name` in `directory`. Throws on unsafe names. */
export async function createIso(
  name: string,
  options: {
    readonly directory: string;
    /** Volume id, at most 32 characters. */
    readonly label: string;
    readonly files: IsoFiles;
    /** Mode of the files as the guest sees them; they belong to its root. Default 0600. */
    readonly fileMode?: number;
    readonly clock: Clock;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { directory, label, files, fileMode = 0o600, clock, signal } = options;
  if (!LABEL.test(label))
    throw new Error(
      `volume label ${JSON.stringify(label.slice(0, 64))} must be 1 to 32 letters, digits, dots or dashes`,
    );
  for (const path of files.keys())
    if (!isSafePath(path)) throw new Error(`${JSON.stringify(path.slice(0, 64))} cannot be a file name`);
  const image = isoImage({ label, files, fileMode, date: new Date(clock.now()) });
  await writeFile(join(directory, name), image, { mode: 0o600, signal });
}
