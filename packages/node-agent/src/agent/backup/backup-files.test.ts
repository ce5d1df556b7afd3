import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '../../../../runtime/src/clock/clock.ts';
import { silentLogger } from '../../../../runtime/src/log/log.ts';
import { run } from '../../../../runtime/src/process/run.ts';
import { openPool } from '../../storage/pool.ts';
import { beginFiles, dropFiles, finishFiles, writeVolume } from './backup-files.ts';

/** Never aborts: of many files in one process, a time that began with the first would be over for the last. */
const { signal } = new AbortController();
const uid = (digit: string): string => `${digit.repeat(8)}-1111-4111-8111-${digit.repeat(12)}`;
const MIB = 1024 * 1024;

async function tool(...argv: string[]): Promise<void> {
  const done = await run(argv, { signal, timeoutMs: 30_000 });
  assert.ok(done.ok, done.ok ? '' : done.message);
}

// S-667: An incremental file of a VirtualMachineBackup holds what has changed since its checkpoint, whatever snapshots
//   were taken between; a backup appears whole or not at all, under names of ours.
test('an incremental file holds what has changed since its checkpoint, whatever layers lie between, and no more', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'coracle-backup-files-'));
  const pool = await openPool({ directory: join(root, 'claims'), clock: systemClock, log: silentLogger, signal });
  t.after(async () => {
    await pool.close();
    await rm(root, { recursive: true, force: true });
  });
  const volume = uid('a');
  await pool.createVolume({ handle: volume, bytes: 8 * MIB, mode: 'Filesystem', format: 'raw' });
  /** Writes as a guest would, into the layer that is on top now. */
  const write = async (at: number, byte: string): Promise<void> => {
    const { file, format } = pool.diskOf(volume);
    if (format === 'raw') {
      const raw = await open(file, 'r+');
      await raw.write(Buffer.alloc(65_536, byte), 0, 65_536, at);
      await raw.close();
    } else {
      // The bytes come by way of a file of their own: qemu-img copies into the layer.
      const source = join(root, 'bytes');
      await writeFile(source, Buffer.alloc(65_536, byte));
      await tool('qemu-io', '-f', 'qcow2', '-c', `write -s ${source} ${at} 64k`, file);
    }
  };
  const snapshot = async (digit: string): Promise<void> => {
    await pool.createSnapshots({ snapshots: [{ handle: uid(digit), volume }] });
  };
  await write(0, 'o');
  await snapshot('1');
  await write(MIB, 'p');
  await snapshot('2');
  await write(2 * MIB, 'q');
  await snapshot('3');
  await write(3 * MIB, 'r');

  /** The first letter of each MiB that is not empty, of a file alone or over others. */
  const lettersOf = async (file: string): Promise<string> => {
    const raw = join(root, 'read.raw');
    await tool('qemu-img', 'convert', '-O', 'raw', file, raw);
    const disk = await readFile(raw);
    return [0, 1, 2, 3].map((n) => (disk[n * MIB] === 0 ? '-' : String.fromCharCode(disk[n * MIB]!))).join('');
  };
  const write_ = async (name: string, of: string, base?: string): Promise<string> => {
    const more = base === undefined ? {} : { base: pool.diskOfSnapshot(uid(base)) };
    return writeVolume(join(root, name), { snapshot: pool.diskOfSnapshot(uid(of)), signal, ...more });
  };
  assert.equal(await write_('full', '1'), 'Full');
  assert.equal(await write_('one', '3', '2'), 'Incremental');
  assert.equal(await write_('two', '3', '1'), 'Incremental');
  assert.equal(await write_('later', '1', '3'), 'Full', 'it does not lie on that one');
  assert.deepEqual(await Promise.all([lettersOf(join(root, 'full'))]), ['o---']);
  assert.equal(await lettersOf(join(root, 'one')), '--q-');
  assert.equal(await lettersOf(join(root, 'two')), '-pq-');
  await tool('qemu-img', 'rebase', '-u', '-f', 'qcow2', '-b', 'full', '-F', 'qcow2', join(root, 'two'));
  assert.equal(await lettersOf(join(root, 'two')), 'opq-', 'both together are the disk at that moment');
});

// S-667
test('a backup appears whole or not at all, under names of ours', async (t) => {
  const claim = await mkdtemp(join(tmpdir(), 'coracle-backup-files-'));
  t.after(() => rm(claim, { recursive: true, force: true }));
  const first = await beginFiles(claim, uid('b'));
  await writeFile(join(first, 'left-by-a-crash'), '');
  const again = await beginFiles(claim, uid('b'));
  assert.deepEqual(await readdir(again), []);
  await writeFile(join(again, '0.qcow2'), 'data');
  assert.deepEqual(await readdir(join(claim, 'backups')), [`${uid('b')}.partial`]);
  const volumes = [{ name: '../../etc', file: '0.qcow2', type: 'Full' as const }];
  await finishFiles(claim, uid('b'), { version: 1, namespace: 'ns', backup: 'x', checkpoint: 'c', volumes });
  assert.deepEqual(await readdir(join(claim, 'backups')), [uid('b')]);
  assert.deepEqual((await readdir(join(claim, 'backups', uid('b')))).sort(), ['0.qcow2', 'backup.json']);
  await beginFiles(claim, uid('c'));
  await dropFiles(claim, uid('c'));
  assert.equal(existsSync(join(claim, 'backups', `${uid('c')}.partial`)), false);
});
