/** All rules about an instance's spec, which are also those about a virtual machine's template. */
import type { VirtualMachineInstanceSpec } from '../../../api/kinds/kubevirt/kubevirt.ts';
import type { Steps } from '../../../api/meta/steps.ts';
import type { ClusterConfig } from '../../../domain/machine-defaults/cluster-config.ts';
import { addAll, type Cause, newJudging } from './causes.ts';
import { judgeClaimedNetworks, validateClaimedDevices } from './validate-claimed-devices.ts';
import { judgeDevices } from './validate-devices.ts';
import { validateMachine } from './validate-firmware.ts';
import { judgeNetworks } from './validate-networks.ts';
import { judgePodSettings } from './validate-pod.ts';
import { judgeResources } from './validate-resources.ts';
import { judgeVolumes } from './validate-volumes.ts';

/** Judges a spec that has its defaults; `path` is where it stands: `spec`, or `spec.template.spec`. */
export function* judgeInstanceSpec(
  path: string,
  spec: Readonly<VirtualMachineInstanceSpec>,
  config: ClusterConfig,
): Steps<Cause[]> {
  const judging = newJudging();
  yield* judgePodSettings(judging, path, spec);
  yield* judgeResources(judging, { path, spec, config });
  addAll(judging.causes, validateMachine(path, spec, config));
  yield* judgeNetworks(judging, { path, spec, config });
  yield* judgeClaimedNetworks(judging, { path, spec, config });
  yield* judgeDevices(judging, { path, spec, config });
  addAll(judging.causes, validateClaimedDevices({ path, spec, config }));
  yield* judgeVolumes(judging, { path, spec, config });
  return judging.causes;
}
