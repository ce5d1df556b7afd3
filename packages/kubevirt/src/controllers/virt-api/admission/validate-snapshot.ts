/** Rules about snapshots of virtual machines and their contents (kubevirt pkg/storage/admitters/vmsnapshot). */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { parseGoDuration } from '@coracle/apimachinery/meta/go-duration';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { ReadonlyContent, ReadonlySnapshot, VirtualMachineSnapshot } from '../../../kinds/kubevirt.ts';
import { KUBEVIRT_GROUP } from '../../../kinds/kubevirt.ts';
import type { AdmissionContext } from './admission-context.ts';
import { type Cause, invalidValue, missingValue, WebhookRefusal } from './causes.ts';

/** Upstream's words, with its slip. */
export const SPEC_IMMUTABLE = 'spec in immutable after creation';

/** What a snapshot is taken of, or a restore goes to: a virtual machine. `path` is where it stands. */
export function validateMachineReference(
  path: string,
  { apiGroup, kind }: DeepReadonly<VirtualMachineSnapshot['spec']['source']>,
): Cause[] {
  if (apiGroup === undefined || apiGroup === null) return [missingValue(`${path}.apiGroup`, 'missing apiGroup')];
  if (apiGroup !== KUBEVIRT_GROUP) return [invalidValue(`${path}.apiGroup`, 'invalid apiGroup')];
  return kind === 'VirtualMachine' ? [] : [invalidValue(`${path}.kind`, 'invalid kind')];
}

/**
 * Validates a snapshot. Whether its source exists is not asked: the snapshot waits for it.
 * @throws WebhookRefusal 400 while the feature gate is off, and for a deadline that is no duration
 */
export function validateSnapshot(
  { spec }: ReadonlySnapshot,
  old: ReadonlySnapshot | undefined,
  { config }: AdmissionContext,
): Cause[] {
  if (old !== undefined) return validateUnchanged(spec, old.spec);
  if (!config.isEnabled('Snapshot')) throw new WebhookRefusal(400, 'snapshot feature gate not enabled');
  const { failureDeadline } = spec;
  if (failureDeadline !== undefined && parseGoDuration(failureDeadline) === undefined)
    throw new WebhookRefusal(400, `time: invalid duration ${JSON.stringify(failureDeadline)}`);
  return validateMachineReference('spec.source', spec.source);
}

/** What a snapshot holds never changes. */
export const validateSnapshotContent = ({ spec }: ReadonlyContent, old: ReadonlyContent): Cause[] =>
  validateUnchanged(spec, old.spec);

/** A spec that must be as it was. */
export function validateUnchanged(spec: unknown, old: unknown): Cause[] {
  return deepEqual(spec, old) ? [] : [invalidValue('spec', SPEC_IMMUTABLE)];
}
