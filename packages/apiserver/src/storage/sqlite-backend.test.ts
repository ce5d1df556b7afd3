import assert from 'node:assert/strict';
import { mkdtemp, rm, stat, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, it } from 'node:test';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { silentLogger } from '../../../runtime/src/log/log.ts';
import { backendContract, readAll, row } from './backend.contract.ts';
import type { Backend, StorageError } from './backend.ts';
import type { DiskSpace } from './disk-state.ts';
import { createSqliteBackend } from './sqlite-backend.ts';

/** Never aborts: of many files in one process, a time that began with the first would be over for the last. */
const { signal } = new AbortController();
const clock = createFakeClock();

const onDisk = (directory: string, diskSpace?: () => DiskSpace): Backend =>
  createSqliteBackend({ directory, clock, log: silentLogger, ...(diskSpace && { diskSpace }) });

backendContract('sqlite', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'store-'));
  const opened: Backend[] = [];
  const again = (): Backend => {
    const backend = onDisk(directory);
    opened.push(backend);
    return backend;
  };
  return {
    backend: again(),
    again,
    async dispose() {
      for (const backend of opened) await backend.close();
      await rm(directory, { recursive: true });
    },
  };
});

describe('sqlite backend', () => {
  const inDirectory = (act: (directory: string) => Promise<void>) => async (): Promise<void> => {
    const directory = await mkdtemp(join(tmpdir(), 'store-'));
    try {
      await act(directory);
    } finally {
      await rm(directory, { recursive: true });
    }
  };
  const kindOf = (kind: string, message = /./) => {
    return (error: StorageError): boolean => error.kind === kind && message.test(error.message);
  };

  // S-107
  it('makes its directory 0700 and its files 0600', () =>
    inDirectory(async (parent) => {
      const directory = join(parent, 'a', 'b');
      const backend = onDisk(directory);
      await backend.open(signal);
      await backend.commit([row(1, 'a', 'x')]);
      const modes = await Promise.all(
        [
          directory,
          ...['store.db', 'store.db-wal', 'store.db-shm', 'lock.db'].map((name) => join(directory, name)),
        ].map(async (path) => (await stat(path)).mode & 0o777),
      );
      assert.deepEqual(modes, [0o700, 0o600, 0o600, 0o600, 0o600]);
      await backend.close();
    })());

  // S-032: A revision that was ever shown is never given out again.
  it('never gives out a revision of a block that was reserved', () =>
    inDirectory(async (directory) => {
      const first = onDisk(directory);
      assert.equal((await first.open(signal)).revision, 0);
      await first.commit([row(6000, 'a', 'x')]);
      await first.close();
      const second = onDisk(directory);
      assert.equal((await second.open(signal)).revision, 16_000);
      await second.close();
      const third = onDisk(directory);
      assert.equal((await third.open(signal)).revision, 26_000);
      await third.close();
    })());

  it('tells up to where rows are of a version that left nulls out, and goes on telling it', () =>
    inDirectory(async (directory) => {
      const first = onDisk(directory);
      assert.equal((await first.open(signal)).incomplete, 0);
      await first.commit([row(3, 'a', 'x')]);
      await first.close();
      const again = onDisk(directory);
      assert.equal((await again.open(signal)).incomplete, 0, 'what this version wrote is whole');
      await again.close();
      // As an older version leaves it.
      const db = new DatabaseSync(join(directory, 'store.db'));
      db.exec("DELETE FROM meta WHERE name = 'incomplete'");
      db.close();
      const found = onDisk(directory);
      assert.equal((await found.open(signal)).incomplete, 3);
      await found.commit([row(50_000, 'b', 'y')]);
      await found.close();
      const later = onDisk(directory);
      assert.equal((await later.open(signal)).incomplete, 3, 'not the rows written since');
      await later.close();
    })());

  // S-033: A second process on the same directory is refused with the pid of the first; one that was taken over cannot
  //   write.
  it('open() is refused with the pid of the holder while another opening lives', () =>
    inDirectory(async (directory) => {
      const first = onDisk(directory);
      await first.open(signal);
      await assert.rejects(
        onDisk(directory).open(signal),
        kindOf('in-use', new RegExp(`pid ${process.pid}, since 2030-`)),
      );
      await first.commit([row(1, 'a', 'x')]);
      await first.close();
      const second = onDisk(directory);
      await second.open(signal);
      await second.close();
    })());

  // S-033
  it('commit() of an opening that was taken over fails with fenced, and all after it', () =>
    inDirectory(async (directory) => {
      const first = onDisk(directory);
      await first.open(signal);
      await first.commit([row(1, 'a', 'x')]);
      // The lock is lost: as on a file system that does not keep locks.
      await unlink(join(directory, 'lock.db'));
      const second = onDisk(directory);
      const opened = await second.open(signal);
      await assert.rejects(first.commit([row(2, 'a', 'y', 1)]), kindOf('fenced'));
      await assert.rejects(first.commit([row(3, 'a', 'y', 1)]), kindOf('poisoned', /epoch/));
      assert.deepEqual(await readAll(opened), ['1 a x']);
      await second.commit([row(opened.revision + 1, 'b', 'z')]);
      await first.close();
      await second.close();
    })());

  // S-034: A damaged row is found by its checksum, named, and healed by the next write; files of others or of newer
  //   versions are left untouched.
  it('quarantines and names damaged rows, and heals when the key is written again', () =>
    inDirectory(async (directory) => {
      const first = onDisk(directory);
      await first.open(signal);
      await first.commit([row(1, 'a', 'one'), row(2, 'b', 'one'), row(3, 'b', 'two', 2), row(4, 'c', 'one')]);
      await first.close();
      const db = new DatabaseSync(join(directory, 'store.db'));
      db.exec(
        "UPDATE log SET value = CAST('tw0' AS BLOB) WHERE revision = 3; UPDATE log SET previous = 1 WHERE revision = 4",
      );
      db.close();
      const second = onDisk(directory);
      const opened = await second.open(signal);
      assert.deepEqual(await readAll(opened), ['1 a one', '2 b one']);
      assert.deepEqual([...opened.corrupt].sort(), ['g/r/ns/b', 'g/r/ns/c']);
      assert.equal(opened.hole, 4);
      // Compaction neither drops the damaged rows nor believes what they say about others.
      await second.compact(4);
      const next = opened.revision;
      await second.commit([row(next + 1, 'b', 'three', 2), row(next + 2, 'c', 'two')]);
      await second.close();
      const third = onDisk(directory);
      const healed = await third.open(signal);
      assert.deepEqual(await readAll(healed), ['1 a one', '2 b one', `${next + 1} b three`, `${next + 2} c two`]);
      assert.deepEqual(healed.corrupt, []);
      await third.compact(next + 2);
      await third.close();
      const left = new DatabaseSync(join(directory, 'store.db'));
      assert.deepEqual(
        left
          .prepare('SELECT revision FROM log ORDER BY 1')
          .all()
          .map((r) => r['revision']),
        [1, next + 1, next + 2],
      );
      left.close();
    })());

  // S-034
  it('refuses the file of another program and of a newer version, untouched', () =>
    inDirectory(async (directory) => {
      const path = join(directory, 'store.db');
      const foreign = new DatabaseSync(path);
      foreign.exec('CREATE TABLE t (x)');
      foreign.close();
      await assert.rejects(onDisk(directory).open(signal), kindOf('corrupt', /another program/));
      await unlink(path);
      const backend = onDisk(directory);
      await backend.open(signal);
      await backend.close();
      const newer = new DatabaseSync(path);
      newer.exec('PRAGMA user_version=2');
      newer.close();
      await assert.rejects(onDisk(directory).open(signal), kindOf('corrupt', /newer version/));
    })());

  it('fails with in-use, and goes on afterwards, when another program holds the file', () =>
    inDirectory(async (directory) => {
      const backend = createSqliteBackend({ directory, clock, log: silentLogger, patience: 20 });
      await backend.open(signal);
      const other = new DatabaseSync(join(directory, 'store.db'));
      other.exec('BEGIN IMMEDIATE');
      // Both are under way when the first fails: the second must not overtake it.
      const failed = await Promise.allSettled([backend.commit([row(1, 'a', 'x')]), backend.commit([row(2, 'b', 'x')])]);
      assert.deepEqual(
        failed.map((f) => f.status === 'rejected' && (f.reason as StorageError).kind),
        ['in-use', 'in-use'],
      );
      other.exec('ROLLBACK');
      other.close();
      await backend.commit([row(3, 'c', 'x')]);
      await backend.close();
      const again = onDisk(directory);
      assert.deepEqual(await readAll(await again.open(signal)), ['3 c x']);
      await again.close();
    })());

  // S-035
  it('gives space back and keeps the write-ahead log short', () =>
    inDirectory(async (directory) => {
      const backend = onDisk(directory);
      await backend.open(signal);
      const value = 'x'.repeat(4000);
      let revision = 0;
      for (let i = 0; i < 100; i++) {
        const batch = Array.from({ length: 64 }, () =>
          row(++revision, `n${revision % 64}`, value, revision > 64 ? revision - 64 : undefined),
        );
        await backend.commit(batch);
      }
      assert.ok((await stat(join(directory, 'store.db-wal'))).size < 16 * 1024 * 1024);
      await backend.compact(revision);
      await backend.close();
      // 25 MB were written; 64 rows of 4 kB and the pages kept for reuse are left.
      assert.ok((await stat(join(directory, 'store.db'))).size < 8 * 1024 * 1024);
    })());

  it('diskState() follows the free space, asked at most once a second', () =>
    inDirectory(async (directory) => {
      const GIB = 1024 ** 3;
      let free = 10 * GIB;
      let asked = 0;
      const backend = onDisk(directory, () => {
        asked++;
        return { free, total: 100 * GIB };
      });
      await backend.open(signal);
      const states: string[] = [];
      for (const mib of [1000, 60, 100, 10, 20, 40, 200]) {
        free = mib * 1024 * 1024;
        await clock.advance(1000);
        states.push(backend.diskState());
        free = 0;
        backend.diskState();
      }
      assert.deepEqual(states, [
        'ok',
        'refuse-creates',
        'refuse-creates',
        'read-only',
        'read-only',
        'refuse-creates',
        'ok',
      ]);
      assert.equal(asked, 7);
      await backend.close();
    })());
});
