/** All rules about an instance's spec, which are also those about a virtual machine's template. */
import type { VirtualMachineInstanceSpec } from '../../../api/kinds/kubevirt/kubevirt.ts';
import type { ClusterConfig } from '../../../domain/machine-defaults/cluster-config.ts';
import type { Cause } from './causes.ts';
import { validateDevices } from './validate-devices.ts';
import { validateMachine } from './validate-firmware.ts';
import { validateNetworks } from './validate-networks.ts';
import { validatePodSettings } from './validate-pod.ts';
import { validateResources } from './validate-resources.ts';
import { validateVolumes } from './validate-volumes.ts';

/** Judges a spec that has its defaults; `path` is where it stands: `spec`, or `spec.template.spec`. */
export function validateVirtualMachineInstanceSpec(
  path: string,
  spec: Readonly<VirtualMachineInstanceSpec>,
  config: ClusterConfig,
): Cause[] {
  return [
    ...validatePodSettings(path, spec),
    ...validateResources(path, spec, config),
    ...validateMachine(path, spec, config),
    ...validateNetworks(path, spec, config),
    ...validateDevices(path, spec, config),
    ...validateVolumes(path, spec, config),
  ];
}
