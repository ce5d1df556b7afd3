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
  /** UUID > object it stands in > its machine. */
  const stored = new Map<string, Map<string, Machine>>();
  const held = new Map<string, Held[]>();

  const put = (item: StoredObject): void => {
    const { uuids, machine } = identityOf(item);
    for (const uuid of uuids) {
      const known = stored.get(uuid) ?? new Map<string, Machine>();
      stored.set(uuid, known.set(keyOf(item), machine));
      release(held, uuid, machine);
    }
  };
  const drop = (item: StoredObject): void => {
    for (const uuid of identityOf(item).uuids) {
      const known = stored.get(uuid);
      known?.delete(keyOf(item));
      if (known?.size === 0) stored.delete(uuid);
    }
  };
  const watches = [VMS_PREFIX, VMIS_PREFIX].map((prefix) => {
    for (const item of store.list(prefix).items) put(item);
    return store.watch(prefix, store.revision(), (changes) => {
      for (const { type, previous, current } of changes) {
        if (previous) drop(previous);
        if (type !== 'DELETED') put(current);
      }
    });
  });

  return {
    claim({ uuid, machine, holds, exclusive }) {
      const own = machineText(machine);
      const now = clock.monotonic();
      const waiting = (held.get(uuid) ?? []).filter(({ until }) => until > now);
      const others = new Map<string, Machine>();
      for (const each of stored.get(uuid)?.values() ?? []) others.set(machineText(each), each);
      for (const each of waiting) others.set(machineText(each.machine), each.machine);
      // Many may wait for a generated name at once, so those are not one machine.
      if (machine.name !== '') others.delete(own);
      if (holds && !(exclusive && others.size > 0)) waiting.push({ machine, until: now + HELD_MS });
      if (waiting.length > 0) held.set(uuid, waiting);
      else held.delete(uuid);
      sweep(held, now);
      return [...others.values()];
    },
    stop() {
      for (const watch of watches) watch.stop();
    },
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

const keyOf = ({ prefix, namespace, name }: StoredObject): string => `${prefix}/${namespace}/${name}`;

function identityOf(item: StoredObject): { readonly uuids: readonly string[]; readonly machine: Machine } {
  if (item.prefix === VMS_PREFIX) {
    const vm = item.object as unknown as ReadonlyVm;
    return { uuids: vmUuids(vm), machine: machineOfVm(vm) };
  }
  const vmi = item.object as unknown as ReadonlyVmi;
  return { uuids: vmiUuids(vmi), machine: machineOfVmi(vmi) };
}
