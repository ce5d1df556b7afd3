/**
 * Measures the object store over SQLite, without HTTP: prints one JSON line. Objects are about 2 kB.
 * Usage: node --expose-gc bench/store.ts [directory]
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { UnstructuredObject } from '../packages/apimachinery/src/meta/object.ts';
import { createObjectStore } from '../packages/apiserver/src/cache/create-object-store.ts';
import type { ObjectStore } from '../packages/apiserver/src/cache/object-store.ts';
import { createSqliteBackend } from '../packages/apiserver/src/storage/sqlite-backend.ts';
import { systemClock } from '../packages/runtime/src/clock/clock.ts';
import { silentLogger } from '../packages/runtime/src/log/log.ts';

const LOAD = 100_000;
const PREFIX = '/configmaps';

const objectNamed = (name: string): UnstructuredObject => ({
  kind: 'ConfigMap',
  apiVersion: 'v1',
  metadata: {
    name,
    namespace: 'default',
    uid: crypto.randomUUID(),
    creationTimestamp: '2030-01-01T00:00:00Z',
    labels: { app: 'bench', 'example.io/part': 'one' },
    managedFields: [
      {
        manager: 'bench',
        operation: 'Update',
        apiVersion: 'v1',
        time: '2030-01-01T00:00:00Z',
        fieldsType: 'FieldsV1',
        fieldsV1: { 'f:data': { '.': {}, 'f:a': {}, 'f:b': {}, 'f:c': {} }, 'f:metadata': { 'f:labels': { '.': {} } } },
      },
    ],
  },
  data: Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`key-${i}`, 'x'.repeat(110)])),
});

let serial = 0;

async function creates(store: ObjectStore, count: number, writers: number): Promise<number> {
  const began = systemClock.monotonic();
  let left = count;
  const writer = async (): Promise<void> => {
    while (left-- > 0) {
      const name = `object-${serial++}`;
      await store.write({ prefix: PREFIX, namespace: 'default', name }, () => ({
        type: 'put',
        object: objectNamed(name),
      }));
    }
  };
  await Promise.all(Array.from({ length: writers }, writer));
  return Math.round((count / (systemClock.monotonic() - began)) * 1000);
}

function nanoseconds(count: number, run: (i: number) => unknown): number {
  const began = systemClock.monotonic();
  for (let i = 0; i < count; i++) run(i);
  return Math.round(((systemClock.monotonic() - began) / count) * 1e6);
}

const mib = (bytes: number): number => Math.round(bytes / 1024 / 1024);

const directory = process.argv[2] ?? (await mkdtemp(join(tmpdir(), 'store-bench-')));
const open = (): Promise<ObjectStore> =>
  createObjectStore({
    backend: createSqliteBackend({ directory, clock: systemClock, log: silentLogger }),
    clock: systemClock,
    log: silentLogger,
    signal: AbortSignal.timeout(60_000),
  });

let store = await open();
const base = process.memoryUsage();
const oneAtATime = await creates(store, 3000, 1);
const with32 = await creates(store, 20_000, 32);
const with64 = await creates(store, LOAD - 23_000, 64);
const peakRss = process.memoryUsage().rss;
globalThis.gc?.();
const loaded = process.memoryUsage();
const getNs = nanoseconds(200_000, (i) =>
  store.get({ prefix: PREFIX, namespace: 'default', name: `object-${(i * 7919) % LOAD}` }),
);
const list5000Us = nanoseconds(50, () => store.list(PREFIX, { limit: 5000 })) / 1000;
const old = store.revision() - 20_000;
const listOldUs = nanoseconds(20, () => store.list(PREFIX, { revision: old, limit: 5000 })) / 1000;
const updates = await (async () => {
  const began = systemClock.monotonic();
  const count = 30_000;
  await Promise.all(
    Array.from({ length: 32 }, async (_, w) => {
      for (let i = 0; i < count / 32; i++) {
        const name = `object-${(i * 32 + w) % 5000}`;
        await store.write({ prefix: PREFIX, namespace: 'default', name }, (current) => ({
          type: 'put',
          object: { ...current!.object, data: { ...(current!.object['data'] as object), count: `${i}` } },
        }));
      }
    }),
  );
  return Math.round((count / (systemClock.monotonic() - began)) * 1000);
})();
const rssAfterUpdates = process.memoryUsage().rss;
await store.close();
store = undefined as never;
await new Promise((resolve) => setTimeout(resolve, 100));
const reopening = systemClock.monotonic();
store = await open();
const reopenMs = Math.round(systemClock.monotonic() - reopening);
globalThis.gc?.();
const reopened = process.memoryUsage();
await store.close();
if (process.argv[2] === undefined) await rm(directory, { recursive: true });

const result = {
  createsPerSecond: { oneAtATime, with32, with64 },
  updatesPerSecondWith32: updates,
  getNs,
  list5000Us: Math.round(list5000Us),
  list5000AtOldRevisionUs: Math.round(listOldUs),
  reopenMs,
  rssMiB: { base: mib(base.rss), peak: mib(peakRss), loaded: mib(loaded.rss), updated: mib(rssAfterUpdates) },
  bytesPerObject: {
    heap: Math.round((loaded.heapUsed - base.heapUsed) / LOAD),
    external: Math.round((loaded.arrayBuffers - base.arrayBuffers) / LOAD),
  },
  reopenedMiB: { heap: mib(reopened.heapUsed), arrayBuffers: mib(reopened.arrayBuffers), rss: mib(reopened.rss) },
};
process.stdout.write(`${JSON.stringify(result)}\n`);
