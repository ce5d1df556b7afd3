/** The state of one launcher. */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly, ObjectKey } from '@coracle/apimachinery/meta/object';
import { hasEnded } from '@coracle/apimachinery/meta/object-state';
import type { PodStatus, ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { ReadonlyVmi } from '@coracle/kubevirt/kinds/kinds';
import { isDeletedForSilence } from '@coracle/kubevirt/rules/eviction/silent-deletion';
import { instanceReference } from '@coracle/kubevirt/rules/launcher/launcher-owner';
import { guestGraceSeconds } from '@coracle/kubevirt/rules/launcher/launcher-pod';
import { isResizing } from '@coracle/kubevirt/rules/live-update/pod-resize';
import type { Logger } from '@coracle/runtime/log/log';
import { createLinkedController, type LinkedController } from '@coracle/runtime/signal/linked-controller';
import type { AgentEnvironment } from '../environment.ts';
import type { Guest } from '../guest/guest.ts';
import { MIGRATION_JOB_LABEL } from '../migration/migration-status.ts';
import type { StreamStats } from '../migration/stream-stats.ts';
import type { KeptLogs } from '../requests/pod-logs.ts';
import { writePodStatus } from './api-writes.ts';
import { freshEphemeral, NO_EPHEMERAL_CONTAINERS } from './ephemeral-containers.ts';
import { type LauncherView, podAnnotationsOf, podStatusDiffers, podStatusOf, type ResizeView } from './pod-status.ts';
import type { VmRecord } from './vm-record.ts';

/** Pause after the first failure; it doubles with each. */
export const FIRST_RETRY_MS = 1000;
export const MAX_RETRY_MS = 60_000;
const DEFAULT_GRACE_SECONDS = 30;

/** What the stages of one launcher share: what is known of its Pod, VMI and guest, and how to wait for news and report. */
export class LauncherState {
  readonly environment: AgentEnvironment;
  readonly log: Logger;
  pod: ReadonlyPod | undefined;
  vmi: ReadonlyVmi | undefined;
  #record: VmRecord | undefined;
  guest: Guest | undefined;
  /** How far the guest has come while it is sent to another node. */
  stream: StreamStats | undefined;
  /** The directory of the VM is this launcher's: from before the first file until all are gone. One launcher at a time. */
  holdsFiles: boolean;
  /** Set when the files of the guest go; held until its Pod is gone. */
  keptLogs: KeptLogs | undefined;
  /** Why a change of the running guest has not come through yet, for its Pod. */
  plugTrouble: string | undefined;
  /** Disks that are to come or to go, by name: since when (monotonic ms), and what the last try met. */
  readonly plugging = new Map<string, { readonly since: number; readonly trouble?: string }>();
  /** By the card: what keeps it from coming or going. */
  readonly cardTrouble = new Map<string, string>();
  /** The node has no room yet for what the Pod asks. */
  resizeWaits = false;
  /** The guest's memory cannot be changed: it needs a restart. */
  memoryPlugFailed = false;
  /** An earlier agent saw the end and reported it: the instance may be on this node again since, under another Pod. */
  endedBefore = false;
  /** The instance and the Pod show the end. */
  endReported = false;
  /** The Pod object is gone from the API, as seen by a whole list. */
  podGone = false;
  stopWanted = false;
  /** The guest stands still for a save of its memory, which takes snapshots of its volumes at this moment. */
  savesVolumes = false;
  /** The guest is to end at once, without its grace period. */
  forceWanted = false;
  /** What is left of the grace period; undefined until the guest was asked to shut down. */
  graceLeftMs: (() => number) | undefined;
  forced: 'grace' | 'immediate' | undefined;
  /** Monotonic time until which a power-off of the guest is the first half of a reboot. */
  softRebootUntil = 0;
  /** Aborted when the Pod is being deleted: what prepares the guest stops then. */
  readonly starting: LinkedController;
  /** True while another launcher on this node still has a guest of this name, or files of one. */
  readonly hasPredecessor: (vmi: ObjectKey) => boolean;
  #waiters: (() => void)[] = [];
  /** The last status that was written, and what the server kept of it. */
  #reported: { readonly sent: PodStatus; readonly taken: DeepReadonly<PodStatus> } | undefined;

  constructor(
    environment: AgentEnvironment,
    start: {
      readonly pod: ReadonlyPod | undefined;
      /** What an earlier agent left of this Pod. */
      readonly record: VmRecord | undefined;
      readonly hasPredecessor: (vmi: ObjectKey) => boolean;
    },
  ) {
    this.environment = environment;
    this.pod = start.pod;
    this.#record = start.record;
    this.holdsFiles = start.record !== undefined;
    this.hasPredecessor = start.hasPredecessor;
    this.starting = createLinkedController(environment.signal);
    this.log = environment.log.with({ pod: start.pod?.metadata.name ?? start.record?.podName ?? '' });
    // Whoever waits must hear of the end of the agent.
    environment.signal.addEventListener('abort', () => this.changed(), { once: true });
  }

  get record(): VmRecord | undefined {
    return this.#record;
  }
  set record(record: VmRecord | undefined) {
    this.#record = record;
    this.environment.guestsChanged?.();
  }

  /**
   * UID of the VMI; '' until it was seen, in the namespace of the Pod, or stands in a record of ours. What the Pod says
   * of its owner is not enough: any Pod may name any uid.
   */
  get vmiUid(): string {
    return this.record?.vmiUid ?? this.vmi?.metadata.uid ?? '';
  }

  /** True when this very object is the VMI that the Pod says it belongs to, or that the record is of. */
  concerns({ metadata }: ReadonlyVmi): boolean {
    const { namespace, name } = this.vmiKey;
    const uid = this.vmiUid || instanceReference(this.pod)?.uid;
    return metadata.uid === uid && metadata.namespace === namespace && metadata.name === name;
  }

  /** The guest's own grace period. The Pod tells it too: an agent that has just started may see its end first. */
  get graceSeconds(): number {
    const ofPod = this.pod ? guestGraceSeconds(this.pod) : DEFAULT_GRACE_SECONDS;
    return this.vmi?.spec.terminationGracePeriodSeconds ?? ofPod;
  }

  /** Name of the VMI; without one until it is known. */
  get vmiKey(): ObjectKey {
    const { record, pod } = this;
    return {
      namespace: record?.namespace ?? pod?.metadata.namespace ?? '',
      name: record?.name ?? instanceReference(pod)?.name ?? '',
    };
  }

  /** UID of the migration that the Pod was made for as its target, also long after it. */
  get migrationJob(): string | undefined {
    return this.pod?.metadata.labels?.[MIGRATION_JOB_LABEL];
  }

  /** True when the state of the VMI is ours to report: not before a guest has come, and not after it has left. */
  get ownsInstance(): boolean {
    const { record } = this;
    if (this.endedBefore) return false;
    if (record?.migration) {
      const { role, phase } = record.migration;
      return role === 'source' && phase !== 'feeding' && phase !== 'left';
    }
    return record?.process !== undefined || this.migrationJob === undefined;
  }

  /** Takes the directory of the VM, unless another launcher has it: false then. */
  holdFiles(): boolean {
    if (!this.holdsFiles && this.hasPredecessor(this.vmiKey)) return false;
    this.holdsFiles = true;
    return true;
  }

  /** Wakes whoever waits for a change. */
  changed(): void {
    if (this.isDeleting()) this.starting.abort(new DOMException('the pod is being deleted', 'AbortError'));
    for (const wake of this.#waiters.splice(0)) wake();
  }

  /** News of the VMI from a write of our own. */
  observeVmi(vmi: ReadonlyVmi): void {
    this.vmi = newer(this.vmi, vmi);
    this.changed();
  }

  /** Lets those who wait look again after a while; returns what cancels that. */
  changedIn(ms: number): () => void {
    return this.environment.clock.schedule(ms, () => this.changed());
  }

  /** Resolves at the next change of Pod, VMI or guest. */
  nextChange(): Promise<void> {
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  /** True once the guest has to go, whoever wants it. */
  isDeleting(): boolean {
    const { pod, vmi } = this;
    const isPodDeleted = pod?.metadata.deletionTimestamp !== undefined && !this.keepsSilentGuest();
    const isVmiDeleted = vmi?.metadata.deletionTimestamp !== undefined;
    return this.stopWanted || this.podGone || isPodDeleted || isVmiDeleted || hasEnded(vmi);
  }

  /**
   * True while the Pod is marked for deletion only because this node was silent, and its guest runs: the guest is kept
   * until it has moved or somebody ends it.
   */
  keepsSilentGuest(): boolean {
    return (
      this.pod !== undefined &&
      this.record?.process !== undefined &&
      this.record.result === undefined &&
      isDeletedForSilence(this.pod, this.environment.node?.())
    );
  }

  /** What a kubelet would say to a Pod whose size was changed; undefined when it was not, or nothing is the matter. */
  async decideResize(): Promise<ResizeView | undefined> {
    const pod = this.pod;
    this.resizeWaits = false;
    if (!pod || this.podGone) return undefined;
    const trouble = this.plugTrouble;
    if (!isResizing(pod)) return trouble === undefined ? undefined : { trouble };
    const decision = await this.environment.decideResize(pod);
    this.resizeWaits = decision.type === 'wait';
    return { decision, of: pod, ...(trouble !== undefined && { trouble }) };
  }

  /** Tries until it works or the agent stops. */
  async untilDone(what: string, act: () => Promise<void>): Promise<void> {
    for (let pause = FIRST_RETRY_MS; ; pause = Math.min(pause * 2, MAX_RETRY_MS)) {
      try {
        return await act();
      } catch (error) {
        this.environment.signal.throwIfAborted();
        this.log.warn(what, { error: (error as Error).message });
      }
      await this.environment.clock.sleep(pause, this.environment.signal);
    }
  }

  /** Sleeps, or until something about deletion changes. */
  async pause(ms: number): Promise<void> {
    const linked = createLinkedController(this.starting.signal);
    try {
      await this.environment.clock.sleep(ms, linked.signal);
    } catch {
      this.environment.signal.throwIfAborted();
    } finally {
      linked.release();
    }
  }

  /** Rejects with the end of the agent. */
  untilAborted(): Promise<never> {
    const { signal } = this.environment;
    return new Promise((_, reject) => {
      if (signal.aborted) reject(signal.reason as Error);
      else this.#waiters.push(() => signal.aborted && reject(signal.reason as Error));
    });
  }

  /** Writes the Pod's status if it differs; false when that failed. */
  async report(view: LauncherView): Promise<boolean> {
    const { pod } = this;
    const { hostIP, clock } = this.environment;
    if (!pod || this.podGone) return true;
    try {
      let refused: readonly string[] = [];
      let sent: PodStatus | undefined;
      const written = await writePodStatus(this.environment, pod, (newest) => {
        refused = freshEphemeral(newest);
        const status = podStatusOf(newest, view, { hostIP, now: clock.now() });
        const annotations = podAnnotationsOf(newest, view);
        if (!annotations && (!podStatusDiffers(newest, status) || this.#isAllItTook(newest, status))) {
          sent = undefined;
          return undefined;
        }
        sent = status;
        return { status: { ...status }, ...(annotations && { annotations }) };
      });
      if (written && sent) this.#reported = { sent, taken: written.status ?? {} };
      if (written) this.pod = newer(this.pod, written);
      else this.podGone = true;
      for (const name of refused) {
        const container = `ephemeral container ${JSON.stringify(name)}`;
        this.podEvent('Warning', 'Failed', `Error: ${container}: ${NO_EPHEMERAL_CONTAINERS}`);
      }
      return true;
    } catch (error) {
      this.environment.signal.throwIfAborted();
      this.log.warn('pod status not written', { error: (error as Error).message });
      return false;
    }
  }

  /** True when the server was sent this and shows what it made of it: one that is older drops fields it does not know. */
  #isAllItTook(newest: ReadonlyPod, status: PodStatus): boolean {
    const { sent, taken } = this.#reported ?? {};
    return deepEqual(sent, status) && deepEqual(taken, newest.status);
  }

  /** An event of the VMI, or of the Pod while the VMI is not known. */
  event(type: 'Normal' | 'Warning', reason: string, message: string): void {
    if (this.vmi) this.environment.events.event(this.vmi, type, reason, message);
    else this.podEvent(type, reason, message);
  }

  /** An event of the machine that the VMI is of; none where it is of none. */
  machineEvent(type: 'Normal' | 'Warning', reason: string, message: string): void {
    const namespace = this.vmi?.metadata.namespace ?? '';
    for (const { apiVersion, kind, name, uid, controller } of this.vmi?.metadata.ownerReferences ?? [])
      if (controller && kind === 'VirtualMachine')
        this.environment.events.event({ apiVersion, kind, metadata: { name, namespace, uid } }, type, reason, message);
  }

  podEvent(type: 'Normal' | 'Warning', reason: string, message: string): void {
    if (this.pod) this.environment.events.event(this.pod, type, reason, message);
  }
}

/** Keeps what the watch has already shown if it is not older than our own write's answer. */
export function newer<T extends ReadonlyPod | ReadonlyVmi>(current: T | undefined, written: T): T {
  const a = Number(current?.metadata.resourceVersion);
  const b = Number(written.metadata.resourceVersion);
  return current && a > b ? current : written;
}
