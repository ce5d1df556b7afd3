/** What the ends of a migration write, into their own record and into the VMI, and what they ask of the API. */
import {
  type ReadonlyVmi,
  VIRTUAL_MACHINE_INSTANCES,
  type VirtualMachineInstance,
} from '@coracle/kubevirt/kinds/kinds';
import { type MigrationDecision, migrationDecision } from '@coracle/kubevirt/rules/migration/migration-steps';
import { patchStatus, writeVmiStatus } from '../launcher/api-writes.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import { namedInstance, ownInstance } from '../launcher/own-instance.ts';
import { keepRecord, type MigrationRecord, type VmRecord } from '../launcher/vm-record.ts';
import { sourceFailed } from './migration-status.ts';

export type SourceRecord = Extract<MigrationRecord, { role: 'source' }>;

/** Between two questions to the API. */
export const API_POLL_MS = 200;

/** Puts this end of the migration on disk. */
export const enter = (launcher: LauncherState, migration: SourceRecord): Promise<void> =>
  keepRecord(launcher, { ...(launcher.record as VmRecord), migration });

/** The guest is an ordinary one again. Does not give up. */
export async function leaveMigration(launcher: LauncherState): Promise<void> {
  const { migration: _, ...rest } = launcher.record as VmRecord;
  await launcher.untilDone('record not written', () => keepRecord(launcher, rest));
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
  let { vmi } = launcher;
  if (!vmi) {
    // An agent that was restarted looks after its guests before it has heard of any instance.
    vmi = await ownInstance(launcher);
    if (!vmi) return;
    launcher.observeVmi(vmi);
  }
  const written = await writeVmiStatus(launcher.environment, vmi, change);
  if (written) launcher.observeVmi(written);
}

/** What the API says of the migration now; no decision when it cannot be asked. */
export async function ask(
  launcher: LauncherState,
): Promise<{ readonly decision: MigrationDecision | undefined; readonly vmi?: VirtualMachineInstance }> {
  const { environment, vmiUid } = launcher;
  try {
    const vmi = await namedInstance(launcher);
    if (!vmi) return { decision: 'gone' };
    if (vmi.metadata.uid === vmiUid) launcher.vmi = vmi;
    const { uid, peerNode, role } = (launcher.record as VmRecord).migration as MigrationRecord;
    const [sourceNode, targetNode] =
      role === 'source' ? [environment.nodeName, peerNode] : [peerNode, environment.nodeName];
    return { decision: migrationDecision(vmi, { uid, vmiUid, sourceNode, targetNode }), vmi };
  } catch {
    environment.signal.throwIfAborted();
    return { decision: undefined };
  }
}
