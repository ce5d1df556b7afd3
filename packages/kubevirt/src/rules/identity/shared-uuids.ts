/**
 * Which machines share a firmware UUID. A machine is a VirtualMachine together with its instance, or an instance of no
 * VirtualMachine that has not ended. It has the UUID its next guest gets and, until a restart, that of its running one.
 */

import { controllerOf } from '@coracle/apimachinery/meta/controller-reference';
import type { ReadonlyVm, ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { decideIdentity } from './decide-identity.ts';
import { canonicalUuid } from './firmware-identity.ts';

/** Condition of a VirtualMachine, or of an instance without one, whose UUID another machine has too; event reason. */
export const DUPLICATE_FIRMWARE_UUID = 'DuplicateFirmwareUUID';
/** Reason of that condition. */
export const FIRMWARE_UUID_IN_USE = 'FirmwareUUIDInUse';

export interface Machine {
  readonly kind: 'VirtualMachine' | 'VirtualMachineInstance';
  readonly namespace: string;
  readonly name: string;
}

/** A UUID in canonical form and those who have it: two or more, in a steady order. */
export interface SharedUuid {
  readonly uuid: string;
  readonly machines: readonly Machine[];
}

/** Finds objects by what `vmUuids` and `vmiUuids` say of them. */
export interface UuidLookup {
  vms(uuid: string): readonly ReadonlyVm[];
  vmis(uuid: string): readonly ReadonlyVmi[];
}

export const machineText = ({ kind, namespace, name }: Machine): string => `${kind} ${namespace}/${name}`;

export const machineOfVm = ({ metadata }: ReadonlyVm): Machine => ({
  kind: 'VirtualMachine',
  namespace: metadata.namespace ?? '',
  name: metadata.name ?? '',
});

/** The machine an instance belongs to: the VirtualMachine that controls it, else itself. */
export function machineOfVmi(vmi: ReadonlyVmi): Machine {
  const { metadata } = vmi;
  const owner = controllerOf(vmi, 'VirtualMachine');
  return {
    kind: owner ? 'VirtualMachine' : 'VirtualMachineInstance',
    namespace: metadata.namespace ?? '',
    name: owner?.name ?? metadata.name ?? '',
  };
}

/** The UUID the next guest of a VirtualMachine gets, in canonical form. */
export function effectiveUuid({ metadata, spec }: ReadonlyVm): string {
  const firmware = spec?.template?.spec?.domain?.firmware;
  const { uuid = '' } = decideIdentity({ type: 'instance-of-vm', firmware, vmName: metadata.name ?? '' });
  return canonicalUuid(uuid);
}

/** Index values of a VirtualMachine. */
export const vmUuids = (vm: ReadonlyVm): readonly string[] => [effectiveUuid(vm)];

const ENDED = new Set(['Succeeded', 'Failed']);

/** Index values of an instance: none once its guest is gone. */
export const vmiUuids = ({ spec, status }: ReadonlyVmi): readonly string[] => {
  const uuid = spec?.domain?.firmware?.uuid;
  return uuid && !ENDED.has(status?.phase ?? '') ? [canonicalUuid(uuid)] : [];
};

/** All machines with a UUID, each once. */
export function machinesWith(uuid: string, lookup: UuidLookup): readonly Machine[] {
  const machines = new Map<string, Machine>();
  for (const vm of lookup.vms(uuid)) add(machines, machineOfVm(vm));
  for (const vmi of lookup.vmis(uuid)) add(machines, machineOfVmi(vmi));
  return [...machines.values()];
}

/** Each of these UUIDs that somebody else than `self` has, with those others. */
export function sharedBy(self: Machine, uuids: readonly string[], lookup: UuidLookup): readonly SharedUuid[] {
  const own = machineText(self);
  return [...new Set(uuids)].flatMap((uuid) => {
    const machines = machinesWith(uuid, lookup).filter((machine) => machineText(machine) !== own);
    return machines.length > 0 ? [{ uuid, machines }] : [];
  });
}

/** Every UUID that two or more machines have. */
export function findSharedUuids(vms: readonly ReadonlyVm[], vmis: readonly ReadonlyVmi[]): readonly SharedUuid[] {
  const found = new Map<string, Map<string, Machine>>();
  const note = (uuids: readonly string[], machine: Machine): void => {
    for (const uuid of uuids) add(found.get(uuid) ?? put(found, uuid), machine);
  };
  for (const vm of vms) note(vmUuids(vm), machineOfVm(vm));
  for (const vmi of vmis) note(vmiUuids(vmi), machineOfVmi(vmi));
  return [...found]
    .filter(([, machines]) => machines.size > 1)
    .map(([uuid, machines]) => ({ uuid, machines: [...machines.values()].sort(byText) }))
    .sort((a, b) => (a.uuid < b.uuid ? -1 : 1));
}

/** Others named in one text; the rest is counted. */
const MOST_NAMED = 5;

/**
 * What a machine's owner sees of it. Others of the same namespace are named; of those elsewhere only the number is
 * said, as he may not know what there is.
 */
export function sharedText({ uuid, machines }: SharedUuid, namespace: string): string {
  const near = machines.filter((machine) => machine.namespace === namespace);
  const named = near.slice(0, MOST_NAMED).map(({ kind, name }) => `${kind} ${name}`);
  const rest = near.length - named.length;
  const far = machines.length - near.length;
  if (rest > 0) named.push(`${rest} more in this namespace`);
  if (far > 0) named.push(`${far} ${far === 1 ? 'machine' : 'machines'} in other namespaces`);
  return `firmware UUID ${uuid} is also that of ${named.join(', ')}`;
}

/** The condition's message: one text for all that is shared; undefined when nothing is. */
export const sharedMessage = (shared: readonly SharedUuid[], namespace: string): string | undefined =>
  shared.length === 0 ? undefined : shared.map((each) => sharedText(each, namespace)).join('; ');

const byText = (a: Machine, b: Machine): number => (machineText(a) < machineText(b) ? -1 : 1);

const add = (machines: Map<string, Machine>, machine: Machine): void =>
  void machines.set(machineText(machine), machine);

function put<T>(map: Map<string, Map<string, T>>, key: string): Map<string, T> {
  const made = new Map<string, T>();
  map.set(key, made);
  return made;
}
