/**
 * Saves a running guest: it stands still while its memory and devices go to a file, its own disks are copied and those of
 * its claims are snapshotted, and runs on. Whatever fails, it runs on.
 */
import { stat, statfs } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { ApiError, conflict } from '@coracle/apimachinery/meta/status';
import { diskFloor } from '@coracle/kubevirt/rules/machine/disk-room';
import type { MachinePlan } from '@coracle/kubevirt/rules/machine/machine-plan';
import type { MemorySaved, SaveMemory } from '@coracle/kubevirt/rules/memory-state/memory-calls';
import { hostOf } from '@coracle/kubevirt/rules/memory-state/resume-plan';
import type { Clock } from '@coracle/runtime/clock/clock';
import { abortable } from '@coracle/runtime/signal/abortable';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import { layersOf, MAX_LAYERS } from '../../disk/saved-files.ts';
import type { Guest } from '../guest/guest.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import { type VmRecord, writeRecord } from '../launcher/vm-record.ts';
import { followEvents, isMigrationStatus } from '../migration/qemu-migration.ts';
import { hostProcessor } from './host-processor.ts';
import { receiveStream } from './memory-stream.ts';
import { diskSizes, type OwnFiles, saveOwnFiles } from './own-files.ts';
import {
  abandonState,
  beginState,
  commitState,
  RAM_FILE,
  readState,
  type SavedState,
  stateBytes,
} from './state-files.ts';

const VMI = { group: 'kubevirt.io', resource: 'virtualmachineinstances' };
/** A guest stands still no longer than this; what is not saved by then is not saved. */
const SAVE_MS = 120_000;
const QEMU_MS = 10_000;
/** QEMU takes no "no limit": this many bytes a second are none. */
const UNLIMITED = 10 ** 13;
/** Devices, and what tells pages from each other, beside the memory itself. */
const STREAM_SPARE = 256 * 1024 * 1024;
const BLOCK_BYTES = 512;

export interface SaveOptions {
  readonly call: SaveMemory;
  /** Ends the attempt. */
  readonly signal: AbortSignal;
  /** Makes the snapshots of claims, all or none, while the guest stands still. */
  readonly snapshotVolumes?: (snapshots: NonNullable<SaveMemory['snapshots']>) => Promise<void>;
}

/** Reply for a state that is there. */
export async function savedReply(memoryDirectory: string, saved: SavedState): Promise<MemorySaved> {
  const { state, pauseMs, savedAt } = saved;
  return { state, pauseMs, savedAt, bytes: await stateBytes(memoryDirectory, state) };
}

/** What keeps a guest from being saved for a moment only: the caller asks again. */
export const notReady = (message: string): ApiError =>
  new ApiError({ code: 503, reason: 'ServiceUnavailable', message });

/** Saves the guest of a launcher. Throws ApiError 409 with what keeps it from that, 503 when that will pass by itself. */
export async function saveMemory(launcher: LauncherState, guest: Guest, options: SaveOptions): Promise<MemorySaved> {
  const { environment } = launcher;
  const { call } = options;
  const { memoryDirectory } = environment;
  const known = await readState(memoryDirectory, call.state);
  if (known) {
    if (known.vmiUid !== call.vmiUid || known.namespace !== call.namespace)
      throw conflict(VMI, call.vmi, `state ${call.state} is of another guest`);
    return savedReply(memoryDirectory, known);
  }
  const { record } = launcher;
  // By this agent, for somebody else; or by one that was killed meanwhile: the guest is about to go on.
  if (record?.saving) throw notReady(`the memory of ${call.vmi} is being saved`);
  await guest.refresh();
  const obstacle = saveObstacle(record, guest.state.runState, options);
  if (!record || obstacle !== undefined) throw conflict(VMI, call.vmi, obstacle ?? 'the guest has ended');
  const directory = join(environment.vmsDirectory, record.vmiUid);
  await checkRoom(directory, record);

  const making = await beginState(memoryDirectory, call.state).catch((error: Error) => {
    throw conflict(VMI, call.vmi, error.message);
  });
  const life = createLinkedController(options.signal, environment.signal, guest.signal);
  const stopTimer = environment.clock.schedule(SAVE_MS, () =>
    life.abort(new Error(`memory was not saved within ${SAVE_MS / 1000} s`)),
  );
  void (async () => {
    while (!life.signal.aborted && launcher.record?.saving) {
      const change = launcher.nextChange();
      if (launcher.isDeleting()) life.abort(new Error('the VirtualMachineInstance is being deleted'));
      await change;
    }
  })();
  try {
    // On disk before it is stopped: the next agent lets it run.
    await setSaving(launcher, { state: call.state });
    const still = await standStill(launcher, guest, { ...options, signal: life.signal, directory, making, record });
    const ram = await stat(join(making, RAM_FILE));
    const saved: SavedState = {
      version: 1,
      state: call.state,
      namespace: record.namespace,
      vmi: record.name,
      vmiUid: record.vmiUid,
      savedAt: new Date(still.stoppedAt).toISOString(),
      pauseMs: still.pauseMs,
      bytes: ram.size,
      plan: record.plan,
      host: hostOf(record.plan, environment.facts, await hostProcessor()),
      imageIds: record.imageIds,
      ...still.files,
    };
    await commitState(memoryDirectory, making, saved);
    launcher.log.info('memory saved', { state: call.state, bytes: ram.size, pauseMs: still.pauseMs });
    return await savedReply(memoryDirectory, saved);
  } catch (error) {
    await abandonState(making);
    environment.signal.throwIfAborted();
    if (error instanceof ApiError) throw error;
    const reason = life.signal.aborted ? (life.signal.reason as Error) : (error as Error);
    throw conflict(VMI, call.vmi, `memory was not saved: ${reason.message}`);
  } finally {
    stopTimer();
    life.release();
    await setSaving(launcher, undefined).catch((error: Error) =>
      launcher.log.warn('record not written', { error: error.message }),
    );
    launcher.changed();
  }
}

/** Why a guest cannot be saved as it is; undefined when it can. */
function saveObstacle(
  record: VmRecord | undefined,
  runState: string,
  { call, snapshotVolumes }: SaveOptions,
): string | undefined {
  if (!record || record.result) return 'the guest has ended';
  if (record.vmiUid !== call.vmiUid) return 'it is another instance than was asked for';
  if (record.migration) return 'VMI is migrating';
  if (runState !== 'running') return `the guest is not running (${runState})`;
  if (!record.disks) return 'it was started by a version that did not save memory: restart it once';
  if ((call.snapshots?.length ?? 0) > 0 && !snapshotVolumes) return 'this node takes no snapshots of its claims';
  for (const disk of record.plan.disks) {
    const file = record.disks[disk.name];
    const layers = file ? layersOf(file) : [];
    // Those of a volume in the pool are merged there, and are not saved with the guest.
    if (layers.length > MAX_LAYERS && !isAbsolute(layers[0]?.file ?? ''))
      return `disk ${disk.name} lies in ${layers.length} layers: restart the guest before it is saved again`;
    const [top, ...below] = layers;
    if (top && !isAbsolute(top.file) && below.some((layer) => isAbsolute(layer.file)))
      return `disk ${disk.name} is an ephemeral layer over a claim, which cannot be saved with memory`;
  }
  return undefined;
}

/** The state may be as large as memory and own disks together; the node keeps what it needs for itself. */
async function checkRoom(directory: string, { plan, disks = {}, name }: VmRecord): Promise<void> {
  const { bavail, bsize, blocks } = await statfs(directory);
  let wanted = memoryOf(plan);
  for (const { file } of Object.values(disks))
    if (!isAbsolute(file)) wanted += (await stat(join(directory, file))).blocks * BLOCK_BYTES;
  if (bavail * bsize - wanted < diskFloor(blocks * bsize).pause)
    throw conflict(VMI, name, `the node has no room for ${Math.ceil(wanted / 2 ** 20)} MiB of memory and disks`);
}

const memoryOf = ({ memoryBytes, hotMemory }: MachinePlan): number => memoryBytes + (hotMemory?.bytes ?? 0);

async function setSaving(launcher: LauncherState, saving: VmRecord['saving']): Promise<void> {
  const { record, environment } = launcher;
  if (!record) return;
  const { saving: _, ...rest } = record;
  launcher.record = saving ? { ...rest, saving } : rest;
  await writeRecord(environment.vmsDirectory, launcher.record);
}

interface Still {
  /** ms since the epoch. */
  readonly stoppedAt: number;
  readonly pauseMs: number;
  readonly files: OwnFiles;
}

/** From the stop of the guest to its next step. */
async function standStill(
  launcher: LauncherState,
  guest: Guest,
  options: SaveOptions & { readonly directory: string; readonly making: string; readonly record: VmRecord },
): Promise<Still> {
  const { call, signal, snapshotVolumes, directory, making, record } = options;
  const { clock } = launcher.environment;
  const qmp = guest.qmp();
  const events = followEvents(guest, clock);
  const limit = memoryOf(record.plan) + STREAM_SPARE;
  const stream = await receiveStream(directory, { path: join(making, RAM_FILE), limit });
  const sizes = await diskSizes(guest);
  let isMigrating = false;
  const stoppedAt = clock.now();
  const begun = clock.monotonic();
  try {
    await qmp.execute('stop');
    // All of the guest's writes are in its files now, and it makes none.
    if (call.snapshots && call.snapshots.length > 0 && snapshotVolumes)
      await abortable(snapshotVolumes(call.snapshots), signal);
    await qmp.execute('migrate-set-capabilities', {
      capabilities: [
        { capability: 'events', state: true },
        ...['pause-before-switchover', 'late-block-activate', 'auto-converge', 'postcopy-ram'].map((capability) => ({
          capability,
          state: false,
        })),
      ],
    });
    await qmp.execute('migrate-set-parameters', { 'max-bandwidth': UNLIMITED });
    await qmp.execute('migrate', { uri: stream.uri }, { timeoutMs: QEMU_MS });
    isMigrating = true;
    const over = isMigrationStatus('completed', 'failed', 'cancelled');
    const { data } = await abortable(Promise.race([events.wait('memory', over, signal), stream.failed]), signal);
    isMigrating = false;
    if (data['status'] !== 'completed') {
      const info = await qmp.execute('query-migrate');
      throw new Error(`QEMU could not write it: ${info['error-desc'] ?? info.status ?? 'no reason given'}`);
    }
    await abortable(stream.done, signal);
    const files = await saveOwnFiles(record, { directory, making, sizes, signal });
    const pauseMs = Math.round(clock.monotonic() - begun);
    return { stoppedAt, pauseMs, files };
  } finally {
    events.close();
    await stream.close();
    await letGoOn(guest, clock, isMigrating).catch((error: Error) =>
      // The launcher sees a guest that stands still, and the record says why: it is tried again.
      launcher.log.error('guest does not go on after its memory was saved', { error: error.message }),
    );
  }
}

const POLL_MS = 20;
const CANCEL_TRIES = 500;

/** Lets a guest run that was stopped to be saved. */
export async function letGoOn(guest: Guest, clock: Clock, isMigrating = true): Promise<void> {
  const qmp = guest.qmp();
  if (isMigrating) {
    await qmp.execute('migrate_cancel');
    for (let tries = 0; tries < CANCEL_TRIES; tries++) {
      const { status } = await qmp.execute('query-migrate');
      if (status !== 'active' && status !== 'setup' && status !== 'cancelling') break;
      await clock.sleep(POLL_MS, guest.signal);
    }
  }
  const { status } = await qmp.execute('query-status');
  if (status === 'paused' || status === 'postmigrate') await qmp.execute('cont');
  await guest.refresh();
}
