import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { it } from 'node:test';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { silentLogger } from '../../../runtime/src/log/log.ts';
import { createObjectStore } from '../cache/create-object-store.ts';
import { readAll, row } from './backend.contract.ts';
import type { StorageError } from './backend.ts';
import { createSqliteBackend } from './sqlite-backend.ts';
import { copyStore, divideHistory, inspectStore } from './store-copy.ts';

/** Never aborts: of many files in one process, a time that began with the first would be over for the last. */
const { signal } = new AbortController();
const clock = createFakeClock();
const open = (directory: string) => createSqliteBackend({ directory, clock, log: silentLogger });

const inDirectory = (act: (directory: string) => Promise<void>) => async (): Promise<void> => {
  const directory = await mkdtemp(join(tmpdir(), 'store-copy-'));
  try {
    await act(directory);
  } finally {
    await rm(directory, { recursive: true });
  }
};

// S-651
it(
  'copies a store whose process writes on, at one revision, and looks through it without a change',
  inDirectory(async (directory) => {
    const backend = open(join(directory, 'state'));
    await backend.open(signal);
    await backend.commit([row(1, 'a', 'x'), row(2, 'b', 'y')]);
    const copy = join(directory, 'copy.db');
    copyStore(join(directory, 'state'), copy);
    await backend.commit([row(3, 'a', 'later', 1)]);
    const before = await stat(copy);
    const seen: string[] = [];
    const facts = inspectStore(copy, { signal, onRow: ({ key, revision }) => seen.push(`${revision} ${key}`) });
    assert.deepEqual(facts, { revision: 2, epoch: 1, rows: 2, damaged: [] });
    assert.deepEqual(seen, ['1 g/r/ns/a', '2 g/r/ns/b']);
    assert.deepEqual((await readdir(directory)).sort(), ['copy.db', 'state']);
    assert.equal((await stat(copy)).mtimeMs, before.mtimeMs);
    await backend.close();
    // And of a store that nobody has open.
    copyStore(join(directory, 'state'), join(directory, 'second.db'));
    assert.equal(inspectStore(join(directory, 'second.db'), { signal }).revision, 3);
  }),
);

it(
  'names damaged rows, and refuses what is no store',
  inDirectory(async (directory) => {
    const backend = open(directory);
    await backend.open(signal);
    await backend.commit([row(1, 'a', 'x'), row(2, 'b', 'y')]);
    await backend.close();
    const file = join(directory, 'copy.db');
    copyStore(directory, file);
    const db = new DatabaseSync(file);
    db.exec("UPDATE log SET value = CAST('z' AS BLOB) WHERE revision = 2");
    db.close();
    assert.deepEqual(inspectStore(file, { signal }).damaged, ['g/r/ns/b']);
    const foreign = join(directory, 'foreign.db');
    new DatabaseSync(foreign).exec('CREATE TABLE t (x)');
    for (const path of [foreign, join(directory, 'none.db')])
      assert.throws(
        () => inspectStore(path, { signal }),
        (error: StorageError) => ['corrupt', 'io'].includes(error.kind),
      );
  }),
);

// S-658: A restored control plane gives out no resourceVersion of the original, and answers 410 to clients that bring
//   one.
it(
  'a copy with a history of its own gives no revision of the original out again, and tells old clients to list anew',
  inDirectory(async (directory) => {
    const backend = open(join(directory, 'one'));
    await backend.open(signal);
    await backend.commit([row(1, 'a', 'x'), row(2, 'a', 'y', 1)]);
    await backend.close();
    const opened = open(join(directory, 'two'));
    await opened.open(signal);
    await opened.close();
    await rm(join(directory, 'two/store.db'));
    copyStore(join(directory, 'one'), join(directory, 'two/store.db'));
    divideHistory(join(directory, 'two/store.db'), 1_000_000);
    const two = open(join(directory, 'two'));
    const found = await two.open(signal);
    assert.deepEqual([found.revision, found.compacted, found.epoch], [1_010_000, 1_010_000, 3]);
    assert.deepEqual((await readAll(found)).at(-1), '2 a y');
    await two.close();
    const store = await createObjectStore({
      backend: open(join(directory, 'two')),
      clock,
      log: silentLogger,
      renew: (_place, bytes) => bytes,
      signal,
    });
    try {
      for (const from of [1, 2, 9_000, 900_000]) assert.throws(() => store.watch('g/r', from, () => {}), { code: 410 });
    } finally {
      await store.close();
    }
  }),
);
