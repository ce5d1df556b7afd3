/** All rules about an instance's spec, which are also those about a virtual machine's template. */

import type { Steps } from '@coracle/apimachinery/meta/steps';
import type { VirtualMachineInstanceSpec } from '../../../kinds/kubevirt.ts';
import type { ClusterConfig } from '../../../rules/machine-defaults/cluster-config.ts';
import { addAll, type Cause, newFindings } from './causes.ts';
import { validateClaimedDevices, validateClaimedNetworks } from './validate-claimed-devices.ts';
import { validateDevices } from './validate-devices.ts';
import { validateMachine } from './validate-firmware.ts';
import { validateNetworks } from './validate-networks.ts';
import { validatePodSettings } from './validate-pod.ts';
import { validateResources } from './validate-resources.ts';
import { validateVolumes } from './validate-volumes.ts';

/** Validates a spec that has its defaults; `path` is where it stands: `spec`, or `spec.template.spec`. */
export function* validateInstanceSpec(
  path: string,
  spec: Readonly<VirtualMachineInstanceSpec>,
  config: ClusterConfig,
): Steps<Cause[]> {
  const findings = newFindings();
  yield* validatePodSettings(findings, path, spec);
  yield* validateResources(findings, { path, spec, config });
  addAll(findings.causes, validateMachine(path, spec, config));
  yield* validateNetworks(findings, { path, spec, config });
  yield* validateClaimedNetworks(findings, { path, spec, config });
  yield* validateDevices(findings, { path, spec, config });
  addAll(findings.causes, validateClaimedDevices({ path, spec, config }));
  yield* validateVolumes(findings, { path, spec, config });
  return findings.causes;
}
