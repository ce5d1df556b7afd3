/** What the steps of the VM controller read off a VirtualMachine and its instance. */

import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyVmi } from '../../kinds/kubevirt.ts';
import type { InstanceView } from '../../rules/run-strategy/run-strategy.ts';

/** Finalizer on the VM, and on its instance until the VM controller has seen it end. */
export const VM_FINALIZER = 'kubevirt.io/virtualMachineControllerFinalize';
/** Annotation on the instance: generation of the VM it is known to match. */
export const VM_GENERATION = 'kubevirt.io/vm-generation';

/** Annotations of the first touch: the versions under which the object was seen and is stored. */
export const OBSERVED_API_VERSIONS: Readonly<Record<string, string>> = {
  'kubevirt.io/latest-observed-api-version': 'v1',
  'kubevirt.io/storage-observed-api-version': 'v1',
};

/** Generation of the VM that an instance was made from, or is known to match; undefined when nobody has said. */
export function generationOf(instance: ReadonlyVmi | undefined): number | undefined {
  const text = instance?.metadata.annotations?.[VM_GENERATION] ?? '';
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** The phase; an instance nobody has touched yet counts as ''. */
export const phaseOf = (vmi: ReadonlyVmi): string => vmi.status?.phase ?? '';

/** The instance as the run-strategy rules see it. */
export const viewOf = (vmi: ReadonlyVmi): InstanceView => ({
  uid: vmi.metadata.uid ?? '',
  phase: phaseOf(vmi),
  deleting: isDeleting(vmi),
});

/** True when the guest reached Running at least once. */
export const everRan = (vmi: ReadonlyVmi): boolean =>
  phaseOf(vmi) === 'Running' ||
  (vmi.status?.phaseTransitionTimestamps ?? []).some((entry) => entry.phase === 'Running');
