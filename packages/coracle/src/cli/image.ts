/** `coracle image`: the local image store. */
import { resolve } from 'node:path';
import { type ImageStore, openImageStore } from '@coracle/node-agent/image/image-store';
import { isUrl, urlMessage } from '@coracle/node-agent/image/import-source';
import {
  type ImageSummary,
  type ImportOptions,
  importImage,
  listImages,
  removeImage,
} from '@coracle/node-agent/image/local-images';
import { storedEntries } from '@coracle/node-agent/image/store-entries';
import { systemClock } from '@coracle/runtime/clock/clock';
import { kubeconfigPath } from '../config/cluster.ts';
import { type DataDir, dataDirAt, defaultDataDir, ensurePrivateDir } from '../config/data-dir.ts';
import { findRunning } from '../config/running.ts';
import { type CommandContext, CommandError, textFlag, UsageError } from './command.ts';
import { localDataDir } from './machines/start-control-plane.ts';
import { sizeText } from './size-text.ts';
import { textTable } from './text-table.ts';

const USAGE = 'image takes: import NAME FILE, list, or rm NAME (see: coracle image --help)';

function openStore(dir: DataDir): Promise<ImageStore> {
  ensurePrivateDir(dir.root);
  return openImageStore(dir.images, { clock: systemClock });
}

/** Puts files of this host into the store as `name`. One that takes a second says how far it is from then on, of `what`. */
export async function importFiles(
  { progress, signal }: Pick<CommandContext, 'progress' | 'signal'>,
  dir: DataDir,
  files: { readonly name: string; readonly what: string; readonly disk?: string } & Pick<
    ImportOptions,
    'kernel' | 'initrd'
  >,
): Promise<ImageSummary> {
  const { name, what, disk, ...boot } = files;
  const from = systemClock.monotonic() + 1000;
  const onPercent = (percent: number): void => {
    if (systemClock.monotonic() > from) progress(`importing ${what}: ${percent} %`);
  };
  return importImage(await openStore(dir), name, disk, { ...boot, onPercent, signal });
}

/** `coracle image`. */
export async function image(context: CommandContext): Promise<number> {
  const { flags, words, environment, print } = context;
  const dir = dataDirAt(textFlag(flags, 'data-dir') ?? defaultDataDir(environment));
  const asJson = flags['json'] === true;
  const [verb, name, file, ...rest] = words;
  if (rest.length > 0) throw new UsageError(USAGE);
  switch (verb) {
    case 'import': {
      const kernel = textFlag(flags, 'kernel');
      const initrd = textFlag(flags, 'initrd');
      if (!name || (!file && !kernel && !initrd)) throw new UsageError(USAGE);
      if (file !== undefined && isUrl(file)) throw new CommandError(urlMessage(file));
      const made = await importFiles(context, dir, {
        name,
        what: name,
        ...(file !== undefined && { disk: resolve(file) }),
        ...(kernel && { kernel: resolve(kernel) }),
        ...(initrd && { initrd: resolve(initrd) }),
      });
      print(asJson ? JSON.stringify(made) : `${made.reference}  ${made.digest}  ${sizeText(made.size)}`);
      // Two data directories: who forgets the flag would look for the image in vain.
      if (textFlag(flags, 'data-dir') === undefined && !localDataDir(context) && !(await findRunning(dir)))
        context.note(
          `it is in ${dir.root}, where no control plane runs, and ${kubeconfigPath(context)} leads to another one: --data-dir DIR names the directory of that`,
        );
      return 0;
    }
    case 'list': {
      if (name) throw new UsageError(USAGE);
      const images = await listImages({ entries: () => storedEntries(dir.images) });
      if (asJson) print(JSON.stringify(images));
      else if (images.length === 0) print('no images; add one with: coracle image import NAME FILE');
      else {
        const rows = images.map((item) => [item.reference, item.digest.slice(0, 19).padEnd(20), sizeText(item.size)]);
        print(textTable(['IMAGE', 'DIGEST', 'SIZE'], rows));
      }
      return 0;
    }
    case 'rm': {
      if (!name || file) throw new UsageError(USAGE);
      if (!(await removeImage(await openStore(dir), name)))
        throw new CommandError(`no image named ${name} (see: coracle image list)`);
      print(asJson ? JSON.stringify({ removed: name }) : `removed ${name}`);
      return 0;
    }
    default:
      throw new UsageError(USAGE);
  }
}
