/**
 * What a pool holds, as it stands in its metadata file, and the rules over it: plain data in, plain data out. A layer is
 * one file; a volume is the layer that a guest writes to, over those that nobody writes to any more.
 */
import type { VolumeFormat } from '@coracle/cluster-rules/storage/pool-calls';

/** One file. Its id is its path below the directory of the pool, `HANDLE/NAME`. */
export interface Layer {
  readonly format: VolumeFormat;
  /** Id of the layer below; what is not allocated here is read there. */
  readonly parent?: string;
}

export interface Volume {
  /** Id of the layer that a guest writes to. */
  readonly top: string;
  /**
   * Id of the layer that a running QEMU is being switched to from now on. Until that is settled either of the two
   * is the top: the new one is empty, or holds what is newest.
   */
  readonly next?: string;
  /** Bytes that a guest sees. */
  readonly bytes: number;
  readonly mode: 'Filesystem' | 'Block';
  /** RFC 3339: when it was made, while nothing stands for it yet. */
  readonly provisionalSince?: string;
}

export interface Snapshot {
  readonly layer: string;
  readonly bytes: number;
  /** RFC 3339. */
  readonly createdAt: string;
  /** Handle of the volume that it was taken of. */
  readonly volume: string;
}

/** The metadata of a pool; every member by handle or id. */
export interface PoolState {
  readonly version: 1;
  readonly id: string;
  readonly layers: Readonly<Record<string, Layer>>;
  readonly volumes: Readonly<Record<string, Volume>>;
  readonly snapshots: Readonly<Record<string, Snapshot>>;
  /** Paths below the pool's directory that are being removed. */
  readonly doomed: readonly string[];
}

/** A pool that holds nothing yet. */
export const emptyState = (id: string): PoolState => ({
  version: 1,
  id,
  layers: {},
  volumes: {},
  snapshots: {},
  doomed: [],
});

const HANDLE = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const LAYER = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\/(disk\.img|layer-[0-9a-f]{12}\.(raw|qcow2))$/;

/** True for UIDs as the API server makes them: the only text that may name a directory of a pool. */
export const isHandle = (text: unknown): text is string => typeof text === 'string' && HANDLE.test(text);

/** Ids of a layer and of those below it, from the top down. */
export function chainFrom(state: PoolState, top: string): string[] {
  const chain: string[] = [];
  for (let id: string | undefined = top; id !== undefined; id = state.layers[id]?.parent) {
    if (chain.includes(id)) throw new Error(`layer ${id} lies below itself`);
    chain.push(id);
  }
  return chain;
}

/** Ids of the layers that lie directly on this one. */
export const childrenOf = (state: PoolState, id: string): string[] =>
  Object.entries(state.layers).flatMap(([child, { parent }]) => (parent === id ? [child] : []));

/** Handles of the volumes whose content a change of this layer would touch, those on top of it among them. */
export const volumesOver = (state: PoolState, id: string): string[] =>
  Object.entries(state.volumes).flatMap(([handle, { top, next }]) =>
    [top, ...(next === undefined ? [] : [next])].some((one) => chainFrom(state, one).includes(id)) ? [handle] : [],
  );

/** Handles of the snapshots that are this very layer. */
export const snapshotsOf = (state: PoolState, id: string): string[] =>
  Object.entries(state.snapshots).flatMap(([handle, { layer }]) => (layer === id ? [handle] : []));

/**
 * The same pool without the layers that nobody refers to, their files doomed, along with `more`.
 */
export function collectLayers(state: PoolState, more: readonly string[]): PoolState {
  const used = new Set<string>();
  const use = (top: string): void => {
    for (const id of chainFrom(state, top)) used.add(id);
  };
  for (const { top, next } of Object.values(state.volumes)) {
    use(top);
    if (next !== undefined) use(next);
  }
  for (const { layer } of Object.values(state.snapshots)) use(layer);
  const gone = Object.keys(state.layers).filter((id) => !used.has(id));
  if (gone.length === 0 && more.length === 0) return state;
  const layers = Object.fromEntries(Object.entries(state.layers).filter(([id]) => used.has(id)));
  return { ...state, layers, doomed: [...state.doomed, ...gone, ...more] };
}

/** Reads what was written; undefined when it is not whole. Members of a newer version are kept by nobody. */
export function parseState(text: string): PoolState | undefined {
  try {
    const state = JSON.parse(text) as PoolState;
    const sound =
      state.version === 1 &&
      isHandle(state.id) &&
      Array.isArray(state.doomed) &&
      Object.entries(state.layers).every(
        ([id, { format, parent }]) =>
          LAYER.test(id) &&
          (format === 'raw' || format === 'qcow2') &&
          (parent === undefined || (format === 'qcow2' && Object.hasOwn(state.layers, parent))),
      ) &&
      Object.entries(state.volumes).every(
        ([handle, { top, next, bytes, provisionalSince = '' }]) =>
          isHandle(handle) &&
          Number.isSafeInteger(bytes) &&
          typeof provisionalSince === 'string' &&
          Object.hasOwn(state.layers, top) &&
          (next === undefined || Object.hasOwn(state.layers, next)),
      ) &&
      Object.entries(state.snapshots).every(
        ([handle, { layer }]) => isHandle(handle) && Object.hasOwn(state.layers, layer),
      );
    return sound ? state : undefined;
  } catch {
    return undefined;
  }
}

/** Takes the upper layer out of the pool: what lay on it, or was it, is the lower one, which holds all of its content. */
export function mergeDown(state: PoolState, upper: string, lower: string): PoolState {
  const swap = (id: string): string => (id === upper ? lower : id);
  const each = <T>(members: Readonly<Record<string, T>>, change: (member: T) => T): Record<string, T> =>
    Object.fromEntries(Object.entries(members).map(([key, member]) => [key, change(member)]));
  const layers = each(state.layers, (layer) => (layer.parent === upper ? { ...layer, parent: lower } : layer));
  return {
    ...state,
    layers,
    volumes: each(state.volumes, (volume) => ({ ...volume, top: swap(volume.top) })),
    snapshots: each(state.snapshots, (snapshot) => ({ ...snapshot, layer: swap(snapshot.layer) })),
  };
}
