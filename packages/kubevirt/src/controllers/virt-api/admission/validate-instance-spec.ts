/** All rules about an instance's spec, which are also those about a virtual machine's template. */

import type { VirtualMachineInstanceSpec } from '../../../kinds/kubevirt.ts';
import type { ClusterConfig } from '../../../rules/machine-defaults/cluster-config.ts';
import { addAll, type Cause } from './causes.ts';
import { validateClaimedDevices, validateClaimedNetworks } from './validate-claimed-devices.ts';
import { validateDevices } from './validate-devices.ts';
import { validateMachine } from './validate-firmware.ts';
import { validateNetworks } from './validate-networks.ts';
import { validatePodSettings } from './validate-pod.ts';
import { validateResources } from './validate-resources.ts';
import { validateVolumes } from './validate-volumes.ts';

/** Validates a spec that has its defaults; `path` is where it stands: `spec`, or `spec.template.spec`. */
export function validateInstanceSpec(
  path: string,
  spec: Readonly<VirtualMachineInstanceSpec>,
  config: ClusterConfig,
): Cause[] {
  const causes: Cause[] = [];
  validatePodSettings(causes, path, spec);
  validateResources(causes, { path, spec, config });
  addAll(causes, validateMachine(path, spec, config));
  validateNetworks(causes, { path, spec, config });
  validateClaimedNetworks(causes, { path, spec, config });
  validateDevices(causes, { path, spec, config });
  addAll(causes, validateClaimedDevices({ path, spec, config }));
  validateVolumes(causes, { path, spec, config });
  return causes;
}
