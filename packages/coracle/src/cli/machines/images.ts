/** `coracle images`: what `coracle create --image` knows by name, what of it is there, and what lies in the local store. */

import { listImages } from '@coracle/node-agent/image/local-images';
import { storedEntries } from '@coracle/node-agent/image/store-entries';
import { clusterFrom } from '../../config/cluster.ts';
import { dataDirAt, defaultDataDir } from '../../config/data-dir.ts';
import { findRunning } from '../../config/running.ts';
import { type CommandContext, CommandError, textFlag, UsageError } from '../command.ts';
import { didYouMean } from '../suggestions.ts';
import { textTable } from '../text-table.ts';
import { needDataVolumes } from './data-volume-support.ts';
import {
  type CatalogueImage,
  catalogueImage,
  defaultOrigin,
  IMAGE_CATALOGUE,
  type ImageOrigin,
  isBuiltHere,
  sourceNameOf,
} from './image-catalogue.ts';
import { fetchedImages, fetchImage } from './os-images.ts';
import { ensureControlPlane, localDataDir } from './start-control-plane.ts';

/** `coracle images [PREFIX]`, and `coracle images refresh NAME...`. */
export async function images(context: CommandContext): Promise<number> {
  const [first, ...more] = context.words;
  if (first === 'refresh') return refresh(context, more);
  if (more.length > 0) throw new UsageError('images takes at most one PREFIX, or refresh NAME');
  for (const flag of ['from', 'checksums', 'vendor'])
    if (context.flags[flag] !== undefined) throw new UsageError(`--${flag} goes with coracle images refresh NAME`);
  return listAll(context, first ?? '');
}

async function listAll(context: CommandContext, prefix: string): Promise<number> {
  const { flags, environment, print, signal } = context;
  const dir = dataDirAt(textFlag(flags, 'data-dir') ?? defaultDataDir(environment));
  // A list makes no directory: the home of who asks may be one that nobody writes to.
  const here = await listImages({ entries: () => storedEntries(dir.images) });
  const references = new Set(here.map(({ reference }) => bare(reference)));
  const fetched = await fetchedIn(context, signal);
  const stateOf = (image: CatalogueImage): { here: boolean; claim?: string } => {
    const claim = fetched.get(sourceNameOf(image));
    if (claim !== undefined) return { here: true, claim };
    return { here: image.containerDisk !== undefined && references.has(bare(image.containerDisk)) };
  };
  const known = IMAGE_CATALOGUE.filter(({ name }) => name.startsWith(prefix)).map((image) => ({
    ...image,
    ...stateOf(image),
  }));
  const catalogued = new Set(IMAGE_CATALOGUE.map(({ containerDisk }) => containerDisk && bare(containerDisk)));
  const own = here
    .filter(({ reference }) => !catalogued.has(bare(reference)) && reference.includes(prefix))
    .map(({ reference }) => ({ name: reference, containerDisk: reference, here: true }));
  const rows: readonly (Partial<CatalogueImage> & { readonly name: string; readonly here: boolean })[] = [
    ...known,
    ...own,
  ];
  if (flags['json'] === true) print(JSON.stringify(rows));
  else if (rows.length === 0) print(`no image begins with ${prefix}`);
  else
    print(
      textTable(
        ['NAME', 'HERE', 'PREFERENCE', 'USER', 'IMAGE'],
        rows.map((row) => [
          ...[row.name, row.here ? 'yes' : 'no', row.preference ?? '-', row.user ?? '-'],
          row.containerDisk ?? row.url ?? '-',
        ]),
      ),
    );
  return 0;
}

const bare = (reference: string): string => reference.replace(/:latest$/, '');

/** Of a control plane that runs; a list of names is no reason to start one. */
async function fetchedIn(context: CommandContext, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
  const dir = localDataDir(context);
  if (dir && !(await findRunning(dir))) return new Map();
  const cluster = await clusterFrom(dir ? { ...context, flags: { ...context.flags, 'data-dir': dir.root } } : context);
  try {
    return await fetchedImages(cluster.client, signal);
  } catch {
    return new Map(); // it cannot be asked: what is in the local store is known without it
  } finally {
    await cluster.close();
  }
}

async function refresh(context: CommandContext, names: readonly string[]): Promise<number> {
  const { flags, print, progress, signal } = context;
  const chosen = names.map((name) => {
    const image = catalogueImage(name);
    if (image && !isBuiltHere(image)) return image;
    const known = IMAGE_CATALOGUE.flatMap((one) => [one.name, one.name.split(':')[0]!]);
    throw new UsageError(
      image
        ? `${image.name} is built here and fetched from nowhere (coracle image import)`
        : `no image is called ${name}${didYouMean(name, known)} (those known: coracle images)`,
    );
  });
  const [image] = chosen;
  if (!image) throw new UsageError('images refresh takes NAME...');
  if (textFlag(flags, 'from') !== undefined && chosen.length > 1)
    throw new UsageError('--from is the source of one image: give one NAME');
  const origins = chosen.map((one) => ({ image: one, origin: originOf(context, one) }));
  const dir = localDataDir(context);
  if (dir) await ensureControlPlane(context, dir, { allowsHostPorts: false });
  await using cluster = await clusterFrom(dir ? { ...context, flags: { ...flags, 'data-dir': dir.root } } : context);
  await needDataVolumes(cluster.client);
  for (const one of origins) {
    const { name } = one.image;
    const claim = await fetchImage(one.image, one.origin, { client: cluster.client, signal, progress }).catch(
      (error: unknown) => {
        if (!signal.aborted) throw error;
        throw new CommandError(
          `interrupted: what has begun of ${name} is fetched in the background (whether it is there: coracle images ${name})`,
        );
      },
    );
    print(`${name} is up to date (${claim})`);
  }
  return 0;
}

/** Throws UsageError. */
function originOf({ flags }: CommandContext, image: CatalogueImage): ImageOrigin {
  const [from, checksums] = [textFlag(flags, 'from'), textFlag(flags, 'checksums') ?? image.checksums];
  if (from?.startsWith('docker://')) return { kind: 'registry', reference: from.slice('docker://'.length) };
  if (from !== undefined) {
    const url = URL.parse(from);
    if (url?.protocol !== 'http:' && url?.protocol !== 'https:')
      throw new UsageError(`--from takes URLs of http and https, and docker://IMAGE, not "${from}"`);
    if (checksums === undefined) throw new UsageError('--from URL takes --checksums URL: what the file has to be');
    return { kind: 'http', url: from, checksums };
  }
  if (flags['vendor'] !== true && flags['checksums'] === undefined) return defaultOrigin(image);
  if (image.url === undefined || checksums === undefined)
    throw new UsageError(`${image.name} has no file of its vendor here; leave --vendor out`);
  return { kind: 'http', url: image.url, checksums };
}
