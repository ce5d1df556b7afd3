/** A firmware UUID that is in use already: warned of, or refused where the cluster says so. */

import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyVm, ReadonlyVmi, VirtualMachine, VirtualMachineInstance } from '../../../kinds/kubevirt.ts';
import {
  effectiveUuid,
  type Machine,
  machineOfVm,
  machineOfVmi,
  sharedText,
  vmiUuids,
} from '../../../rules/identity/shared-uuids.ts';
import { type Cause, duplicateValue } from './causes.ts';
import type { Subject } from './webhook.ts';

/**
 * Validates the UUID that a new virtual machine brings, or an update changes it to. Whoever has a UUID already keeps it,
 * shared or not.
 */
export function validateMachineUuid(subject: Subject<VirtualMachine>): Cause[] {
  const { object, old, namespace, context } = subject;
  if (isDeleting(object) || object.spec?.template === undefined) return [];
  const vm = { ...object, metadata: { ...object.metadata, namespace } } as ReadonlyVm;
  const uuid = effectiveUuid(vm);
  // What its guest has always seen is written down by a component: that is no new one.
  const isBackfill = context.trusted && old !== undefined && !old.spec?.template?.spec?.domain?.firmware?.uuid;
  if (isBackfill || (old !== undefined && effectiveUuid(old) === uuid)) return [];
  return validateUuid(subject, { uuid, machine: machineOfVm(vm), field: 'spec.template.spec.domain.firmware.uuid' });
}

/** Validates the UUID of a new instance without a virtual machine: with one it has been validated before. */
export function validateInstanceUuid(subject: Subject<VirtualMachineInstance>): Cause[] {
  const { object, namespace } = subject;
  const vmi = { ...object, metadata: { ...object.metadata, namespace } } as ReadonlyVmi;
  const machine = machineOfVmi(vmi);
  const [uuid] = vmiUuids(vmi);
  if (machine.kind === 'VirtualMachine' || uuid === undefined) return [];
  return validateUuid(subject, { uuid, machine, field: 'spec.domain.firmware.uuid' });
}

function validateUuid(
  {
    context,
    claimUuid,
    dryRun,
    namespace,
    warn,
  }: Pick<Subject, 'context' | 'claimUuid' | 'dryRun' | 'namespace' | 'warn'>,
  { uuid, machine, field }: { readonly uuid: string; readonly machine: Machine; readonly field: string },
): Cause[] {
  const exclusive = context.config.duplicateUuids === 'Refuse';
  const machines = claimUuid({ uuid, machine, holds: !dryRun, exclusive });
  if (machines.length === 0) return [];
  const text = sharedText({ uuid, machines }, namespace);
  if (exclusive) return [duplicateValue(field, text)];
  warn(`${field}: ${text}: two machines that run with one UUID are one to licence servers and inventories`);
  return [];
}
