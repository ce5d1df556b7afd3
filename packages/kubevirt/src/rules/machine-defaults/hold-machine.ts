/**
 * How a VirtualMachine is held for its controller. virt-api writes it at the creation, so that there is no moment at
 * which a deletion leaves the instance behind; the controller writes it where nothing admitted the object.
 */

import type { VirtualMachine } from '../../kinds/kubevirt.ts';

/** Finalizer on the VM, and on its instance until the VM controller has seen it end. */
export const VM_FINALIZER = 'kubevirt.io/virtualMachineControllerFinalize';

/** Annotations of the first touch: the versions under which the object was seen and is stored. */
export const OBSERVED_API_VERSIONS: Readonly<Record<string, string>> = {
  'kubevirt.io/latest-observed-api-version': 'v1',
  'kubevirt.io/storage-observed-api-version': 'v1',
};

/** Puts in what is missing of both. */
export function holdMachine({ metadata }: Pick<VirtualMachine, 'metadata'>): void {
  if (!metadata.finalizers?.includes(VM_FINALIZER))
    metadata.finalizers = [...(metadata.finalizers ?? []), VM_FINALIZER];
  metadata.annotations = { ...metadata.annotations, ...OBSERVED_API_VERSIONS };
}
