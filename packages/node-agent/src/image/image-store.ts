/**
 * The image store of a node: files by digest under `files/`, what they belong to under `pulled/`, `refs/` and `local/`.
 * A file never changes and is never opened for writing again; a guest that uses one holds a hard link to it, so the
 * store may forget any image at any time.
 */
import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import type { DiskSpace } from '@coracle/kubevirt/rules/machine/disk-room';
import type { Clock } from '@coracle/runtime/clock/clock';
import { type Logger, silentLogger } from '@coracle/runtime/log/log';
import {
  defaultPullPolicy,
  type ImageReference,
  isLocal,
  parseReference,
  referenceText,
} from '@coracle/runtime/oci/reference';
import type { Credentials } from '@coracle/runtime/oci/registry-client';
import { writeFileAtomic } from './atomic-file.ts';
import { guardDisk, spaceOf } from './disk-guard.ts';
import { mayHave, repositoryOf, withAccess } from './image-access.ts';
import { createLayerParts, type LayerParts } from './layer-parts.ts';
import { pullImage } from './pull.ts';
import { createSharedCalls } from './shared-calls.ts';
import {
  entryName,
  type FileEntry,
  fileNameOf,
  filesOf,
  IMAGE_KINDS,
  type ImageEntry,
  type ImageFiles,
  type ImageKind,
  type RefEntry,
  readEntry,
  storedEntries,
  type WantedFiles,
} from './store-entries.ts';
import { createStoreFiles, type StoreFiles } from './store-files.ts';

export type PullPolicy = 'Always' | 'IfNotPresent' | 'Never';

interface ImageRequest {
  readonly reference: string;
  readonly wanted: WantedFiles;
  /** Default by the kubelet's rule. */
  readonly policy?: PullPolicy;
  readonly credentials?: Credentials;
  readonly signal: AbortSignal;
  /** Bytes downloaded and to download, for people. */
  readonly onProgress?: (done: number, total: number) => void;
}

interface StoredFile extends FileEntry {
  /** Read-only file in the store. Link it before use; the store may drop it later. */
  readonly path: string;
}

export interface StoredImage extends Readonly<Partial<Record<ImageKind, StoredFile>>> {
  readonly reference: string;
  readonly digest: string;
  /** False when it was in the store already. */
  readonly pulled: boolean;
}

export class ImageError extends Error {
  /** As a kubelet gives it; it stands in container statuses. */
  readonly reason: 'ErrImagePull' | 'ErrImageNeverPull' | 'InvalidImageName';
  constructor(reason: ImageError['reason'], message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'ImageError';
    this.reason = reason;
  }
}

interface ImageStoreOptions {
  readonly clock: Clock;
  readonly log?: Logger;
  /** Go architecture name of the guests. Default amd64. */
  readonly architecture?: string;
  /** Bytes of pulled files kept; the least recently used go first. Imported images are never dropped. Default 100 GiB. */
  readonly maxBytes?: number;
  /** Bytes of one image. Default 64 GiB. */
  readonly maxImageBytes?: number;
  /** Of the file system of the store; looked up when not given. */
  readonly space?: () => Promise<DiskSpace>;
}

export interface ImageStore {
  readonly directory: string;
  /** The files of one image, from the store or the registry. Throws ImageError, or the signal's reason. */
  ensure(request: ImageRequest): Promise<StoredImage>;
  /** Takes finished files over (moves them) as the image `reference` of the store's own. Used by import. */
  adopt(reference: string, files: ImageFiles, paths: readonly string[]): Promise<ImageEntry>;
  /** A fresh directory on the same file system, for files in the making. */
  scratch(): Promise<string>;
  /** Records of imported and pulled images. */
  entries(): Promise<{ readonly path: string; readonly entry: ImageEntry; readonly local: boolean }[]>;
  /** Drops records, then files nothing refers to. */
  remove(paths: readonly string[]): Promise<void>;
}

const MAX_IMAGE_BYTES = 64 * 1024 ** 3;

/** Opens (makes) the store at `directory`, mode 0700, and throws away what an interrupted process left unfinished. */
export async function openImageStore(directory: string, options: ImageStoreOptions): Promise<ImageStore> {
  const { clock, log = silentLogger, architecture = 'amd64', maxImageBytes = MAX_IMAGE_BYTES } = options;
  const files = createStoreFiles(directory, { clock, log, maxBytes: options.maxBytes });
  const { at, moveIn, sweep } = files;
  await prepareDirectory(at, clock);
  // Room for the layers of one image, so that a broken download of any image can be continued.
  const parts = createLayerParts(at('parts'), { clock, maxBytes: maxImageBytes });
  await parts.prune();
  const { space = () => spaceOf(directory) } = options;

  return {
    directory,
    ensure: createEnsure({ directory, files, parts, clock, log, architecture, maxImageBytes, space }),
    async adopt(reference, files, paths) {
      await moveIn(files, paths);
      const first = filesOf(files)[0];
      if (!first) throw new Error('an image needs at least one file');
      const now = clock.now();
      const entry: ImageEntry = { version: 1, reference, digest: first.digest, files, createdAt: now, usedAt: now };
      const path = at('local', entryName(reference));
      const replaced = await readEntry<ImageEntry>(path);
      await writeFileAtomic(path, JSON.stringify(entry));
      await sweep(replaced ? [replaced] : []);
      return entry;
    },
    scratch: () => mkdtemp(at('scratch', 'import-')),
    entries: () => storedEntries(directory),
    async remove(paths) {
      const dropped: ImageEntry[] = [];
      for (const path of paths) {
        const entry = await readEntry<ImageEntry>(path);
        if (entry) dropped.push(entry);
        await rm(path, { force: true });
      }
      await sweep(dropped);
    },
  };
}

/** A store, and what pulls into it need. */
interface OpenStore extends Required<Omit<ImageStoreOptions, 'maxBytes'>> {
  readonly directory: string;
  readonly files: StoreFiles;
  readonly parts: LayerParts;
}

/** Makes the directories, and throws away what an interrupted process left unfinished. */
async function prepareDirectory(at: StoreFiles['at'], clock: Clock): Promise<void> {
  for (const name of ['', 'files', 'pulled', 'refs', 'local', 'parts', 'scratch'])
    await mkdir(at(name), { recursive: true, mode: 0o700 });
  for (const name of await readdir(at('scratch'))) {
    // Another agent of this host may be at work in the same store: only what is old is abandoned.
    const { mtimeMs } = await stat(at('scratch', name)).catch(() => ({ mtimeMs: clock.now() }));
    if (clock.now() - mtimeMs > 24 * 3600_000) await rm(at('scratch', name), { recursive: true, force: true });
  }
}

/** Finds images in the store, or pulls them: one that several ask for at a time is pulled once. */
function createEnsure(store: OpenStore): ImageStore['ensure'] {
  const { at, complete, touch } = store.files;
  const join = createSharedCalls();
  return async (request) => {
    request.signal.throwIfAborted();
    let ref: ImageReference;
    try {
      ref = parseReference(request.reference);
    } catch (error) {
      throw new ImageError('InvalidImageName', (error as Error).message);
    }
    const reference = referenceText(ref);
    if (isLocal(ref)) return ensureLocal(store.files, reference, request.wanted);

    const repository = repositoryOf(ref);
    const policy = request.policy ?? defaultPullPolicy(ref);
    const refPath = at('refs', entryName(reference));
    if (policy !== 'Always' || ref.digest !== '') {
      const known = await readEntry<RefEntry>(refPath);
      const path = known && pulledPath(at, known.digest, request.wanted);
      const entry = path && (await complete(await readEntry<ImageEntry>(path)));
      if (path && entry && mayHave(entry.access, repository, request.credentials)) {
        await touch(path, entry);
        return storedImage(at, reference, entry, false);
      }
      if (policy === 'Never' && entry)
        throw new ImageError(
          'ErrImageNeverPull',
          `image ${reference} is present, but was pulled with a credential that this Pod does not present, and its pull policy is Never`,
        );
      if (policy === 'Never')
        throw new ImageError('ErrImageNeverPull', `image ${reference} is not present and its pull policy is Never`);
    }
    const key = JSON.stringify([reference, request.wanted, request.credentials ?? null]);
    return join(
      key,
      request.signal,
      (signal, onProgress) => pullIntoStore(store, ref, { ...request, signal, onProgress }),
      request.onProgress,
    );
  };
}

async function ensureLocal(files: StoreFiles, reference: string, wanted: WantedFiles): Promise<StoredImage> {
  const { at, complete } = files;
  const entry = await complete(await readEntry<ImageEntry>(at('local', entryName(reference))));
  if (!entry)
    throw new ImageError(
      'ErrImagePull',
      `image ${reference} is not in the local store; import it first (coracle image import ${reference} <file>)`,
    );
  for (const kind of IMAGE_KINDS)
    if (wanted[kind] !== undefined && !entry.files[kind])
      throw new ImageError('ErrImagePull', `image ${reference} was imported without a ${kind}`);
  return storedImage(at, reference, entry, false);
}

function storedImage(at: StoreFiles['at'], reference: string, entry: ImageEntry, pulled: boolean): StoredImage {
  const stored = (file: FileEntry): StoredFile => ({ ...file, path: at('files', fileNameOf(file.digest)) });
  return {
    reference,
    digest: entry.digest,
    pulled,
    ...(entry.files.disk && { disk: stored(entry.files.disk) }),
    ...(entry.files.kernel && { kernel: stored(entry.files.kernel) }),
    ...(entry.files.initrd && { initrd: stored(entry.files.initrd) }),
  };
}

const pulledPath = (at: StoreFiles['at'], digest: string, wanted: WantedFiles): string =>
  at('pulled', entryName(digest, wanted.disk ?? '', wanted.kernel ?? '', wanted.initrd ?? ''));

/** Pulls an image and writes down whose it is. Throws ImageError, or the signal's reason. */
async function pullIntoStore(
  { directory, files, parts, clock, log, architecture, maxImageBytes, space }: OpenStore,
  ref: ImageReference,
  { wanted, credentials, signal, onProgress }: ImageRequest & Required<Pick<ImageRequest, 'onProgress'>>,
): Promise<StoredImage> {
  const { at, complete, moveIn, sweep } = files;
  const reference = referenceText(ref);
  const repository = repositoryOf(ref);
  const guard = await guardDisk(directory, { space, clock, signal });
  try {
    guard.signal.throwIfAborted();
    const scratchDirectory = await mkdtemp(at('scratch', 'pull-'));
    const found = await pullImage(ref, {
      wanted,
      clock,
      signal: guard.signal,
      architecture,
      parts,
      scratchDirectory,
      maxBytes: maxImageBytes,
      onProgress,
      ...(credentials && { credentials }),
      // A manifest that another repository shows is no proof of a right to what this one gave.
      have: async (digest) => {
        const entry = await complete(await readEntry<ImageEntry>(pulledPath(at, digest, wanted)));
        return entry?.access && Object.hasOwn(entry.access, repository) ? entry : undefined;
      },
    });
    const { digest, paths } = found;
    if (paths) await moveIn(found.files, paths);
    const now = clock.now();
    const before = await readEntry<ImageEntry>(pulledPath(at, digest, wanted));
    const entry: ImageEntry = {
      version: 1,
      reference,
      digest,
      files: found.files,
      access: withAccess(before?.access, repository, found.credentialShown ? credentials : undefined),
      createdAt: now,
      usedAt: now,
    };
    await writeFileAtomic(pulledPath(at, digest, wanted), JSON.stringify(entry));
    const named: RefEntry = { version: 1, reference, digest };
    await writeFileAtomic(at('refs', entryName(reference)), JSON.stringify(named));
    if (paths) {
      log.info('image pulled', { image: reference, digest });
      await rm(scratchDirectory, { recursive: true, force: true });
      await sweep();
    }
    return storedImage(at, reference, entry, paths !== undefined);
  } catch (error) {
    signal.throwIfAborted();
    const problem = guard.problem();
    await parts.prune(problem !== undefined || isDiskFull(error));
    if (problem === undefined && error instanceof ImageError) throw error;
    const text =
      problem ??
      (isDiskFull(error)
        ? `no room is left in ${directory} (${await freeText(directory)}); free some there`
        : error instanceof Error
          ? error.message
          : String(error));
    // The registry's own sentences begin with its name and the repository.
    const prefix = text.startsWith(`${ref.registry}/${ref.repository}: `) ? '' : `image ${reference}: `;
    throw new ImageError('ErrImagePull', `${prefix}${text}`, { cause: error });
  } finally {
    guard.stop();
  }
}

/** What is left on the disk of a directory, for people. */
const freeText = (directory: string): Promise<string> =>
  spaceOf(directory).then(
    ({ free }) => `${Math.floor(free / 1024 ** 2)} MiB free`,
    () => 'its free space is not known',
  );

/** True for a failure that has ENOSPC at its root: what an unfinished download has taken is given back then. */
function isDiskFull(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if ((cause as NodeJS.ErrnoException).code === 'ENOSPC') return true;
  return false;
}
