/**
 * The files of an image, in memory: layers applied in order, nothing written, no link followed out of the image. Names
 * are those of the image, from its root, without a leading slash.
 */
import { Readable } from 'node:stream';
import { type LayerEntry, normalEntryName, walkLayer } from '@coracle/runtime/oci/walk-layer';
import { SourceError, type SourceFile, type SourceTree, type UnreadFile } from '../git/source.ts';
import { hasOddName, inOrder, isManifest, oddName, TREE_LIMITS, type TreeLimits } from '../git/tree-rules.ts';

export interface UnpackOptions {
  /** '' for the root. */
  readonly dir: string;
  /** Every file of the image, and not the manifests of `dir` alone. */
  readonly isAll: boolean;
  readonly signal: AbortSignal;
  readonly limits?: Partial<TreeLimits>;
  /** Of all layers together, looked at or not. */
  readonly maxUnpackedBytes?: number;
}

type Held =
  | { readonly kind: 'file'; readonly bytes: Uint8Array }
  | { readonly kind: 'large'; readonly size: number }
  | { readonly kind: 'link'; readonly to: string | undefined };

/** What all layers may unpack to, held or not: a bomb ends here. */
const MAX_UNPACKED_BYTES = 512 * 1024 ** 2;
/** Links in a row. */
const MAX_HOPS = 40;

/** Unpacks them. Rejects with SourceError for what is larger than the limits, has no such directory or is no archive. */
export async function unpackImage(layers: readonly Uint8Array[], options: UnpackOptions): Promise<SourceTree> {
  const image = new Unpacked({ ...TREE_LIMITS, ...options.limits });
  let left = options.maxUnpackedBytes ?? MAX_UNPACKED_BYTES;
  for (const layer of layers) {
    const bytes = {
      head: async () => layer.subarray(0, 4),
      open: () => Readable.from([Buffer.from(layer.buffer, layer.byteOffset, layer.length)]),
    };
    const count = (size: number): void => {
      left -= size;
    };
    try {
      const limits = { maxUnpackedBytes: left, maxEntries: image.limits.entries, onUnpacked: count };
      await walkLayer(bytes, limits, options.signal, (entry) => image.add(entry));
      image.endLayer();
    } catch (error) {
      options.signal.throwIfAborted();
      if (error instanceof SourceError) throw error;
      throw new SourceError(`the image cannot be unpacked: ${(error as Error).message}`);
    }
  }
  return image.tree(options);
}

class Unpacked {
  readonly limits: TreeLimits;
  /** Of the layers that are done. */
  #held = new Map<string, Held>();
  /** Of the layer that is being read, which takes effect as a whole. */
  #layer = new Map<string, Held>();
  #layerDirectories = new Set<string>();
  #removed = new Set<string>();
  #emptied = new Set<string>();
  readonly #directories = new Set<string>(['/']);
  #bytes = 0;
  #entries = 0;

  constructor(limits: TreeLimits) {
    this.limits = limits;
  }

  async add(entry: LayerEntry): Promise<void> {
    const { kind, name, target } = entry;
    if (++this.#entries > this.limits.entries)
      throw new SourceError(`the image holds more than ${this.limits.entries} entries`);
    switch (kind) {
      case 'whiteout':
        this.#removed.add(name);
        return;
      case 'opaque':
        this.#emptied.add(name);
        return;
      case 'file':
        return this.#hold(name, await this.#content(entry));
      case 'symlink':
        return this.#hold(name, { kind: 'link', to: pathFrom(name.slice(0, name.lastIndexOf('/')), target) });
      case 'link':
        return this.#hold(name, { kind: 'link', to: normalEntryName(target) });
      case 'other':
        this.#layerDirectories.add(name);
    }
  }

  /** Puts the layer on top of those below it. */
  endLayer(): void {
    for (const [name, one] of this.#held) {
      const parents = ancestorsOf(name);
      const isGone =
        this.#layer.has(name) ||
        this.#layerDirectories.has(name) ||
        this.#removed.has(name) ||
        parents.some((one) => this.#removed.has(one) || this.#emptied.has(one) || this.#layer.has(one));
      if (isGone) this.#forget(name, one);
    }
    for (const [name, one] of this.#layer) this.#held.set(name, one);
    for (const name of this.#layerDirectories) this.#directories.add(name);
    this.#layer = new Map();
    this.#layerDirectories = new Set();
    this.#removed = new Set();
    this.#emptied = new Set();
  }

  #forget(name: string, one: Held): void {
    this.#held.delete(name);
    if (one.kind === 'file') this.#bytes -= one.bytes.length;
  }

  async #content({ body }: LayerEntry): Promise<Held> {
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of body) {
      size += chunk.length;
      if (size <= this.limits.fileBytes) chunks.push(chunk);
      else chunks.length = 0;
    }
    return size > this.limits.fileBytes ? { kind: 'large', size } : { kind: 'file', bytes: Buffer.concat(chunks) };
  }

  #hold(name: string, one: Held): void {
    const before = this.#layer.get(name);
    if (before?.kind === 'file') this.#bytes -= before.bytes.length;
    this.#layer.set(name, one);
    if (one.kind === 'file') this.#bytes += one.bytes.length;
    if (this.#held.size + this.#layer.size > this.limits.files)
      throw new SourceError(`the image holds more than ${this.limits.files} files`);
    if (this.#bytes > this.limits.totalBytes)
      throw new SourceError(`the files of the image have more than ${this.limits.totalBytes} bytes`);
  }

  tree({ dir, isAll }: UnpackOptions): SourceTree {
    const below = dir === '' || isAll ? '/' : `/${dir}/`;
    const names = [...this.#held.keys()].filter((name) => name.startsWith(below));
    if (names.length === 0 && dir !== '' && !this.#directories.has(`/${dir}`))
      throw new SourceError(`the image has no directory ${JSON.stringify(dir)}`);
    const files: SourceFile[] = [];
    const unread: UnreadFile[] = [];
    for (const name of names) {
      const path = name.slice(1);
      if (!isAll && !isManifest(path)) continue;
      const found = this.#follow(name);
      if (hasOddName(path)) unread.push(oddName(path));
      else if (typeof found === 'string') unread.push({ path, problem: found });
      else files.push({ path, bytes: found });
    }
    return inOrder({ files, unread });
  }

  /** The content, or why there is none. */
  #follow(name: string): Uint8Array | string {
    let at: string | undefined = name;
    for (let hops = 0; hops <= MAX_HOPS; hops++) {
      const one: Held | undefined = at === undefined ? undefined : this.#held.get(at);
      if (at === undefined) return 'it is a link that leads out of the image';
      if (!one) return 'it is a link that leads to no file';
      if (one.kind === 'file') return one.bytes;
      if (one.kind === 'large') return `it has ${one.size} bytes; ${this.limits.fileBytes} are read`;
      at = one.to;
    }
    return 'it is a link that leads nowhere';
  }
}

/** `/a/b/c` -> `/a`, `/a/b`. */
function ancestorsOf(name: string): string[] {
  const found: string[] = [];
  for (let at = name.indexOf('/', 1); at > 0; at = name.indexOf('/', at + 1)) found.push(name.slice(0, at));
  return found;
}

/** Where a link leads; undefined for out of the image, which is also what an absolute one says. */
function pathFrom(directory: string, target: string): string | undefined {
  if (target === '' || target.startsWith('/') || target.length > 4096) return undefined;
  const parts = directory.split('/').filter((part) => part !== '');
  for (const part of target.split('/')) {
    if (part === '' || part === '.') continue;
    if (part !== '..') parts.push(part);
    else if (parts.pop() === undefined) return undefined;
  }
  return `/${parts.join('/')}`;
}
