/** Rules about instances: what may be created, and what may change afterwards. */
import type { VirtualMachineInstance } from '../../../api/kinds/kubevirt/kubevirt.ts';
import { cloneJson } from '../../../api/meta/deep-clone.ts';
import { deepEqual } from '../../../api/meta/deep-equal.ts';
import type { DeepReadonly } from '../../../api/meta/object.ts';
import { amountOf } from '../../../domain/machine-defaults/amounts.ts';
import type { AdmissionContext } from './admission-context.ts';
import { type Cause, invalidValue, requiredValue, unsupportedValue } from './causes.ts';
import { validateArchitecture } from './validate-architecture.ts';
import { validateHyperv } from './validate-firmware.ts';
import { validateVirtualMachineInstanceSpec } from './validate-instance-spec.ts';
import { reservedLabels, validateMetadata } from './validate-metadata.ts';
import { validateMemoryGiven } from './validate-resources.ts';
import { validateVolumeUse } from './validate-volumes.ts';

type Vmi = DeepReadonly<VirtualMachineInstance>;

/** Judges a new instance, which has its defaults. */
export function validateNewInstance(vmi: Vmi, context: AdmissionContext): Cause[] {
  const { spec } = cloneJson<VirtualMachineInstance>(vmi);
  if (spec?.domain?.devices === undefined) {
    return [requiredValue('spec.domain.devices', 'spec.domain.devices must be given')];
  }
  return [
    ...validateVirtualMachineInstanceSpec('spec', spec, context.config),
    ...validateVolumeUse('spec', spec),
    ...validateMemoryGiven('spec', spec),
    ...validateMetadata('metadata', vmi.metadata, context),
    ...validateHyperv('spec', spec),
    ...validateArchitecture('spec', spec),
  ];
}

/** Judges a change: the spec belongs to KubeVirt's components, and the hot-plug limits to nobody. */
export function validateInstanceUpdate(vmi: Vmi, old: Vmi, context: AdmissionContext): Cause[] {
  if (!context.trusted) {
    if (!deepEqual(vmi.spec, old.spec)) return [unsupportedValue('', 'update of VMI object is restricted')];
    if (!deepEqual(reservedLabels(vmi.metadata), reservedLabels(old.metadata))) {
      return [
        unsupportedValue(
          '',
          'modification of the following reserved kubevirt.io/ labels on a VMI object is prohibited',
        ),
      ];
    }
    return [];
  }
  const before = old.spec.domain;
  const after = vmi.spec.domain;
  if ((after.cpu?.maxSockets ?? 0) !== (before.cpu?.maxSockets ?? 0))
    return [invalidValue('', 'CPU topology maxSockets changed')];
  const most = amountOf(before.memory?.maxGuest);
  const now = amountOf(after.memory?.maxGuest);
  return most !== undefined && now !== undefined && now.nano !== most.nano
    ? [invalidValue('', 'Memory maxGuest changed')]
    : [];
}
