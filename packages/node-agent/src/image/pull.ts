/** One pull: manifest, layers, the wanted files, what they are. Leaves the files in the scratch directory. */
import { rm } from 'node:fs/promises';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { ImageReference } from '@coracle/runtime/oci/reference';
import { type Credentials, createRegistryClient } from '@coracle/runtime/oci/registry-client';
import { normalEntryName } from '@coracle/runtime/oci/walk-layer';
import { inspectDisk } from './disk-header.ts';
import { repositoryOf } from './image-access.ts';
import { downloadLayer } from './layer-download.ts';
import { type Extracted, extractFiles } from './layer-extract.ts';
import type { LayerParts } from './layer-parts.ts';
import {
  type FileEntry,
  IMAGE_KINDS,
  type ImageEntry,
  type ImageFiles,
  type ImageKind,
  type WantedFiles,
} from './store-entries.ts';

interface PullOptions {
  readonly wanted: WantedFiles;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly architecture: string;
  readonly credentials?: Credentials;
  /** Downloads; unfinished ones are continued by the next pull. */
  readonly parts: LayerParts;
  readonly scratchDirectory: string;
  readonly maxBytes: number;
  readonly onProgress: (done: number, total: number) => void;
  /** The image of that manifest, when its files are at hand already. */
  readonly have: (digest: string) => Promise<ImageEntry | undefined>;
}

interface Pulled {
  readonly digest: string;
  readonly credentialShown: boolean;
  readonly files: ImageFiles;
  /** Where the files are, in the order of `IMAGE_KINDS`; absent when they were at hand already. */
  readonly paths?: readonly string[];
}

/** Pulls `ref`. Throws RegistryError or a plain Error that says what is wrong with the image. */
export async function pullImage(ref: ImageReference, options: PullOptions): Promise<Pulled> {
  const { signal, clock, scratchDirectory } = options;
  try {
    const registry = createRegistryClient(ref, {
      architecture: options.architecture,
      clock,
      ...(options.credentials && { credentials: options.credentials }),
    });
    const manifest = await registry.manifest(signal);
    const known = await options.have(manifest.digest);
    if (known) {
      await rm(scratchDirectory, { recursive: true, force: true });
      return { digest: manifest.digest, files: known.files, credentialShown: registry.credentialShown() };
    }
    const total = manifest.layers.reduce((sum, layer) => sum + layer.size, 0);
    if (total > options.maxBytes) throw new Error(`the image is larger than the limit of ${options.maxBytes} bytes`);
    const held = options.parts.hold(
      repositoryOf(ref),
      manifest.layers.map((layer) => layer.digest),
    );
    let chosen: Awaited<ReturnType<typeof chooseFiles>> | undefined;
    try {
      const blobs: string[] = [];
      let done = 0;
      for (const layer of manifest.layers) {
        const onProgress = (bytes: number): void => options.onProgress(done + bytes, total);
        blobs.push(
          await held.fill(layer.digest, (path) => downloadLayer(registry, layer, path, { clock, signal, onProgress })),
        );
        done += layer.size;
      }
      const paths = wantedPaths(options.wanted);
      const found = await extractFiles(blobs, [...paths.values()], {
        directory: scratchDirectory,
        maxBytes: options.maxBytes,
        signal,
      });
      chosen = await chooseFiles(found, paths);
    } finally {
      await held.release(chosen !== undefined);
    }
    return { digest: manifest.digest, ...chosen, credentialShown: registry.credentialShown() };
  } catch (error) {
    await rm(scratchDirectory, { recursive: true, force: true });
    throw error;
  }
}

function wantedPaths(wanted: WantedFiles): Map<ImageKind, string> {
  const paths = new Map<ImageKind, string>();
  for (const kind of IMAGE_KINDS) {
    const text = wanted[kind];
    if (text === undefined) continue;
    const path = text.startsWith('/') ? normalEntryName(text) : undefined;
    if (path === undefined || path === '/')
      throw new Error(`${kind} path ${JSON.stringify(text)} must be absolute, without "..", and not the root`);
    paths.set(kind, path);
  }
  return paths;
}

async function chooseFiles(
  found: Extracted,
  wanted: ReadonlyMap<ImageKind, string>,
): Promise<{ files: ImageFiles; paths: string[] }> {
  const files: { [kind in ImageKind]?: FileEntry } = {};
  const paths: string[] = [];
  for (const [kind, path] of wanted) {
    const exact = found.get(path);
    const below = [...found].filter(([name]) => name.startsWith(`${path}/`));
    const file = exact ?? (kind === 'disk' && below.length === 1 ? below[0]?.[1] : undefined);
    if (!file) {
      const names = below.map(([name]) => name).join(', ');
      throw new Error(
        below.length > 1
          ? `${path} must hold exactly one file, it holds: ${names}`
          : `the image holds no ${kind === 'disk' ? 'disk' : 'file'} at ${path}`,
      );
    }
    const format = kind === 'disk' ? await inspectDisk(file.file) : { format: 'raw' as const, virtualSize: file.size };
    files[kind] = { digest: file.digest, size: file.size, ...format };
    paths.push(file.file);
  }
  return { files, paths };
}
