/** Rules about presets: only what they could never hand on is refused (kubevirt vmi-preset-admitter). */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { VirtualMachineInstancePreset } from '../../../kinds/kubevirt.ts';
import { addAll, type Cause, requiredValue } from './causes.ts';
import { validateDisks } from './validate-devices.ts';
import { validateFirmware } from './validate-firmware.ts';

export function validatePreset({ spec }: DeepReadonly<VirtualMachineInstancePreset>): Cause[] {
  const { domain } = spec;
  if (domain === undefined) return [requiredValue('spec.domain', 'missing domain.')];
  const causes: Cause[] = [];
  validateDisks(causes, 'spec.domain.devices.disks', domain.devices?.disks);
  addAll(causes, validateFirmware('spec.domain.firmware', domain.firmware));
  return causes;
}
