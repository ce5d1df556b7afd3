/**
 * The machines of a fork: made while the memory of their source is being saved, followed until they run; then the snapshot
 * goes. A machine that is there before the memory waits for it (`node-agent/agent/memory`).
 */

import { conditionOf } from '@coracle/apimachinery/meta/object-state';
import { ApiError } from '@coracle/apimachinery/meta/status';
import type { Client } from '@coracle/client/client';
import { type ReconcileResult, requeueAfter } from '@coracle/client/controller/controller';
import type { EventRecorder } from '@coracle/client/events/recorder';
import type { Informer } from '@coracle/client/informer/informer';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import {
  type ReadonlySnapshot,
  type ReadonlyVm,
  VIRTUAL_MACHINE_SNAPSHOTS,
  type VirtualMachine,
  type VirtualMachineInstance,
} from '../../kinds/kubevirt.ts';
import { FORK_INTO, forkObstacle, parseForkInto } from '../../rules/memory-state/fork.ts';
import type { MemoryOutcome } from '../../rules/memory-state/saved-memory.ts';
import type { ClaimSnapshots, SavedVolume } from './claim-snapshots.ts';
import { createForkMachines, forksOf, isWaiting } from './fork-machines.ts';

/** Machines that do not run by then are given up: what is saved of the source may be as large as its memory. */
const FORK_MS = 300_000;
/** A machine that cannot be resumed says so on its instance, which is not watched for each of its writes here. */
const LOOK_MS = 2000;

export interface Forker {
  /** Makes the machines while their memory is being saved, where nothing else of them has to be saved. Never rejects. */
  begin(snapshot: ReadonlySnapshot, vm: ReadonlyVm, signal: AbortSignal): Promise<void>;
  /** It is known how saving came out: makes what is missing of a fork, and ends it when all is done. */
  make(snapshot: ReadonlySnapshot, outcome: MemoryOutcome, why: string, signal: AbortSignal): Promise<ReconcileResult>;
  /** The state is about to go: so do the machines that still wait for it. */
  abandon(snapshot: ReadonlySnapshot, signal: AbortSignal): Promise<void>;
}

export function createForker(options: {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: EventRecorder;
  readonly vms: Informer<VirtualMachine>;
  readonly vmis: Informer<VirtualMachineInstance>;
  readonly claims: ClaimSnapshots;
}): Forker {
  const { client, clock, log, events, vms, vmis, claims } = options;
  const machines = createForkMachines({ client, vms, claims });

  /** Nothing is left to do: the state goes with the snapshot, and with it who waits for it in vain. */
  const end = async ({ metadata }: ReadonlySnapshot, signal: AbortSignal): Promise<ReconcileResult> => {
    const key = { namespace: metadata.namespace ?? '', name: metadata.name ?? '' };
    await client.delete(VIRTUAL_MACHINE_SNAPSHOTS, key, { preconditions: { uid: metadata.uid ?? '' }, signal });
  };

  /** False, with an event that says why, where the machine cannot be made. */
  const tryCreate = async (
    vm: ReadonlyVm,
    fork: { readonly snapshot: ReadonlySnapshot; readonly name: string; readonly volumes: readonly SavedVolume[] },
    signal: AbortSignal,
  ): Promise<boolean> => {
    try {
      await machines.create(vm, fork, signal);
      return true;
    } catch (error) {
      if (!(error instanceof ApiError) || error.code >= 500) throw error;
      events.event(vm, 'Warning', 'ForkFailed', `${fork.name} cannot be made: ${error.message}`);
      return false;
    }
  };

  const reportGivenUp = (snapshot: ReadonlySnapshot, name: string): void => {
    const key = { namespace: snapshot.metadata.namespace ?? '', name };
    const vm = vms.get(key);
    if (!vm || !isWaiting(snapshot, vm)) return;
    const problem = conditionOf(vmis.get(key), 'Synchronized')?.message;
    events.event(vm, 'Warning', 'ForkFailed', `Not resumed within ${FORK_MS / 1000} s${problem ? `: ${problem}` : ''}`);
  };

  return {
    abandon: (snapshot, signal) => machines.abandon(snapshot, signal),

    async begin(snapshot, vm, signal) {
      if (forkObstacle(vm) !== undefined) return;
      const each = forksOf(snapshot).map((name) => machines.create(vm, { snapshot, name, volumes: [] }, signal));
      // What keeps a machine from being made is found again, and said, when the memory is there.
      for (const made of await Promise.allSettled(each))
        if (made.status === 'rejected') log.debug('fork not made yet', { error: (made.reason as Error).message });
    },

    async make(snapshot, outcome, why, signal) {
      const { namespace = '', uid = '', annotations, creationTimestamp } = snapshot.metadata;
      const sourceKey = { namespace, name: snapshot.spec.source.name };
      const vm = vms.get(sourceKey);
      const names = parseForkInto(annotations?.[FORK_INTO] ?? '');
      const obstacle = outcome === 'NotSaved' ? why : vm ? forkObstacle(vm) : `${sourceKey.name} is gone`;
      if (typeof names === 'string' || obstacle !== undefined || !vm) {
        const message = `VirtualMachine ${sourceKey.name} is not forked: ${obstacle ?? (names as string)}`;
        if (vm) events.event(vm, 'Warning', 'ForkFailed', message);
        return end(snapshot, signal);
      }
      const made = new Set((annotations?.[FORK_MADE] ?? '').split(',').filter((name) => name !== ''));
      const missing = names.filter((name) => !made.has(name));
      if (missing.length > 0) {
        const volumes = claims.volumesOf(snapshot, vm);
        if (volumes === 'waiting') return requeueAfter(LOOK_MS);
        const forks = await Promise.all(missing.map((name) => tryCreate(vm, { snapshot, name, volumes }, signal)));
        await client.patch(
          VIRTUAL_MACHINE_SNAPSHOTS,
          { namespace, name: snapshot.metadata.name ?? '' },
          { type: 'merge', body: { metadata: { uid, annotations: { [FORK_MADE]: names.join(',') } } } },
        );
        for (const [at, isMade] of forks.entries())
          if (isMade) events.event(vm, 'Normal', 'Forked', `Forked into virtual machine ${missing[at] ?? ''}`);
        return;
      }
      const done = await Promise.all(names.map((name) => machines.isDone(snapshot, name, signal)));
      if (done.every((is) => is)) return end(snapshot, signal);
      if (clock.now() - Date.parse(String(creationTimestamp)) < FORK_MS) return requeueAfter(LOOK_MS);
      for (const name of names) reportGivenUp(snapshot, name);
      return end(snapshot, signal);
    },
  };
}

/** Names of the machines that were made, also those that are gone since. */
const FORK_MADE = 'coracle.dev/fork-made';
