/** All rules about an instance's spec, which are also those about a virtual machine's template. */

import type { VirtualMachineInstanceSpec } from '../../../kinds/kubevirt.ts';
import type { ClusterConfig } from '../../../rules/machine-defaults/cluster-config.ts';
import type { Findings } from './causes.ts';
import { validateClaimedDevices, validateClaimedNetworks } from './validate-claimed-devices.ts';
import { validateDevices } from './validate-devices.ts';
import { validateMachine } from './validate-firmware.ts';
import { validateNetworks } from './validate-networks.ts';
import { validatePodSettings } from './validate-pod.ts';
import { validateResources } from './validate-resources.ts';
import { validateVolumes } from './validate-volumes.ts';

/** Validates a spec that has its defaults; `found` is where it stands: `spec`, or `spec.template.spec`. */
export function validateInstanceSpec(
  found: Findings,
  spec: Readonly<VirtualMachineInstanceSpec>,
  config: ClusterConfig,
): void {
  validatePodSettings(found, spec);
  validateResources(found, spec, config);
  validateMachine(found, spec, config);
  validateNetworks(found, spec, config);
  validateClaimedNetworks(found, spec, config);
  validateDevices(found, spec, config);
  validateClaimedDevices(found, spec, config);
  validateVolumes(found, spec, config);
}
