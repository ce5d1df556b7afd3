/** A machine keeps the layout of PCI devices that its instance was given (kubevirt docs/pci-topology). */
import type { ReadonlyVmi, VirtualMachine } from '../../kinds/kubevirt.ts';

const VERSION = 'kubevirt.io/pci-topology-version';
/** Written by KubeVirt 1.6 to 1.8 beside version v2. */
const SLOT_COUNT = 'kubevirt.io/pci-interface-slot-count';

/** True for the annotations of the layout. */
export const isPciTopology = (annotation: string): boolean => annotation === VERSION || annotation === SLOT_COUNT;

/**
 * Copies the layout's annotations from the instance into a template that says nothing of it: one that is older than
 * the annotation, or that was replaced by a file without it. Changes `vm`.
 */
export function keepPciTopology(vm: VirtualMachine, instance: ReadonlyVmi): void {
  const { template } = vm.spec;
  const given = instance.metadata.annotations;
  if (template === undefined || !given?.[VERSION] || template.metadata?.annotations?.[VERSION] !== undefined) return;
  template.metadata ??= {};
  template.metadata.annotations = {
    ...template.metadata.annotations,
    [VERSION]: given[VERSION],
    ...(given[SLOT_COUNT] !== undefined && { [SLOT_COUNT]: given[SLOT_COUNT] }),
  };
}
