/**
 * The metadata of a pool on the disk, `pool.json`: replaced whole, one change after the other, before anything that
 * cannot be undone. What a crash left beside it is removed when it is opened.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { writeFileAtomic } from '../image/atomic-file.ts';
import { FILES, rawBytes } from './layer-files.ts';
import { collectLayers, emptyState, isHandle, type PoolState, parseState } from './pool-state.ts';

const FILE = 'pool.json';
/** The image of a claim in a directory of ours, as versions without a pool made it. */
export const OLD_IMAGE = 'disk.img';
const LAYER_FILE = /^layer-[0-9a-f]{12}\.(raw|qcow2)$/;
/** What is made beside the metadata before it stands there. */
const UNFINISHED = /^(layer-[0-9a-f]{12}\.(raw|qcow2)|copy-[0-9a-f]{12}|\.coracle-.*|.*\.tmp)$/;

export interface PoolStore {
  readonly state: PoolState;
  /**
   * Applies a change and writes it; resolves once it is on the disk, and what nobody refers to any more is removed then.
   * `doomed` are paths below the directory that go as well. `change` may be called on a state that others changed since.
   */
  commit(change: (state: PoolState) => PoolState, doomed?: readonly string[]): Promise<void>;
}

/** Opens the directory (makes it, mode 0700), reads or makes its metadata, takes over images of older versions. */
export async function openPoolStore(
  directory: string,
  { onStep }: { readonly onStep?: ((step: string) => void) | undefined } = {},
): Promise<PoolStore> {
  const step = (name: string): void => onStep?.(name);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, FILE);
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  const known = text === undefined ? emptyState(randomUUID()) : parseState(text);
  // Never taken for an empty one: the next sweep would remove everything.
  const trouble = !known ? 'damaged' : text === undefined && (await hasLayers(directory)) ? 'missing' : undefined;
  if (!known || trouble) throw new Error(`${path} is ${trouble}; the volumes below ${directory} are left as they are`);
  let state = known;

  /** Resolves to what could not be removed: it is tried again with the next removal. */
  const removeDoomed = async (): Promise<string[]> => {
    const left: string[] = [];
    for (const name of state.doomed) {
      await rm(join(directory, name), { recursive: true, force: true }).catch(() => left.push(name));
      await rmdir(dirname(join(directory, name))).catch(() => {});
      step('file removed');
    }
    return left;
  };
  let last: Promise<unknown> = Promise.resolve();
  const store: PoolStore = {
    get state() {
      return state;
    },
    commit(change, doomed = []) {
      const work = last.then(async () => {
        const next = collectLayers(change(state), doomed);
        if (next === state) return;
        step('before metadata');
        await writeFileAtomic(path, JSON.stringify(next));
        state = next;
        step('metadata written');
        if (next.doomed.length === 0) return;
        const clean = { ...state, doomed: await removeDoomed() };
        await writeFileAtomic(path, JSON.stringify(clean));
        state = clean;
        step('removal noted');
      });
      last = work.catch(() => {});
      return work;
    },
  };
  if (text === undefined) await writeFileAtomic(path, JSON.stringify(state));
  const left = await removeDoomed();
  await store.commit((current) => (current.doomed.length === left.length ? current : { ...current, doomed: left }));
  await sweep(directory, state);
  const found = await findOldImages(directory, state);
  if (Object.keys(found).length > 0)
    await store.commit((current) =>
      Object.entries(found).reduce((sum, [handle, bytes]) => adopt(sum, handle, bytes), current),
    );
  return store;
}

/** True when files lie there that only metadata explains. */
async function hasLayers(directory: string): Promise<boolean> {
  for (const name of await readdir(directory))
    if (
      isHandle(name) &&
      (await readdir(join(directory, name)).catch(() => [])).some((entry) => LAYER_FILE.test(entry))
    )
      return true;
  return false;
}

/** The same pool with the image of an older version as a volume. */
export function adopt(state: PoolState, handle: string, bytes: number): PoolState {
  const id = `${handle}/${OLD_IMAGE}`;
  if (state.volumes[handle] || state.layers[id]) return state;
  return {
    ...state,
    layers: { ...state.layers, [id]: { format: 'raw' } },
    volumes: { ...state.volumes, [handle]: { top: id, bytes, mode: 'Filesystem' } },
  };
}

/** Images that older versions made and nobody has taken over: handle -> bytes. */
async function findOldImages(directory: string, state: PoolState): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  for (const handle of await readdir(directory)) {
    if (!isHandle(handle) || state.volumes[handle] || state.layers[`${handle}/${OLD_IMAGE}`]) continue;
    const bytes = await rawBytes(join(directory, handle, OLD_IMAGE));
    if (bytes !== undefined) found[handle] = bytes;
  }
  return found;
}

/** Removes what was made for a change that was never written. */
async function sweep(directory: string, state: PoolState): Promise<void> {
  for (const name of await readdir(directory)) {
    if (name.startsWith(`${FILE}.`)) await rm(join(directory, name), { force: true });
    // On their way out when a version without a pool ended.
    if (name.startsWith('.gone-')) await rm(join(directory, name), { recursive: true, force: true });
    if (!isHandle(name)) continue;
    const at = join(directory, name);
    const isHeld = state.volumes[name] !== undefined || state.snapshots[name] !== undefined;
    for (const entry of await readdir(at).catch(() => []))
      if ((UNFINISHED.test(entry) && !state.layers[`${name}/${entry}`]) || (entry === FILES && !isHeld))
        await rm(join(at, entry), { recursive: true, force: true });
    if (!isHeld) await rmdir(at).catch(() => {});
  }
}
