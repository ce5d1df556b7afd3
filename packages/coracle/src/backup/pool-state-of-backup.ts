/** Which files of a pool a backup holds, and the metadata that a restored pool has: plain data in, plain data out. */
import { chainFrom, childrenOf, type PoolState, snapshotsOf } from '@coracle/node-agent/storage/pool-state';
import { BackupError } from './backup-error.ts';

/** A snapshot that was taken for the backup. */
export interface TakenSnapshot {
  readonly handle: string;
  readonly volume: string;
}

export interface PoolOfBackup {
  readonly state: PoolState;
  /** Ids of layers: paths below `claims/`. */
  readonly layers: readonly string[];
  /** Directories `files/` by where they are and where they belong: handles. */
  readonly files: readonly { readonly from: string; readonly to: string }[];
}

/**
 * The pool as it was when the snapshots were taken: each volume goes on with the layer that its snapshot froze, snapshots of
 * others stay, and what came since is left out. Throws BackupError where somebody else has come to rest on such a layer.
 */
export function poolOfBackup(found: PoolState, taken: readonly TakenSnapshot[]): PoolOfBackup {
  const own = new Set(taken.map(({ handle }) => handle));
  const snapshots = Object.fromEntries(Object.entries(found.snapshots).filter(([handle]) => !own.has(handle)));
  const volumes: Record<string, PoolState['volumes'][string]> = {};
  for (const { handle, volume } of taken) {
    const snapshot = found.snapshots[handle];
    const before = found.volumes[volume];
    // Removed since: its claim was.
    if (!snapshot || !before) continue;
    volumes[volume] = { top: snapshot.layer, bytes: snapshot.bytes, mode: before.mode };
  }
  const used = new Set<string>();
  for (const top of [...Object.values(volumes).map(({ top }) => top), ...Object.values(snapshots).map((s) => s.layer)])
    for (const id of chainFrom(found, top)) used.add(id);
  const layers = Object.fromEntries(Object.entries(found.layers).filter(([id]) => used.has(id)));
  const state: PoolState = { ...found, layers, volumes, snapshots, doomed: [] };
  for (const [handle, { top }] of Object.entries(volumes)) {
    const tops = Object.values(volumes).filter((other) => other.top === top).length;
    // A guest is going to write to it.
    if (childrenOf(state, top).length > 0 || snapshotsOf(state, top).length > 0 || tops > 1)
      throw new BackupError(`volume ${handle} was copied while it was backed up; try again`);
  }
  return {
    state,
    layers: [...used].sort(),
    files: [
      ...taken.flatMap(({ handle, volume }) => (volumes[volume] ? [{ from: handle, to: volume }] : [])),
      ...Object.keys(snapshots).map((handle) => ({ from: handle, to: handle })),
    ],
  };
}
