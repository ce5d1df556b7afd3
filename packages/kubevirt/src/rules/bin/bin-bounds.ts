/** What the bin may hold: which records have to go before their time, the oldest first. */
import { type DiskSpace, hasDiskPressure } from '../machine/disk-room.ts';

/** Machines that are kept, at most. */
export const MAX_RECORDS = 1000;
/** Bytes of all records together, without the content of disks. */
export const MAX_BYTES = 64 * 1024 * 1024;
/** Bytes of one record: a larger one is not kept. */
export const MAX_RECORD_BYTES = 4 * 1024 * 1024;

/** Of the file system of a pool the bin takes at most so much. */
export const POOL_SHARE = 0.5;

/** A machine in the bin. */
export interface BinEntry {
  readonly name: string;
  /** RFC 3339. */
  readonly deletedAt: string;
  /** Bytes of the record. */
  readonly bytes: number;
  /** Bytes of its disks, by the pool they lie in. */
  readonly disks: Readonly<Record<string, number>>;
  /** It is on its way back, or out: it counts, and is not chosen. */
  readonly isBusy: boolean;
  /** It is on its way out: what it holds counts as free. */
  readonly isLeaving: boolean;
}

export interface Eviction {
  readonly name: string;
  readonly reason: string;
}

/**
 * Chooses those that go; `spaces` are those of the pools that are known. The bin gives way as a disk fills up, before the
 * node would be under pressure, and so before guests that write are paused.
 */
export function evictions(entries: readonly BinEntry[], spaces: Readonly<Record<string, DiskSpace>>): Eviction[] {
  const oldest = entries.filter(({ isLeaving }) => !isLeaving).sort(byAge);
  const free: Record<string, number> = {};
  for (const [pool, space] of Object.entries(spaces)) free[pool] = space.free;
  const held: Record<string, number> = {};
  for (const entry of entries)
    for (const [pool, bytes] of Object.entries(entry.disks)) {
      if (entry.isLeaving) free[pool] = (free[pool] ?? 0) + bytes;
      else held[pool] = (held[pool] ?? 0) + bytes;
    }
  let count = oldest.length;
  let bytes = oldest.reduce((sum, entry) => sum + entry.bytes, 0);
  const tight = (pool: string): string | undefined => {
    const { total } = spaces[pool] ?? { total: 0 };
    if (total === 0) return undefined;
    if ((held[pool] ?? 0) > total * POOL_SHARE) return `the bin takes more than its share of pool ${pool}`;
    return hasDiskPressure({ free: free[pool] ?? 0, total }, true) ? `room is needed in pool ${pool}` : undefined;
  };
  const gone: Eviction[] = [];
  for (const entry of oldest) {
    const reason =
      count > MAX_RECORDS
        ? `the bin holds more than ${MAX_RECORDS} machines`
        : bytes > MAX_BYTES
          ? `the records of the bin take more than ${MAX_BYTES} bytes`
          : firstOf(Object.keys(entry.disks), (pool) => (entry.disks[pool]! > 0 ? tight(pool) : undefined));
    if (!reason || entry.isBusy) continue;
    gone.push({ name: entry.name, reason });
    count -= 1;
    bytes -= entry.bytes;
    for (const [each, size] of Object.entries(entry.disks)) {
      held[each] = (held[each] ?? 0) - size;
      free[each] = (free[each] ?? 0) + size;
    }
  }
  return gone;
}

function firstOf<T>(list: readonly string[], find: (each: string) => T | undefined): T | undefined {
  for (const each of list) {
    const found = find(each);
    if (found !== undefined) return found;
  }
  return undefined;
}

const byAge = (a: BinEntry, b: BinEntry): number =>
  a.deletedAt === b.deletedAt ? (a.name < b.name ? -1 : 1) : a.deletedAt < b.deletedAt ? -1 : 1;
