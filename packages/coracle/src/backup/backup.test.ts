import assert from 'node:assert/strict';
import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { type BackedUp, DISK, DISK_BYTES, IMAGE_BYTES, makeBackedUp } from '../../../../test/testkit/backed-up.ts';
import { inspectStore } from '../../../apiserver/src/storage/store-copy.ts';
import { MANIFEST, MANIFEST_DIGEST, sha256 } from './backup-layout.ts';
import type { Manifest } from './manifest.ts';
import { restoreBackup } from './restore-backup.ts';
import { verifyBackup } from './verify-backup.ts';

/** Never aborts: of many files in one process, a time that began with the first would be over for the last. */
const { signal } = new AbortController();
const troublesOf = async (root: string): Promise<readonly string[]> => (await verifyBackup(root, { signal })).troubles;

async function bytesAt(path: string, at: number, length: number): Promise<string> {
  const file = await open(path);
  try {
    return (await file.read(Buffer.alloc(length), 0, length, at)).buffer.toString('latin1');
  } finally {
    await file.close();
  }
}

/** Every path below a directory, with what kind and mode it has. */
const listing = (root: string): string[] =>
  (readdirSync(root, { recursive: true }) as string[])
    .map((name) => `${name} ${(lstatSync(join(root, name)).mode & 0o777).toString(8)}`)
    .sort();

// S-651: A backup of a data directory holds the state at one revision, keys, volumes with their holes and imported
//   images, readable by its owner alone; a restored directory has the same content.
test('what was backed up is restored: state, keys, holes, images, ids; and nobody else may read any of it', async (t) => {
  const { root, create } = await makeBackedUp(t);
  const { manifest } = await create('backup');
  const backup = join(root, 'backup');
  assert.deepEqual(await troublesOf(backup), []);
  for (const line of listing(backup)) assert.match(line, / (600|700)$/);
  assert.deepEqual(manifest.store, { revision: 2, rows: 2, damaged: 0 });
  const disk = manifest.chunked.find(({ path }) => path === DISK)!;
  assert.deepEqual([disk.bytes, disk.dataBytes], [DISK_BYTES, 4 * 4 * 1024 ** 2]);
  const to = join(root, 'restored');
  await restoreBackup({ from: backup, to, signal });
  assert.deepEqual(readdirSync(to).sort(), ['claims', 'images', 'nodes', 'pki', 'state']);
  for (const line of listing(to)) assert.match(line, / (600|700|400)$/);
  const restored = join(to, DISK);
  const { size, blocks } = statSync(restored);
  assert.equal(size, DISK_BYTES);
  assert.ok(blocks * 512 <= 512 * 1024, `holes are holes: ${blocks * 512} bytes`);
  assert.equal(await bytesAt(restored, 0, 5), 'data ');
  assert.equal(await bytesAt(restored, 8 * 1024 ** 2 - 3, 5), 'data ');
  assert.equal(await bytesAt(restored, DISK_BYTES - 5, 5), 'data ');
  assert.equal(readFileSync(join(to, 'pki/ca.key'), 'utf8'), 'this is ca.key');
  assert.equal(existsSync(join(to, 'pki/server.key')), false, 'made anew by every start');
  assert.equal(readFileSync(join(to, 'images/files', readdirSync(join(to, 'images/files'))[0]!), 'utf8'), IMAGE_BYTES);
  assert.deepEqual(readdirSync(join(to, 'nodes/old-host')), ['agent.id']);
  const facts = inspectStore(join(to, 'state/store.db'), { signal });
  assert.deepEqual([facts.rows, facts.revision], [2, 2]);
  const db = new DatabaseSync(join(to, 'state/store.db'), { readOnly: true });
  const meta = Object.fromEntries(
    db
      .prepare('SELECT name, value FROM meta')
      .all()
      .map(({ name, value }) => [name, value]),
  ) as Record<string, number>;
  db.close();
  assert.ok(meta['reserved']! > 2 ** 40 && meta['compacted'] === meta['reserved'], 'revisions begin far above');
});

// S-652: `--without-keys` leaves every key of the control plane out of a backup.
test('without keys no secret of the control plane is in it', async (t) => {
  const { root, create } = await makeBackedUp(t);
  const { manifest } = await create('backup', { keys: false });
  assert.equal(manifest.keys, false);
  assert.equal(existsSync(join(root, 'backup/data/pki')), false);
  assert.match(manifest.notes.join(), /makes new ones/);
  await restoreBackup({ from: join(root, 'backup'), to: join(root, 'restored'), signal });
  assert.equal(existsSync(join(root, 'restored/pki')), false);
});

// S-653: A backup with `--base` writes what has changed, shares the rest, and is whole without the base.
test('a backup on a base writes what has changed, shares the rest, and does not need the base', async (t) => {
  const { root, dir, create } = await makeBackedUp(t);
  const first = await create('first');
  const again = await create('again', { base: join(root, 'first') });
  assert.equal(again.counts.written, 0);
  const disk = await open(join(dir.root, DISK), 'r+');
  await disk.write('new', 20 * 1024 ** 3);
  await disk.close();
  const second = await create('second', { base: join(root, 'first') });
  assert.equal(second.manifest.base, first.manifest.id);
  assert.ok(second.counts.written <= 64 * 1024, `${second.counts.written}`);
  assert.ok(second.counts.shared > 0);
  rmSync(join(root, 'first'), { recursive: true });
  assert.deepEqual(await troublesOf(join(root, 'second')), []);
  await restoreBackup({ from: join(root, 'second'), to: join(root, 'restored'), signal });
  assert.equal(await bytesAt(join(root, 'restored', DISK), 20 * 1024 ** 3, 3), 'new');
  assert.equal(await bytesAt(join(root, 'restored', DISK), 0, 5), 'data ');
  // A base that is damaged costs reading, and nothing else.
  appendFileSync(join(root, 'again/maps/0'), 'x');
  unlinkSync(join(root, 'again', chunkOf(join(root, 'again'))));
  await create('fourth', { base: join(root, 'again') });
  assert.deepEqual(await troublesOf(join(root, 'fourth')), []);
  await assert.rejects(create('third', { base: join(root, 'none') }), /--base .*none is not a directory/);
  assert.equal(existsSync(join(root, 'third')), false);
});

/** Some chunk of a backup, by path. */
function chunkOf(backup: string): string {
  const folder = readdirSync(join(backup, 'chunks'))[0]!;
  return join('chunks', folder, readdirSync(join(backup, 'chunks', folder))[0]!);
}

/** Writes a manifest that fits its digest, as somebody with bad intentions would. */
function forge(backup: string, change: (manifest: Manifest) => unknown): void {
  const manifest = JSON.parse(readFileSync(join(backup, MANIFEST), 'utf8')) as Manifest;
  const text = JSON.stringify(change(manifest));
  writeFileSync(join(backup, MANIFEST), text);
  writeFileSync(join(backup, MANIFEST_DIGEST), `${sha256(text)}  ${MANIFEST}\n`);
}

const DAMAGE: readonly [what: string, damage: (backup: string) => void, found: RegExp][] = [
  ['a chunk that changed', (at) => appendFileSync(join(at, chunkOf(at)), 'x'), /is damaged|bytes large/],
  ['a chunk that is gone', (at) => unlinkSync(join(at, chunkOf(at))), /is missing/],
  ['a chunk cut short', (at) => truncateSync(join(at, chunkOf(at)), 3), /is damaged/],
  ['a map that changed', (at) => appendFileSync(join(at, 'maps/0'), 'x'), /maps\/0, the map of .*, is damaged/],
  ['a map that is gone', (at) => unlinkSync(join(at, 'maps/0')), /maps\/0 is missing/],
  ['a key that changed', (at) => writeFileSync(join(at, 'data/pki/ca.key'), 'That is ca.key'), /ca\.key is damaged/],
  ['a key that is gone', (at) => unlinkSync(join(at, 'data/pki/sa.key')), /sa\.key is missing/],
  ['a state cut short', (at) => truncateSync(join(at, 'data/state/store.db'), 5000), /store\.db is 5000 bytes large/],
  [
    'a state whose digest fits, but not its rows',
    (at) => {
      const path = join(at, 'data/state/store.db');
      const db = new DatabaseSync(path);
      db.exec("UPDATE log SET value = CAST('[]' AS BLOB) WHERE revision = 1");
      db.close();
      const content = readFileSync(path);
      forge(at, (m) => ({
        ...m,
        files: m.files.map((f) =>
          f.path === 'state/store.db' ? { ...f, bytes: content.length, sha256: sha256(content) } : f,
        ),
      }));
    },
    /store\.db holds 1 rows up to revision 2 \(1 damaged\)/,
  ],
  [
    'a link in the place of a file',
    (at) => {
      renameSync(join(at, 'data/pki/ca.key'), join(at, 'elsewhere'));
      symlinkSync(join(at, 'elsewhere'), join(at, 'data/pki/ca.key'));
    },
    /ca\.key is not a regular file/,
  ],
  [
    'a link in the place of a directory',
    (at) => {
      renameSync(join(at, 'data/pki'), join(at, 'elsewhere'));
      symlinkSync(join(at, 'elsewhere'), join(at, 'data/pki'));
    },
    /data\/pki is not a directory/,
  ],
  [
    'a file of another name among the chunks',
    (at) => mkdirSync(join(at, 'chunks/zz/passwd'), { recursive: true }),
    /not part/,
  ],
  ['a manifest that changed', (at) => appendFileSync(join(at, MANIFEST), ' '), /manifest\.json is damaged/],
  ['a manifest that is gone', (at) => unlinkSync(join(at, MANIFEST)), /is not a backup/],
  ['a digest of the manifest that is gone', (at) => unlinkSync(join(at, MANIFEST_DIGEST)), /sha256 is missing/],
];

const first = (manifest: Manifest, change: object): object => ({
  ...manifest,
  chunked: manifest.chunked.map((file, i) => (i === 0 ? { ...file, ...change } : file)),
});
const HOSTILE: readonly [what: string, change: (manifest: Manifest) => unknown, found: RegExp][] = [
  ...[
    '../../etc/passwd',
    'claims/../../x',
    '/etc/passwd',
    'pki/ca.key',
    'kubeconfig',
    'nodes/a/vms/x',
    'claims/x\0y',
  ].map((path): [string, (manifest: Manifest) => unknown, RegExp] => [
    `the name ${JSON.stringify(path)}`,
    (m) => first(m, { path }),
    /which no backup holds/,
  ]),
  ['a name twice', (m) => ({ ...m, chunked: [...m.chunked, ...m.chunked] }), /twice/],
  ['a huge size', (m) => first(m, { bytes: 2 ** 52 }), /says that .* bytes large/],
  ['a negative size', (m) => first(m, { bytes: -1 }), /says that .* bytes large/],
  ['more data than bytes', (m) => first(m, { dataBytes: 2 ** 45 }), /has no sizes/],
  ['a large key', (m) => ({ ...m, files: m.files.map((f) => ({ ...f, bytes: 2 ** 30 })) }), /bytes large/],
  ['a newer format', (m) => ({ ...m, version: 7 }), /is of format 7/],
  [
    'half of the keys',
    (m) => ({ ...m, files: m.files.filter(({ path }) => path !== 'pki/ca.crt') }),
    /some of the keys/,
  ],
  ['no state', (m) => ({ ...m, files: m.files.filter(({ path }) => path !== 'state/store.db') }), /names no state/],
  ['no object', () => null, /is not an object/],
];

/** One backup that each case gets a copy of: its files are links to the same content where a case does not change them. */
async function madeOnce(t: TestContext): Promise<{ readonly made: BackedUp; copy(name: string): Promise<string> }> {
  const made = await makeBackedUp(t);
  await made.create('good');
  const { cp } = await import('node:fs/promises');
  return {
    made,
    async copy(name) {
      await cp(join(made.root, 'good'), join(made.root, name), { recursive: true });
      return join(made.root, name);
    },
  };
}

// S-654: `backup verify` finds every kind of damage, and `backup restore` refuses it and leaves nothing behind.
test('verify finds, and restore refuses, every kind of damage; nothing is left behind', async (t) => {
  const { made, copy } = await madeOnce(t);
  for (const [i, [what, damage, found]] of DAMAGE.entries()) {
    const backup = await copy(`damaged-${i}`);
    damage(backup);
    const troubles = await troublesOf(backup).catch((error: Error) => [error.message]);
    assert.match(troubles.join('\n'), found, what);
    const to = join(made.root, `to-${i}`);
    // A row that was damaged before is restored as it is: the program quarantines it.
    const isOnlyRows = what.startsWith('a state whose digest fits');
    const isUnread = what.startsWith('a file of another name');
    if (!isOnlyRows && !isUnread) {
      await assert.rejects(
        restoreBackup({ from: backup, to, signal }),
        /manifest|damaged|missing|bytes|not (?:a|part) /,
        what,
      );
      assert.equal(existsSync(to), false, what);
    }
  }
  assert.deepEqual(
    readdirSync(made.root).filter((name) => name.includes('partial')),
    [],
  );
});

// S-655: Names that climb, links, huge sizes and more data than was said are refused in a backup of unknown origin.
test('a manifest of somebody with bad intentions is refused before a file is touched', async (t) => {
  const { made, copy } = await madeOnce(t);
  const backup = await copy('hostile');
  const good = readFileSync(join(backup, MANIFEST), 'utf8');
  for (const [what, change, found] of HOSTILE) {
    forge(backup, () => change(JSON.parse(good) as Manifest));
    await assert.rejects(troublesOf(backup), found, what);
    await assert.rejects(restoreBackup({ from: backup, to: join(made.root, 'to'), signal }), found, what);
  }
  // Chunks named again and again must not fill the disk: no more is written than the manifest has room checked for.
  forge(backup, (m) => first(JSON.parse(good) as Manifest, { dataBytes: 1 }) ?? m);
  await assert.rejects(restoreBackup({ from: backup, to: join(made.root, 'to'), signal }), /holds more than 1 bytes/);
  assert.equal(existsSync(join(made.root, 'to')), false);
});

// S-656: A restore into a directory that is not empty is refused; a full disk is reported with the bytes that are
//   missing.
test('restore refuses a directory that is not empty; a full disk is reported with what is missing', async (t) => {
  const { made } = await madeOnce(t);
  const from = join(made.root, 'good');
  await assert.rejects(restoreBackup({ from, to: made.dir.root, signal }), /is not empty; .*--data-dir/);
  const to = join(made.root, 'to');
  writeFileSync(to, '');
  await assert.rejects(restoreBackup({ from, to, signal }), /is not a directory/);
  rmSync(to);
  const full = async (): Promise<number> => 1024 ** 2;
  const missing = /no room: \d+ MiB are needed, 1 MiB are free; free \d+ MiB there/;
  await assert.rejects(restoreBackup({ from, to, signal, free: full }), missing);
  await assert.rejects(made.create('full', { free: full }), missing);
  const noSpace = (): never => {
    throw Object.assign(new Error('write'), { code: 'ENOSPC' });
  };
  const atFile = (step: string): void => void (step === `file ${DISK}` && noSpace());
  await assert.rejects(restoreBackup({ from, to, signal, onStep: atFile }), /no room: .* there \(nothing was left/);
  await assert.rejects(made.create('full', { onStep: atFile }), /no room: .* there \(nothing was left/);
  assert.deepEqual(readdirSync(made.root).sort(), ['data', 'good']);
  mkdirSync(to);
  await restoreBackup({ from, to, signal });
  assert.ok(existsSync(join(to, DISK)), 'an empty directory will do');
});
