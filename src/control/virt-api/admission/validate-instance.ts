/** Rules about instances: what may be created, and what may change afterwards. */
import type { VirtualMachineInstance } from '../../../api/kinds/kubevirt/kubevirt.ts';
import { cloneJson } from '../../../api/meta/deep-clone.ts';
import { deepEqual } from '../../../api/meta/deep-equal.ts';
import type { DeepReadonly } from '../../../api/meta/object.ts';
import { amountOf } from '../../../domain/machine-defaults/amounts.ts';
import type { AdmissionContext } from './admission-context.ts';
import { type Cause, requiredValue, unsupportedValue } from './causes.ts';
import { validateHyperv } from './validate-firmware.ts';
import { validateVirtualMachineInstanceSpec } from './validate-instance-spec.ts';
import { reservedLabels, validateMetadata } from './validate-metadata.ts';
import { validateArchitecture } from './validate-pod.ts';
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
  const causes: Cause[] = [];
  const before = old.spec.domain;
  const after = vmi.spec.domain;
  if (before.cpu?.maxSockets && after.cpu?.maxSockets !== before.cpu.maxSockets) {
    causes.push(unsupportedValue('spec.domain.cpu.maxSockets', 'CPU topology maxSockets changed'));
  }
  const most = amountOf(before.memory?.maxGuest);
  if (most !== undefined && amountOf(after.memory?.maxGuest)?.nano !== most.nano) {
    causes.push(unsupportedValue('spec.domain.memory.maxGuest', 'Memory maxGuest changed'));
  }
  return causes;
}
