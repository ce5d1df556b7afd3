/**
 * The first stage of a launcher: volumes are made and QEMU is spawned, failures that may pass are tried again; or what
 * an earlier agent started is taken over.
 */
import { join } from 'node:path';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '../../../api/kinds/kubevirt/kinds.ts';
import { isRunning } from '../../../base/process/identity.ts';
import { terminate } from '../../../base/process/terminate.ts';
import { isNotFound } from '../../../client/api-failure.ts';
import { instanceReference } from '../../../domain/launcher/launcher-owner.ts';
import { PlanError } from '../../../domain/machine/machine-plan.ts';
import { isUid, vmDirectoryOf } from '../../disk/vm-directory.ts';
import { type ImageEvent, VolumeError } from '../../disk/volume-request.ts';
import { openGuest } from '../guest/guest.ts';
import { attachVolumes, releaseVolumes } from '../guest/guest-volumes.ts';
import { keepNetFilter } from '../guest/net-filter.ts';
import { goOn } from '../memory/go-on.ts';
import { peerObstacle } from '../migration/peer.ts';
import { pinnedInstance } from '../migration/pinned-instance.ts';
import { receiveGuest } from '../migration/receive-guest.ts';
import { movedAway, resumeSent } from '../migration/settle-sender.ts';
import { resumeEnded, resumeReceiver } from '../migration/take-over.ts';
import { findQemu } from './adopt.ts';
import { foreignImage, simulatesCrash } from './functional-test-hooks.ts';
import { FIRST_RETRY_MS, type LauncherState, MAX_RETRY_MS, type ReadonlyPod } from './launcher-state.ts';
import { imageContainer } from './pod-status.ts';
import { letRun, prepareVm, SpawnError, startVm } from './start-vm.ts';
import { ownUid } from './vm-namespace.ts';
import { readRecord, type VmRecord } from './vm-record.ts';
import { HOST_REBOOTED, resultOf, type VmResult } from './vm-result.ts';

const ANSWER_MS = 10_000;
const ORPHAN_POLL_MS = 5000;
const PREDECESSOR_POLL_MS = 100;
const MAX_EVENTS = 20;

/** Starts the VM, trying again what may pass. Undefined means it runs. */
export async function startGuest(launcher: LauncherState): Promise<VmResult | undefined> {
  const { environment } = launcher;
  const deleted: VmResult = {
    phase: 'Failed',
    reason: 'Deleted',
    message: 'the pod was deleted before the guest was started',
    exitCode: 1,
  };
  const ended = endOf(launcher.pod);
  if (ended) {
    launcher.endedBefore = true;
    return (await outliveOrphan(launcher, await ownUid(launcher))) ?? ended;
  }
  if (simulatesCrash(launcher.pod)) return startFailed(launcher, 'Crashed', 'simulated crash of the launcher');
  let pause = FIRST_RETRY_MS;
  for (let attempt = 0; ; attempt++) {
    if (launcher.isDeleting()) return deleted;
    try {
      const refusal = await claim(launcher);
      if (refusal) return refusal;
      // What was claimed may have changed while it had to wait.
      if (await outlivePredecessor(launcher)) continue;
      const [pod, vmi] = [launcher.pod, launcher.vmi];
      if (!pod || !vmi || launcher.isDeleting()) return deleted;
      const request = {
        pod,
        vmi,
        signal: launcher.starting.signal,
        onImage: (event: ImageEvent) => tellImage(launcher, event),
        onChange: () => launcher.changed(),
        onNotResumed: (why: string) => launcher.event('Warning', 'BootedInstead', why),
      };
      const foreign = launcher.migrationJob === undefined ? undefined : await foreignImage(launcher);
      if (foreign !== undefined) {
        await cannotPull(launcher, foreign);
        return deleted;
      }
      if (launcher.migrationJob !== undefined)
        return await receiveGuest(
          launcher,
          await prepareVm(environment, { ...request, vmi: pinnedInstance(vmi, pod) }),
        );
      const started = await startVm(environment, request);
      launcher.record = started.record;
      launcher.guest = started.guest;
      await attachVolumes(launcher, started.guest);
      tellPlan(launcher, started.record);
      return undefined;
    } catch (error) {
      environment.signal.throwIfAborted();
      const left = await adoptRecord(launcher);
      // Nobody else waits for a volume of a guest that does not start.
      if (!left?.process) releaseVolumes(launcher);
      if (launcher.isDeleting() && !left?.process) return deleted;
      const message = error instanceof Error ? error.message : String(error);
      launcher.log.warn('guest not started', { error: message });
      if (error instanceof PlanError) return startFailed(launcher, 'InvalidMachine', message);
      // There is, or was, a process: it is not spawned twice.
      if (error instanceof SpawnError || left?.process) return startFailed(launcher, 'StartFailed', message);
      const reason = error instanceof VolumeError ? error.reason : 'FailedStart';
      const isPull = error instanceof VolumeError && reason.startsWith('Err');
      // A volume that cannot be had is the Pod's trouble, as a kubelet tells it.
      if (reason === 'FailedMount') launcher.podEvent('Warning', reason, message);
      else launcher.event('Warning', isPull ? 'Failed' : reason, message);
      if (isPull) launcher.podEvent('Warning', 'Failed', `Failed to pull image: ${message}`);
      await launcher.report({
        state: 'creating',
        reason: attempt > 0 && reason === 'ErrImagePull' ? 'ImagePullBackOff' : reason,
        message,
        ...(isPull &&
          hasContainer(launcher, imageContainer(error.volume)) && { container: imageContainer(error.volume) }),
      });
      await launcher.pause(pause);
      pause = Math.min(pause * 2, MAX_RETRY_MS);
    }
  }
}

/** What a kubelet says of an image that it cannot have, until the Pod goes. */
async function cannotPull(launcher: LauncherState, image: string): Promise<void> {
  const message = `image ${JSON.stringify(image)} is not on this node, and no launcher is pulled`;
  for (let attempt = 0; !launcher.isDeleting(); attempt++) {
    const reason = attempt === 0 ? 'ErrImagePull' : 'ImagePullBackOff';
    await launcher.report({ state: 'creating', reason, message, container: 'compute' });
    await launcher.pause(MAX_RETRY_MS);
  }
}

/** Takes over what an earlier agent started. Undefined means it runs. */
export async function resumeGuest(launcher: LauncherState, record: VmRecord): Promise<VmResult | undefined> {
  const { environment } = launcher;
  if (record.result) return record.result;
  const { role, phase } = record.migration ?? {};
  const given = role === 'source' && (phase === 'left' || phase === 'feeding');
  if (given && (phase === 'left' || record.bootId !== environment.bootId)) return movedAway(record);
  if (record.bootId !== environment.bootId) return HOST_REBOOTED;
  if (!record.process || !(await isRunning(record.process))) {
    const { migration } = record;
    if (given) return movedAway(record);
    // Whose it was when it ended, the API knows.
    if (migration?.role === 'target') return resumeEnded(launcher);
    if (migration?.role === 'source' && migration.phase === 'sent') return resumeSent(launcher);
    // The end of a guest that shut down is never missed: QEMU waits for us then. So this one broke off.
    return resultOf({});
  }
  const guest = openGuest({
    directory: join(environment.vmsDirectory, record.vmiUid),
    plan: record.plan,
    address: record.address,
    identity: record.process,
    clock: environment.clock,
    log: launcher.log,
    signal: environment.signal,
    onChange: () => launcher.changed(),
  });
  launcher.guest = guest;
  try {
    await guest.ready(ANSWER_MS);
    await attachVolumes(launcher, guest);
    const { plan } = record;
    const filtered = keepNetFilter(guest, {
      directory: join(environment.vmsDirectory, record.vmiUid),
      plan,
      clock: environment.clock,
      log: launcher.log,
    });
    filtered.catch(() => {});
    if (guest.state.connected) {
      await filtered;
      await guest.forwarder?.load();
      // The earlier agent ended between spawn and go.
      if (guest.state.runState === 'prelaunch' && !record.migration) await letRun(guest, record);
      if (record.saving || record.resuming) await goOn(launcher, guest);
      launcher.log.info('guest adopted', { pid: record.process.pid, state: guest.state.runState });
    }
  } catch (error) {
    environment.signal.throwIfAborted();
    // It lives but does not answer: it keeps its phase, and we keep asking.
    launcher.log.warn('guest does not answer', { error: (error as Error).message });
  }
  if (record.migration?.role === 'target') return resumeReceiver(launcher, guest);
  return undefined;
}

/** How a Pod ended of which nothing is left here but the object: it is not started again. Undefined while it lives. */
function endOf(pod: ReadonlyPod | undefined): VmResult | undefined {
  const { phase, reason, message = '' } = pod?.status ?? {};
  switch (phase) {
    case 'Succeeded':
      return { phase, reason: reason ?? 'Completed', message, exitCode: 0 };
    case 'Failed':
      return { phase, reason: reason ?? 'Failed', message, exitCode: 1 };
    default:
      return undefined;
  }
}

/** Reads the VMI and makes sure that this Pod may start it. A result means: never. */
async function claim(launcher: LauncherState): Promise<VmResult | undefined> {
  const pod = launcher.pod;
  const owner = instanceReference(pod);
  if (!pod || !owner) return startFailed(launcher, 'NoOwner', 'the launcher pod belongs to no VirtualMachineInstance');
  const key = { namespace: pod.metadata.namespace ?? '', name: owner.name };
  let vmi: VirtualMachineInstance;
  try {
    vmi = await launcher.environment.client.get(VIRTUAL_MACHINE_INSTANCES, key, {
      signal: launcher.environment.signal,
    });
  } catch (error) {
    if (isNotFound(error)) return startFailed(launcher, 'NoOwner', `VirtualMachineInstance ${key.name} does not exist`);
    throw error;
  }
  if (vmi.metadata.uid !== owner.uid)
    return startFailed(
      launcher,
      'NoOwner',
      `VirtualMachineInstance ${key.name} is another one than the pod was made for`,
    );
  launcher.vmi = vmi;
  const orphaned = await outliveOrphan(launcher, owner.uid);
  if (orphaned) return orphaned;
  const { phase, nodeName } = vmi.status ?? {};
  const isTarget = launcher.migrationJob !== undefined;
  const obstacle = isTarget ? peerObstacle(launcher.environment.peer) : undefined;
  if (obstacle !== undefined) return startFailed(launcher, 'MigrationNotSupported', obstacle);
  if (isTarget && (phase !== 'Running' || nodeName === launcher.environment.nodeName))
    return startFailed(
      launcher,
      'MigrationFailed',
      `there is no guest to take over (phase ${phase}, node ${nodeName})`,
    );
  if (isTarget) {
    // The guest runs elsewhere: that is the point.
  } else if (
    phase === 'Running' ||
    (nodeName !== undefined && nodeName !== '' && nodeName !== launcher.environment.nodeName)
  )
    return startFailed(launcher, 'AlreadyRunning', `the guest was started before (phase ${phase}, node ${nodeName})`);
  const known = await readRecord(join(launcher.environment.vmsDirectory, owner.uid), owner.uid);
  if (
    typeof known !== 'string' &&
    known.podUid !== pod.metadata.uid &&
    known.process &&
    (await isRunning(known.process))
  )
    return startFailed(launcher, 'AlreadyRunning', 'an earlier launcher of this guest still runs on this node');
  return undefined;
}

/**
 * An earlier launcher of the name may still be ending its guest, or clearing up after a Pod that has ended: the next one
 * waits for that, and has the files of the VM to itself from then on. True when it had to wait.
 */
async function outlivePredecessor(launcher: LauncherState): Promise<boolean> {
  for (let waited = false; ; waited = true) {
    if (launcher.isDeleting() || launcher.holdFiles()) return waited;
    await launcher.report({
      state: 'creating',
      reason: 'ContainerCreating',
      message: 'waits for the end of an earlier guest of this name',
    });
    await launcher.pause(PREDECESSOR_POLL_MS);
  }
}

/**
 * A QEMU of this VMI whose record cannot be read: it is neither killed nor started a second time. It lives until it
 * ends by itself or somebody deletes the Pod.
 */
async function outliveOrphan(launcher: LauncherState, uid: string): Promise<VmResult | undefined> {
  const { environment } = launcher;
  if (!isUid(uid)) return undefined;
  const record = await readRecord(vmDirectoryOf(environment.vmsDirectory, uid), uid);
  if (typeof record !== 'string') return undefined;
  const orphan = await findQemu(environment.vmsDirectory, uid);
  if (record === 'missing' && !orphan) return undefined;
  if (orphan)
    launcher.event(
      'Warning',
      'OrphanedGuest',
      `a guest of this UID runs on the node (pid ${orphan.pid}) but its record is damaged or missing; it is left alone until the pod is deleted`,
    );
  while (orphan && (await isRunning(orphan))) {
    if (launcher.isDeleting()) {
      const graceMs = launcher.graceSeconds * 1000;
      await terminate(orphan, { clock: environment.clock, signal: environment.signal, graceMs });
    } else await launcher.pause(ORPHAN_POLL_MS);
  }
  return startFailed(
    launcher,
    'DamagedRecord',
    'the record of this guest on the node is damaged; it is not started again',
  );
}

/** What a start that failed left on disk. */
async function adoptRecord(launcher: LauncherState): Promise<VmRecord | undefined> {
  const uid = launcher.vmi?.metadata.uid;
  if (!uid) return undefined;
  const record = await readRecord(join(launcher.environment.vmsDirectory, uid), uid);
  if (typeof record === 'string' || record.podUid !== launcher.pod?.metadata.uid) return undefined;
  launcher.record = record;
  return record;
}

function startFailed(launcher: LauncherState, reason: string, message: string): VmResult {
  launcher.event('Warning', reason, message);
  return { phase: 'Failed', reason, message, exitCode: 1 };
}

function hasContainer(launcher: LauncherState, name: string): boolean {
  return launcher.pod?.spec.containers.some((container) => container.name === name) ?? false;
}

function tellImage(launcher: LauncherState, event: ImageEvent): void {
  const name = JSON.stringify(event.image);
  if (event.type === 'pulling') launcher.podEvent('Normal', 'Pulling', `Pulling image ${name}`);
  if (event.type === 'pulled') launcher.podEvent('Normal', 'Pulled', `Successfully pulled image ${name}`);
  if (event.type === 'present')
    launcher.podEvent('Normal', 'Pulled', `Container image ${name} already present on machine`);
}

function tellPlan(launcher: LauncherState, record: VmRecord): void {
  for (const text of record.plan.unsupported.slice(0, MAX_EVENTS)) launcher.event('Warning', 'NotSupported', text);
  for (const text of record.portProblems.slice(0, MAX_EVENTS)) launcher.event('Warning', 'PortNotForwarded', text);
}
