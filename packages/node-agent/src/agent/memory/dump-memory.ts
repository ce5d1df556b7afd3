/**
 * Dumps the memory of a guest into a claim: as an ELF file that crash tools read, `claims/CLAIM/memory-dumps/FILE`. The guest
 * stands still meanwhile, and runs on. What becomes of it stands in the volume's status of the instance, whose controller
 * takes the volume out again.
 */
import { chmod, mkdir, open, rename, rm, statfs } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { formatTime } from '@coracle/apimachinery/meta/object';
import type { VirtualMachineInstanceStatus } from '@coracle/kubevirt/kinds/kinds';
import { DUMP_CLAIM_ANNOTATION, DUMP_PHASES } from '@coracle/kubevirt/rules/memory-dump/memory-dump';
import { MEMORY_DUMPS } from '../../export/volume-content.ts';
import { syncDirectory } from '../../image/atomic-file.ts';
import { isHandle } from '../../storage/pool-state.ts';
import type { Guest } from '../guest/guest.ts';
import { writeVmiStatus } from '../launcher/api-writes.ts';
import { type LauncherState, newer } from '../launcher/launcher-state.ts';

/** Between two questions how far QEMU is. */
const POLL_MS = 250;
/** Registers, devices and the headers of the file. */
const SPARE_BYTES = 100 * 1024 * 1024;

type VolumeStatus = NonNullable<VirtualMachineInstanceStatus['volumeStatus']>[number];

export interface DumpKeeper {
  /** Begins a dump that the instance asks for, and forgets one whose volume has gone. */
  look(): void;
}

/** The dump that an instance asks for and that has not ended; what is shown of one that is over and gone. */
function askedOf({ vmi, environment }: LauncherState) {
  if (vmi?.status?.phase !== 'Running' || vmi.status.nodeName !== environment.nodeName) return undefined;
  const volume = vmi.spec.volumes?.find(({ memoryDump }) => memoryDump !== undefined);
  const shown = vmi.status.volumeStatus?.find(({ memoryDumpVolume }) => memoryDumpVolume !== undefined);
  const handle = vmi.metadata.annotations?.[DUMP_CLAIM_ANNOTATION];
  if (volume === undefined || handle === undefined) return shown && { type: 'forget' as const, name: shown.name };
  const isOver = shown?.phase === DUMP_PHASES.completed || shown?.phase === DUMP_PHASES.failed;
  return isOver
    ? undefined
    : { type: 'dump' as const, name: volume.name, handle, claimName: volume.memoryDump?.claimName ?? '' };
}

/** Nothing is dumped before `look`; one at a time. */
export function keepMemoryDump(launcher: LauncherState, guest: Guest): DumpKeeper {
  let isBusy = false;
  const work = async (): Promise<void> => {
    const asked = askedOf(launcher);
    if (!asked) return;
    if (asked.type === 'forget') await report(launcher, asked.name, undefined);
    else await dump(launcher, guest, asked);
  };
  return {
    look() {
      if (isBusy || askedOf(launcher) === undefined) return;
      isBusy = true;
      work()
        .catch((error: Error) => {
          if (!launcher.environment.signal.aborted)
            launcher.log.warn('memory dump not reported', { error: error.message });
        })
        .finally(() => {
          isBusy = false;
          launcher.changed();
        });
    },
  };
}

async function dump(
  launcher: LauncherState,
  guest: Guest,
  { name, handle, claimName }: { readonly name: string; readonly handle: string; readonly claimName: string },
): Promise<void> {
  const { clock } = launcher.environment;
  const startTimestamp = formatTime(clock.now());
  const stamp = startTimestamp.replace(/[-:Z]/g, '').replace('T', '-');
  const targetFileName = `${launcher.vmiKey.name}-${claimName}-${stamp}.memory.dump`;
  const memoryDumpVolume = { claimName, startTimestamp, targetFileName };
  await report(launcher, name, { phase: DUMP_PHASES.inProgress, memoryDumpVolume });
  const end = (phase: string, message: string): Promise<void> =>
    report(launcher, name, {
      phase,
      message,
      memoryDumpVolume: { ...memoryDumpVolume, endTimestamp: formatTime(clock.now()) },
    });
  try {
    await writeDump(launcher, guest, { handle, fileName: targetFileName });
    await end(DUMP_PHASES.completed, `Memory dump to Volume ${name} has completed successfully`);
    launcher.event('Normal', 'VolumeReady', `Memory dump to Volume ${name} has completed successfully`);
  } catch (error) {
    launcher.environment.signal.throwIfAborted();
    const message = `Memory dump to pvc ${name} failed: ${(error as Error).message}`;
    await end(DUMP_PHASES.failed, message);
    launcher.event('Warning', 'MemoryDumpError', message);
  }
}

/** Writes the file whole or not at all; earlier ones of the claim go first, so that there is room. Throws Error. */
async function writeDump(
  launcher: LauncherState,
  guest: Guest,
  { handle, fileName }: { readonly handle: string; readonly fileName: string },
): Promise<void> {
  const { pool, clock } = launcher.environment;
  const signal = AbortSignal.any([guest.signal, launcher.environment.signal]);
  const { record } = launcher;
  if (!record) throw new Error('the guest has ended');
  if (record.migration) throw new Error('the guest is moving to another node');
  // Of the names that an instance gives one has to be a file's own.
  if (basename(fileName) !== fileName) throw new Error('the claim has a name that no claim has');
  if (!isHandle(handle) || !pool.has(handle)) throw new Error('the claim has no volume on this node');
  const directory = join(pool.directory, handle, MEMORY_DUMPS);
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const bytes = record.plan.memoryBytes + (record.plan.hotMemory?.requestedBytes ?? 0) + SPARE_BYTES;
  const { bavail, bsize } = await statfs(directory);
  if (bavail * bsize < bytes) throw new Error(`the node has no room for ${bytes} bytes`);
  const partial = join(directory, 'partial');
  try {
    await guest.qmp().execute('dump-guest-memory', { paging: false, protocol: `file:${partial}`, detach: true });
    for (;;) {
      const { status } = await guest.qmp().execute('query-dump');
      if (status === 'completed') break;
      if (status === 'failed') throw new Error('QEMU could not write the file');
      await clock.sleep(POLL_MS, signal);
    }
    await chmod(partial, 0o600);
    const file = await open(partial, 'r+');
    await file.sync().finally(() => file.close());
    await rename(partial, join(directory, fileName));
    await syncDirectory(directory);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}

/** Writes what is known of the volume; undefined takes it out of the status. */
async function report(launcher: LauncherState, name: string, state: Partial<VolumeStatus> | undefined): Promise<void> {
  if (!launcher.vmi) return;
  const written = await writeVmiStatus(launcher.environment, launcher.vmi, ({ status }) => {
    const before = status?.volumeStatus ?? [];
    const others = before.filter((one) => one.name !== name);
    const own = state && { ...before.find((one) => one.name === name), target: '', ...state, name };
    const volumeStatus = [...others, ...(own ? [own] : [])].sort((a, b) => (a.name < b.name ? -1 : 1));
    return { volumeStatus };
  });
  if (written) launcher.vmi = newer(launcher.vmi, written);
}
