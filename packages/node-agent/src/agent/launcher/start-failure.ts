/** What comes of a start that failed: tried again where it may pass, or the end of the Pod. */
import { PlanError } from '@coracle/kubevirt/rules/machine/machine-plan';
import { VolumeError } from '../../disk/volume-request.ts';
import { releaseVolumes } from '../guest/guest-volumes.ts';
import { NetworkError } from '../network/join-networks.ts';
import { FIRST_RETRY_MS, type LauncherState, MAX_RETRY_MS } from './launcher-state.ts';
import { ended, type StageOutcome } from './launcher-step.ts';
import { imageContainer } from './pod-status.ts';
import { SpawnError } from './start-vm.ts';
import { readRecord, type VmRecord } from './vm-record.ts';
import type { VmResult } from './vm-result.ts';

/** A kubelet's reason where a network plug-in fails. */
const SANDBOX_FAILED = 'FailedCreatePodSandBox';

export const DELETED_BEFORE_START: VmResult = {
  phase: 'Failed',
  reason: 'Deleted',
  message: 'the pod was deleted before the guest was started',
  exitCode: 1,
};

/** A guest that is not started, and a warning that says why. */
export function startFailed(launcher: LauncherState, reason: string, message: string): VmResult {
  launcher.event('Warning', reason, message);
  return { phase: 'Failed', reason, message, exitCode: 1 };
}

/**
 * Reports the failure. One that may pass is `failed` after its pause, which doubles with each attempt up to
 * MAX_RETRY_MS; a plan that cannot be, and a QEMU that was spawned, are the end. Rejects only with the end of the agent.
 */
export async function afterFailure(
  launcher: LauncherState,
  error: unknown,
  attempt: number,
): Promise<Extract<StageOutcome, { readonly type: 'failed' | 'ended' }>> {
  launcher.environment.signal.throwIfAborted();
  const left = await adoptRecord(launcher);
  // Nobody else waits for a volume of a guest that does not start.
  if (!left?.process) releaseVolumes(launcher);
  if (launcher.isDeleting() && !left?.process) return ended(DELETED_BEFORE_START);
  const message = error instanceof Error ? error.message : String(error);
  launcher.log.warn('guest not started', { error: message });
  if (error instanceof PlanError) return ended(startFailed(launcher, 'InvalidMachine', message));
  // There is, or was, a process: it is not spawned twice.
  if (error instanceof SpawnError || left?.process) return ended(startFailed(launcher, 'StartFailed', message));
  await report(launcher, { error, message, attempt });
  await launcher.pause(Math.min(FIRST_RETRY_MS * 2 ** attempt, MAX_RETRY_MS));
  return { type: 'failed' };
}

async function report(
  launcher: LauncherState,
  { error, message, attempt }: { readonly error: unknown; readonly message: string; readonly attempt: number },
): Promise<void> {
  const reason =
    error instanceof VolumeError ? error.reason : error instanceof NetworkError ? SANDBOX_FAILED : 'FailedStart';
  const isPull = error instanceof VolumeError && reason.startsWith('Err');
  // A volume or network that cannot be had is the Pod's trouble, as a kubelet reports it.
  if (reason === 'FailedMount' || reason === SANDBOX_FAILED) launcher.podEvent('Warning', reason, message);
  else launcher.event('Warning', isPull ? 'Failed' : reason, message);
  if (isPull) launcher.podEvent('Warning', 'Failed', `Failed to pull image: ${message}`);
  await launcher.report({
    state: 'creating',
    reason: attempt > 0 && reason === 'ErrImagePull' ? 'ImagePullBackOff' : reason,
    message,
    ...(isPull && hasContainer(launcher, imageContainer(error.volume)) && { container: imageContainer(error.volume) }),
  });
}

/** What a start that failed left on disk. */
async function adoptRecord(launcher: LauncherState): Promise<VmRecord | undefined> {
  const uid = launcher.vmi?.metadata.uid;
  if (!uid) return undefined;
  const record = await readRecord(launcher.environment.vmsDirectory, uid);
  if (typeof record === 'string' || record.podUid !== launcher.pod?.metadata.uid) return undefined;
  launcher.record = record;
  return record;
}

function hasContainer(launcher: LauncherState, name: string): boolean {
  return launcher.pod?.spec.containers.some((container) => container.name === name) ?? false;
}
