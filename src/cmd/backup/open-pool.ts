/** Who writes to the volumes of a data directory, and how they are held still for a backup. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { formatTime } from '../../api/meta/object.ts';
import type { Clock } from '../../base/clock/clock.ts';
import { findGuestsOnDisk, nameOfGuest } from '../../node/agent/guests-on-disk.ts';
import { takeStoreLock } from '../../server/storage/store-lock.ts';
import type { DataDir } from '../config/data-dir.ts';
import { findRunning } from '../config/running.ts';
import { BackupError } from './backup-error.ts';
import { STORE_PATH } from './manifest.ts';
import { type PoolView, restingPool } from './pool-files.ts';

export interface OpenPoolOptions {
  readonly dir: DataDir;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly note: (text: string) => void;
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
export async function openPool({ dir, clock }: OpenPoolOptions): Promise<HeldPool> {
  if (!existsSync(join(dir.root, STORE_PATH)))
    throw new BackupError(`${dir.root} holds no state of a control plane (${STORE_PATH} is missing)`);
  const running = await findRunning(dir);
  const guests = await findGuestsOnDisk(dir.nodes);
  if (!running && guests.length > 0)
    throw new BackupError(
      `guests run without a control plane: ${guests.map(nameOfGuest).join(', ')}; start it (coracle up), or end them (coracle down)`,
    );
  const lock = running ? undefined : takeStoreLock(dir.state, { pid: process.pid, since: formatTime(clock.now()) });
  return {
    freeze: () => restingPool(join(dir.root, 'claims')),
    close: async () => lock?.close(),
  };
}
