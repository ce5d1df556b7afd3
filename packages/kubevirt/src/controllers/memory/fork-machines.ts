/** The machines of one fork: which of them are there, which still wait for the memory, and how they are made and go. */

import type { ObjectKey } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { isAlreadyExists, orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import type { Informer } from '@coracle/client/informer/informer';
import {
  type ReadonlySnapshot,
  type ReadonlyVm,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
} from '../../kinds/kubevirt.ts';
import { FORK_INTO, FORKED_FROM, forkedMachine, parseForkInto } from '../../rules/memory-state/fork.ts';
import { parseResumeFrom, RESUME_FROM } from '../../rules/memory-state/resume-request.ts';
import type { ClaimSnapshots, SavedVolume } from './claim-snapshots.ts';

export interface ForkMachines {
  /** Makes the machine and its claims, where they are not there yet. Throws ApiError. */
  create(
    source: ReadonlyVm,
    fork: { readonly snapshot: ReadonlySnapshot; readonly name: string; readonly volumes: readonly SavedVolume[] },
    signal: AbortSignal,
  ): Promise<void>;
  /** True once the machine needs the state no more: it has gone on from it, or is gone. */
  isDone(snapshot: ReadonlySnapshot, name: string, signal: AbortSignal): Promise<boolean>;
  /** Deletes those that have not gone on from the state: they never ran, and have nothing of their own. */
  abandon(snapshot: ReadonlySnapshot, signal: AbortSignal): Promise<void>;
}

export function createForkMachines(options: {
  readonly client: Client;
  readonly vms: Informer<VirtualMachine>;
  readonly claims: ClaimSnapshots;
}): ForkMachines {
  const { client, vms, claims } = options;
  const fetch = (key: ObjectKey, signal: AbortSignal): Promise<ReadonlyVm | undefined> =>
    orAbsent(client.get(VIRTUAL_MACHINES, key, { signal }));

  const make = async (snapshot: ReadonlySnapshot, wanted: VirtualMachine, signal: AbortSignal): Promise<ReadonlyVm> => {
    const key = { namespace: wanted.metadata.namespace ?? '', name: wanted.metadata.name ?? '' };
    const known = vms.get(key);
    if (known && isOf(snapshot, known)) return known;
    try {
      return await client.create(VIRTUAL_MACHINES, wanted, { signal });
    } catch (error) {
      const there = isAlreadyExists(error) ? await fetch(key, signal) : undefined;
      // Made before, perhaps without its claims; else somebody took the name meanwhile.
      if (!there || !isOf(snapshot, there)) throw error;
      return there;
    }
  };

  return {
    async create(source, { snapshot, name, volumes }, signal) {
      const own = Object.fromEntries(volumes.map((volume) => [volume.name, claimName(name, volume.name)]));
      const wanted = forkedMachine(source, { name, state: snapshot.metadata.uid ?? '', claims: own });
      const made = await make(snapshot, wanted, signal);
      // Theirs, so that they go with it; it waits for them.
      for (const volume of volumes)
        await claims.restore(made as VirtualMachine, volume, claimName(name, volume.name), signal);
    },

    async isDone(snapshot, name, signal) {
      const key = { namespace: snapshot.metadata.namespace ?? '', name };
      // One that was made a moment ago may not be in the cache yet: whether it is gone is asked of the server.
      const vm = vms.get(key) ?? (await fetch(key, signal));
      return !vm || isDeleting(vm) || !isWaiting(snapshot, vm);
    },

    async abandon(snapshot, signal) {
      for (const name of forksOf(snapshot)) {
        const key = { namespace: snapshot.metadata.namespace ?? '', name };
        const vm = await fetch(key, signal);
        if (!vm || isDeleting(vm) || !isWaiting(snapshot, vm)) continue;
        const vmi = await orAbsent(client.get(VIRTUAL_MACHINE_INSTANCES, key, { signal }));
        // It has gone on, and nobody has written that down yet.
        if (vmi?.status?.phase === 'Running') continue;
        const { uid = '', resourceVersion = '' } = vm.metadata;
        await client.delete(VIRTUAL_MACHINES, key, { preconditions: { uid, resourceVersion }, signal });
      }
    },
  };
}

const claimName = (vm: string, volume: string): string => `${vm}-${volume}`;

/** The names that are asked for; none where it is no such request. */
export function forksOf({ metadata }: ReadonlySnapshot): readonly string[] {
  const names = parseForkInto(metadata.annotations?.[FORK_INTO] ?? '');
  return typeof names === 'string' ? [] : names;
}

/** The machine is of this fork, and has not gone on from its state yet. */
export function isWaiting({ metadata }: ReadonlySnapshot, vm: ReadonlyVm): boolean {
  return parseResumeFrom(vm.metadata.annotations?.[RESUME_FROM] ?? '')?.state === metadata.uid;
}

/** The machine is of this fork, also when it has gone on: made of the same source, and not before the request. */
function isOf(snapshot: ReadonlySnapshot, vm: ReadonlyVm): boolean {
  const { annotations, creationTimestamp } = vm.metadata;
  if (annotations?.[RESUME_FROM] !== undefined) return isWaiting(snapshot, vm);
  const isLater = Date.parse(String(creationTimestamp)) >= Date.parse(String(snapshot.metadata.creationTimestamp));
  return annotations?.[FORKED_FROM] === snapshot.spec.source.name && isLater;
}
