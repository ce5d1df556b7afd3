/** Opens a backend, reads its log and serves it as an ObjectStore. */
import { DEFAULT_HELD, HeldBytes, type HeldLimits } from './held-bytes.ts';
import { DEFAULT_HISTORY, History, type HistoryLimit } from './history.ts';
import type { ObjectStore } from './object-store.ts';
import { PublishedStore, type PublishedStoreOptions } from './published-store.ts';
import { type Indexes, loadRows, type Renew } from './store-load.ts';
import { createParsedObjects, type ObjectMemory } from './stored-object.ts';

/** JSON bytes of the objects whose parsed form is kept; the parsed forms take about four times as much (measured). */
const PARSED_BYTES = 8 * 1024 * 1024;

type Settings = 'backend' | 'log' | 'clock' | 'compactionInterval' | 'byteLimits' | 'limitsAfter';

export interface ObjectStoreOptions extends Pick<PublishedStoreOptions, Settings> {
  /** Bounds of the retained log in memory; parts left out take their defaults. */
  readonly historyLimit?: Partial<HistoryLimit>;
  /** Bound of the parsed objects kept, in bytes of their JSON. */
  readonly parsedBytes?: number;
  /** Bounds of the bytes kept in memory where the backend can read them again; parts left out take their defaults. */
  readonly heldLimits?: Partial<HeldLimits>;
  /** Applied to what older versions wrote; absent: it is taken as it is. */
  readonly renew?: Renew;
  /** Aborting it while the log is being read gives the opening up. */
  readonly signal: AbortSignal;
}

/**
 * Opens the store; resolves when everything is in memory. Rejects with StorageError: 'in-use' when another process
 * holds the state, 'corrupt' when it cannot be read.
 */
export async function createObjectStore(options: ObjectStoreOptions): Promise<ObjectStore> {
  const { backend, log, clock, historyLimit, renew, signal } = options;
  const began = clock.monotonic();
  const opened = await backend.open(signal);
  try {
    const history = new History({ ...DEFAULT_HISTORY, ...historyLimit }, opened.compacted);
    const indexes: Indexes = new Map();
    const { compacted, incomplete } = opened;
    const renewal = renew && incomplete > 0 ? { until: incomplete, renew } : undefined;
    const memory = memoryOf(options, renewal);
    for await (const rows of opened.rows)
      loadRows(rows, { indexes, history, memory, compacted, renewal, now: clock.monotonic() });
    if (opened.hole > 0) history.forget(opened.hole);
    if (opened.corrupt.length > 0)
      log.error('corrupt rows in the store', { keys: opened.corrupt.slice(0, 20).join(' ') });
    const { epoch, revision, corrupt } = opened;
    const store = new PublishedStore({ ...options, history, memory, indexes, revision, corrupt });
    const { objects } = store.stats();
    const milliseconds = Math.round(clock.monotonic() - began);
    log.info('store opened', { objects, epoch, revision, milliseconds });
    return store;
  } catch (error) {
    await backend.close();
    throw error;
  }
}

/** Where bytes of objects come from once they are not in memory. */
function memoryOf(
  { backend, parsedBytes, heldLimits }: ObjectStoreOptions,
  renewal: { readonly until: number; readonly renew: Renew } | undefined,
): ObjectMemory {
  const parsed = createParsedObjects(parsedBytes ?? PARSED_BYTES);
  const { readValue } = backend;
  if (readValue === undefined) return { parsed };
  const held = new HeldBytes({ ...DEFAULT_HELD, ...heldLimits });
  return {
    parsed,
    disk: {
      held,
      read(place, revision) {
        const value = readValue.call(backend, revision);
        return value && renewal && revision <= renewal.until ? renewal.renew(place, value) : value;
      },
    },
  };
}
