/**
 * Backs the volumes of a running guest up: its file systems held still for the moment of a snapshot, then a file for each
 * volume, while the guest runs on. What becomes of it stands in `status.changedBlockTracking.backupStatus` of the instance.
 * A snapshot that the next backup builds on is its checkpoint: what has changed since lies in the layers above it.
 */
import { join } from 'node:path';
import { formatTime } from '@coracle/apimachinery/meta/object';
import { ApiError, badRequest } from '@coracle/apimachinery/meta/status';
import type { VirtualMachineInstance } from '@coracle/kubevirt/kinds/kinds';
import type { BackupRequest } from '@coracle/kubevirt/rules/backup/backup-request';
import { checkpointHandle } from '@coracle/kubevirt/rules/backup/checkpoint-handles';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import { vmDirectoryOf } from '../../disk/vm-directory.ts';
import { PoolError } from '../../storage/pool-error.ts';
import { isHandle } from '../../storage/pool-state.ts';
import { type FrozenGuest, freezeGuest, thawGuest } from '../guest/freeze.ts';
import type { Guest } from '../guest/guest.ts';
import { writeVmiStatus } from '../launcher/api-writes.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import { type BackupNote, beginFiles, bytesOnDisk, dropFiles, finishFiles, writeVolume } from './backup-files.ts';

type Report = NonNullable<
  NonNullable<NonNullable<VirtualMachineInstance['status']>['changedBlockTracking']>['backupStatus']
>;

/** A guest that was frozen and forgotten thaws by itself. */
const THAW_AFTER_MS = 60_000;
/** A volume may be starting, merging, moving. */
const SNAPSHOT_TRIES = 20;
const RETRY_MS = 500;

interface Job {
  readonly backup: string;
  readonly uid: string;
  readonly abort: AbortController;
  ended: boolean;
}

/** The one backup of each guest, or the last: who asks for it may not have heard yet that it has ended. */
const jobs = new WeakMap<Guest, Job>();

type Start = BackupRequest & Required<Pick<BackupRequest, 'targetPath' | 'checkpoint' | 'backupUid'>>;

/** Begins a backup, or breaks it off; one that is under way goes on. Throws ApiError 400 or 409. */
export async function backUpGuest(launcher: LauncherState, guest: Guest, request: BackupRequest): Promise<void> {
  const known = jobs.get(guest);
  if (request.cmd === 'Abort') {
    if (known?.ended === false && known.backup === request.backupName)
      known.abort.abort(new Error('it was broken off'));
    else
      await report(launcher, {
        backupName: request.backupName,
        completed: true,
        failed: true,
        backupMsg: 'it was broken off',
      });
    return;
  }
  const start = checked(request);
  if (known?.uid === start.backupUid) return;
  if (known?.ended === false)
    throw new ApiError({ code: 409, reason: 'Conflict', message: `backup ${known.backup} is already in progress` });
  const linked = createLinkedController(AbortSignal.any([guest.signal, launcher.environment.signal]));
  const job: Job = { backup: start.backupName, uid: start.backupUid, abort: linked, ended: false };
  jobs.set(guest, job);
  const startTimestamp = formatTime(launcher.environment.clock.now());
  await report(launcher, { backupName: start.backupName, startTimestamp, checkpointName: start.checkpoint });
  void run(launcher, guest, { start, startTimestamp, signal: linked.signal })
    .catch((error: Error) =>
      launcher.log.warn('backup not reported', { backup: start.backupName, error: error.message }),
    )
    .finally(() => {
      linked.release();
      job.ended = true;
    });
}

function checked(request: BackupRequest): Start {
  const { backupName, checkpoint, targetPath, backupUid } = request;
  const isText = (text: unknown): boolean => typeof text === 'string' && text.length > 0 && text.length <= 512;
  if (request.cmd !== 'Start' || ![backupName, checkpoint].every(isText))
    throw badRequest('backupName, cmd and checkpoint are needed');
  if (!isHandle(targetPath) || !isHandle(backupUid)) throw badRequest('targetPath and backupUid are UIDs');
  return request as Start;
}

interface Run {
  readonly start: Start;
  readonly startTimestamp: string;
  readonly signal: AbortSignal;
}

async function run(launcher: LauncherState, guest: Guest, job: Run): Promise<void> {
  const { environment } = launcher;
  const { start, signal } = job;
  const { pool } = environment;
  const volumes = Object.entries(launcher.record?.volumes ?? {});
  const target = join(pool.directory, start.targetPath);
  const end = (more: Partial<Report>): Promise<void> =>
    report(launcher, {
      backupName: start.backupName,
      startTimestamp: job.startTimestamp,
      endTimestamp: formatTime(environment.clock.now()),
      completed: true,
      ...more,
    });
  const { namespace } = launcher.vmiKey;
  const handleOf = (checkpoint: string, volume: string): string => checkpointHandle(namespace, checkpoint, volume);
  const own = volumes.map(([name]) => handleOf(start.checkpoint, name));
  const drop = async (handles: readonly string[]): Promise<void> => {
    for (const handle of handles) await pool.deleteSnapshot({ handle });
  };
  let quiesceStatus: Report['quiesceStatus'];
  try {
    if (volumes.length === 0) throw new Error('the guest has no volume of the pool');
    if (!pool.has(start.targetPath)) throw new Error('the claim for the backup has no volume on this node');
    quiesceStatus = await snapshot(launcher, guest, job);
    const partial = await beginFiles(target, start.backupUid);
    const written: BackupNote['volumes'][number][] = [];
    let bytes = 0;
    for (const [index, [name]] of volumes.entries()) {
      const file = `${index}.qcow2`;
      const base = start.incremental === undefined ? undefined : snapshotIfAny(pool, handleOf(start.incremental, name));
      const of = pool.diskOfSnapshot(handleOf(start.checkpoint, name));
      const type = await writeVolume(join(partial, file), { snapshot: of, signal, ...(base && { base }) });
      bytes += await bytesOnDisk(join(partial, file));
      if (start.maxBytes !== undefined && bytes > start.maxBytes)
        throw new Error(`the claim has no room: ${bytes} bytes and more are needed, it was given ${start.maxBytes}`);
      written.push({ name, file, type });
    }
    await finishFiles(target, start.backupUid, {
      version: 1,
      namespace: launcher.vmiKey.namespace,
      backup: start.backupName,
      checkpoint: start.checkpoint,
      ...(start.incremental !== undefined && { base: start.incremental }),
      volumes: written,
    });
    await end({
      checkpointName: start.checkpoint,
      quiesceStatus,
      volumes: written.map(({ name, type }) => ({ volumeName: name, type })),
    });
    // Not before it is known that there is a newer one.
    if (start.keepsCheckpoint !== true) await drop(own);
    else if (start.incremental !== undefined && start.incremental !== start.checkpoint)
      await drop(volumes.map(([name]) => handleOf(start.incremental!, name)));
  } catch (error) {
    // An agent that ends leaves it to the next one; a guest that has ended has nobody to report to.
    if (environment.signal.aborted) return;
    await dropFiles(target, start.backupUid).catch(() => {});
    await drop(own).catch(() => {});
    const why = signal.aborted && signal.reason instanceof Error ? signal.reason : (error as Error);
    await end({ failed: true, backupMsg: why.message, ...(quiesceStatus !== undefined && { quiesceStatus }) });
  }
}

/** The point in time. Resolves to what became of freezing. */
async function snapshot(
  { environment, record, vmiKey }: LauncherState,
  guest: Guest,
  { start, signal }: Run,
): Promise<NonNullable<Report['quiesceStatus']>> {
  const { pool, clock } = environment;
  const snapshots = Object.entries(record?.volumes ?? {}).map(([name, { handle }]) => ({
    handle: checkpointHandle(vmiKey.namespace, start.checkpoint, name),
    volume: handle,
  }));
  for (let tries = 1; ; tries++) {
    let outcome: NonNullable<Report['quiesceStatus']> = 'Skipped';
    const frozen: FrozenGuest | undefined = record?.process && {
      agent: guest.agent,
      directory: vmDirectoryOf(environment.vmsDirectory, record.vmiUid),
      process: record.process,
    };
    if (frozen && start.skipQuiesce !== true && guest.state.agentConnected)
      outcome = await freezeGuest(frozen, clock.now() + THAW_AFTER_MS).then(
        () => 'Succeeded',
        () => 'Failed',
      );
    try {
      await pool.createSnapshots({ snapshots });
      return outcome;
    } catch (error) {
      if (!(error instanceof PoolError && error.reason === 'Conflict') || tries >= SNAPSHOT_TRIES) throw error;
    } finally {
      if (frozen && outcome === 'Succeeded') await thawGuest(frozen).catch(() => {});
    }
    await clock.sleep(RETRY_MS, signal);
  }
}

function snapshotIfAny(pool: LauncherState['environment']['pool'], handle: string) {
  try {
    return pool.diskOfSnapshot(handle);
  } catch (error) {
    // All of it is written then: the checkpoint went with its volume, or lies on another node.
    if (error instanceof PoolError && error.reason === 'NotFound') return undefined;
    throw error;
  }
}

async function report(launcher: LauncherState, backupStatus: Partial<Report>): Promise<void> {
  const { vmi, environment } = launcher;
  if (!vmi) return;
  await writeVmiStatus(environment, vmi, ({ status }) => ({
    changedBlockTracking: { state: status?.changedBlockTracking?.state ?? 'Enabled', backupStatus },
  }));
}
