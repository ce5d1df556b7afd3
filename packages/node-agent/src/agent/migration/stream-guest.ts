/** Sends disks and memory with QEMU's own means, and looks that it comes to an end. */
import { completionMs, type MigrationLimits, monitorStep } from '@coracle/kubevirt/rules/migration/migration-limits';
import { mustStandStill } from '@coracle/kubevirt/rules/migration/still-guest';
import { diskNode, VM_FILES } from '../../qemu/argv.ts';
import type { MigrationInfo, QmpEvent } from '../../qmp/commands.ts';
import type { Guest } from '../guest/guest.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import type { LocalDisk } from './disk-offer.ts';
import { enter, report, type SourceRecord } from './migration-record.ts';
import { type Outgoing, sourceMode } from './migration-status.ts';
import {
  type EventLog,
  isMigrationStatus,
  mirrorJob,
  remoteNode,
  setCapabilities,
  tryPostCopy,
} from './qemu-migration.ts';
import { type StreamStats, streamStats } from './stream-stats.ts';

/** QEMU takes no "no limit": this many bytes a second are none. */
const UNLIMITED = 10 ** 13;
const MONITOR_MS = 500;
const CONNECT_QEMU_MS = 10_000;
/** QEMU looks for the request between two pieces of memory, ten times a second. */
const SWITCH_MS = 10_000;

export interface Streaming {
  readonly guest: Guest;
  readonly outgoing: Outgoing;
  readonly limits: MigrationLimits;
  readonly signal: AbortSignal;
  readonly disks: readonly LocalDisk[];
  readonly events: EventLog;
  /** Called once, where post-copy is requested and cannot be. */
  readonly onNoPostCopy: (why: string) => void;
  /** True once the target has said that it takes nothing more. */
  readonly targetGaveUp: () => boolean;
}

interface Streamed {
  /** When the guest was stopped, ms since the epoch. */
  readonly stoppedAt: number;
  /** Its disks are over there and it stands still; QEMU waits to send what is left of its memory (`feedTarget`). */
  readonly postCopy: boolean;
}

/** Disks, then memory, then the stop; then the rest, or in post-copy what must be there before the guest can run there. */
export async function streamGuest(launcher: LauncherState, moving: Streaming): Promise<Streamed> {
  const { guest, signal, disks, events, outgoing } = moving;
  let { limits } = moving;
  const { clock } = launcher.environment;
  const qmp = guest.qmp();
  const mirrored = disks.filter((disk) => disk.move === 'mirror' || disk.mirrorToo === true);
  const speed = limits.bandwidth;
  const begun = clock.monotonic();
  let memoryBegan = false;
  const bytes = (launcher.record?.plan.memoryBytes ?? 0) + mirrored.reduce((sum, disk) => sum + disk.virtualSize, 0);
  const acceptableMs = completionMs(limits, bytes);
  const watch = monitor(launcher, { guest, limits: () => limits, outgoing, begun, acceptableMs });
  const until = (what: string, fits: (event: QmpEvent) => boolean): Promise<QmpEvent> =>
    Promise.race([events.wait(what, fits, signal), watch.broken]);
  const jobEvent = (index: number, ...names: readonly string[]): Promise<QmpEvent> =>
    until('mirror', ({ event, data }) => names.includes(event) && data['device'] === mirrorJob(index));
  try {
    for (const { index, layered } of mirrored) {
      const server = { type: 'unix', path: VM_FILES.nbdOut };
      const remote = { 'node-name': remoteNode(index), driver: 'nbd', server, export: diskNode(index) };
      await qmp.execute('blockdev-add', remote, { timeoutMs: CONNECT_QEMU_MS });
      await qmp.execute('blockdev-mirror', {
        'job-id': mirrorJob(index),
        device: diskNode(index),
        target: remoteNode(index),
        sync: layered ? 'top' : 'full',
        'copy-mode': 'write-blocking',
        ...(speed > 0 && { speed }),
      });
    }
    for (const { index } of mirrored) {
      const { event, data } = await jobEvent(index, 'BLOCK_JOB_READY', 'BLOCK_JOB_COMPLETED');
      if (event !== 'BLOCK_JOB_READY')
        throw new Error(`disk ${index} was not mirrored: ${String(data['error'] ?? '')}`);
    }
    const { obstacle } = limits.postCopy ? await tryPostCopy(qmp, limits) : await setCapabilities(qmp, limits);
    if (obstacle !== undefined) {
      moving.onNoPostCopy(obstacle);
      limits = { ...limits, postCopy: false };
    }
    await qmp.execute('migrate-set-parameters', {
      'max-bandwidth': speed > 0 ? speed : UNLIMITED,
      'downtime-limit': limits.downtimeMs,
    });
    const stillSince = await holdStill(launcher, { guest, outgoing });
    await qmp.execute('migrate', { uri: `unix:${VM_FILES.migrateOut}` }, { timeoutMs: CONNECT_QEMU_MS });
    memoryBegan = true;
    watch.memoryBegan();
    const stopped = await until('memory', isMigrationStatus('pre-switchover', 'failed', 'cancelled'));
    if (stopped.data['status'] !== 'pre-switchover') throw new Error(await failureOf(guest));
    // The guest stands still: what is left of its disks goes, and the ports of its address become free for the target.
    for (const { index } of mirrored) {
      await qmp.execute('block-job-cancel', { device: mirrorJob(index) });
      const { event, data } = await jobEvent(index, 'BLOCK_JOB_COMPLETED', 'BLOCK_JOB_CANCELLED');
      if (event !== 'BLOCK_JOB_COMPLETED' || data['error'] !== undefined)
        throw new Error(`disk ${index} was not mirrored: ${String(data['error'] ?? 'the job was cancelled')}`);
      await qmp.execute('blockdev-del', { 'node-name': remoteNode(index) });
    }
    await guest.forwarder?.removeAll();
    signal.throwIfAborted();
    const postCopy = watch.switchedAt();
    // As it stands QEMU can still be made to stay. What is left of the memory goes only once the target owns the guest.
    if (postCopy !== undefined) return { stoppedAt: postCopy, postCopy: true };
    await qmp.execute('migrate-continue', { state: 'pre-switchover' });
    const end = await until('memory', isMigrationStatus('completed', 'failed', 'cancelled'));
    if (end.data['status'] !== 'completed') throw new Error(await failureOf(guest));
    const stoppedAt = stopped.timestamp.seconds * 1000 + Math.round(stopped.timestamp.microseconds / 1000);
    return { stoppedAt: stillSince ?? stoppedAt, postCopy: false };
  } catch (error) {
    // A target whose stream broke off tells of that: where it broke off because of something here, this is the reason.
    throw (memoryBegan && moving.targetGaveUp() ? await ownFailure(guest) : undefined) ?? error;
  } finally {
    watch.stop();
  }
}

/** Stops a guest whose memory cannot be followed while it runs; resolves with when that was. A failure lets it run again. */
async function holdStill(
  launcher: LauncherState,
  { guest, outgoing }: Pick<Streaming, 'guest' | 'outgoing'>,
): Promise<number | undefined> {
  const { record, environment } = launcher;
  if (!record || !mustStandStill(record.plan, environment.facts, guest.state.pluggedBytes ?? 0)) return undefined;
  // Requested before, so that the guest need not wait for it.
  await report(launcher, (vmi) => sourceMode(vmi, outgoing.uid, 'Paused'));
  const now = environment.clock.now();
  await guest.qmp().execute('stop');
  return now;
}

const migrationInfo = (guest: Guest): Promise<MigrationInfo | undefined> =>
  guest
    .qmp()
    .execute('query-migrate')
    .catch(() => undefined);

async function failureOf(guest: Guest): Promise<string> {
  const info = await migrationInfo(guest);
  return `QEMU could not send the guest: ${info?.['error-desc'] ?? info?.status ?? 'no reason given'}`;
}

/** What QEMU writes when it is the far end of its stream that went. */
const FAR_END_WENT = /broken pipe|connection reset|not connected/i;

/** Why QEMU could not send, when that lies here and not at the far end of its stream. */
async function ownFailure(guest: Guest): Promise<Error | undefined> {
  const info = await migrationInfo(guest);
  const why = info?.status === 'failed' ? info['error-desc'] : undefined;
  return why === undefined || FAR_END_WENT.test(why) ? undefined : new Error(`QEMU could not send the guest: ${why}`);
}

/** Looks at the progress now and then, and does what the limits ask for. */
function monitor(
  launcher: LauncherState,
  options: {
    readonly guest: Guest;
    readonly limits: () => MigrationLimits;
    readonly outgoing: Outgoing;
    readonly begun: number;
    readonly acceptableMs: number;
  },
) {
  const { guest, begun, acceptableMs, outgoing } = options;
  const { clock } = launcher.environment;
  let least = Number.POSITIVE_INFINITY;
  let progressAt = begun;
  let paused = false;
  let streaming = false;
  let switchedAt: number | undefined;
  let cancel = (): void => {};
  let over = false;
  const broken = new Promise<never>((_, reject) => {
    const look = async (): Promise<void> => {
      const now = clock.monotonic();
      const { figures, left } = await figuresOf(guest);
      if (over) return;
      launcher.stream = figures;
      if (left !== undefined && left < least) {
        least = left;
        progressAt = now;
      }
      const step = monitorStep(options.limits(), {
        elapsedMs: now - begun,
        sinceProgressMs: now - progressAt,
        acceptableMs,
        paused,
        streaming,
        switched: switchedAt !== undefined,
      });
      if (step.act === 'abort') return reject(new Error(step.reason));
      if (step.act === 'pause') {
        paused = true;
        await guest.qmp().execute('stop');
        await report(launcher, (vmi) => sourceMode(vmi, outgoing.uid, 'Paused'));
      }
      if (step.act === 'post-copy') {
        await enter(launcher, { ...(launcher.record?.migration as SourceRecord), postCopy: true });
        await report(launcher, (vmi) => sourceMode(vmi, outgoing.uid, 'PostCopy'));
        if (over) return;
        // We stop it and not QEMU: what QEMU stopped by itself it may let run by itself when its stream breaks, and then
        // somebody else may run already.
        await guest.qmp().execute('stop');
        const { status } = await guest.qmp().execute('query-status');
        // QEMU was first: all of the memory goes after all.
        if (status !== 'paused') return;
        switchedAt = clock.now();
        await guest.qmp().execute('migrate-start-postcopy');
        if (over) return;
        cancel = clock.schedule(SWITCH_MS, () =>
          reject(new Error(`QEMU did not go on to post-copy within ${SWITCH_MS / 1000} s`)),
        );
        return;
      }
      plan();
    };
    const plan = (): void => {
      if (!over) cancel = clock.schedule(MONITOR_MS, () => void look().catch(plan));
    };
    plan();
  });
  broken.catch(() => {});
  return {
    /** Rejects when it takes too long. */
    broken,
    memoryBegan(): void {
      streaming = true;
    },
    /** When the guest was stopped for post-copy, ms since the epoch; undefined where it was not. */
    switchedAt: () => switchedAt,
    stop(): void {
      over = true;
      cancel();
      launcher.stream = undefined;
    },
  };
}

/** What QEMU counts, and how many bytes are still to go; nothing when it does not say. */
async function figuresOf(
  guest: Guest,
): Promise<{ readonly figures?: StreamStats | undefined; readonly left?: number }> {
  try {
    const jobs = await guest.qmp().execute('query-block-jobs');
    const info = await guest.qmp().execute('query-migrate');
    const figures = streamStats(info, jobs);
    // Memory that QEMU knows nothing of yet is all still to go.
    return { figures, left: (figures?.remaining ?? 0) + (info.ram ? 0 : 2 ** 50) };
  } catch {
    return {};
  }
}
