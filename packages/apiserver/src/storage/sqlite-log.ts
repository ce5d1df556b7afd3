/**
 * The revision log as SQL, over one open database. Runs inside the worker; knows nothing of threads, files or locks.
 * Tables: `log` (one row per write) and `meta` (epoch, reserved, compacted, swept, incomplete).
 *
 * A row names the revision it supersedes, so that compaction needs no index over keys: forgetting everything
 * superseded in (swept, compacted] is one walk over the rows of that range.
 */
import { type Opened, type Row, StorageError } from './backend.ts';

/** The part of Node's DatabaseSync used here. */
export interface SqlDatabase {
  exec(sql: string): void;
  prepare(sql: string): SqlStatement;
}
interface SqlStatement {
  run(...values: (number | string | Uint8Array | null)[]): unknown;
  get(...values: (number | string)[]): unknown;
  iterate(...values: (number | string)[]): Iterator<unknown> & Iterable<unknown>;
}

/** CRC32 of `data`, going on from `seed`. */
export type Checksum = (data: Uint8Array | string, seed: number) => number;

/** Raised with every change of the tables; a newer file is refused, not mangled. */
const FORMAT = 1;
/** PRAGMA application_id: 'crcl'. */
const APPLICATION = 0x6372636c;
/** Revisions are promised on disk in blocks of this many, so that one that was shown and lost is never given out again. */
const BLOCK = 10_000;
/** Rows visited by one slice of a compaction, and pages given back by one slice of a vacuum: milliseconds each. */
const SLICE_ROWS = 1000;
const SLICE_PAGES = 128;
/** Free pages worth keeping for the next writes (8 KiB each). */
const KEEP_FREE_PAGES = 512;
/** One chunk of the log: whichever is reached first. */
const CHUNK_ROWS = 1000;
const CHUNK_BYTES = 4 * 1024 * 1024;

interface LogRecord {
  revision: number;
  key: string;
  previous: number;
  created: number;
  crc: number;
  value: Uint8Array | null;
}

/** What one chunk of the log held. `corrupt` and `hole` are complete in the last chunk. */
export interface LogChunk {
  readonly rows: readonly Row[];
  readonly done: boolean;
  readonly corrupt: readonly string[];
  readonly hole: number;
}

/** What a new opening of the log found. */
export type Begun = Pick<Opened, 'epoch' | 'revision' | 'compacted' | 'incomplete'>;

/**
 * Sets a new or found database up; `readOnly` only looks. Throws StorageError 'corrupt' when it is not ours or newer than
 * we are.
 */
export function prepareDatabase(db: SqlDatabase, path: string, { readOnly = false } = {}): void {
  const application = pragma(db, 'application_id');
  const format = pragma(db, 'user_version');
  const empty = (db.prepare('SELECT count(*) AS n FROM sqlite_schema').get() as { n: number }).n === 0;
  if (empty) {
    db.exec('PRAGMA page_size=8192; PRAGMA auto_vacuum=INCREMENTAL');
  } else if (application !== APPLICATION) {
    throw new StorageError(
      'corrupt',
      `cannot open ${path}: it is a database of another program; choose another directory`,
    );
  } else if (format > FORMAT) {
    throw new StorageError(
      'corrupt',
      `cannot open ${path}: its format is ${format}, this version reads up to ${FORMAT}; start the newer version again`,
    );
  }
  if (readOnly) return;
  const mode = db.prepare('PRAGMA journal_mode=WAL').get() as { journal_mode: string };
  if (mode.journal_mode !== 'wal') {
    throw new StorageError('io', `cannot open ${path}: the file system does not support SQLite's write-ahead log`);
  }
  db.exec('PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0; PRAGMA journal_size_limit=67108864');
  if (!empty) return;
  db.exec(`
    BEGIN IMMEDIATE;
    PRAGMA application_id=${APPLICATION};
    PRAGMA user_version=${FORMAT};
    CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    INSERT INTO meta VALUES ('epoch', 0), ('reserved', 0), ('compacted', 0), ('swept', 0);
    CREATE TABLE log (
      revision INTEGER PRIMARY KEY,
      key TEXT NOT NULL,
      previous INTEGER NOT NULL,
      created INTEGER NOT NULL,
      crc INTEGER NOT NULL,
      value BLOB
    ) STRICT;
    COMMIT`);
}

/** One opening of the log. */
export class SqliteLog {
  readonly #db: SqlDatabase;
  readonly #checksum: Checksum;
  readonly #insert: SqlStatement;
  readonly #readMeta: SqlStatement;
  readonly #writeMeta: SqlStatement;
  readonly #read: SqlStatement;
  /** Newest corrupt row of each key, and corrupt rows that a later good row made harmless. */
  readonly #corrupt = new Map<string, number>();
  readonly #harmless: number[] = [];
  #hole = 0;
  #position = 0;
  #reserved = 0;
  #epoch = 0;

  constructor(db: SqlDatabase, checksum: Checksum) {
    this.#db = db;
    this.#checksum = checksum;
    db.exec('PRAGMA temp_store=MEMORY; PRAGMA trusted_schema=OFF');
    db.exec('CREATE TEMP TABLE quarantined (revision INTEGER PRIMARY KEY)');
    this.#insert = db.prepare('INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)');
    this.#readMeta = db.prepare('SELECT value FROM meta WHERE name = ?');
    this.#writeMeta = db.prepare('UPDATE meta SET value = ?2 WHERE name = ?1');
    this.#read = db.prepare(
      'SELECT revision, key, previous, created, crc, value FROM log WHERE revision > ? ORDER BY revision',
    );
  }

  /** Takes the next epoch and a block of revisions, in one transaction. `readOnly` only looks. */
  begin(options: { readonly readOnly: boolean }): Begun {
    const look = (): Begun => {
      const newest = this.#newest();
      // Only versions that write whole objects leave this mark: without it, whatever is there is older.
      const mark = this.#readMeta.get('incomplete') as { value: number } | undefined;
      return {
        epoch: this.#meta('epoch'),
        revision: Math.max(newest, this.#meta('reserved')),
        compacted: this.#meta('compacted'),
        incomplete: mark?.value ?? newest,
      };
    };
    if (options.readOnly) return look();
    return this.#transaction(() => {
      const found = look();
      this.#epoch = found.epoch + 1;
      this.#reserved = found.revision + BLOCK;
      this.#writeMeta.run('epoch', this.#epoch);
      this.#writeMeta.run('reserved', this.#reserved);
      this.#db.prepare("INSERT OR IGNORE INTO meta VALUES ('incomplete', ?)").run(found.incomplete);
      return { ...found, epoch: this.#epoch };
    });
  }

  /** Puts `gap` revisions between all that was promised so far and the next one, and forgets the history below. */
  divide(gap: number): void {
    this.#transaction(() => {
      const next = Math.max(this.#newest(), this.#meta('reserved')) + gap;
      if (!Number.isSafeInteger(next))
        throw new StorageError('corrupt', `revision ${next} is beyond what can be counted`);
      this.#writeMeta.run('reserved', next);
      this.#writeMeta.run('compacted', next);
      this.#writeMeta.run('epoch', this.#meta('epoch') + 1);
    });
  }

  /** The next chunk of the log, in ascending order, checksums verified. */
  next(): LogChunk {
    const rows: Row[] = [];
    let bytes = 0;
    let seen = 0;
    let done = true;
    for (const found of this.#read.iterate(this.#position)) {
      const record = found as LogRecord;
      this.#position = record.revision;
      if (rowChecksum(this.#checksum, record) === record.crc) {
        this.#good(record, rows);
        bytes += record.value?.byteLength ?? 0;
      } else {
        this.#bad(record);
      }
      if (++seen >= CHUNK_ROWS || bytes >= CHUNK_BYTES) {
        done = false;
        break;
      }
    }
    return { rows, done, corrupt: [...this.#corrupt.keys()], hole: this.#hole };
  }

  #good(record: LogRecord, rows: Row[]): void {
    const healed = this.#corrupt.get(record.key);
    if (healed !== undefined) {
      this.#corrupt.delete(record.key);
      this.#harmless.push(healed);
    }
    rows.push({
      revision: record.revision,
      key: record.key,
      value: record.value ?? undefined,
      created: record.created === 1,
      ...(record.previous !== 0 && { previous: record.previous }),
    });
  }

  #bad(record: LogRecord): void {
    const older = this.#corrupt.get(record.key);
    if (older !== undefined) this.#harmless.push(older);
    this.#corrupt.set(record.key, record.revision);
    this.#hole = Math.max(this.#hole, record.revision);
    this.#db.prepare('INSERT OR IGNORE INTO quarantined VALUES (?)').run(record.revision);
  }

  /** Makes a batch durable. Throws StorageError 'fenced' when a later opening has taken over. */
  append(rows: readonly Row[]): void {
    this.#reserved = this.#transaction(() => {
      for (const row of rows) {
        const { revision, key, previous = 0 } = row;
        const created = row.created ? 1 : 0;
        const value = row.value ?? null;
        const crc = rowChecksum(this.#checksum, { revision, key, previous, created, value });
        this.#insert.run(revision, key, previous, created, crc, value);
      }
      const last = rows.at(-1)?.revision ?? 0;
      // Half a block ahead, so that the promise is always on disk before the revisions are used.
      if (last <= this.#reserved - BLOCK / 2) return this.#reserved;
      this.#writeMeta.run('reserved', last + BLOCK);
      return last + BLOCK;
    });
  }

  /**
   * One slice of forgetting superseded rows and tombstones at or below `revision`; true when nothing is left to do.
   * The compacted mark is written with the first slice: from then on the log is not replayed below it.
   */
  compactSlice(revision: number): boolean {
    return this.#transaction(() => {
      const upTo = Math.max(this.#meta('compacted'), Math.min(revision, this.#newest()));
      const swept = this.#meta('swept');
      const edge = this.#db
        .prepare(
          `SELECT max(revision) AS n FROM
             (SELECT revision FROM log WHERE revision > ? AND revision <= ? ORDER BY revision LIMIT ${SLICE_ROWS})`,
        )
        .get(swept, upTo) as { n: number | null };
      this.#writeMeta.run('compacted', upTo);
      if (edge.n === null) {
        this.#writeMeta.run('swept', upTo);
        this.#dropHarmless(upTo);
        return true;
      }
      this.#db
        .prepare(
          `DELETE FROM log WHERE revision IN
             (SELECT previous FROM log WHERE revision > ? AND revision <= ? AND previous > 0
                AND revision NOT IN (SELECT revision FROM quarantined))`,
        )
        .run(swept, edge.n);
      this.#db
        .prepare(
          `DELETE FROM log WHERE revision > ? AND revision <= ? AND value IS NULL
             AND revision NOT IN (SELECT revision FROM quarantined)`,
        )
        .run(swept, edge.n);
      this.#writeMeta.run('swept', edge.n);
      return edge.n >= upTo && this.#harmless.length === 0;
    });
  }

  #dropHarmless(upTo: number): void {
    for (const revision of this.#harmless.splice(0)) {
      if (revision <= upTo) this.#db.prepare('DELETE FROM log WHERE revision = ?').run(revision);
    }
  }

  /** Gives one slice of unused pages back to the file system; true when nothing is left to give. */
  vacuumSlice(): boolean {
    const spare = pragma(this.#db, 'freelist_count') - Math.max(KEEP_FREE_PAGES, pragma(this.#db, 'page_count') / 10);
    if (spare <= 0) return true;
    this.#db.exec(`PRAGMA incremental_vacuum(${SLICE_PAGES})`);
    return spare <= SLICE_PAGES;
  }

  #newest(): number {
    return (this.#db.prepare('SELECT max(revision) AS n FROM log').get() as { n: number | null }).n ?? 0;
  }

  #meta(name: string): number {
    const row = this.#readMeta.get(name) as { value: number } | undefined;
    if (!row) throw new StorageError('corrupt', `cannot read the store: its table meta lacks "${name}"`);
    return row.value;
  }

  /** Runs `act` inside one transaction of this epoch; returns its result once that is durable. */
  #transaction<T>(act: () => T): T {
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      if (this.#epoch !== 0 && this.#meta('epoch') !== this.#epoch) {
        throw new StorageError(
          'fenced',
          `cannot write: another process opened this store (epoch ${this.#meta('epoch')}, ours is ${this.#epoch}); stop this one`,
        );
      }
      const result = act();
      this.#db.exec('COMMIT');
      return result;
    } catch (error) {
      try {
        this.#db.exec('ROLLBACK');
      } catch {
        // SQLite rolls back by itself after the graver errors; the first error is the one to report.
      }
      throw error;
    }
  }
}

function rowChecksum(checksum: Checksum, { revision, previous, created, key, value }: Omit<LogRecord, 'crc'>): number {
  const head = checksum(`${revision} ${previous} ${created} ${value === null ? '-' : '+'} ${key}\n`, 0);
  return value === null ? head : checksum(value, head);
}

/**
 * Reads single rows of a log over a connection of its own, which sees what is committed. Throws StorageError 'corrupt'
 * for a row that does not match its checksum; undefined for one that is not there or deletes.
 */
export function createRowReader(db: SqlDatabase, checksum: Checksum): (revision: number) => Uint8Array | undefined {
  // A row is read once: pages are the file system's to keep.
  db.exec('PRAGMA query_only=ON; PRAGMA cache_size=-256');
  const read = db.prepare('SELECT revision, key, previous, created, crc, value FROM log WHERE revision = ?');
  return (revision) => {
    const record = read.get(revision) as LogRecord | undefined;
    if (record === undefined) return undefined;
    if (rowChecksum(checksum, record) !== record.crc)
      throw new StorageError('corrupt', `row ${revision} does not match its checksum`);
    return record.value ?? undefined;
  };
}

function pragma(db: SqlDatabase, name: string): number {
  const row = db.prepare(`PRAGMA ${name}`).get() as Record<string, number>;
  return row[name] ?? 0;
}
