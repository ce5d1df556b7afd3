import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { UnstructuredObject } from '../../../apimachinery/src/meta/object.ts';
import type { ApiError } from '../../../apimachinery/src/meta/status.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import type { StorageFailure } from '../storage/backend.ts';
import { createMemoryBackend } from '../storage/memory-backend.ts';
import type { Change, ObjectStore } from './object-store.ts';
import {
  type HeldBackend,
  holdCommits,
  openStore,
  PREFIX,
  put,
  remove,
  settle,
  thing,
  valueIn,
} from './store.fixture.ts';

const clock = createFakeClock();
const key = (name: string, namespace = 'ns') => ({ prefix: PREFIX, namespace, name });
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const failure = (code: number, message: RegExp | string) => (error: ApiError) =>
  error.code === code && (typeof message === 'string' ? error.message === message : message.test(error.message));

const fresh = (): Promise<ObjectStore> => openStore(createMemoryBackend(), clock);
async function held(): Promise<{ store: ObjectStore; backend: HeldBackend }> {
  const backend = holdCommits(createMemoryBackend());
  return { backend, store: await openStore(backend, clock) };
}

describe('object store: objects', () => {
  it('stores kind and apiVersion first, the resourceVersion set, bytes equal to the object', async () => {
    const store = await fresh();
    const stored = (await put(store, 'a', 'ü'))!;
    const json = `{"kind":"Thing","apiVersion":"g/v1","metadata":{"name":"a","namespace":"ns","resourceVersion":"1"},"value":"ü"}`;
    assert.equal(text(stored.bytes), json);
    assert.equal(JSON.stringify(stored.object), json);
    assert.equal(text(stored.bytes.subarray(0, stored.headLength)), '{"kind":"Thing","apiVersion":"g/v1",');
    assert.equal(store.get(key('a')), stored);
  });

  it('finds the head of kinds that need escapes', async () => {
    const store = await fresh();
    const object = { ...thing('a', 'x'), kind: 'A"\\', apiVersion: 'ü/v1' };
    const stored = (await store.write(key('a'), () => ({ type: 'put', object })))!;
    assert.equal(text(stored.bytes.subarray(0, stored.headLength)), '{"kind":"A\\"\\\\","apiVersion":"ü/v1",');
  });

  it('freezes objects all the way down, written or parsed again', async () => {
    const backend = createMemoryBackend();
    const store = await openStore(backend, clock, { parsedBytes: 0 });
    const object = { ...thing('a', 'x'), spec: { list: [{ deep: { er: 1 } }] } };
    await store.write(key('a'), () => ({ type: 'put', object }));
    for (let look = 0; look < 2; look++) {
      const { spec } = store.get(key('a'))!.object as unknown as typeof object;
      assert.throws(() => {
        spec.list[0]!.deep.er = 2;
      }, TypeError);
      assert.throws(() => spec.list.push({ deep: { er: 3 } }), TypeError);
    }
  });

  // S-114
  it('takes a hostile key as a key like any other', async () => {
    const store = await fresh();
    const object = JSON.parse(
      '{"kind":"T","apiVersion":"v1","metadata":{},"data":{"__proto__":{"x":1}},"__proto__":{"y":2}}',
    );
    const stored = (await store.write(key('__proto__', '__proto__'), () => ({ type: 'put', object })))!;
    assert.match(text(stored.bytes), /"data":\{"__proto__":\{"x":1\}\},"__proto__":\{"y":2\}\}$/);
    assert.equal(Object.getPrototypeOf(stored.object), Object.prototype);
    assert.equal(store.get(key('__proto__', '__proto__')), stored);
    assert.equal(store.get({ prefix: '__proto__', namespace: '', name: 'x' }), undefined);
  });

  it('takes a body nested 5,000 deep', async () => {
    const store = await fresh();
    const object = { ...thing('a', 'x'), deep: JSON.parse('['.repeat(5000) + ']'.repeat(5000)) };
    assert.ok(await store.write(key('a'), () => ({ type: 'put', object })));
  });

  it('what cannot be serialised is refused and costs nothing', async () => {
    const store = await fresh();
    const object: UnstructuredObject = { ...thing('a', 'x') };
    object['self'] = object;
    await assert.rejects(
      store.write(key('a'), () => ({ type: 'put', object })),
      TypeError,
    );
    assert.equal((await put(store, 'a', 'x'))!.revision, 1);
  });
});

describe('object store: writes', () => {
  // S-029: An answered write is on stable storage; nothing is shown before it is durable.
  it('shows nothing before it is durable, and to the next writer at once', async () => {
    const { store, backend } = await held();
    const first = put(store, 'a', 'one');
    const watched: Change[] = [];
    store.watch(PREFIX, 0, (changes) => watched.push(...changes));
    await settle();
    assert.equal(store.get(key('a')), undefined);
    assert.equal(store.revision(), 0);
    assert.deepEqual(watched, []);
    assert.equal(valueIn(store.peek(key('a'))), 'one');
    const second = store.write(key('a'), (current) => {
      assert.equal(valueIn(current), 'one');
      return { type: 'put', object: thing('a', 'two') };
    });
    await backend.release();
    assert.equal(valueIn(await first), 'one');
    assert.equal(valueIn(store.get(key('a'))), 'one');
    await backend.release();
    assert.equal(valueIn(await second), 'two');
    assert.deepEqual(
      watched.map(({ type, current }) => `${type} ${valueIn(current)}`),
      ['ADDED one', 'MODIFIED two'],
    );
  });

  // S-030: Writes share commits, keep their order, and fail together with what was decided on them.
  // Compat What makes it fast, P0, yes: group commit, visible only when durable
  it('gathers what is written while a commit is under way into the next', async () => {
    const { store, backend } = await held();
    const writes = [put(store, 'a', '1'), put(store, 'b', '1')];
    await settle();
    writes.push(put(store, 'c', '1'), put(store, 'd', '1'), put(store, 'e', '1'));
    await settle();
    assert.deepEqual(
      backend.held.map((rows) => rows.length),
      [2],
    );
    await backend.release();
    assert.deepEqual(
      backend.held.map((rows) => rows.length),
      [3],
    );
    await backend.release();
    await Promise.all(writes);
    assert.equal(store.stats().commits, 2);
  });

  it('keep answers with the state it saw, once that is durable', async () => {
    const { store, backend } = await held();
    const written = put(store, 'a', 'one');
    let answered = false;
    const kept = store
      .write(key('a'), () => ({ type: 'keep' }))
      .finally(() => {
        answered = true;
      });
    await settle();
    assert.equal(answered, false);
    await backend.release();
    assert.equal(await kept, await written);
    assert.equal(await store.write(key('a'), () => ({ type: 'keep' })), await written);
    assert.equal(await store.write(key('none'), () => ({ type: 'keep' })), undefined);
    assert.equal(store.revision(), 1);
  });

  it('a decider that throws writes nothing', async () => {
    const store = await fresh();
    await assert.rejects(
      store.write(key('a'), () => {
        throw new Error('not mine');
      }),
      /not mine/,
    );
    assert.equal(store.stats().queued, 0);
  });

  // Compat Watch, P0, yes: DELETED carries the last state and the revision of the delete
  it('a delete shows the last state with the revision of the delete', async () => {
    const backend = createMemoryBackend();
    const store = await openStore(backend, clock);
    await put(store, 'a', 'one');
    const deleted = (await remove(store, 'a'))!;
    assert.equal(deleted.object.metadata.resourceVersion, '2');
    assert.equal(valueIn(deleted), 'one');
    assert.equal(store.get(key('a')), undefined);
    await store.close();
    const again = await openStore(backend, clock);
    const seen: Change[] = [];
    again.watch(PREFIX, 1, (changes) => seen.push(...changes));
    await settle();
    assert.deepEqual(
      seen.map(({ type, current }) => `${type} ${text(current.bytes)}`),
      [`DELETED ${text(deleted.bytes)}`],
    );
  });

  it('sends writers away with 429 when too many wait', async () => {
    const { store, backend } = await held();
    const writes = Array.from({ length: 4096 + 32 }, (_, i) => put(store, `n${i}`, 'x'));
    await assert.rejects(put(store, 'late', 'x'), failure(429, /4128 writes are waiting/));
    await backend.letThrough();
    await Promise.all(writes);
    assert.ok(await put(store, 'late', 'x'));
  });

  it('close() waits for what was decided and refuses the rest', async () => {
    const { store, backend } = await held();
    const written = put(store, 'a', 'x');
    const closed = store.close();
    await assert.rejects(put(store, 'b', 'x'), failure(503, /stopping/));
    await backend.letThrough();
    await closed;
    assert.equal((await written)!.revision, 1);
  });
});

describe('object store: failures', () => {
  for (const kind of ['no-space', 'read-only', 'in-use'] satisfies StorageFailure[]) {
    // S-030
    it(`${kind}: the batch fails with all that was decided on it, the rest goes on`, async () => {
      const { store, backend } = await held();
      const lost = [put(store, 'a', '1')];
      await settle();
      lost.push(
        put(store, 'a', '2'),
        store.write(key('a'), () => ({ type: 'keep' })),
      );
      const kept = put(store, 'b', '1');
      const code = kind === 'in-use' ? 503 : 507;
      const all = Promise.all(lost.map((write) => assert.rejects(write, failure(code, /^the write was not stored: /))));
      await backend.fail(kind);
      await all;
      assert.equal(store.peek(key('a')), undefined);
      await backend.letThrough();
      assert.equal((await kept)!.revision, 3);
      assert.equal(store.fault(), undefined);
      assert.equal((await put(store, 'a', '3'))!.revision, 4);
      assert.equal(store.stats().failedWrites, 2);
    });
  }

  for (const kind of ['io', 'fenced', 'poisoned', 'corrupt'] satisfies StorageFailure[]) {
    it(`${kind}: everything fails with 503 from then on, reads go on`, async () => {
      const { store, backend } = await held();
      const before = put(store, 'z', '1');
      await backend.release();
      await before;
      const lost = [put(store, 'a', '1')];
      await settle();
      lost.push(put(store, 'b', '1'));
      const all = Promise.all(lost.map((write) => assert.rejects(write, failure(503, /not stored/))));
      await backend.fail(kind);
      await all;
      await assert.rejects(put(store, 'c', '1'), failure(503, /not stored/));
      assert.match(store.fault()!, /not stored/);
      assert.equal(store.peek(key('b')), undefined);
      assert.equal(store.list(PREFIX).items.length, 1);
      assert.equal(backend.held.length, 0);
    });
  }

  it('a nearly full disk refuses creates first, then everything', async () => {
    const { store, backend } = await held();
    await backend.letThrough();
    await put(store, 'a', '1');
    backend.disk = 'refuse-creates';
    await assert.rejects(put(store, 'b', '1'), failure(507, /no new objects.*free space/));
    assert.match(store.fault()!, /nearly full/);
    await put(store, 'a', '2');
    await remove(store, 'a');
    backend.disk = 'read-only';
    await assert.rejects(put(store, 'a', '3'), failure(507, /no writes are accepted/));
    backend.disk = 'ok';
    assert.ok(await put(store, 'a', '3'));
    assert.equal(store.fault(), undefined);
  });

  it('names damaged objects until they are written again', async () => {
    const backend = createMemoryBackend();
    const damaged = {
      ...backend,
      open: async (signal: AbortSignal) => ({ ...(await backend.open(signal)), corrupt: [`${PREFIX}/ns/a`], hole: 0 }),
    };
    const store = await openStore(damaged, clock);
    assert.match(store.fault()!, /1 objects were damaged.*g\/things\/ns\/a/);
    await put(store, 'a', '1');
    assert.equal(store.fault(), undefined);
  });
});

describe('object store: lists', () => {
  it('lists in storage order, by namespace and in pages', async () => {
    const store = await fresh();
    for (const [namespace, name] of [
      ['b', 'x'],
      ['a', 'z'],
      ['a-b', 'y'],
      ['a', 'b'],
      ['a', 'b.c'],
      ['a', 'a'],
    ] as const) {
      await put(store, name, '1', namespace);
    }
    const names = (items: readonly { namespace: string; name: string }[]) =>
      items.map((i) => `${i.namespace}/${i.name}`);
    assert.deepEqual(names(store.list(PREFIX).items), ['a-b/y', 'a/a', 'a/b', 'a/b.c', 'a/z', 'b/x']);
    const first = store.list(PREFIX, { namespace: 'a', limit: 3 });
    assert.deepEqual([names(first.items), first.next, first.remaining], [['a/a', 'a/b', 'a/b.c'], 'a/b.c', 1]);
    const second = store.list(PREFIX, { namespace: 'a', limit: 3, after: first.next! });
    assert.deepEqual([names(second.items), second.next, second.remaining], [['a/z'], undefined, undefined]);
    const exact = store.list(PREFIX, { namespace: 'a', limit: 4 });
    assert.deepEqual([exact.next, exact.remaining], [undefined, undefined]);
    const matched = store.list(PREFIX, { limit: 1, match: (item) => item.name === 'b' });
    assert.deepEqual([names(matched.items), matched.next, matched.remaining], [['a/b'], 'a/b', 3]);
    assert.deepEqual(store.list('g/none'), { items: [], revision: 6, next: undefined, remaining: undefined });
  });

  // Compat Reading, P0, yes: a compacted snapshot: 410 with a token that goes on from the newest state
  it('refuses a compacted revision with 410 and a future one with 504', async () => {
    const store = await openStore(createMemoryBackend(), clock, { historyLimit: { minChanges: 2, maxChanges: 2 } });
    for (const value of ['1', '2', '3', '4']) await put(store, 'a', value);
    assert.equal(store.compactedRevision(), 2);
    assert.equal(valueIn(store.list(PREFIX, { revision: 2 }).items[0]), '2');
    assert.throws(
      () => store.list(PREFIX, { revision: 1 }),
      failure(410, 'The resourceVersion for the provided list is too old.'),
    );
    assert.throws(() => store.list(PREFIX, { revision: 5 }), failure(504, /Too large resource version/));
    assert.throws(() => store.watch(PREFIX, 1, () => {}), failure(410, 'too old resource version: 1 (2)'));
  });

  it('bounds the history by bytes and by age', async () => {
    const limits = { minChanges: 1, maxBytes: 2000, maxAge: 1000 };
    const store = await openStore(createMemoryBackend(), clock, { historyLimit: limits });
    await put(store, 'a', 'x'.repeat(500));
    await put(store, 'a', 'x'.repeat(500));
    assert.equal(store.compactedRevision(), 0);
    await put(store, 'a', 'x'.repeat(500));
    await put(store, 'a', 'x'.repeat(500));
    assert.equal(store.compactedRevision(), 2);
    await clock.advance(1001);
    await put(store, 'b', 'x');
    assert.equal(store.compactedRevision(), 4);
    assert.ok(store.stats().historyBytes < 2000);
  });
});

describe('object store: watches', () => {
  it('tells changes once per commit, and is through those of other prefixes without being notified', async () => {
    const { store, backend } = await held();
    const calls: string[] = [];
    const watch = store.watch(PREFIX, 0, (changes) => {
      calls.push(changes.map((change) => change.current.name).join());
    });
    const writes = [put(store, 'a', '1'), put(store, 'b', '1')];
    await settle();
    writes.push(
      store.write({ prefix: 'g/others', namespace: '', name: 'o' }, () => ({ type: 'put', object: thing('o', '1') })),
    );
    assert.equal(watch.through(), 0);
    await backend.letThrough();
    await Promise.all(writes);
    assert.deepEqual(calls, ['a,b']);
    assert.equal(watch.through(), 3);
  });

  it('a watch from a future revision stays silent until then', async () => {
    const store = await fresh();
    const seen: number[] = [];
    const through: number[] = [];
    const watch = store.watch(PREFIX, 2, (changes) => seen.push(...changes.map((change) => change.revision)));
    for (const value of ['1', '2', '3', '4']) {
      await put(store, 'a', value);
      through.push(watch.through());
    }
    assert.deepEqual(seen, [3, 4]);
    assert.deepEqual(through, [2, 2, 3, 4]);
  });

  it('a long log is sent in pieces, and what is written meanwhile stands behind it', async () => {
    const store = await fresh();
    for (let i = 0; i < 2500; i++) await put(store, 'a', String(i));
    const turn = (): Promise<void> => new Promise((done) => setImmediate(done));
    const watches = Array.from({ length: 3 }, () => {
      const seen: number[] = [];
      const { through } = store.watch(PREFIX, 0, (changes) => seen.push(...changes.map(({ revision }) => revision)));
      return { seen, through };
    });
    await settle();
    for (const { seen } of watches) assert.equal(seen.length, 1000);
    await put(store, 'a', 'meanwhile');
    for (const { seen, through } of watches) {
      assert.equal(seen.length, 1000);
      assert.equal(through(), 1000);
    }
    for (let i = 0; i < 10; i++) await turn();
    await put(store, 'b', 'after');
    for (const { seen, through } of watches) {
      assert.deepEqual(
        seen,
        Array.from({ length: 2502 }, (_, i) => i + 1),
      );
      assert.equal(through(), 2502);
    }
  });

  it('a watch that is stopped while it is sent a long log hears no more', async () => {
    const store = await fresh();
    for (let i = 0; i < 2500; i++) await put(store, 'a', String(i));
    let heard = 0;
    const watch = store.watch(PREFIX, 0, (changes) => {
      heard += changes.length;
    });
    await settle();
    watch.stop();
    for (let i = 0; i < 5; i++) await new Promise((done) => setImmediate(done));
    await put(store, 'a', 'after');
    assert.equal(heard, 1000);
  });

  // Compat Watch, P0, yes: revision order, no gap, no duplicate
  it('a watch begun by a listener, in the middle of a publication, misses and repeats nothing', async () => {
    const store = await fresh();
    const inner: number[] = [];
    let begun = false;
    store.watch(PREFIX, 0, () => {
      if (begun) return;
      begun = true;
      store.watch(PREFIX, 0, (changes) => inner.push(...changes.map((change) => change.revision)));
    });
    await Promise.all(['1', '2', '3'].map((value) => put(store, 'a', value)));
    await put(store, 'a', '4');
    assert.deepEqual(inner, [1, 2, 3, 4]);
  });

  it('is never called after stop(), not even for what was to be replayed', async () => {
    const store = await fresh();
    await put(store, 'a', '1');
    let calls = 0;
    const watch = store.watch(PREFIX, 0, () => {
      calls++;
      watch.stop();
    });
    store.watch(PREFIX, 0, () => calls++).stop();
    await settle();
    await put(store, 'a', '2');
    assert.equal(calls, 1);
  });

  it('a listener that throws harms neither writers nor other watches', async () => {
    const store = await fresh();
    const seen: number[] = [];
    store.watch(PREFIX, 0, () => {
      throw new Error('bug');
    });
    store.watch(PREFIX, 0, (changes) => seen.push(changes.length));
    await settle();
    assert.ok(await put(store, 'a', '1'));
    assert.deepEqual(seen, [1]);
  });

  it('waitFor() resolves when the revision is published, or rejects with the signal', async () => {
    const { store, backend } = await held();
    const never = new AbortController();
    const reached = store.waitFor(1, never.signal);
    const aborted = assert.rejects(store.waitFor(2, never.signal), /enough/);
    const written = put(store, 'a', '1');
    await backend.release();
    await written;
    await reached;
    never.abort(new Error('enough'));
    await aborted;
    await store.waitFor(1, never.signal);
    await assert.rejects(store.waitFor(2, never.signal), /enough/);
  });
});

describe('object store: compaction', () => {
  const MINUTES = 60_000;

  // S-035: The log is compacted; a failed compaction is tried again.
  it('forgets what is older than one interval, on disk and in memory', async () => {
    const time = createFakeClock();
    const disk = createMemoryBackend();
    const store = await openStore(disk, time);
    await put(store, 'a', '1');
    await put(store, 'a', '2');
    await time.advance(5 * MINUTES);
    await put(store, 'a', '3');
    assert.equal(store.compactedRevision(), 0);
    await time.advance(5 * MINUTES);
    assert.equal(store.compactedRevision(), 2);
    assert.equal(store.stats().compactions, 1);
    await store.close();
    const opened = await disk.open(new AbortController().signal);
    assert.equal(opened.compacted, 2);
    const revisions: number[] = [];
    for await (const rows of opened.rows) revisions.push(...rows.map((row) => row.revision));
    assert.deepEqual(revisions, [2, 3]);
  });

  // S-035
  it('is tried again after a failure, and counted', async () => {
    const time = createFakeClock();
    const backend = holdCommits(createMemoryBackend());
    const store = await openStore(backend, time);
    await backend.letThrough();
    await put(store, 'a', '1');
    await time.advance(5 * MINUTES);
    backend.compactError = new Error('no');
    await time.advance(5 * MINUTES + 65_000);
    const { compactions, failedCompactions } = store.stats();
    assert.deepEqual({ compactions, failedCompactions }, { compactions: 0, failedCompactions: 3 });
    backend.compactError = undefined;
    await time.advance(30_000);
    assert.equal(store.stats().compactions, 1);
    await store.close();
  });
});
