/**
 * Which virtual machines are protected from deletion, by upstream's label. Rule: the ValidatingAdmissionPolicy
 * `kubevirt-vm-deletion-protection` of ssp-operator, which matches the value against `true` and `True` alone.
 */
import type { DeepReadonly, ObjectMeta } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';

/** A label of VirtualMachines. */
export const DELETE_PROTECTION_LABEL = 'kubevirt.io/vm-delete-protection';

/** Whether the labels switch protection on: `TRUE`, `1` or an empty value do not. */
export function isDeleteProtected({ metadata }: { readonly metadata: DeepReadonly<ObjectMeta> }): boolean {
  const value = metadata.labels?.[DELETE_PROTECTION_LABEL];
  return value === 'true' || value === 'True';
}

/** Whether the machine keeps what it refers to: protected, and its own deletion has not begun. */
export const guardsItsParts = (machine: { readonly metadata: DeepReadonly<ObjectMeta> }): boolean =>
  isDeleteProtected(machine) && !isDeleting(machine);
