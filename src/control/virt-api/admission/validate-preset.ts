/** Rules about presets: only what they could never hand on is refused (kubevirt vmi-preset-admitter). */
import type { VirtualMachineInstancePreset } from '../../../api/kinds/kubevirt/kubevirt.ts';
import type { DeepReadonly } from '../../../api/meta/object.ts';
import { type Cause, requiredValue } from './causes.ts';
import { validateDisks } from './validate-devices.ts';
import { validateFirmware } from './validate-firmware.ts';

export function validatePreset({ spec }: DeepReadonly<VirtualMachineInstancePreset>): Cause[] {
  const { domain } = spec;
  if (domain === undefined) return [requiredValue('spec.domain', 'missing domain.')];
  return [
    ...validateDisks('spec.domain.devices.disks', domain.devices?.disks),
    ...validateFirmware('spec.domain.firmware', domain.firmware),
  ];
}
