/** Rules about presets: only what they could never hand on is refused (kubevirt vmi-preset-admitter). */
import type { VirtualMachineInstancePreset } from '../../../api/kinds/kubevirt/kubevirt.ts';
import type { DeepReadonly } from '../../../api/meta/object.ts';
import type { Steps } from '../../../api/meta/steps.ts';
import { addAll, type Cause, newJudging, requiredValue } from './causes.ts';
import { judgeDisks } from './validate-devices.ts';
import { validateFirmware } from './validate-firmware.ts';

export function* judgePreset({ spec }: DeepReadonly<VirtualMachineInstancePreset>): Steps<Cause[]> {
  const { domain } = spec;
  if (domain === undefined) return [requiredValue('spec.domain', 'missing domain.')];
  const judging = newJudging();
  yield* judgeDisks(judging, 'spec.domain.devices.disks', domain.devices?.disks);
  addAll(judging.causes, validateFirmware('spec.domain.firmware', domain.firmware));
  return judging.causes;
}
