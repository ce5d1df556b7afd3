/** `coracle images`: what `coracle create --image` knows by name, and what lies in the local store. */

import { openImageStore } from '@coracle/node-agent/image/image-store';
import { listImages } from '@coracle/node-agent/image/local-images';
import { systemClock } from '@coracle/runtime/clock/clock';
import { dataDirAt, defaultDataDir, ensurePrivateDir } from '../../config/data-dir.ts';
import { type CommandContext, textFlag, UsageError } from '../command.ts';
import { textTable } from '../text-table.ts';
import { IMAGE_CATALOGUE } from './image-catalogue.ts';

/** `coracle images`. */
export async function images({ flags, words, environment, print }: CommandContext): Promise<number> {
  const [filter, ...more] = words;
  if (more.length > 0) throw new UsageError('images takes at most one word, of which the names begin');
  const dir = dataDirAt(textFlag(flags, 'data-dir') ?? defaultDataDir(environment));
  ensurePrivateDir(dir.root);
  const here = await listImages(await openImageStore(dir.images, { clock: systemClock }));
  const references = new Set(here.map(({ reference }) => reference.replace(/:latest$/, '')));
  const isHere = (reference: string | undefined): boolean =>
    reference !== undefined && references.has(reference.replace(/:latest$/, ''));
  const known = IMAGE_CATALOGUE.filter(({ name }) => name.startsWith(filter ?? '')).map((image) => ({
    ...image,
    here: isHere(image.containerDisk),
  }));
  const catalogued = new Set(IMAGE_CATALOGUE.map(({ containerDisk }) => containerDisk?.replace(/:latest$/, '')));
  const own = here
    .filter(({ reference }) => !catalogued.has(reference.replace(/:latest$/, '')) && reference.includes(filter ?? ''))
    .map(({ reference }) => ({ name: reference, containerDisk: reference, here: true }));
  const rows = [...known, ...own];
  if (flags['json'] === true) print(JSON.stringify(rows));
  else if (rows.length === 0) print(`no image begins with ${filter}`);
  else
    print(
      textTable(
        ['NAME', 'HERE', 'PREFERENCE', 'USER', 'IMAGE'],
        rows.map((row) => [
          ...[row.name, row.here ? 'yes' : 'no'],
          ...['preference' in row && row.preference ? row.preference : '-', 'user' in row ? row.user : '-'],
          row.containerDisk ?? row.name,
        ]),
      ),
    );
  return 0;
}
