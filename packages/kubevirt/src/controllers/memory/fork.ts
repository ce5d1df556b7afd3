/** The machines of a fork: made from a snapshot with memory, followed until they run; then the snapshot goes. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { isAlreadyExists, orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { DONE, type ReconcileResult, requeueAfter } from '@coracle/client/controller/controller';
import type { EventRecorder } from '@coracle/client/events/recorder';
import type { Informer } from '@coracle/client/informer/informer';
import type { Clock } from '@coracle/runtime/clock/clock';
import {
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
  type VirtualMachineSnapshot,
} from '../../kinds/kubevirt.ts';
import { FORK_INTO, forkedMachine, forkObstacle, parseForkInto } from '../../rules/memory-state/fork.ts';
import { parseResumeFrom, RESUME_FROM } from '../../rules/memory-state/resume-request.ts';
import type { MemoryOutcome } from '../../rules/memory-state/saved-memory.ts';

import type { ClaimSnapshots, SavedVolume } from './claim-snapshots.ts';

type Snapshot = DeepReadonly<VirtualMachineSnapshot>;

/** Machines that do not run by then are given up: what is saved of the source may be as large as its memory. */
const FORK_MS = 300_000;
/** A machine that cannot be resumed says so on its instance, which is not watched for each of its writes here. */
const LOOK_MS = 2000;

export interface Forker {
  /** Makes what is missing of a fork, and ends it when all is done. */
  make(snapshot: Snapshot, outcome: MemoryOutcome, why: string, signal: AbortSignal): Promise<ReconcileResult>;
}

export function createForker(options: {
  readonly client: Client;
  readonly clock: Clock;
  readonly events: EventRecorder;
  readonly vms: Informer<VirtualMachine>;
  readonly vmis: Informer<VirtualMachineInstance>;
  readonly claims: ClaimSnapshots;
}): Forker {
  const { client, clock, events, vms, vmis, claims } = options;

  /** Nothing is left to do: the state goes with the snapshot. */
  const end = async ({ metadata }: Snapshot, signal: AbortSignal): Promise<ReconcileResult> => {
    const key = { namespace: metadata.namespace ?? '', name: metadata.name ?? '' };
    await client.delete(VIRTUAL_MACHINE_SNAPSHOTS, key, { preconditions: { uid: metadata.uid ?? '' }, signal });
    return DONE;
  };

  /**
   * True once the machine needs the state no more: it has gone on from it, or is gone. One that was made a moment ago may
   * not be in the cache yet: whether it is gone is asked of the server.
   */
  const isDone = async (snapshot: Snapshot, name: string, signal: AbortSignal): Promise<boolean> => {
    const key = { namespace: snapshot.metadata.namespace ?? '', name };
    const vm = vms.get(key) ?? (await orAbsent(client.get(VIRTUAL_MACHINES, key, { signal })));
    return !vm || vm.metadata.deletionTimestamp !== undefined || !waits(snapshot, vm);
  };

  return {
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
        await Promise.all(missing.map((name) => create(vm, { name, state: uid, volumes }, signal)));
        await client.patch(
          VIRTUAL_MACHINE_SNAPSHOTS,
          { namespace, name: snapshot.metadata.name ?? '' },
          { type: 'merge', body: { metadata: { uid, annotations: { [FORK_MADE]: names.join(',') } } } },
        );
        return DONE;
      }
      const done = await Promise.all(names.map((name) => isDone(snapshot, name, signal)));
      if (done.every(Boolean)) return end(snapshot, signal);
      if (clock.now() - Date.parse(String(creationTimestamp)) < FORK_MS) return requeueAfter(LOOK_MS);
      for (const name of names) await giveUp(snapshot, name, signal);
      return end(snapshot, signal);
    },
  };

  async function create(
    vm: DeepReadonly<VirtualMachine>,
    fork: { readonly name: string; readonly state: string; readonly volumes: readonly SavedVolume[] },
    signal: AbortSignal,
  ): Promise<void> {
    try {
      const { name, state, volumes } = fork;
      const own = Object.fromEntries(volumes.map((volume) => [volume.name, claimName(name, volume.name)]));
      const wanted = forkedMachine(vm, { name, state, claims: own });
      let isNew = true;
      const made = await client.create(VIRTUAL_MACHINES, wanted, { signal }).catch(async (error: unknown) => {
        isNew = false;
        const key = { namespace: wanted.metadata.namespace ?? '', name };
        const there = isAlreadyExists(error) ? await client.get(VIRTUAL_MACHINES, key, { signal }) : undefined;
        // Made before a restart of ours, perhaps without its claims; else somebody took the name meanwhile.
        if (!there || parseResumeFrom(there.metadata.annotations?.[RESUME_FROM] ?? '')?.state !== state) throw error;
        return there;
      });
      // Theirs, so that they go with it; it waits for them.
      for (const volume of volumes) await claims.restore(made, volume, claimName(name, volume.name), signal);
      if (isNew) events.event(vm, 'Normal', 'Forked', `Forked into virtual machine ${name}`);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code >= 500) throw error;
      events.event(vm, 'Warning', 'ForkFailed', `${fork.name} cannot be made: ${error.message}`);
    }
  }

  /** A machine that never ran has nothing of its own: it goes. */
  async function giveUp(snapshot: Snapshot, name: string, signal: AbortSignal): Promise<void> {
    const key = { namespace: snapshot.metadata.namespace ?? '', name };
    const vm = vms.get(key);
    if (!vm || !waits(snapshot, vm)) return;
    const problem = vmis.get(key)?.status?.conditions?.find(({ type }) => type === 'Synchronized')?.message;
    events.event(vm, 'Warning', 'ForkFailed', `Not resumed within ${FORK_MS / 1000} s${problem ? `: ${problem}` : ''}`);
    await client.delete(VIRTUAL_MACHINES, key, { preconditions: { uid: vm.metadata.uid ?? '' }, signal });
  }
}

const claimName = (vm: string, volume: string): string => `${vm}-${volume}`;

/** Names of the machines that were made, also those that are gone since. */
const FORK_MADE = 'coracle.dev/fork-made';

/** The machine is of this fork, and has not gone on from its state yet. */
function waits({ metadata }: Snapshot, vm: DeepReadonly<VirtualMachine>): boolean {
  return parseResumeFrom(vm.metadata.annotations?.[RESUME_FROM] ?? '')?.state === metadata.uid;
}
