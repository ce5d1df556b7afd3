/** Whether a Pod may start its guest here, and since when the directory of the VM is its own. */
import { isNotFound } from '@coracle/client/api-failure';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '@coracle/kubevirt/kinds/kinds';
import { instanceReference } from '@coracle/kubevirt/rules/launcher/launcher-owner';
import { isRunning } from '@coracle/runtime/process/identity';
import { peerObstacle } from '../../network/peer.ts';
import { findOrphan } from './launcher-orphan.ts';
import type { LauncherState } from './launcher-state.ts';
import { ended, type StageOutcomes } from './launcher-step.ts';
import { afterFailure, DELETED_BEFORE_START, startFailed } from './start-failure.ts';
import { readRecord } from './vm-record.ts';
import type { VmResult } from './vm-result.ts';

const PREDECESSOR_POLL_MS = 100;

/** Reads the VMI, and compares it with the Pod and with what runs on this node. */
export async function claimGuest(launcher: LauncherState, attempt: number): Promise<StageOutcomes['claim']> {
  if (launcher.isDeleting()) return ended(DELETED_BEFORE_START);
  try {
    const vmi = await readInstance(launcher);
    if ('exitCode' in vmi) return ended(vmi);
    launcher.vmi = vmi;
    const orphan = await findOrphan(launcher, vmi.metadata.uid ?? '');
    if (orphan) return { type: 'orphaned', orphan };
    const refusal = refusalOf(launcher, vmi) ?? (await runsAlready(launcher, vmi));
    if (refusal) return ended(startFailed(launcher, refusal.reason, refusal.message));
    if (await outlivePredecessor(launcher)) return { type: 'waited' };
    return { type: 'claimed', role: launcher.migrationJob === undefined ? 'own' : 'target' };
  } catch (error) {
    return afterFailure(launcher, error, attempt);
  }
}

/** The VMI that the Pod belongs to, or why it starts none. Throws what the API says. */
async function readInstance(launcher: LauncherState): Promise<VirtualMachineInstance | VmResult> {
  const { pod, environment } = launcher;
  const owner = instanceReference(pod);
  if (!pod || !owner) return startFailed(launcher, 'NoOwner', 'the launcher pod belongs to no VirtualMachineInstance');
  const key = { namespace: pod.metadata.namespace ?? '', name: owner.name };
  try {
    const vmi = await environment.client.get(VIRTUAL_MACHINE_INSTANCES, key, { signal: environment.signal });
    if (vmi.metadata.uid === owner.uid) return vmi;
    const message = `VirtualMachineInstance ${key.name} is another one than the pod was made for`;
    return startFailed(launcher, 'NoOwner', message);
  } catch (error) {
    if (!isNotFound(error)) throw error;
    return startFailed(launcher, 'NoOwner', `VirtualMachineInstance ${key.name} does not exist`);
  }
}

type Refusal = Pick<VmResult, 'reason' | 'message'>;

/** Why the status of the instance keeps this Pod from starting it; undefined where it does not. */
function refusalOf(launcher: LauncherState, { status }: VirtualMachineInstance): Refusal | undefined {
  const { phase, nodeName } = status ?? {};
  const here = launcher.environment.nodeName;
  if (launcher.migrationJob === undefined) {
    const isElsewhere = nodeName !== undefined && nodeName !== '' && nodeName !== here;
    if (phase !== 'Running' && !isElsewhere) return undefined;
    return { reason: 'AlreadyRunning', message: `the guest was started before (phase ${phase}, node ${nodeName})` };
  }
  const obstacle = peerObstacle(launcher.environment.peer);
  if (obstacle !== undefined) return { reason: 'MigrationNotSupported', message: obstacle };
  // The guest runs on another node: that is what a migration is for.
  if (phase === 'Running' && nodeName !== here) return undefined;
  return { reason: 'MigrationFailed', message: `there is no guest to take over (phase ${phase}, node ${nodeName})` };
}

/** An earlier launcher of the same guest that still runs here. */
async function runsAlready(
  launcher: LauncherState,
  { metadata }: VirtualMachineInstance,
): Promise<Refusal | undefined> {
  const uid = metadata.uid ?? '';
  const known = await readRecord(launcher.environment.vmsDirectory, uid);
  if (typeof known === 'string' || known.podUid === launcher.pod?.metadata.uid) return undefined;
  if (!known.process || !(await isRunning(known.process))) return undefined;
  return { reason: 'AlreadyRunning', message: 'an earlier launcher of this guest still runs on this node' };
}

/**
 * An earlier launcher of the name may still be ending its guest, or clearing up after a Pod that has ended: the next one
 * waits for that, and has the files of the VM to itself from then on. True when it had to wait.
 */
async function outlivePredecessor(launcher: LauncherState): Promise<boolean> {
  for (let waited = false; ; waited = true) {
    if (launcher.isDeleting() || launcher.holdFiles()) return waited;
    const message = 'waits for the end of an earlier guest of this name';
    await launcher.report({ state: 'creating', reason: 'ContainerCreating', message });
    await launcher.pause(PREDECESSOR_POLL_MS);
  }
}
