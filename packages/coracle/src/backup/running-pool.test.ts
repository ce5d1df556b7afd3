import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ResourceType } from '../../../apimachinery/src/meta/gvk.ts';
import { ApiError } from '../../../apimachinery/src/meta/status.ts';
import type { Client } from '../../../client/src/client.ts';
import type { CreateSnapshots, DeleteHandle } from '../../../cluster-rules/src/storage/pool-calls.ts';
import { openPool } from '../../../node-agent/src/storage/pool.ts';
import type { PoolState } from '../../../node-agent/src/storage/pool-state.ts';
import { systemClock } from '../../../runtime/src/clock/clock.ts';
import { silentLogger } from '../../../runtime/src/log/log.ts';
import { dataDirAt } from '../config/data-dir.ts';
import { holdPool, type PoolCaller } from './running-pool.ts';

/** Never aborts: of many files in one process, a time that began with the first would be over for the last. */
const { signal } = new AbortController();
const uid = (digit: string): string => `${digit.repeat(8)}-1111-4111-8111-${digit.repeat(12)}`;
const [ROOT, LOGS, ALONE, GONE] = ['a', 'b', 'c', 'd'].map(uid) as [string, string, string, string];

/** An API with two claims of a guest that has an agent, and one of nobody. */
const api = (calls: string[]): Client => {
  const claim = (name: string, of: string) => ({ metadata: { namespace: 'ns', name, uid: of } });
  const objects: Record<string, unknown[]> = {
    persistentvolumeclaims: [claim('root', ROOT), claim('logs', LOGS), claim('alone', ALONE)],
    virtualmachineinstances: [
      {
        metadata: { namespace: 'ns', name: 'db' },
        spec: {
          volumes: [
            { name: 'a', persistentVolumeClaim: { claimName: 'root' } },
            { name: 'b', dataVolume: { name: 'logs' } },
            { name: 'c', cloudInitNoCloud: {} },
          ],
        },
        status: { phase: 'Running', conditions: [{ type: 'AgentConnected', status: 'True' }] },
      },
    ],
  };
  return {
    list: async ({ resource }: ResourceType<never>) => ({ items: objects[resource] ?? [] }),
    raw: async (_method: string, path: string) => void calls.push(path.split('/').slice(-2).join(' ')),
  } as unknown as Client;
};

// S-666: `backup create` takes the volumes of one guest at one moment, with its file systems frozen where its agent
//   answers, waits while they cannot be taken, and leaves nothing in the pool.
test('volumes of one guest are taken at one moment, frozen; others one by one; nothing is left in the pool', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'coracle-running-'));
  const dir = dataDirAt(root);
  const pool = await openPool({ directory: join(root, 'claims'), clock: systemClock, log: silentLogger, signal });
  t.after(async () => {
    await pool.close();
    await rm(root, { recursive: true, force: true });
  });
  for (const handle of [ROOT, LOGS, ALONE, GONE])
    await pool.createVolume({ handle, bytes: 4096, mode: 'Filesystem', format: 'raw' });
  await mkdir(join(await pool.filesOf(LOGS), 'deep'));
  await writeFile(join(await pool.filesOf(LOGS), 'deep/state'), 'kept');
  const calls: string[] = [];
  let conflicts = 1;
  const caller: PoolCaller = {
    async call(name, body) {
      if (name === 'inspect') return pool.inspect();
      if (name === 'deleteSnapshot') return pool.deleteSnapshot(body as DeleteHandle);
      const { snapshots } = body as CreateSnapshots;
      calls.push(`snapshots of ${snapshots.map(({ volume }) => volume[0]).join()}`);
      if (snapshots.some(({ volume }) => volume === GONE)) await pool.deleteVolume({ handle: GONE });
      const refused = (code: number, reason: string): ApiError => new ApiError({ code, reason, message: reason });
      if (snapshots.length === 2 && conflicts-- > 0) throw refused(409, 'Conflict');
      if (!snapshots.every(({ volume }) => pool.has(volume))) throw refused(404, 'NotFound');
      return pool.createSnapshots(body as CreateSnapshots);
    },
  };
  const view = await holdPool(api(calls), caller, { dir, clock: systemClock, signal });
  const guest = ['db freeze', 'snapshots of a,b', 'db unfreeze'];
  assert.deepEqual(calls, [...guest, ...guest, 'snapshots of c', 'snapshots of d']);
  assert.deepEqual(view.notes, [`volume ${GONE} was removed while the backup was made`]);
  const paths = view.files.map(({ path }) => path);
  const source = (path: string): string => view.files.find((file) => file.path === path)?.source ?? '';
  const kept = JSON.parse(await readFile(source('claims/pool.json'), 'utf8')) as PoolState;
  assert.deepEqual(Object.keys(kept.volumes).sort(), [ROOT, LOGS, ALONE]);
  assert.deepEqual(kept.snapshots, {});
  for (const { top } of Object.values(kept.volumes)) assert.ok(paths.includes(`claims/${top}`), top);
  assert.equal(await readFile(source(`claims/${LOGS}/files/deep/state`), 'utf8'), 'kept');
  assert.equal((await pool.inspect()).snapshots.length, 3);
  await view.release();
  assert.deepEqual((await pool.inspect()).snapshots, []);
  await assert.rejects(readFile(join(root, 'backup.json')), { code: 'ENOENT' });
});

// S-666
test('a pool that refuses is reported with the name of the guest, and no snapshot is left', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'coracle-running-'));
  const pool = await openPool({ directory: join(root, 'claims'), clock: systemClock, log: silentLogger, signal });
  t.after(async () => {
    await pool.close();
    await rm(root, { recursive: true, force: true });
  });
  for (const handle of [ROOT, LOGS])
    await pool.createVolume({ handle, bytes: 4096, mode: 'Filesystem', format: 'raw' });
  const removed: string[] = [];
  const caller: PoolCaller = {
    async call(name, body) {
      if (name === 'inspect') return pool.inspect();
      if (name === 'deleteSnapshot') return void removed.push((body as DeleteHandle).handle);
      throw new ApiError({ code: 507, reason: 'NoSpace', message: 'no room is left for the volume' });
    },
  };
  const held = holdPool(api([]), caller, { dir: dataDirAt(root), clock: systemClock, signal });
  await assert.rejects(held, /the volumes of ns\/db: no room is left for the volume/);
  assert.equal(removed.length, 2);
});
