/** Reads the log back at start: the newest state of every key, and the retained changes so that watches can resume. */
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import type { Row } from '../storage/backend.ts';
import type { History } from './history.ts';
import type { Change } from './object-store.ts';
import { OrderedIndex } from './ordered-index.ts';
import { deletedObject, loadedObject, type ObjectMemory, type Place, type Stored } from './stored-object.ts';

/** The objects of all prefixes. */
export type Indexes = Map<string, OrderedIndex<Stored>>;

/** `group/resource/namespace/name`, the key of a row. */
export const rowKey = (place: Place): string => `${place.prefix}/${place.key}`;

/** The index of a prefix, made when it is missing. */
export const indexOf = (indexes: Indexes, prefix: string): OrderedIndex<Stored> =>
  getOrInsert(indexes, prefix, () => new OrderedIndex());

export interface LoadOptions {
  readonly indexes: Indexes;
  readonly history: History;
  readonly memory: ObjectMemory;
  /** Rows at or below this revision are state, not changes to be sent. */
  readonly compacted: number;
  /** Makes the value of a row at or below `until` what it would be if it was written today. */
  readonly renewal?: { readonly until: number; readonly renew: Renew } | undefined;
  /** Monotonic time that stands for when the retained changes happened. */
  readonly now: number;
}

/** The bytes of an object of today for those of an older version: the same ones where nothing has changed. */
export type Renew = (place: Place, bytes: Uint8Array) => Uint8Array;

/** Takes in one chunk of rows. Chunks come in ascending order. */
export function loadRows(
  rows: readonly Row[],
  { indexes, history, memory, compacted, renewal, now }: LoadOptions,
): void {
  for (const row of rows) {
    const place = placeOf(row.key);
    const index = indexOf(indexes, place.prefix);
    const previous = index.get(place.key);
    let change: Change | undefined;
    if (row.value !== undefined) {
      const isOld = renewal !== undefined && row.revision <= renewal.until;
      const value = isOld ? renewal.renew(place, row.value) : row.value;
      previous?.superseded(row.revision);
      // Its own memory: a view would hold the whole chunk for as long as one object of it lives.
      const current = loadedObject(previous ?? place, { revision: row.revision, bytes: value, isOnDisk: true }, memory);
      index.set(current);
      change = { type: previous ? 'MODIFIED' : 'ADDED', revision: row.revision, current, previous };
    } else if (previous) {
      index.delete(place.key);
      previous.superseded(row.revision);
      change = {
        type: 'DELETED',
        revision: row.revision,
        current: deletedObject(previous, row.revision, memory),
        previous,
      };
    }
    if (change && row.revision > compacted) history.append(change, now);
  }
  history.trim(now);
}

function placeOf(key: string): Place {
  const beforeName = key.lastIndexOf('/');
  const beforeNamespace = key.lastIndexOf('/', beforeName - 1);
  return {
    prefix: key.slice(0, beforeNamespace),
    namespace: key.slice(beforeNamespace + 1, beforeName),
    name: key.slice(beforeName + 1),
    key: key.slice(beforeNamespace + 1),
  };
}
