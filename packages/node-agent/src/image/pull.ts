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
import type { FileEntry, ImageEntry, ImageFiles } from './store-entries.ts';

export interface PullOptions {
  readonly wanted: { readonly disk?: string; readonly kernel?: string; readonly initrd?: string };
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

export type Pulled =
  | { readonly digest: string; readonly files: ImageFiles; readonly credentialShown: boolean }
  | {
      readonly digest: string;
      readonly credentialShown: boolean;
      readonly files: ImageFiles;
      /** Where the files are, in the order disk, kernel, initrd. */
      readonly paths: readonly string[];
      readonly scratchDirectory: string;
    };

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
        limits: { maxBytes: options.maxBytes, maxUnpackedBytes: options.maxBytes },
        signal,
      });
      chosen = await chooseFiles(found, paths);
    } finally {
      await held.release(chosen !== undefined);
    }
    return {
      digest: manifest.digest,
      files: chosen.files,
      paths: chosen.paths,
      scratchDirectory,
      credentialShown: registry.credentialShown(),
    };
  } catch (error) {
    await rm(scratchDirectory, { recursive: true, force: true });
    throw error;
  }
}

type Kind = 'disk' | 'kernel' | 'initrd';
const KINDS = ['disk', 'kernel', 'initrd'] as const;

function wantedPaths(wanted: PullOptions['wanted']): Map<Kind, string> {
  const paths = new Map<Kind, string>();
  for (const kind of KINDS) {
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
  paths: ReadonlyMap<Kind, string>,
): Promise<{ files: ImageFiles; paths: string[] }> {
  const files: { disk?: FileEntry; kernel?: FileEntry; initrd?: FileEntry } = {};
  const places: string[] = [];
  for (const kind of KINDS) {
    const path = paths.get(kind);
    if (path === undefined) continue;
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
    places.push(file.file);
  }
  return { files, paths: places };
}
