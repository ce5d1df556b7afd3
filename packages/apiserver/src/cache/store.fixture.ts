/** For the tests of this room: a backend whose commits end when the test says so, and small objects. */
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { silentLogger } from '@coracle/runtime/log/log';
import type { FakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { type Backend, type DiskState, type Row, StorageError, type StorageFailure } from '../storage/backend.ts';
import { createObjectStore, type ObjectStoreOptions } from './create-object-store.ts';
import type { Decision, ObjectStore, StoredObject } from './object-store.ts';

export const PREFIX = 'g/things';

export interface HeldBackend extends Backend {
  /** Commits sent and not ended. */
  readonly held: readonly (readonly Row[])[];
  /** Ends the oldest held commit: durable, or failed if it was sent before the failure of an earlier one was answered. */
  release(): Promise<void>;
  /** Fails the oldest held commit and dooms, as the contract says, those sent after it. */
  fail(kind: StorageFailure): Promise<void>;
  /** Lets commits through at once from now on. */
  letThrough(): Promise<void>;
  /** Holds them again. */
  hold(): void;
  disk: DiskState;
  compactError: Error | undefined;
}

export const settle = async (): Promise<void> => {
  for (let i = 0; i < 30; i++) await Promise.resolve();
};

/** Wraps `inner` so that commits are held. */
export function holdCommits(inner: Backend): HeldBackend {
  const held: { rows: readonly Row[]; resolve: () => void; reject: (error: unknown) => void; doom?: StorageError }[] =
    [];
  let through = false;
  const self: HeldBackend = {
    ...inner,
    disk: 'ok',
    compactError: undefined,
    get held() {
      return held.map(({ rows }) => rows);
    },
    diskState: () => self.disk,
    async compact(revision) {
      if (self.compactError) throw self.compactError;
      await inner.compact(revision);
    },
    commit(rows) {
      if (through) return inner.commit(rows);
      return new Promise((resolve, reject) => held.push({ rows, resolve, reject }));
    },
    async release() {
      await settle();
      const oldest = held.shift();
      if (oldest?.doom) oldest.reject(oldest.doom);
      else if (oldest) await inner.commit(oldest.rows).then(oldest.resolve, oldest.reject);
      await settle();
    },
    async fail(kind) {
      await settle();
      const doom = new StorageError(kind, `made to fail: ${kind}`);
      for (const commit of held) commit.doom ??= doom;
      held.shift()?.reject(doom);
      await settle();
    },
    async letThrough() {
      do await self.release();
      while (held.length > 0);
      through = true;
    },
    hold() {
      through = false;
    },
  };
  return self;
}

/** Opens a store on `backend` with a fake clock. */
export const openStore = (
  backend: Backend,
  clock: FakeClock,
  more: Partial<ObjectStoreOptions> = {},
): Promise<ObjectStore> =>
  createObjectStore({ backend, clock, log: silentLogger, signal: new AbortController().signal, ...more });

export const thing = (name: string, value: string, namespace = 'ns'): UnstructuredObject => ({
  apiVersion: 'g/v1',
  kind: 'Thing',
  metadata: { name, namespace },
  value,
});

/** Puts a thing, whatever was there. */
export const put = (
  store: ObjectStore,
  name: string,
  value: string,
  namespace = 'ns',
): Promise<StoredObject | undefined> =>
  store.write({ prefix: PREFIX, namespace, name }, () => ({ type: 'put', object: thing(name, value, namespace) }));

/** Deletes a thing if it is there. */
export const remove = (store: ObjectStore, name: string, namespace = 'ns'): Promise<StoredObject | undefined> =>
  store.write(
    { prefix: PREFIX, namespace, name },
    (current): Decision => (current ? { type: 'delete', object: { ...current.object } } : { type: 'keep' }),
  );

export const valueIn = (item: StoredObject | undefined): unknown => item?.object['value'];
