/**
 * One launcher Pod on this node, from its binding to the end of its object.
 *
 *   (bound) -> starting -> running -> ended -> gone
 *        \________________________________/
 *
 * starting: volumes are made, QEMU is spawned; failures that may pass are tried again. running: QEMU lives, its state is
 * reported. ended: the result is recorded, then reported, then the files go. gone: the Pod object is no more.
 * Nothing here throws out of `run` but the end of the agent; a failing API delays reports and never touches a guest.
 */
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod } from '../../api/kinds/builtin/types.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '../../api/kinds/kubevirt/kinds.ts';
import type { DeepReadonly } from '../../api/meta/object.ts';
import type { Logger } from '../../base/log/log.ts';
import { isRunning } from '../../base/process/identity.ts';
import { terminate } from '../../base/process/terminate.ts';
import { createLinkedController } from '../../base/signal/linked-controller.ts';
import { isNotFound } from '../../client/api-failure.ts';
import { PlanError } from '../../domain/machine/machine-plan.ts';
import { removeVmDirectory, vmDirectoryOf } from '../disk/vm-directory.ts';
import { type ImageEvent, VolumeError } from '../disk/volume-request.ts';
import { releaseAddress } from '../network/address-pool.ts';
import { findQemu } from './adopt.ts';
import { deletePod, writePodStatus, writeVmiStatus } from './api-writes.ts';
import type { AgentEnvironment } from './environment.ts';
import { type Guest, openGuest } from './guest.ts';
import { imageContainer, type LauncherView, podStatusDiffers, podStatusOf } from './pod-status.ts';
import { letRun, SpawnError, startVm } from './start-vm.ts';
import { askToShutDown, endProcess } from './stop-vm.ts';
import { readRecord, type VmRecord, writeRecord } from './vm-record.ts';
import { HOST_REBOOTED, resultOf, type VmResult } from './vm-result.ts';
import { finalStatus, isClaimed, runningStatus } from './vmi-status.ts';

type ReadonlyPod = DeepReadonly<Pod>;
type ReadonlyVmi = DeepReadonly<VirtualMachineInstance>;

const DEFAULT_GRACE_SECONDS = 30;
const FIRST_RETRY_MS = 1000;
const MAX_RETRY_MS = 60_000;
/** How often room is looked for while a guest waits for disk space. */
const SPACE_POLL_MS = 5000;
const ENOUGH_SPACE = 64 * 1024 * 1024;
const ANSWER_MS = 10_000;
const ORPHAN_POLL_MS = 5000;
const PREDECESSOR_POLL_MS = 100;
const SOFT_REBOOT_MS = 120_000;
const MAX_EVENTS = 20;

export class Launcher {
  readonly #environment: AgentEnvironment;
  readonly #log: Logger;
  #pod: ReadonlyPod | undefined;
  #vmi: ReadonlyVmi | undefined;
  #record: VmRecord | undefined;
  #guest: Guest | undefined;
  /** The Pod object is gone from the API, as seen by a whole list. */
  #podGone = false;
  #stopWanted = false;
  #forced: 'grace' | 'immediate' | undefined;
  #softRebootUntil = 0;
  #waiters: (() => void)[] = [];
  readonly #predecessor: (namespace: string, name: string) => Launcher | undefined;
  readonly #startController;

  /** `record` is what an earlier agent left of this Pod. */
  constructor(
    environment: AgentEnvironment,
    start: {
      readonly pod?: ReadonlyPod;
      readonly record?: VmRecord;
      /** The launcher on this node that still has a guest of this name, if any: two must never run at once. */
      readonly predecessor: (namespace: string, name: string) => Launcher | undefined;
    },
  ) {
    this.#environment = environment;
    this.#pod = start.pod;
    this.#record = start.record;
    this.#predecessor = start.predecessor;
    this.#startController = createLinkedController(environment.signal);
    this.#log = environment.log.with({ pod: start.pod?.metadata.name ?? start.record?.podName ?? '' });
    // Whoever waits must hear of the end of the agent.
    environment.signal.addEventListener('abort', () => this.#changed(), { once: true });
  }

  get guest(): Guest | undefined {
    return this.#guest;
  }
  get record(): VmRecord | undefined {
    return this.#record;
  }
  /** UID of the VMI; '' until it is known. */
  get vmiUid(): string {
    return this.#record?.vmiUid ?? this.#vmi?.metadata.uid ?? ownerUid(this.#pod);
  }

  /** News of the Pod; undefined when it is gone. */
  observePod(pod: ReadonlyPod | undefined): void {
    if (pod) this.#pod = pod;
    else this.#podGone = true;
    this.#changed();
  }

  /** News of the VMI, which must have the right UID. */
  observeVmi(vmi: ReadonlyVmi): void {
    this.#vmi = vmi;
    this.#changed();
  }

  /** Ends the guest as a deletion would. Used when the agent is told to take its guests along. */
  requestStop(): void {
    this.#stopWanted = true;
    this.#changed();
  }

  /** The next power-off of the guest is the first half of a reboot. */
  expectReboot(): void {
    this.#softRebootUntil = this.#environment.clock.monotonic() + SOFT_REBOOT_MS;
  }

  /** Wakes whoever waits for a change. */
  #changed(): void {
    if (this.#isDeleting()) this.#startController.abort(new DOMException('the pod is being deleted', 'AbortError'));
    for (const wake of this.#waiters.splice(0)) wake();
  }
  #nextChange(): Promise<void> {
    return new Promise((resolve) => this.#waiters.push(resolve));
  }
  #isDeleting(): boolean {
    const vmi = this.#vmi;
    return (
      this.#stopWanted ||
      this.#podGone ||
      this.#pod?.metadata.deletionTimestamp !== undefined ||
      vmi?.metadata.deletionTimestamp !== undefined ||
      vmi?.status?.phase === 'Failed' ||
      vmi?.status?.phase === 'Succeeded'
    );
  }

  /** Lives until the Pod object is gone; rejects only with the end of the agent. */
  async run(): Promise<void> {
    try {
      const ended = await this.#environment.tombstones.has(this.#record?.podUid ?? this.#pod?.metadata.uid ?? '');
      const result = ended ?? (this.#record ? await this.#resume(this.#record) : await this.#start());
      const final = result ?? (await this.#supervise());
      await this.#finish(final);
    } finally {
      this.#startController.release();
      this.#guest?.close();
    }
  }

  // Starting.

  /** Starts the VM, trying again what may pass. Undefined means it runs. */
  async #start(): Promise<VmResult | undefined> {
    const environment = this.#environment;
    const deleted: VmResult = {
      phase: 'Failed',
      reason: 'Deleted',
      message: 'the pod was deleted before the guest was started',
      exitCode: 1,
    };
    let pause = FIRST_RETRY_MS;
    for (let attempt = 0; ; attempt++) {
      if (this.#isDeleting()) return deleted;
      try {
        const refusal = await this.#claim();
        if (refusal) return refusal;
        await this.#outlivePredecessor();
        const [pod, vmi] = [this.#pod, this.#vmi];
        if (!pod || !vmi || this.#isDeleting()) return deleted;
        const started = await startVm(environment, {
          pod,
          vmi,
          signal: this.#startController.signal,
          onImage: (event) => this.#onImage(event),
          onChange: () => this.#changed(),
        });
        this.#record = started.record;
        this.#guest = started.guest;
        this.#tellPlan(started.record);
        return undefined;
      } catch (error) {
        environment.signal.throwIfAborted();
        const left = await this.#adoptRecord();
        if (this.#isDeleting() && !left?.process) return deleted;
        const message = error instanceof Error ? error.message : String(error);
        this.#log.warn('guest not started', { error: message });
        if (error instanceof PlanError) return this.#startFailed('InvalidMachine', message);
        // There is, or was, a process: it is not spawned twice.
        if (error instanceof SpawnError || left?.process) return this.#startFailed('StartFailed', message);
        const reason = error instanceof VolumeError ? error.reason : 'FailedStart';
        const isPull = error instanceof VolumeError && reason.startsWith('Err');
        this.#event('Warning', isPull ? 'Failed' : reason, message);
        if (isPull) this.#podEvent('Warning', 'Failed', `Failed to pull image: ${message}`);
        await this.#report({
          state: 'creating',
          reason: attempt > 0 && reason === 'ErrImagePull' ? 'ImagePullBackOff' : reason,
          message,
          ...(isPull &&
            this.#hasContainer(imageContainer(error.volume)) && { container: imageContainer(error.volume) }),
        });
        await this.#pause(pause);
        pause = Math.min(pause * 2, MAX_RETRY_MS);
      }
    }
  }

  /** Reads the VMI and makes sure that this Pod may start it. A result means: never. */
  async #claim(): Promise<VmResult | undefined> {
    const pod = this.#pod;
    const owner = pod?.metadata.ownerReferences?.find((ref) => ref.controller && ref.kind === 'VirtualMachineInstance');
    if (!pod || !owner) return this.#startFailed('NoOwner', 'the launcher pod belongs to no VirtualMachineInstance');
    const key = { namespace: pod.metadata.namespace ?? '', name: owner.name };
    let vmi: VirtualMachineInstance;
    try {
      vmi = await this.#environment.client.get(VIRTUAL_MACHINE_INSTANCES, key, { signal: this.#environment.signal });
    } catch (error) {
      if (isNotFound(error)) return this.#startFailed('NoOwner', `VirtualMachineInstance ${key.name} does not exist`);
      throw error;
    }
    if (vmi.metadata.uid !== owner.uid)
      return this.#startFailed(
        'NoOwner',
        `VirtualMachineInstance ${key.name} is another one than the pod was made for`,
      );
    this.#vmi = vmi;
    const orphaned = await this.#outliveOrphan(owner.uid);
    if (orphaned) return orphaned;
    if (pod.metadata.labels?.['kubevirt.io/migrationJobUID'] !== undefined)
      return this.#startFailed('MigrationNotSupported', 'this node agent does not take over running guests');
    const { phase, nodeName } = vmi.status ?? {};
    if (phase === 'Running' || (nodeName !== undefined && nodeName !== '' && nodeName !== this.#environment.nodeName))
      return this.#startFailed('AlreadyRunning', `the guest was started before (phase ${phase}, node ${nodeName})`);
    const known = await readRecord(join(this.#environment.vmsDirectory, owner.uid), owner.uid);
    if (
      typeof known !== 'string' &&
      known.podUid !== pod.metadata.uid &&
      known.process &&
      (await isRunning(known.process))
    )
      return this.#startFailed('AlreadyRunning', 'an earlier launcher of this guest still runs on this node');
    return undefined;
  }

  /** Where a Pod was removed by force its guest may still be ending: the next one of the name waits for that. */
  async #outlivePredecessor(): Promise<void> {
    const { namespace = '', name = '' } = this.#vmi?.metadata ?? {};
    for (;;) {
      const other = this.#predecessor(namespace, name);
      if (!other || other === this || this.#isDeleting()) return;
      await this.#report({
        state: 'creating',
        reason: 'ContainerCreating',
        message: 'waits for the end of an earlier guest of this name',
      });
      await this.#pause(PREDECESSOR_POLL_MS);
    }
  }

  /**
   * A QEMU of this VMI whose record cannot be read: it is neither killed nor started a second time. It lives until it
   * ends by itself or somebody deletes the Pod.
   */
  async #outliveOrphan(uid: string): Promise<VmResult | undefined> {
    const environment = this.#environment;
    const record = await readRecord(vmDirectoryOf(environment.vmsDirectory, uid), uid);
    if (typeof record !== 'string') return undefined;
    const orphan = await findQemu(environment.vmsDirectory, uid);
    if (record === 'missing' && !orphan) return undefined;
    if (orphan)
      this.#event(
        'Warning',
        'OrphanedGuest',
        `a guest of this UID runs on the node (pid ${orphan.pid}) but its record is damaged or missing; it is left alone until the pod is deleted`,
      );
    while (orphan && (await isRunning(orphan))) {
      if (this.#isDeleting()) {
        const seconds = this.#vmi?.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS;
        await terminate(orphan, { clock: environment.clock, signal: environment.signal, graceMs: seconds * 1000 });
      } else await this.#pause(ORPHAN_POLL_MS);
    }
    return this.#startFailed(
      'DamagedRecord',
      'the record of this guest on the node is damaged; it is not started again',
    );
  }

  /** What a start that failed left on disk. */
  async #adoptRecord(): Promise<VmRecord | undefined> {
    const uid = this.#vmi?.metadata.uid;
    if (!uid) return undefined;
    const record = await readRecord(join(this.#environment.vmsDirectory, uid), uid);
    if (typeof record === 'string' || record.podUid !== this.#pod?.metadata.uid) return undefined;
    this.#record = record;
    return record;
  }

  #startFailed(reason: string, message: string): VmResult {
    this.#event('Warning', reason, message);
    return { phase: 'Failed', reason, message, exitCode: 1 };
  }

  #hasContainer(name: string): boolean {
    return this.#pod?.spec.containers.some((container) => container.name === name) ?? false;
  }

  #onImage(event: ImageEvent): void {
    const name = JSON.stringify(event.image);
    if (event.type === 'pulling') this.#podEvent('Normal', 'Pulling', `Pulling image ${name}`);
    if (event.type === 'pulled') this.#podEvent('Normal', 'Pulled', `Successfully pulled image ${name}`);
    if (event.type === 'present')
      this.#podEvent('Normal', 'Pulled', `Container image ${name} already present on machine`);
  }

  #tellPlan(record: VmRecord): void {
    for (const text of record.plan.unsupported.slice(0, MAX_EVENTS)) this.#event('Warning', 'NotSupported', text);
    for (const text of record.portProblems.slice(0, MAX_EVENTS)) this.#event('Warning', 'PortNotForwarded', text);
  }

  // Coming back.

  /** Takes over what an earlier agent started. Undefined means it runs. */
  async #resume(record: VmRecord): Promise<VmResult | undefined> {
    const environment = this.#environment;
    if (record.result) return record.result;
    if (record.bootId !== environment.bootId) return HOST_REBOOTED;
    if (!record.process || !(await isRunning(record.process))) {
      // The end of a guest that shut down is never missed: QEMU waits for us then. So this one broke off.
      return resultOf({});
    }
    const guest = openGuest({
      directory: join(environment.vmsDirectory, record.vmiUid),
      plan: record.plan,
      address: record.address,
      identity: record.process,
      clock: environment.clock,
      log: this.#log,
      signal: environment.signal,
      onChange: () => this.#changed(),
    });
    this.#guest = guest;
    try {
      await guest.ready(ANSWER_MS);
      if (guest.state.connected) {
        await guest.forwarder?.load();
        // The earlier agent ended between spawn and go.
        if (guest.state.runState === 'prelaunch') await letRun(guest, record);
        this.#log.info('guest adopted', { pid: record.process.pid, state: guest.state.runState });
      }
    } catch (error) {
      environment.signal.throwIfAborted();
      // It lives but does not answer: it keeps its phase, and we keep asking.
      this.#log.warn('guest does not answer', { error: (error as Error).message });
    }
    return undefined;
  }

  // Running.

  async #supervise(): Promise<VmResult> {
    const guest = this.#guest;
    if (!guest) return resultOf({});
    let stopping: Promise<void> | undefined;
    let spacePoll: (() => void) | undefined;
    let retry: (() => void) | undefined;
    try {
      for (;;) {
        this.#environment.signal.throwIfAborted();
        const change = this.#nextChange();
        const result = await this.#endingOf(guest);
        if (result) return result;
        if (this.#isDeleting() && !stopping)
          stopping = this.#stop(guest).catch((error: Error) => {
            if (!this.#environment.signal.aborted) this.#log.warn('guest not stopped', { error: error.message });
          });
        if (guest.state.runState === 'io-error' && guest.state.ioError === 'nospace') {
          spacePoll ??= this.#environment.clock.schedule(SPACE_POLL_MS, () => {
            spacePoll = undefined;
            void this.#continueIfRoom(guest);
          });
        }
        retry?.();
        retry = undefined;
        if (!(await this.#reportRunning(guest)))
          retry = this.#environment.clock.schedule(FIRST_RETRY_MS, () => this.#changed());
        await Promise.race([change, this.#untilAborted()]);
      }
    } finally {
      spacePoll?.();
      retry?.();
    }
  }

  /** How the guest ended, if it did. */
  async #endingOf(guest: Guest): Promise<VmResult | undefined> {
    const { state } = guest;
    const forced = this.#forced && { forced: this.#forced };
    if (state.exit !== undefined)
      return resultOf({
        ...(state.exit !== 'gone' && { exit: state.exit }),
        ...(state.shutdownReason !== undefined && { shutdown: state.shutdownReason }),
        ...forced,
        output: await guest.output(),
      });
    if (state.runState === 'guest-panicked') return resultOf({ panicked: true });
    if (state.runState !== 'shutdown') return undefined;
    if (this.#softRebootUntil > this.#environment.clock.monotonic() && !this.#isDeleting()) {
      this.#softRebootUntil = 0;
      await guest.qmp().execute('system_reset');
      await guest.qmp().execute('cont');
      await guest.refresh();
      return undefined;
    }
    // QEMU stays in this state until we have seen it, also over a restart of ours.
    return resultOf({ shutdown: state.shutdownReason ?? 'guest-shutdown', ...forced });
  }

  /** The guest's own grace period, or less where its Pod is deleted with less: as a kubelet would end it then. */
  #graceSeconds(): number {
    const own = this.#vmi?.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS;
    return Math.min(own, this.#pod?.metadata.deletionGracePeriodSeconds ?? own);
  }

  /** Ends the guest: gently within its grace period, then by force. */
  async #stop(guest: Guest): Promise<void> {
    const environment = this.#environment;
    const seconds = this.#graceSeconds();
    const ended = (): boolean => guest.state.exit !== undefined || guest.state.runState === 'shutdown';
    if (seconds > 0) {
      this.#event('Normal', 'ShuttingDown', `Signaled graceful shutdown, waiting up to ${seconds} s`);
      const outcome = await askToShutDown(environment, {
        guest,
        graceMs: () => this.#graceSeconds() * 1000,
        ended,
        changed: () => this.#nextChange(),
      });
      if (outcome === 'ended') return;
      this.#forced = 'grace';
    } else this.#forced = 'immediate';
    if (this.#record) await endProcess(environment, this.#record, guest);
  }

  async #continueIfRoom(guest: Guest): Promise<void> {
    try {
      const { bavail, bsize } = await statfs(this.#environment.vmsDirectory);
      if (bavail * bsize >= ENOUGH_SPACE && guest.state.runState === 'io-error') await guest.qmp().execute('cont');
      await guest.refresh();
    } catch (error) {
      this.#log.debug('disk space not checked', { error: (error as Error).message });
    }
    this.#changed();
  }

  /** Writes Pod and VMI status where they are behind; false when a write failed. */
  async #reportRunning(guest: Guest): Promise<boolean> {
    const record = this.#record;
    if (!record || this.#podGone) return true;
    let ok = await this.#report({
      state: 'running',
      startedAt: record.startedAt,
      address: record.address,
      imageIds: record.imageIds,
    });
    const vmi = this.#vmi;
    if (!vmi || !isClaimed(vmi)) return ok;
    try {
      const view = {
        plan: record.plan,
        guest: guest.state,
        address: record.address,
        portProblems: record.portProblems,
      };
      let started = false;
      const written = await writeVmiStatus(this.#environment, vmi, (newest) => {
        const change = runningStatus(newest, view, this.#environment.clock.now());
        started = change.phase === 'Running';
        return change;
      });
      if (written) this.#vmi = newer(this.#vmi, written);
      if (started) this.#event('Normal', 'Started', 'VirtualMachineInstance started.');
    } catch (error) {
      this.#environment.signal.throwIfAborted();
      this.#log.warn('vmi status not written', { error: (error as Error).message });
      ok = false;
    }
    return ok;
  }

  /** Writes the Pod's status if it differs; false when that failed. */
  async #report(view: LauncherView): Promise<boolean> {
    const pod = this.#pod;
    if (!pod || this.#podGone) return true;
    try {
      const written = await writePodStatus(this.#environment, pod, (newest) => {
        const status = podStatusOf(newest, view, {
          hostIP: this.#environment.hostIP,
          now: this.#environment.clock.now(),
        });
        return podStatusDiffers(newest, status) ? { ...status } : {};
      });
      if (written) this.#pod = newer(this.#pod, written);
      else this.#podGone = true;
      return true;
    } catch (error) {
      this.#environment.signal.throwIfAborted();
      this.#log.warn('pod status not written', { error: (error as Error).message });
      return false;
    }
  }

  // Ended.

  async #finish(result: VmResult): Promise<void> {
    const environment = this.#environment;
    const finishedAt = this.#record?.finishedAt ?? environment.clock.now();
    if (this.#record) {
      await this.#untilDone('guest not ended', () => endProcess(environment, this.#record!, this.#guest));
      this.#guest?.close();
      const record = { ...this.#record, result, finishedAt };
      this.#record = record;
      const directory = join(environment.vmsDirectory, record.vmiUid);
      await writeRecord(directory, record).catch((error: Error) =>
        this.#log.warn('result not recorded', { error: error.message }),
      );
    }
    this.#log.info('guest ended', { phase: result.phase, reason: result.reason });
    if (this.#record) this.#event(result.phase === 'Failed' ? 'Warning' : 'Normal', 'Stopped', result.message);
    await this.#untilDone('result not reported to the vmi', async () => {
      const vmi = await this.#newestVmi();
      if (vmi) await writeVmiStatus(environment, vmi, (newest) => finalStatus(newest, result, environment.clock.now()));
    });
    const view: LauncherView = {
      state: 'ended',
      result,
      startedAt: this.#record?.startedAt,
      finishedAt,
      imageIds: this.#record?.imageIds ?? {},
    };
    await this.#untilDone('result not reported to the pod', async () => {
      if (!(await this.#report(view))) throw new Error('the write failed');
    });
    await this.#cleanUp(result);
    // The object is ours to remove once somebody has asked for it.
    for (;;) {
      if (this.#podGone) return;
      const change = this.#nextChange();
      if (this.#pod?.metadata.deletionTimestamp !== undefined || this.#pod === undefined) {
        const pod = this.#pod;
        if (pod) await this.#untilDone('pod not deleted', () => deletePod(environment, pod));
        return;
      }
      await Promise.race([change, this.#untilAborted()]);
    }
  }

  async #cleanUp(result: VmResult): Promise<void> {
    const environment = this.#environment;
    const podUid = this.#record?.podUid ?? this.#pod?.metadata.uid ?? '';
    const vmiUid = this.vmiUid;
    await this.#untilDone('end not recorded', () => environment.tombstones.add(podUid, result));
    // Without a record the directory may be that of another launcher, or hold evidence of a damaged record.
    const record = this.#record;
    if (!record) {
      if (vmiUid === '' || (await readRecord(join(environment.vmsDirectory, vmiUid), vmiUid)) !== 'missing') return;
      await removeVmDirectory(environment.vmsDirectory, vmiUid).catch(() => {});
      return;
    }
    await releaseAddress(environment.addressesDirectory, record.address, vmiUid).catch(() => {});
    await removeVmDirectory(environment.vmsDirectory, vmiUid).catch((error: Error) =>
      this.#log.warn('files of the guest not removed', { error: error.message }),
    );
  }

  async #newestVmi(): Promise<ReadonlyVmi | undefined> {
    const uid = this.vmiUid;
    const namespace = this.#record?.namespace ?? this.#pod?.metadata.namespace ?? '';
    const name = this.#record?.name ?? this.#vmi?.metadata.name;
    if (!name || uid === '') return undefined;
    try {
      const key = { namespace, name };
      const vmi = await this.#environment.client.get(VIRTUAL_MACHINE_INSTANCES, key, {
        signal: this.#environment.signal,
      });
      return vmi.metadata.uid === uid ? vmi : undefined;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  // Waiting.

  /** Tries until it works or the agent stops. */
  async #untilDone(what: string, act: () => Promise<void>): Promise<void> {
    let pause = FIRST_RETRY_MS;
    for (;;) {
      try {
        await act();
        return;
      } catch (error) {
        this.#environment.signal.throwIfAborted();
        this.#log.warn(what, { error: (error as Error).message });
      }
      await this.#environment.clock.sleep(pause, this.#environment.signal);
      pause = Math.min(pause * 2, MAX_RETRY_MS);
    }
  }

  /** Sleeps, or until something about deletion changes. */
  async #pause(ms: number): Promise<void> {
    const linked = createLinkedController(this.#startController.signal);
    try {
      await this.#environment.clock.sleep(ms, linked.signal);
    } catch {
      this.#environment.signal.throwIfAborted();
    } finally {
      linked.release();
    }
  }

  #untilAborted(): Promise<never> {
    const { signal } = this.#environment;
    return new Promise((_, reject) => {
      if (signal.aborted) reject(signal.reason as Error);
      else this.#waiters.push(() => signal.aborted && reject(signal.reason as Error));
    });
  }

  #event(type: 'Normal' | 'Warning', reason: string, message: string): void {
    const vmi = this.#vmi;
    if (vmi) this.#environment.events.event(vmi, type, reason, message);
    else this.#podEvent(type, reason, message);
  }
  #podEvent(type: 'Normal' | 'Warning', reason: string, message: string): void {
    if (this.#pod) this.#environment.events.event(this.#pod, type, reason, message);
  }
}

/** UID of the VMI that owns a launcher Pod, '' when there is none. */
export const ownerUid = (pod: ReadonlyPod | undefined): string =>
  pod?.metadata.ownerReferences?.find((ref) => ref.controller && ref.kind === 'VirtualMachineInstance')?.uid ?? '';

/** Keeps what the watch has already shown if it is not older than our own write's answer. */
function newer<T extends ReadonlyPod | ReadonlyVmi>(current: T | undefined, written: T): T {
  const a = Number(current?.metadata.resourceVersion);
  const b = Number(written.metadata.resourceVersion);
  return current && a > b ? current : written;
}
