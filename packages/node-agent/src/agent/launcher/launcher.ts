/**
 * One launcher Pod on this node, from its binding to the end of its object: the stages of `launcher-step`, carried out one
 * after the other over one `launcher-state`.
 * Nothing here throws out of `run` but the end of the agent; a failing API delays reports and never touches a guest.
 */

import type { ObjectKey } from '@coracle/apimachinery/meta/object';
import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { ReadonlyVmi } from '@coracle/kubevirt/kinds/kinds';
import type { BackupRequest } from '@coracle/kubevirt/rules/backup/backup-request';
import type { MemorySaved } from '@coracle/kubevirt/rules/memory-state/memory-calls';
import { networkLabel, objectLabels } from '@coracle/kubevirt/rules/metrics/sample';
import { backUpGuest } from '../backup/back-up-guest.ts';
import type { AgentEnvironment } from '../environment.ts';
import type { Guest } from '../guest/guest.ts';
import type { MeasuredGuest } from '../guest/guest-metrics.ts';
import { guestStats } from '../guest/guest-stats.ts';
import { snapshotsOfSave } from '../guest/guest-volumes.ts';
import { type SaveOptions, saveMemory } from '../memory/save-memory.ts';
import type { StreamStats } from '../migration/stream-stats.ts';
import type { KeptLogs } from '../requests/pod-logs.ts';
import { isEphemeral } from './ephemeral-containers.ts';
import { adoptGuest } from './launcher-adopt.ts';
import { claimGuest } from './launcher-claim.ts';
import { coldStart } from './launcher-cold-start.ts';
import { finishGuest } from './launcher-finish.ts';
import { lookAround } from './launcher-look.ts';
import { awaitOrphan } from './launcher-orphan.ts';
import { receive } from './launcher-receive.ts';
import { LauncherState } from './launcher-state.ts';
import { ended, FIRST_STAGE, type LauncherStage, nextStage, type StageOutcome } from './launcher-step.ts';
import { superviseGuest } from './launcher-supervise.ts';
import { endProcess } from './stop-vm.ts';
import type { VmRecord } from './vm-record.ts';

const SOFT_REBOOT_MS = 120_000;

export class Launcher {
  readonly #state: LauncherState;

  constructor(
    environment: AgentEnvironment,
    start: {
      readonly pod?: ReadonlyPod;
      /** What an earlier agent left of this Pod. */
      readonly record?: VmRecord;
      /** The other launchers on this node, to see which of them has a guest of the same name: two must never run at once. */
      readonly others: () => Iterable<Launcher>;
    },
  ) {
    this.#state = new LauncherState(environment, {
      pod: start.pod,
      record: start.record,
      hasPredecessor: (vmi) => [...start.others()].some((other) => other !== this && other.#holdsFilesOf(vmi)),
    });
  }

  get guest(): Guest | undefined {
    return this.#state.guest;
  }
  /** What its guest takes now, under the labels of its instance; undefined when none runs. */
  async measured(): Promise<MeasuredGuest | undefined> {
    const { guest, record, vmi, environment } = this.#state;
    if (!guest?.state.connected || !record?.process || record.result) return undefined;
    const { plan, process, namespace, name } = record;
    const figures = await guestStats({ guest, plan, process }, environment.clock);
    const own = objectLabels('kubernetes_vmi_label_', vmi?.metadata.labels);
    const cards = plan.interfaces.map((card) => {
      const network = vmi?.spec.networks?.find((one) => one.name === card.name);
      return [card.mac.toLowerCase(), { name: card.name, network: networkLabel(network ?? {}) }] as const;
    });
    return { labels: { node: environment.nodeName, namespace, name, ...own }, cards: new Map(cards), figures };
  }
  get stream(): StreamStats | undefined {
    return this.#state.stream;
  }
  get record(): VmRecord | undefined {
    return this.#state.record;
  }
  get podKey(): ObjectKey {
    const { pod, record } = this.#state;
    return {
      namespace: pod?.metadata.namespace ?? record?.namespace ?? '',
      name: pod?.metadata.name ?? record?.podName ?? '',
    };
  }
  /** Names of the Pod's containers; none while only the record is known. */
  get containers(): readonly string[] {
    return this.#state.pod?.spec.containers.map(({ name }) => name) ?? [];
  }
  /** True when the Pod names such an ephemeral container. */
  hasEphemeral(container: string): boolean {
    return isEphemeral(this.#state.pod, container);
  }
  /** What the guest has said last; undefined while its files are there. */
  get keptLogs(): KeptLogs | undefined {
    return this.#state.keptLogs;
  }
  /** The guest has ended, and the API does not know it yet. */
  get owesReport(): boolean {
    return this.#state.record?.result !== undefined && !this.#state.endReported;
  }
  #holdsFilesOf(vmi: ObjectKey): boolean {
    const { holdsFiles, vmiKey } = this.#state;
    return holdsFiles && vmiKey.namespace === vmi.namespace && vmiKey.name === vmi.name;
  }

  /** News of the Pod; undefined when it is gone. */
  observePod(pod: ReadonlyPod | undefined): void {
    if (pod) this.#state.pod = pod;
    else this.#state.podGone = true;
    this.#state.changed();
  }

  /** News of a VMI: taken when it is the one of this Pod. */
  observeVmi(vmi: ReadonlyVmi): void {
    if (this.#state.concerns(vmi)) this.#state.observeVmi(vmi);
  }

  /** Something that it reports, and that is no object, may have changed. */
  lookAgain(): void {
    this.#state.changed();
  }

  /** Ends the guest as a deletion would. Used when the agent stops with its guests. */
  requestStop(): void {
    this.#state.stopWanted = true;
    this.#state.changed();
  }

  /** The guest that a stop waits for, and what is left of its grace period, in ms; undefined when there is none. */
  get stopping(): (ObjectKey & { readonly leftMs: number }) | undefined {
    const { guest, record, graceLeftMs, graceSeconds } = this.#state;
    if (!guest || !record || record.result) return undefined;
    const { namespace, name } = record;
    return { namespace, name, leftMs: graceLeftMs?.() ?? graceSeconds * 1000 };
  }

  /** Ends the guest at once, also one that is on its way to or from another node. */
  async forceStop(): Promise<void> {
    const state = this.#state;
    state.stopWanted = true;
    state.forceWanted = true;
    state.changed();
    // Nothing else is done to a guest while it moves: the migration hears of its end.
    if (state.record?.migration) await endProcess(state.environment, state.record, state.guest);
  }

  /** Saves the memory of the running guest. Throws ApiError 409 with what keeps it from that. */
  saveMemory(guest: Guest, options: SaveOptions): Promise<MemorySaved> {
    return saveMemory(this.#state, guest, { ...options, snapshotVolumes: snapshotsOfSave(this.#state) });
  }

  /** Begins a backup of the guest's volumes, or breaks it off; it goes on behind the caller's back. */
  backUp(guest: Guest, request: BackupRequest): Promise<void> {
    return backUpGuest(this.#state, guest, request);
  }

  /** The next power-off of the guest is the first half of a reboot. */
  expectReboot(): void {
    this.#state.softRebootUntil = this.#state.environment.clock.monotonic() + SOFT_REBOOT_MS;
  }

  /** Lives until the Pod object is gone; rejects only with the end of the agent. */
  async run(): Promise<void> {
    const state = this.#state;
    try {
      let stage: LauncherStage = FIRST_STAGE;
      while (stage.type !== 'gone') stage = nextStage(stage, await carryOut(state, stage));
    } finally {
      state.starting.release();
      state.guest?.close();
    }
  }
}

async function carryOut(
  launcher: LauncherState,
  stage: Exclude<LauncherStage, { readonly type: 'gone' }>,
): Promise<StageOutcome> {
  switch (stage.type) {
    case 'look':
      return lookAround(launcher);
    case 'claim':
      return claimGuest(launcher, stage.attempt);
    case 'orphan':
      return awaitOrphan(launcher, stage.orphan);
    case 'cold-start':
      return coldStart(launcher, stage.attempt);
    case 'receive':
      return receive(launcher, stage.attempt);
    case 'adopt':
      return adoptGuest(launcher, stage.record);
    case 'supervise':
      return ended(await superviseGuest(launcher));
    case 'finish':
      await finishGuest(launcher, stage.result);
      return { type: 'finished' };
  }
}
