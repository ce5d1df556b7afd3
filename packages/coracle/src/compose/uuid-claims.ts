/**
 * Which machines of this server have a firmware UUID, for its admission: an index over what is stored, kept by a watch,
 * and beside it the UUIDs of writes that are under way. Asking and holding are one synchronous step, so of two writes of
 * one UUID at once the second always knows of the first.
 *
 * Bounds: one entry for each machine that is stored (docs/flow.md); what is held goes when it is stored, or after
 * `HELD_MS`, as a write that failed tells nobody.
 */

import type { ObjectStore, StoredObject } from '@coracle/apiserver/cache/object-store';
import type { ClaimUuid } from '@coracle/kubevirt/controllers/virt-api/virt-api';
import type { ReadonlyVm, ReadonlyVmi } from '@coracle/kubevirt/kinds/kubevirt';
import {
  type Machine,
  machineOfVm,
  machineOfVmi,
  machineText,
  vmiUuids,
  vmUuids,
} from '@coracle/kubevirt/rules/identity/shared-uuids';
import type { Clock } from '@coracle/runtime/clock/clock';
import { type Entries, indexStored } from './stored-index.ts';

const VMS_PREFIX = 'kubevirt.io/virtualmachines';
const VMIS_PREFIX = 'kubevirt.io/virtualmachineinstances';
/** As long as a request may take. */
const HELD_MS = 60_000;

interface Held {
  readonly machine: Machine;
  readonly until: number;
}

export interface UuidClaims {
  readonly claim: ClaimUuid;
  stop(): void;
}

/** Begins to keep the index. */
export function createUuidClaims(store: Pick<ObjectStore, 'list' | 'watch' | 'revision'>, clock: Clock): UuidClaims {
  const held = new Map<string, Held[]>();
  const stored = indexStored(store, [VMS_PREFIX, VMIS_PREFIX], identityOf, ({ keys, value }) => {
    for (const uuid of keys) release(held, uuid, value);
  });

  return {
    claim({ uuid, machine, holds, exclusive }) {
      const own = machineText(machine);
      const now = clock.monotonic();
      const waiting = (held.get(uuid) ?? []).filter(({ until }) => until > now);
      const others = new Map<string, Machine>();
      for (const each of stored.get(uuid)) others.set(machineText(each), each);
      for (const each of waiting) others.set(machineText(each.machine), each.machine);
      // Many may wait for a generated name at once, so those are not one machine.
      if (machine.name !== '') others.delete(own);
      if (holds && !(exclusive && others.size > 0)) waiting.push({ machine, until: now + HELD_MS });
      if (waiting.length > 0) held.set(uuid, waiting);
      else held.delete(uuid);
      sweep(held, now);
      return [...others.values()];
    },
    stop: stored.stop,
  };
}

/** What was held for a machine is stored now. */
function release(held: Map<string, Held[]>, uuid: string, machine: Machine): void {
  const waiting = held.get(uuid);
  if (!waiting) return;
  const text = machineText(machine);
  // One that waited for a generated name has it now.
  const at = waiting.findIndex(
    (each) => machineText(each.machine) === text || (each.machine.name === '' && isNear(each.machine, machine)),
  );
  if (at >= 0) waiting.splice(at, 1);
  if (waiting.length === 0) held.delete(uuid);
}

const isNear = (a: Machine, b: Machine): boolean => a.kind === b.kind && a.namespace === b.namespace;

/** Insertion order is that of time: what is over lies in front. */
function sweep(held: Map<string, Held[]>, now: number): void {
  for (const [uuid, waiting] of held) {
    if (waiting.some(({ until }) => until > now)) return;
    held.delete(uuid);
  }
}

function identityOf(item: StoredObject): Entries<Machine> {
  if (item.prefix === VMS_PREFIX) {
    const vm = item.object as unknown as ReadonlyVm;
    return { keys: vmUuids(vm), value: machineOfVm(vm) };
  }
  const vmi = item.object as unknown as ReadonlyVmi;
  return { keys: vmiUuids(vmi), value: machineOfVmi(vmi) };
}
