/** VirtualMachineClone: a second virtual machine made from one or from a snapshot of it (clone.kubevirt.io). */

import type { TypedLocalObjectReference } from '@coracle/apimachinery/types/types';
import type { Static } from 'typebox';
import { atomicList, builtin, needed, object, oneOf, str, stringMap, time } from './fields.ts';
import { condition } from './status.ts';

export const CLONE_PHASES = [
  'SnapshotInProgress',
  'CreatingTargetVM',
  'RestoreInProgress',
  'Succeeded',
  'Failed',
  'Unknown',
] as const;
export const VOLUME_NAME_POLICIES = ['RandomizeNames', 'PrefixTargetName'] as const;

const reference = (description: string) =>
  builtin<TypedLocalObjectReference>('io.k8s.api.core.v1.TypedLocalObjectReference', description);

const filters = (description: string) => atomicList(str('Key, key* or !key.'), description);
const labelFilters = filters('Labels that the target keeps; all when absent.');
const annotationFilters = filters('Annotations that the target keeps; all when absent.');

export const cloneSpec = object('What is cloned, and what becomes different.', {
  source: needed(reference('A VirtualMachine or a VirtualMachineSnapshot.')),
  target: reference('The VirtualMachine to make; its name is generated when absent.'),
  annotationFilters,
  labelFilters,
  template: object('What the template of the target keeps.', { annotationFilters, labelFilters }),
  newMacAddresses: stringMap('MAC addresses by the name of the interface.'),
  newSMBiosSerial: str('SMBIOS serial of the target; generated when absent.'),
  patches: atomicList(str('JSON patch, one operation.'), 'Changes of the target.'),
  volumeNamePolicy: oneOf(VOLUME_NAME_POLICIES, 'How new claims are named; RandomizeNames when absent.', {
    enforced: true,
  }),
});

export const cloneStatus = object('What is known of the clone.', {
  creationTime: time('When the target was made.', { nullable: true }),
  phase: oneOf(CLONE_PHASES, 'Where it is.'),
  conditions: atomicList(condition, 'Observed aspects.'),
  snapshotName: str('Snapshot that is restored, while it is needed.', { nullable: true }),
  restoreName: str('Restore that makes the target, while it is needed.', { nullable: true }),
  targetName: str('Name of the target.', { nullable: true }),
});

export type CloneSpec = Static<typeof cloneSpec>;
export type CloneStatus = Static<typeof cloneStatus>;
