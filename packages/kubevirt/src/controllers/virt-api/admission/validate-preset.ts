/** Rules about presets: only what they could never hand on is refused (kubevirt vmi-preset-admitter). */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { VirtualMachineInstancePreset } from '../../../kinds/kubevirt.ts';
import { type Cause, Findings, requiredValue } from './causes.ts';
import { validateDisks } from './validate-devices.ts';
import { validateFirmware } from './validate-firmware.ts';

export function validatePreset({ spec }: DeepReadonly<VirtualMachineInstancePreset>): readonly Cause[] {
  const { domain } = spec;
  if (domain === undefined) return [requiredValue('spec.domain', 'missing domain.')];
  const found = new Findings('spec.domain');
  validateDisks(found.at('.devices.disks'), domain.devices?.disks);
  validateFirmware(found.at('.firmware'), domain.firmware);
  return found.causes;
}
