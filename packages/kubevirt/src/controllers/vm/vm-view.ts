/** What the steps of the VM controller read off a VirtualMachine and its instance. */

import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyVmi } from '../../kinds/kubevirt.ts';
import type { InstanceView } from '../../rules/run-strategy/run-strategy.ts';

/** Annotation on the instance: generation of the VM it is known to match. */
export const VM_GENERATION = 'kubevirt.io/vm-generation';

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
