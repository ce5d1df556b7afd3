/** The index by which machines of one firmware UUID find each other, over copies of all VirtualMachines and instances. */

import type { ObjectKey } from '@coracle/apimachinery/meta/object';
import { keyOf } from '@coracle/apimachinery/meta/object';
import type { ReadonlyVm, ReadonlyVmi } from '../../kinds/kubevirt.ts';
import {
  effectiveUuid,
  type Machine,
  machineOfVm,
  machineOfVmi,
  machinesWith,
  type SharedUuid,
  sharedBy,
  vmiUuids,
  vmUuids,
} from './shared-uuids.ts';

/** What is needed of an informer. */
interface Indexed<T> {
  addIndex(name: string, compute: (object: T) => readonly string[]): void;
  byIndex(name: string, value: string): readonly T[];
  get(key: ObjectKey): T | undefined;
}

export interface UuidIndex {
  /** UUIDs that a VirtualMachine (with its instance) shares with others. */
  ofVm(vm: ReadonlyVm, instance: ReadonlyVmi | undefined): readonly SharedUuid[];
  /** UUIDs that an instance without a VirtualMachine shares with others; none for one that a VirtualMachine controls. */
  ofVmi(vmi: ReadonlyVmi): readonly SharedUuid[];
  /** Machines for which a change of a VirtualMachine may have changed that. */
  touchedByVm(vm: ReadonlyVm, previous: ReadonlyVm | undefined): readonly Machine[];
  /** Machines for which a change of an instance may have changed that. */
  touchedByVmi(vmi: ReadonlyVmi, previous: ReadonlyVmi | undefined): readonly Machine[];
}

const INDEX = 'firmware-uuid';

/** Adds the index to both copies. */
export function createUuidIndex(vms: Indexed<ReadonlyVm>, vmis: Indexed<ReadonlyVmi>): UuidIndex {
  vms.addIndex(INDEX, vmUuids);
  vmis.addIndex(INDEX, vmiUuids);
  const lookup = {
    vms: (uuid: string) => vms.byIndex(INDEX, uuid),
    vmis: (uuid: string) => vmis.byIndex(INDEX, uuid),
  };
  const touched = (now: readonly string[], before: readonly string[], isGone: boolean): readonly Machine[] => {
    const isSame = !isGone && now.length === before.length && now.every((uuid, i) => uuid === before[i]);
    return isSame ? [] : [...new Set([...now, ...before])].flatMap((uuid) => machinesWith(uuid, lookup));
  };
  return {
    ofVm: (vm, instance) =>
      sharedBy(machineOfVm(vm), [effectiveUuid(vm), ...(instance ? vmiUuids(instance) : [])], lookup),
    ofVmi(vmi) {
      const self = machineOfVmi(vmi);
      return self.kind === 'VirtualMachine' ? [] : sharedBy(self, vmiUuids(vmi), lookup);
    },
    touchedByVm: (vm, previous) =>
      touched(vmUuids(vm), previous ? vmUuids(previous) : [], vms.get(keyOf(vm)) === undefined),
    touchedByVmi: (vmi, previous) =>
      touched(vmiUuids(vmi), previous ? vmiUuids(previous) : [], vmis.get(keyOf(vmi)) === undefined),
  };
}
