/** Who writes to the volumes of a data directory, and how they are held still for a backup. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { formatTime } from '@coracle/apimachinery/meta/object';
import { StorageError } from '@coracle/apiserver/storage/backend';
import { takeStoreLock } from '@coracle/apiserver/storage/store-lock';
import { findGuestsOnDisk, nameOfGuest } from '@coracle/node-agent/agent/launcher/guests-on-disk';
import { openPool as openVolumes } from '@coracle/node-agent/storage/pool';
import type { Clock } from '@coracle/runtime/clock/clock';
import { silentLogger } from '@coracle/runtime/log/log';
import type { DataDir } from '../config/data-dir.ts';
import { findRunning } from '../config/running.ts';
import { BackupError } from './backup-error.ts';
import { forgetSnapshots, leftSnapshots } from './backup-journal.ts';
import { STORE_PATH } from './manifest.ts';
import { type PoolView, restingPool } from './pool-files.ts';
import { holdRunningPool } from './running-pool.ts';

export interface OpenPoolOptions {
  readonly dir: DataDir;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** The volumes of a data directory for the time of a backup. */
export interface HeldPool {
  freeze(): Promise<PoolView>;
  close(): Promise<void>;
}

/**
 * Looks whether a control plane runs. Where none does, none can start until `close`. Throws BackupError while one starts
 * or stops, and when guests run without one: nobody could hold their disks still.
 */
export async function openPool(options: OpenPoolOptions): Promise<HeldPool> {
  const { dir, clock } = options;
  if (!existsSync(join(dir.root, STORE_PATH)))
    throw new BackupError(`${dir.root} holds no state of a control plane (${STORE_PATH} is missing)`);
  const running = await findRunning(dir);
  const guests = await findGuestsOnDisk(dir.nodes);
  if (!running && guests.length > 0)
    throw new BackupError(
      `guests run without a control plane: ${guests.map(nameOfGuest).join(', ')}; start it (coracle up), or end them (coracle down)`,
    );
  const lock = running ? undefined : takeLock(dir, formatTime(clock.now()));
  return {
    async freeze() {
      const claims = join(dir.root, 'claims');
      if (!running) {
        await removeLeft(dir, claims, options);
        return restingPool(claims);
      }
      const view = await holdRunningPool(options);
      if (view.unserved !== true) return view;
      if (guests.length > 0)
        throw new BackupError(
          `no node of ${dir.root} is Ready, and guests run there: ${guests.map(nameOfGuest).join(', ')}; try again when one is`,
        );
      return restingPool(claims);
    },
    close: async () => lock?.close(),
  };
}

function takeLock(dir: DataDir, since: string): { close(): void } {
  try {
    return takeStoreLock(dir.state, { pid: process.pid, since });
  } catch (error) {
    if (!(error instanceof StorageError && error.kind === 'in-use')) throw error;
    const who = /in use by [^;]*/.exec(error.message)?.[0] ?? 'in use';
    throw new BackupError(
      `${dir.root} is ${who}: a control plane that starts or stops, or another backup; try again in a moment`,
    );
  }
}

/** Removes the snapshots that a backup which was killed has left in the pool. */
async function removeLeft(dir: DataDir, claims: string, { clock, signal }: OpenPoolOptions): Promise<void> {
  const left = await leftSnapshots(dir.root);
  if (left.length === 0) return;
  const pool = await openVolumes({ directory: claims, clock, log: silentLogger, signal });
  try {
    for (const handle of left) await pool.deleteSnapshot({ handle });
  } finally {
    await pool.close();
  }
  await forgetSnapshots(dir.root);
}
