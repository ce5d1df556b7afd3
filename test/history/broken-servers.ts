/** Servers that break one promise each, through the seams of the real one: what the history checker has to notice. */

import type { Change, ObjectStore, StoredObject } from '../../packages/apiserver/src/cache/object-store.ts';
import type { Backend, Row } from '../../packages/apiserver/src/storage/backend.ts';
import { createMemoryBackend } from '../../packages/apiserver/src/storage/memory-backend.ts';
import { type ApiHandler, redirected } from '../../packages/runtime/src/http/seam.ts';

export interface Breakage {
  readonly name: string;
  /** The check that has to notice: one of them is enough. */
  readonly rules: readonly string[];
  /** How many bookmarks, but those after an initial state, have to come after the restart and amid the load. */
  readonly bookmarks?: number;
  readonly store?: (store: ObjectStore) => ObjectStore;
  readonly handler?: (handler: ApiHandler) => ApiHandler;
  /** What is left of the state after a kill. */
  readonly backend?: () => { readonly backend: Backend; afterKill(): Promise<Backend> };
}

/** A store with some calls replaced. */
const but = (store: ObjectStore, parts: Partial<ObjectStore>): ObjectStore => ({
  revision: () => store.revision(),
  compactedRevision: () => store.compactedRevision(),
  get: (key) => store.get(key),
  peek: (key) => store.peek(key),
  settled: (key) => store.settled(key),
  observe: (prefix, observer) => store.observe(prefix, observer),
  list: (prefix, options) => store.list(prefix, options),
  count: (prefix) => store.count(prefix),
  write: (key, decide) => store.write(key, decide),
  writeTogether: (first, others) => store.writeTogether(first, others),
  watch: (...args) => store.watch(...args),
  waitFor: (revision, signal) => store.waitFor(revision, signal),
  fault: () => store.fault(),
  stats: () => store.stats(),
  close: () => store.close(),
  ...parts,
});

/** True at every nth call. */
const every = (nth: number): (() => boolean) => {
  let count = 0;
  return () => ++count % nth === 0;
};

/** Watches of the recorded kinds whose batches go through `bend`; those of the server itself stay whole. */
const bentWatches =
  (bend: (changes: readonly Change[]) => readonly Change[]) =>
  (store: ObjectStore): ObjectStore =>
    but(store, {
      watch: (prefix, from, listener) => {
        if (!isRecorded(prefix)) return store.watch(prefix, from, listener);
        return store.watch(prefix, from, (changes) => {
          const bent = bend(changes);
          if (bent.length > 0) listener(bent);
        });
      },
    });
const isRecorded = (prefix: string): boolean =>
  prefix.endsWith('/configmaps') || prefix.endsWith('poddisruptionbudgets');

const lag = 25;

export const BREAKAGES: readonly Breakage[] = [
  {
    name: 'stale reads',
    rules: ['L4'],
    store(store) {
      const now = every(2);
      const seen = new Map<string, StoredObject>();
      return but(store, {
        get(key) {
          const current = store.get(key);
          if (!isRecorded(key.prefix) || !current) return current;
          const name = `${key.prefix} ${key.namespace}/${key.name}`;
          const before = seen.get(name);
          seen.set(name, current);
          return before && now() ? before : current;
        },
      });
    },
  },
  {
    name: 'stale lists',
    rules: ['L4'],
    store(store) {
      const now = every(8);
      return but(store, {
        list(prefix, options) {
          const revision = Math.max(store.compactedRevision(), store.revision() - 20);
          const stale = isRecorded(prefix) && options?.revision === undefined && now();
          return store.list(prefix, stale ? { ...options, revision } : options);
        },
      });
    },
  },
  {
    name: 'a list that is no snapshot: later pages are of later states',
    rules: ['L4'],
    store: (store) =>
      but(store, {
        list(prefix, options) {
          if (!isRecorded(prefix) || options?.revision === undefined) return store.list(prefix, options);
          const { revision, ...newest } = options;
          return { ...store.list(prefix, newest), revision };
        },
      }),
  },
  {
    name: 'lost writes: answered before they are on the disk',
    rules: ['L5', 'L4', 'L3', 'W11', 'L2'],
    backend() {
      const disk = createMemoryBackend();
      let pending: (readonly Row[])[] = [];
      const flush = async (keep: number): Promise<void> => {
        while (pending.length > keep) await disk.commit(pending.shift()!);
      };
      const backend: Backend = {
        ...disk,
        async commit(rows) {
          pending.push(rows);
          await flush(lag);
        },
      };
      return {
        backend,
        async afterKill() {
          pending = [];
          return disk;
        },
      };
    },
  },
  {
    name: 'resourceVersion goes back at a restart',
    rules: ['L1', 'L2'],
    backend() {
      const disk = createMemoryBackend();
      const rows: Row[] = [];
      return {
        backend: {
          ...disk,
          async commit(batch) {
            await disk.commit(batch);
            rows.push(...batch);
          },
        },
        async afterKill() {
          const older = createMemoryBackend();
          const opened = await older.open(AbortSignal.timeout(1000));
          await older.commit(rows.slice(0, -lag));
          await older.close();
          return opened.epoch > 0 ? older : disk;
        },
      };
    },
  },
  { name: 'events delivered twice', rules: ['W2'], store: bentWatches(twice()) },
  { name: 'events left out', rules: ['W3', 'W5'], store: bentWatches(gaps()) },
  { name: 'events out of order', rules: ['W1', 'W2', 'W3'], store: bentWatches(swapped()) },
  {
    name: 'deletions without a revision of their own',
    rules: ['W1', 'W2', 'W3', 'W4', 'L1'],
    store: bentWatches((changes) =>
      changes.map((change) =>
        change.type === 'DELETED' && change.previous
          ? { ...change, revision: change.previous.revision, current: change.previous }
          : change,
      ),
    ),
  },
  {
    name: 'bookmarks that run ahead of the events',
    rules: ['W5'],
    bookmarks: 5,
    store: (store) =>
      but(store, {
        watch(prefix, from, listener) {
          if (!isRecorded(prefix)) return store.watch(prefix, from, listener);
          let stopped = false;
          const late = (changes: readonly Change[]): void =>
            void setTimeout(() => {
              if (!stopped) listener(changes);
            }, 50);
          const running = store.watch(prefix, from, late);
          return {
            through: () => running.through(),
            stop() {
              stopped = true;
              running.stop();
            },
          };
        },
      }),
  },
  {
    name: 'updates whose resourceVersion is not looked at',
    rules: ['L3'],
    handler: (handler) => (request) => {
      if (request.method !== 'PUT' || !request.path.includes('/configmaps/')) return handler(request);
      const body = JSON.parse(new TextDecoder().decode(request.body));
      delete body.metadata.resourceVersion;
      return handler(redirected(request, { body: new TextEncoder().encode(JSON.stringify(body)) }));
    },
  },
  {
    name: 'dry runs that are done',
    rules: ['L8'],
    handler: (handler) => (request) => handler(redirected(request, { query: request.query.replace('dryRun=All', '') })),
  },
];

function twice(): (changes: readonly Change[]) => readonly Change[] {
  const now = every(15);
  return (changes) => (now() ? [...changes, changes.at(-1)!] : changes);
}

function gaps(): (changes: readonly Change[]) => readonly Change[] {
  const now = every(15);
  return (changes) => changes.filter(() => !now());
}

/** Holds a change back until the next one has gone out. */
function swapped(): (changes: readonly Change[]) => readonly Change[] {
  const now = every(15);
  let held: Change | undefined;
  return (changes) => {
    const [first, ...others] = changes;
    if (held && first && held.current.prefix === first.current.prefix && held.revision < first.revision) {
      const late = held;
      held = undefined;
      return [first, late, ...others];
    }
    if (!now()) return changes;
    held = changes.at(-1);
    return changes.slice(0, -1);
  };
}
