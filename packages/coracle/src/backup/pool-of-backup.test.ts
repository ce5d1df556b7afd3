import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSqliteBackend } from '../../../apiserver/src/storage/sqlite-backend.ts';
import { openPool as openVolumes } from '../../../node-agent/src/storage/pool.ts';
import type { PoolState } from '../../../node-agent/src/storage/pool-state.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { silentLogger } from '../../../runtime/src/log/log.ts';
import { dataDirAt } from '../config/data-dir.ts';
import { openPool } from './open-pool.ts';
import { poolOfBackup } from './pool-state-of-backup.ts';

const uid = (digit: string): string => `${digit.repeat(8)}-1111-4111-8111-${digit.repeat(12)}`;
const [V, W, OWN, USERS] = ['a', 'b', 'c', 'd'].map(uid) as [string, string, string, string];
const layer = (handle: string, n: number): string => `${handle}/layer-${String(n).repeat(12)}.qcow2`;
const BASE = `${V}/disk.img`;

/** Volume V: disk.img, frozen by a user's snapshot; layer 1, frozen for the backup; layer 2, written since. */
const state: PoolState = {
  version: 1,
  id: uid('e'),
  layers: {
    [BASE]: { format: 'raw' },
    [layer(V, 1)]: { format: 'qcow2', parent: BASE },
    [layer(V, 2)]: { format: 'qcow2', parent: layer(V, 1) },
    [layer(W, 3)]: { format: 'qcow2' },
  },
  volumes: {
    [V]: { top: layer(V, 2), bytes: 2048, mode: 'Filesystem' },
    [W]: { top: layer(W, 3), bytes: 512, mode: 'Block' },
  },
  snapshots: {
    [USERS]: { layer: BASE, bytes: 1024, createdAt: '2030-01-01T00:00:00Z', volume: V },
    [OWN]: { layer: layer(V, 1), bytes: 1024, createdAt: '2030-01-02T00:00:00Z', volume: V },
  },
  doomed: ['x/y'],
};

// S-662
test('a volume of a backup goes on with the layer that was frozen for it; what came since is left out', () => {
  const kept = poolOfBackup(state, [{ handle: OWN, volume: V }]);
  assert.deepEqual(kept.state, {
    version: 1,
    id: uid('e'),
    layers: { [BASE]: { format: 'raw' }, [layer(V, 1)]: { format: 'qcow2', parent: BASE } },
    volumes: { [V]: { top: layer(V, 1), bytes: 1024, mode: 'Filesystem' } },
    snapshots: { [USERS]: state.snapshots[USERS] },
    doomed: [],
  });
  assert.deepEqual(kept.layers, [BASE, layer(V, 1)].sort());
  assert.deepEqual(kept.files, [
    { from: OWN, to: V },
    { from: USERS, to: USERS },
  ]);
});

test('a volume that was removed meanwhile is not in the backup; one that others rest on is refused', () => {
  const { [V]: _, ...volumes } = state.volumes;
  const gone = poolOfBackup({ ...state, volumes }, [{ handle: OWN, volume: V }]);
  assert.deepEqual([gone.state.volumes, gone.layers], [{}, [BASE]]);
  const cloned = { ...state, snapshots: { ...state.snapshots, [uid('f')]: { ...state.snapshots[OWN]! } } };
  assert.throws(() => poolOfBackup(cloned, [{ handle: OWN, volume: V }]), /was copied while it was backed up/);
});

// S-663: Snapshots that a killed backup left in the pool go with the next backup; two backups of a directory at once
//   are refused.
test('a backup that was killed leaves snapshots, and the next one removes them; two at once are refused', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'coracle-left-'));
  t.after(() => rm(root, { recursive: true, force: true }));
  const dir = dataDirAt(root);
  const clock = createFakeClock();
  const signal = AbortSignal.timeout(60_000);
  const backend = createSqliteBackend({ directory: dir.state, clock, log: silentLogger });
  await backend.open(signal);
  await backend.close();
  const pool = await openVolumes({ directory: join(root, 'claims'), clock, log: silentLogger, signal });
  await pool.createVolume({ handle: V, bytes: 4096, mode: 'Filesystem', format: 'raw' });
  await pool.createSnapshots({ snapshots: [{ handle: OWN, volume: V }] });
  await pool.close();
  const dead = { bootId: 'another', pid: 1, startTime: '0' };
  writeFileSync(join(root, 'backup.json'), JSON.stringify({ process: dead, snapshots: [OWN, '../x'] }));
  const held = await openPool({ dir, clock, signal });
  const view = await held.freeze();
  assert.ok(!(await readdir(root)).includes('backup.json'));
  const left = JSON.parse(await readFile(join(root, 'claims/pool.json'), 'utf8')) as PoolState;
  assert.deepEqual(left.snapshots, {});
  assert.ok(view.files.some(({ path }) => path === 'claims/pool.json'));
  // Nobody can start meanwhile.
  await assert.rejects(openPool({ dir, clock, signal }), /in use by the process with pid/);
  await view.release();
  await held.close();
  const { identify } = await import('../../../runtime/src/process/identity.ts');
  mkdirSync(root, { recursive: true });
  writeFileSync(join(root, 'backup.json'), JSON.stringify({ process: await identify(process.pid), snapshots: [] }));
  const second = await openPool({ dir, clock, signal });
  await assert.rejects(second.freeze(), /is making a backup of/);
  await second.close();
});
