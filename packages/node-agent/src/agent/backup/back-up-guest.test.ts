import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { checkpointHandle } from '../../../../kubevirt/src/rules/backup/checkpoint-handles.ts';
import { systemClock } from '../../../../runtime/src/clock/clock.ts';
import { silentLogger } from '../../../../runtime/src/log/log.ts';
import { openPool } from '../../storage/pool.ts';
import type { Guest } from '../guest/guest.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import { backUpGuest } from './back-up-guest.ts';

const UID = 'aaaaaaaa-1111-4111-8111-aaaaaaaaaaaa';
const good = { backupName: 'b', backupUid: UID, cmd: 'Start', targetPath: UID, checkpoint: 'b-1' };
const hostile: readonly [what: string, change: object][] = [
  ['a path for the claim', { targetPath: '../../etc' }],
  ['no claim', { targetPath: undefined }],
  ['a path for the backup', { backupUid: `${UID}/..` }],
  ['no name', { backupName: '' }],
  ['a name that is no text', { backupName: { length: 1 } }],
  ['another command', { cmd: 'Export' }],
  ['a huge checkpoint', { checkpoint: 'x'.repeat(10_000) }],
];
// S-667
for (const [what, change] of hostile)
  test(`a request for a backup with ${what} is refused before anything is touched`, async () => {
    const untouched = new Proxy({}, { get: (_target, name) => assert.fail(`reads ${String(name)}`) });
    const request = { ...good, ...change } as never;
    await assert.rejects(backUpGuest(untouched as LauncherState, {} as Guest, request), { code: 400 });
  });

/** A launcher with one volume in a pool, and a claim for backups; what is reported of it. */
async function launcherOf(t: TestContext) {
  const root = await mkdtemp(join(tmpdir(), 'coracle-back-up-'));
  const signal = AbortSignal.timeout(60_000);
  const pool = await openPool({ directory: join(root, 'claims'), clock: systemClock, log: silentLogger, signal });
  t.after(async () => {
    await pool.close();
    await rm(root, { recursive: true, force: true });
  });
  for (const handle of [DISK, CLAIM])
    await pool.createVolume({ handle, bytes: 1024 ** 2, mode: 'Filesystem', format: 'raw' });
  const metadata = { namespace: 'ns', name: 'vm', uid: UID, resourceVersion: '1' };
  const vmi = { metadata, status: {} as { changedBlockTracking?: { backupStatus: Record<string, unknown> } } };
  const client = {
    patch: async (_type: unknown, _key: unknown, { body }: { body: { status: typeof vmi.status } }) => {
      const backupStatus = body.status.changedBlockTracking?.backupStatus ?? {};
      vmi.status = {
        changedBlockTracking: { backupStatus: { ...vmi.status.changedBlockTracking?.backupStatus, ...backupStatus } },
      };
      return vmi;
    },
  };
  const launcher = {
    environment: { pool, client, clock: systemClock, log: silentLogger, signal },
    record: { volumes: { disk: { handle: DISK, files: [] } } },
    vmi,
    vmiKey: { namespace: 'ns', name: 'vm' },
    log: silentLogger,
  } as unknown as LauncherState;
  const guest = { signal, state: { agentConnected: false } } as unknown as Guest;
  return {
    pool,
    launcher,
    guest,
    backups: () => readdir(join(root, 'claims', CLAIM, 'backups')).catch(() => []),
    report: () => vmi.status.changedBlockTracking?.backupStatus ?? {},
    ended: async () => {
      while (vmi.status.changedBlockTracking?.backupStatus['completed'] !== true)
        await new Promise((wake) => setTimeout(wake, 5));
      // What follows the report.
      await new Promise((wake) => setTimeout(wake, 200));
      return vmi.status.changedBlockTracking.backupStatus;
    },
  };
}
const DISK = 'dddddddd-1111-4111-8111-dddddddddddd';
const CLAIM = 'cccccccc-1111-4111-8111-cccccccccccc';
const start = { ...good, cmd: 'Start', targetPath: CLAIM } as const;

// S-668: A VirtualMachineBackup is made once however often its agent is asked; one that has no room or is broken off
//   says so and leaves nothing; a checkpoint stays until the next one has taken its place.
test('a backup is made once, however often it is asked for, and its snapshot goes unless it is a checkpoint', async (t) => {
  const { launcher, guest, pool, backups, ended } = await launcherOf(t);
  for (let i = 0; i < 3; i++) await backUpGuest(launcher, guest, start);
  const { completed, failed, volumes, quiesceStatus } = await ended();
  assert.deepEqual([completed, failed, quiesceStatus], [true, undefined, 'Skipped']);
  assert.deepEqual(volumes, [{ volumeName: 'disk', type: 'Full' }]);
  await backUpGuest(launcher, guest, start);
  assert.deepEqual(await backups(), [UID]);
  assert.deepEqual((await pool.inspect()).snapshots, []);
});

// S-668
test('a checkpoint stays for the next backup, which takes its place', async (t) => {
  const { launcher, guest, pool, ended, report } = await launcherOf(t);
  await backUpGuest(launcher, guest, { ...start, keepsCheckpoint: true });
  await ended();
  const handles = async () => (await pool.inspect()).snapshots.map(({ handle }) => handle);
  assert.deepEqual(await handles(), [checkpointHandle('ns', 'b-1', 'disk')]);
  report()['completed'] = false;
  const next = { ...start, backupName: 'c', backupUid: CLAIM, checkpoint: 'c-1', incremental: 'b-1' };
  await backUpGuest(launcher, guest, { ...next, keepsCheckpoint: true });
  assert.deepEqual((await ended())['volumes'], [{ volumeName: 'disk', type: 'Incremental' }]);
  assert.deepEqual(await handles(), [checkpointHandle('ns', 'c-1', 'disk')]);
});

// S-668
test('a backup that has no room, or is broken off, says so and leaves nothing', async (t) => {
  const { launcher, guest, pool, backups, ended, report } = await launcherOf(t);
  await backUpGuest(launcher, guest, { ...start, maxBytes: 1 });
  const full = await ended();
  assert.equal(full['failed'], true);
  assert.match(String(full['backupMsg']), /^the claim has no room: \d+ bytes and more are needed, it was given 1$/);
  report()['completed'] = false;
  const second = { ...start, backupName: 'c', backupUid: CLAIM, checkpoint: 'c-1' };
  await backUpGuest(launcher, guest, second);
  await assert.rejects(backUpGuest(launcher, guest, { ...start, backupUid: DISK }), { code: 409 });
  await backUpGuest(launcher, guest, { backupName: 'c', cmd: 'Abort' });
  const broken = await ended();
  assert.deepEqual([broken['failed'], broken['backupMsg']], [true, 'it was broken off']);
  assert.deepEqual(await backups(), []);
  assert.deepEqual((await pool.inspect()).snapshots, []);
});
