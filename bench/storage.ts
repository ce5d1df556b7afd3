/**
 * Snapshots of volumes of 10 GiB, of which 64 MiB are written: of one that no guest has, from the call to its answer; of
 * two that a guest writes to all the time, by the longest that its writes can have been held back; and what a volume that
 * is made of such a snapshot takes on the disk.
 */
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { PERSISTENT_VOLUME_CLAIMS } from '../packages/apimachinery/src/types/resource-types.ts';
import { openPool, type Pool } from '../packages/node-agent/src/storage/pool.ts';
import { systemClock } from '../packages/runtime/src/clock/clock.ts';
import { NEVER } from '../packages/runtime/src/http/seam.ts';
import { createLogger, type Logger } from '../packages/runtime/src/log/log.ts';
import { collect, kernelSpec, NAMESPACE, startBoard } from '../test/node/board.ts';
import { type BenchContext, type Outcome, Runs } from './figure.ts';

const RUNS = 5;
const BYTES = 10 * 1024 ** 3;
const NAME = 'writer';
const WRITES =
  "(while true; do for d in a b; do dd if=/dev/zero of=/dev/vd$d bs=64k count=16 conv=notrunc,fsync 2>/dev/null; done; echo wr''iting; done) &\n";

/** Needs QEMU and a tiny guest built before (tools/guest). */
export async function benchStorage({ say }: BenchContext): Promise<Outcome> {
  if (spawnSync('qemu-system-x86_64', ['--version']).status !== 0)
    return { state: 'skipped', reason: 'no qemu-system-x86_64 here' };
  const cache = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'coracle', 'guest');
  if (!existsSync(cache)) return { state: 'skipped', reason: 'no tiny guest built yet (node tools/guest/build.ts)' };
  const pauses: number[] = [];
  const log = createLogger(({ message, fields }) => {
    if (message === 'volumes switched to new layers') pauses.push(Number(fields['pausedMs']));
  }, 'info');
  const runs = new Runs();
  const directory = await mkdtemp(join(tmpdir(), 'coracle-bench-'));
  const pool = await openPool({ directory, clock: systemClock, log, signal: NEVER });
  try {
    await offline(pool, runs);
    say('offline done');
    await online({ pool, runs, pauses, log });
    return { state: 'measured', figures: runs.figures() };
  } finally {
    await pool.close();
    await rm(directory, { recursive: true, force: true });
  }
}

async function offline(pool: Pool, runs: Runs): Promise<void> {
  const volume = randomUUID();
  await pool.createVolume({ handle: volume, bytes: BYTES, mode: 'Block', format: 'raw' });
  const file = await open(pool.diskOf(volume).file, 'r+');
  await file.write(Buffer.alloc(64 * 1024 ** 2, 1)).finally(() => file.close());
  for (let run = 0; run < RUNS; run++) {
    const began = performance.now();
    await pool.createSnapshots({ snapshots: [{ handle: randomUUID(), volume }] });
    runs.add('snapshot.offline', 'ms', { value: performance.now() - began });
  }
  await restored(pool, volume, runs);
  await pool.deleteVolume({ handle: volume });
}

/** A volume from a snapshot, as a restore or a clone makes it: how long it takes, and what it takes on the disk. */
async function restored(pool: Pool, volume: string, runs: Runs): Promise<void> {
  const handle = randomUUID();
  await pool.createSnapshots({ snapshots: [{ handle, volume }] });
  for (let run = 0; run < RUNS; run++) {
    const made = randomUUID();
    const began = performance.now();
    const source = { kind: 'snapshot', handle } as const;
    await pool.createVolume({ handle: made, bytes: BYTES, mode: 'Block', format: 'qcow2', source });
    runs.add('restore.made', 'ms', { value: performance.now() - began });
    const { volumes } = await pool.inspect();
    const own = volumes.find((each) => each.handle === made);
    runs.add('restore.copied', 'KiB', { value: (own?.usedBytes ?? Number.NaN) / 1024 });
    await pool.deleteVolume({ handle: made });
  }
}

async function online({
  pool,
  runs,
  pauses,
  log,
}: {
  readonly pool: Pool;
  readonly runs: Runs;
  readonly pauses: readonly number[];
  readonly log: Logger;
}): Promise<void> {
  const board = await startBoard({ log, agent: { pool } });
  try {
    const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '10Gi' } } };
    for (const name of ['a', 'b'])
      await board.client.create(PERSISTENT_VOLUME_CLAIMS, {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name, namespace: NAMESPACE },
        spec,
      });
    const guest = kernelSpec({
      volumes: ['a', 'b'].map((name) => ({ name, persistentVolumeClaim: { claimName: name } })),
    });
    const domain = guest['domain'] as { devices: object };
    const disks = ['a', 'b'].map((name) => ({ name, disk: { bus: 'virtio' } }));
    await board.createVmi(NAME, { ...guest, domain: { ...domain, devices: { ...domain.devices, disks } } });
    await board.until(NAME, 'running', ({ status }) => status?.phase === 'Running');
    const socket = await board.connect(`${NAME}/console?backlog=true`);
    const seen = collect(socket);
    const send = (text: string): void => socket.send(new TextEncoder().encode(text));
    await seen.has('login:');
    send('root\n');
    await seen.has('# ');
    send(WRITES);
    await seen.has('writing');
    const { volumes } = await pool.inspect();
    for (let run = 0; run < RUNS; run++) {
      const before = pauses.length;
      const began = performance.now();
      const snapshots = volumes.map(({ handle }) => ({ handle: randomUUID(), volume: handle }));
      await pool.createSnapshots({ snapshots });
      runs.add('snapshot.online', 'ms', { value: performance.now() - began });
      runs.add('snapshot.paused', 'ms', { value: pauses[before] ?? Number.NaN });
    }
  } finally {
    await board.close();
  }
}
