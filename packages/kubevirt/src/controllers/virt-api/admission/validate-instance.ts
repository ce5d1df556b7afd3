/** Rules about instances: what may be created, and what may change afterwards. */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { readQuantity } from '@coracle/apimachinery/quantity/quantity';
import type { ReadonlyVmi, VirtualMachineInstance } from '../../../kinds/kubevirt.ts';
import { DUMP_CLAIM_ANNOTATION } from '../../../rules/memory-dump/memory-dump.ts';
import type { AdmissionContext } from './admission-context.ts';
import { type Cause, Findings, invalidValue, requiredValue, unsupportedValue } from './causes.ts';
import { validateArchitecture } from './validate-architecture.ts';
import { validateHyperv } from './validate-firmware.ts';
import { validateInstanceSpec } from './validate-instance-spec.ts';
import { reservedLabels, validateMetadata } from './validate-metadata.ts';
import { validateMemoryGiven } from './validate-resources.ts';
import { validateVolumeUse } from './validate-volumes.ts';

/** Validates a new instance, which has its defaults. */
export function validateNewInstance(vmi: ReadonlyVmi, context: AdmissionContext): readonly Cause[] {
  const { spec } = vmi as VirtualMachineInstance;
  if (spec?.domain?.devices === undefined)
    return [requiredValue('spec.domain.devices', 'spec.domain.devices must be given')];
  const found = new Findings('spec');
  validateInstanceSpec(found, spec, context.config);
  validateVolumeUse(found, spec);
  validateMemoryGiven(found, spec);
  validateMetadata(new Findings('metadata', found.causes), vmi.metadata, context);
  validateHyperv(found, spec);
  validateArchitecture(found, spec);
  return found.causes;
}

const RESERVED_CHANGED = 'modification of the following reserved kubevirt.io/ labels on a VMI object is prohibited';

/** Validates a change: the spec belongs to KubeVirt's components, and the hot-plug limits to nobody. */
export function validateInstanceUpdate(vmi: ReadonlyVmi, old: ReadonlyVmi, context: AdmissionContext): Cause[] {
  if (!context.trusted) {
    if (!deepEqual(vmi.spec, old.spec)) return [unsupportedValue('', 'update of VMI object is restricted')];
    if (!deepEqual(reservedLabels(vmi.metadata), reservedLabels(old.metadata)))
      return [unsupportedValue('', RESERVED_CHANGED)];
    if (vmi.metadata.annotations?.[DUMP_CLAIM_ANNOTATION] !== old.metadata.annotations?.[DUMP_CLAIM_ANNOTATION])
      return [unsupportedValue('metadata.annotations', `${DUMP_CLAIM_ANNOTATION} is written only by the controller`)];
    return [];
  }
  const before = old.spec.domain;
  const after = vmi.spec.domain;
  if ((after.cpu?.maxSockets ?? 0) !== (before.cpu?.maxSockets ?? 0))
    return [invalidValue('', 'CPU topology maxSockets changed')];
  const most = readQuantity(before.memory?.maxGuest);
  const now = readQuantity(after.memory?.maxGuest);
  return most !== undefined && now !== undefined && now.nano !== most.nano
    ? [invalidValue('', 'Memory maxGuest changed')]
    : [];
}
