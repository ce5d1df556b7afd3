/** What every backend must do. Run by the test file of each. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type Backend, type Opened, type Row, StorageError } from './backend.ts';

/** One store under test, not opened yet. `again` gives a backend on the same data once the first is closed. */
export interface BackendUnderTest {
  readonly backend: Backend;
  readonly again: () => Backend;
  readonly dispose: () => Promise<void>;
}

/** Never aborts: of many files in one process, a time that began with the first would be over for the last. */
const { signal } = new AbortController();
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A row put simply: `value` undefined deletes. */
export function row(revision: number, name: string, value: string | undefined, previous?: number): Row {
  return {
    revision,
    key: `g/r/ns/${name}`,
    value: value === undefined ? undefined : encoder.encode(value),
    created: previous === undefined,
    ...(previous !== undefined && { previous }),
  };
}

/** All rows of an opening as `revision name value`. */
export async function readAll(opened: Opened): Promise<string[]> {
  const seen: string[] = [];
  for await (const rows of opened.rows) {
    for (const { revision, key, value } of rows) {
      seen.push(`${revision} ${key.slice('g/r/ns/'.length)} ${value ? decoder.decode(value) : '-'}`);
    }
  }
  return seen;
}

/** The newest state of each key, as `revision name value`, of rows in log order. */
function liveOf(rows: readonly string[]): string[] {
  const live = new Map<string, string>();
  for (const line of rows) {
    const [, name, value] = line.split(' ');
    if (value === '-') live.delete(name!);
    else live.set(name!, line);
  }
  return [...live.values()].sort();
}

/** Declares the suite for one backend. */
export function backendContract(name: string, open: () => Promise<BackendUnderTest>): void {
  const using = async (act: (under: BackendUnderTest) => Promise<void>): Promise<void> => {
    const under = await open();
    try {
      await act(under);
    } finally {
      await under.dispose();
    }
  };

  describe(`${name} backend contract`, () => {
    it('open() finds an empty store', () =>
      using(async ({ backend }) => {
        const opened = await backend.open(signal);
        assert.deepEqual(await readAll(opened), []);
        assert.deepEqual(
          { epoch: opened.epoch, compacted: opened.compacted, corrupt: opened.corrupt, hole: opened.hole },
          { epoch: 1, compacted: 0, corrupt: [], hole: 0 },
        );
        await backend.close();
      }));

    it('open() rejects with the reason of an aborted signal', () =>
      using(async ({ backend }) => {
        await assert.rejects(backend.open(AbortSignal.abort(new Error('enough'))), /enough/);
      }));

    it('commit() keeps puts and deletes, in order, across a reopening', () =>
      using(async ({ backend, again }) => {
        const { revision } = await backend.open(signal);
        await backend.commit([row(revision + 1, 'a', 'one'), row(revision + 2, 'ü', '')]);
        await backend.commit([row(revision + 3, 'a', undefined, revision + 1)]);
        await backend.close();
        const reopened = await again().open(signal);
        assert.deepEqual(await readAll(reopened), [
          `${revision + 1} a one`,
          `${revision + 2} ü `,
          `${revision + 3} a -`,
        ]);
        assert.equal(reopened.epoch, 2);
        assert.ok(reopened.revision >= revision + 3);
      }));

    it('open() hands rows over whole: flags, previous revision and bytes', () =>
      using(async ({ backend, again }) => {
        const { revision } = await backend.open(signal);
        const bytes = Uint8Array.from({ length: 70_000 }, (_, i) => i % 256);
        const rows: Row[] = [
          { revision: revision + 1, key: '/pods/ns/a', value: bytes, created: true },
          {
            revision: revision + 7,
            key: '/pods/ns/a',
            value: bytes.subarray(5, 9),
            created: false,
            previous: revision + 1,
          },
        ];
        await backend.commit(rows);
        await backend.close();
        const found: Row[] = [];
        for await (const chunk of (await again().open(signal)).rows) found.push(...chunk);
        assert.deepEqual(
          found.map((r) => ({ ...r, value: [...r.value!] })),
          rows.map((r) => ({ ...r, value: [...r.value!] })),
        );
      }));

    // S-030
    it('commit() keeps the order of batches that were sent without waiting', () =>
      using(async ({ backend, again }) => {
        const { revision } = await backend.open(signal);
        const done: number[] = [];
        const all = Array.from({ length: 50 }, (_, i) =>
          backend.commit([row(revision + 1 + i, `n${i}`, String(i))]).then(() => done.push(i)),
        );
        await Promise.all(all);
        assert.deepEqual(
          done,
          Array.from({ length: 50 }, (_, i) => i),
        );
        await backend.close();
        assert.equal((await readAll(await again().open(signal))).length, 50);
      }));

    it('commit() refuses revisions that do not rise, and keeps nothing of that batch', () =>
      using(async ({ backend, again }) => {
        const { revision } = await backend.open(signal);
        await backend.commit([row(revision + 5, 'a', 'x')]);
        await assert.rejects(backend.commit([row(revision + 6, 'b', 'x'), row(revision + 6, 'c', 'x')]), RangeError);
        await assert.rejects(backend.commit([row(revision + 5, 'b', 'x')]), RangeError);
        await backend.commit([row(revision + 6, 'd', 'x')]);
        await backend.close();
        assert.deepEqual(await readAll(await again().open(signal)), [`${revision + 5} a x`, `${revision + 6} d x`]);
      }));

    it('reads more rows than one chunk holds', () =>
      using(async ({ backend, again }) => {
        const { revision } = await backend.open(signal);
        // Chunks of different sizes, small ones behind large ones too: memory is used again.
        const text = (i: number): string => `${i}-`.repeat(1 + ((i / 700) % 3) * 40);
        await backend.commit(Array.from({ length: 4500 }, (_, i) => row(revision + 1 + i, `n${i}`, text(i))));
        await backend.close();
        let chunks = 0;
        let count = 0;
        for await (const rows of (await again().open(signal)).rows) {
          chunks++;
          assert.ok(rows.length <= 1000);
          for (const { revision: at, key, value } of rows) {
            assert.deepEqual([at, key], [revision + 1 + count, `g/r/ns/n${count}`]);
            assert.equal(decoder.decode(value), text(count));
            count++;
          }
        }
        assert.deepEqual({ chunks, count }, { chunks: 5, count: 4500 });
      }));

    it('refuses work before open() and after close()', () =>
      using(async ({ backend }) => {
        const refused = (error: unknown): boolean => error instanceof StorageError && error.kind === 'poisoned';
        await assert.rejects(backend.commit([row(1, 'a', 'x')]), refused);
        await backend.open(signal);
        await backend.close();
        await backend.close();
        await assert.rejects(backend.commit([row(1, 'a', 'x')]), refused);
        await assert.rejects(backend.compact(1), refused);
      }));

    it('open() twice is refused with in-use', () =>
      using(async ({ backend }) => {
        await backend.open(signal);
        await assert.rejects(backend.open(signal), (error: StorageError) => error.kind === 'in-use');
      }));

    it('compact() forgets superseded rows and tombstones, and nothing above the revision', () =>
      using(async ({ backend, again }) => {
        const { revision: r } = await backend.open(signal);
        await backend.commit([row(r + 1, 'a', '1'), row(r + 2, 'b', '1'), row(r + 3, 'a', '2', r + 1)]);
        await backend.commit([row(r + 4, 'b', undefined, r + 2), row(r + 5, 'a', '3', r + 3), row(r + 6, 'b', '2')]);
        await backend.compact(r + 4);
        await backend.compact(r + 2);
        await backend.close();
        const reopened = await again().open(signal);
        assert.equal(reopened.compacted, r + 4);
        assert.deepEqual(await readAll(reopened), [`${r + 3} a 2`, `${r + 5} a 3`, `${r + 6} b 2`]);
      }));

    it('readValue() gives the value of any row that is in the log, at once', () =>
      using(async ({ backend, again }) => {
        const { revision: r } = await backend.open(signal);
        await backend.commit([row(r + 1, 'a', 'one'), row(r + 2, 'b', 'two'), row(r + 3, 'a', 'three', r + 1)]);
        await backend.commit([row(r + 4, 'b', undefined, r + 2)]);
        const values = (of: Backend) =>
          [1, 2, 3, 4, 5].map((n) => {
            const value = of.readValue!(r + n);
            return value && new TextDecoder().decode(value);
          });
        assert.deepEqual(values(backend), ['one', 'two', 'three', undefined, undefined]);
        await backend.compact(r + 3);
        assert.deepEqual(values(backend), [undefined, 'two', 'three', undefined, undefined]);
        await backend.close();
        const reopened = again();
        await reopened.open(signal);
        assert.deepEqual(values(reopened), [undefined, 'two', 'three', undefined, undefined]);
        await reopened.close();
        assert.throws(() => reopened.readValue!(r + 3), { name: 'StorageError', kind: 'poisoned' });
      }));

    it('compact() never goes beyond what was committed', () =>
      using(async ({ backend, again }) => {
        const { revision: r } = await backend.open(signal);
        await backend.commit([row(r + 1, 'a', '1')]);
        await backend.compact(r + 1000);
        await backend.close();
        const reopened = await again().open(signal);
        assert.ok(reopened.compacted <= reopened.revision);
        assert.deepEqual(await readAll(reopened), [`${r + 1} a 1`]);
      }));

    // S-031: One contract suite runs on the SQLite and the memory backend; the store agrees with a model under any
    //   interleaving.
    it('any mix of commits, compactions and reopenings keeps the state, and every change since the compaction', () =>
      fc.assert(
        fc.asyncProperty(
          fc.array(
            fc.oneof(
              {
                weight: 8,
                arbitrary: fc.record({
                  do: fc.constant('write' as const),
                  names: fc.array(fc.nat(5), { minLength: 1, maxLength: 6 }),
                  remove: fc.boolean(),
                }),
              },
              { weight: 2, arbitrary: fc.record({ do: fc.constant('compact' as const), back: fc.nat(6) }) },
              { weight: 1, arbitrary: fc.record({ do: fc.constant('reopen' as const) }) },
            ),
            { maxLength: 25 },
          ),
          (commands) =>
            using(async ({ backend: first, again }) => {
              let backend = first;
              const log: string[] = [];
              const newest = new Map<string, number>();
              let compacted = 0;
              let shown = (await backend.open(signal)).revision;
              const check = async (): Promise<void> => {
                await backend.close();
                backend = again();
                const opened = await backend.open(signal);
                assert.ok(opened.revision >= shown, 'revision went back');
                assert.equal(opened.compacted, compacted);
                const rows = await readAll(opened);
                assert.deepEqual(liveOf(rows), liveOf(log));
                const young = (line: string): boolean => Number.parseInt(line, 10) > compacted;
                assert.deepEqual(rows.filter(young), log.filter(young));
                shown = opened.revision;
              };
              for (const command of commands) {
                if (command.do === 'reopen') await check();
                else if (command.do === 'compact') {
                  const target = Math.max(0, lastOf(log) - command.back);
                  await backend.compact(target);
                  compacted = Math.max(compacted, target);
                } else {
                  const rows = command.names.map((n) => {
                    const key = `n${n}`;
                    const previous = newest.get(key);
                    const value = command.remove && previous !== undefined ? undefined : `v${shown + 1}`;
                    const made = row(++shown, key, value, previous);
                    if (value === undefined) newest.delete(key);
                    else newest.set(key, shown);
                    log.push(`${made.revision} ${key} ${value ?? '-'}`);
                    return made;
                  });
                  await backend.commit(rows);
                }
              }
              await check();
              await backend.close();
            }),
        ),
        { numRuns: 20 },
      ));
  });
}

const lastOf = (log: readonly string[]): number => Number.parseInt(log.at(-1) ?? '0', 10);
