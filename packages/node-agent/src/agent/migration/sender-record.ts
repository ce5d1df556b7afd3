/** What the source of a migration writes: its own record, and what it has to say in the VMI. */
import { join as joinPath } from 'node:path';
import { isNotFound } from '@coracle/client/api-failure';
import { type ReadonlyVmi, VIRTUAL_MACHINE_INSTANCES } from '@coracle/kubevirt/kinds/kinds';
import { patchStatus, writeVmiStatus } from '../launcher/api-writes.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import { isOfOthers } from '../launcher/no-relationship.ts';
import { type MigrationRecord, type VmRecord, writeRecord } from '../launcher/vm-record.ts';
import { sourceFailed } from './migration-status.ts';

export type SourceRecord = Extract<MigrationRecord, { role: 'source' }>;

/** Between two questions to the API. */
export const API_POLL_MS = 200;

/** Puts this end of the migration on disk. */
export async function enter(launcher: LauncherState, migration: SourceRecord): Promise<void> {
  const record = { ...(launcher.record as VmRecord), migration };
  await writeRecord(joinPath(launcher.environment.vmsDirectory, record.vmiUid), record);
  launcher.record = record;
}

/** The guest is an ordinary one again. Does not give up. */
export async function leaveMigration(launcher: LauncherState): Promise<void> {
  const { migration: _, ...rest } = launcher.record as VmRecord;
  await launcher.untilDone('record not written', () =>
    writeRecord(joinPath(launcher.environment.vmsDirectory, rest.vmiUid), rest),
  );
  launcher.record = rest;
}

/** The write that decides against the hand-over: held to the version that said "open". */
export async function recordFailure(
  launcher: LauncherState,
  vmi: ReadonlyVmi,
  change: Readonly<Record<string, unknown>>,
): Promise<void> {
  if (Object.keys(change).length === 0) return;
  try {
    launcher.vmi = await patchStatus(launcher.environment, VIRTUAL_MACHINE_INSTANCES, vmi, { status: change });
  } catch (error) {
    launcher.environment.signal.throwIfAborted();
    launcher.log.warn('failure of the migration not recorded yet', { error: (error as Error).message });
    await launcher.environment.clock.sleep(API_POLL_MS, launcher.environment.signal);
  }
}

/** Tells that the guest stays. Does not give up. */
export async function reportFailure(
  launcher: LauncherState,
  uid: string,
  failure: { readonly reason: string; readonly aborted: boolean },
): Promise<void> {
  launcher.event('Warning', 'Migrated', `VirtualMachineInstance migration uid ${uid} failed. reason:${failure.reason}`);
  const now = launcher.environment.clock.now();
  await launcher.untilDone('failure of the migration not reported', () =>
    report(launcher, (vmi) => sourceFailed(vmi, uid, { ...failure, now })),
  );
}

/** Writes what the source has to say; to an instance that is gone nothing. Throws what the API says. */
export async function report(
  launcher: LauncherState,
  change: (vmi: ReadonlyVmi) => Readonly<Record<string, unknown>>,
): Promise<void> {
  const vmi = launcher.vmi ?? (await readInstance(launcher));
  if (!vmi) return;
  const written = await writeVmiStatus(launcher.environment, vmi, change);
  if (written) launcher.observeVmi(written);
}

/** An agent that was restarted looks after its guests before it has heard of any instance. Undefined: it is gone. */
async function readInstance(launcher: LauncherState): Promise<ReadonlyVmi | undefined> {
  const { environment, record, vmiUid } = launcher;
  const key = { namespace: record?.namespace ?? '', name: record?.name ?? '' };
  try {
    const vmi = await environment.client.get(VIRTUAL_MACHINE_INSTANCES, key, { signal: environment.signal });
    if (vmi.metadata.uid !== vmiUid) return undefined;
    launcher.observeVmi(vmi);
    return vmi;
  } catch (error) {
    if (isNotFound(error) || isOfOthers(error)) return undefined;
    throw error;
  }
}
