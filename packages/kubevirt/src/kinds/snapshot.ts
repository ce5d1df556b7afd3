/** VirtualMachineSnapshot and VirtualMachineSnapshotContent: a saved state of a virtual machine (snapshot.kubevirt.io). */

import type { ObjectMeta } from '@coracle/apimachinery/meta/object';
import type { PersistentVolumeClaim, TypedLocalObjectReference } from '@coracle/apimachinery/types/types';
import type { Static } from 'typebox';
import { anyObject, atomicList, bool, builtin, duration, needed, object, oneOf, str, strings, time } from './fields.ts';
import { condition } from './status.ts';
import { vmSpec, vmStatus } from './vm.ts';

export const DELETION_POLICIES = ['Delete', 'Retain'] as const;
export const SNAPSHOT_PHASES = ['InProgress', 'Succeeded', 'Failed', 'Deleting', 'Unknown'] as const;
export const INDICATIONS = [
  'Online',
  'NoGuestAgent',
  'GuestAgent',
  'QuiesceTimeout',
  'Paused',
  'PartialSnapshot',
] as const;

export const typedLocalReference = (description: string) =>
  builtin<TypedLocalObjectReference>('io.k8s.api.core.v1.TypedLocalObjectReference', description);

const snapshotError = object('The last error.', { time: time('When.'), message: str('Details for people.') });

/** Conditions of this group, which are replaced as a whole. */
export const snapshotConditions = atomicList(condition, 'Observed aspects.');

const set = { 'x-kubernetes-list-type': 'set' } as const;

export const snapshotSpec = object('What is to be saved.', {
  source: needed(typedLocalReference('The virtual machine.')),
  deletionPolicy: oneOf(DELETION_POLICIES, 'What becomes of the content; Delete when absent.'),
  failureDeadline: duration('How long it may take; 5m when absent, 0 for any time.'),
});

export const snapshotStatus = object('What is known of the snapshot.', {
  sourceUID: str('UID of the source.'),
  virtualMachineSnapshotContentName: str('Name of the content.'),
  creationTime: time('The moment that is saved.', { nullable: true }),
  phase: oneOf(SNAPSHOT_PHASES, 'Where it is.'),
  readyToUse: bool('It can be restored.'),
  error: snapshotError,
  conditions: snapshotConditions,
  indications: strings('State of the source when it was saved. Deprecated: use sourceIndications.', set),
  sourceIndications: atomicList(
    object('One aspect of the source when it was saved.', {
      indication: needed(oneOf(INDICATIONS, 'Aspect.')),
      message: needed(str('Details for people.')),
    }),
    'State of the source when it was saved.',
  ),
  snapshotVolumes: object('Volumes that were saved and volumes that were not.', {
    includedVolumes: strings('Saved.', set),
    excludedVolumes: strings('Not saved.', set),
  }),
});

const volumeBackup = object('One saved volume.', {
  volumeName: needed(str('Name of the volume in the virtual machine.')),
  persistentVolumeClaim: needed(
    object('The claim of the volume.', {
      metadata: anyObject<ObjectMeta>('Its metadata.'),
      spec: builtin<PersistentVolumeClaim['spec']>('io.k8s.api.core.v1.PersistentVolumeClaimSpec', 'Its spec.'),
    }),
  ),
  volumeSnapshotName: str('VolumeSnapshot that holds the data.'),
});

const sourceVirtualMachine = object('The virtual machine as it was.', {
  metadata: anyObject<ObjectMeta>('Its metadata.', { nullable: true }),
  spec: vmSpec,
  status: vmStatus,
});

export const snapshotContentSpec = object('The saved state.', {
  virtualMachineSnapshotName: str('Snapshot it belongs to.'),
  source: needed(object('The saved object.', { virtualMachine: sourceVirtualMachine })),
  volumeBackups: atomicList(volumeBackup, 'The saved volumes.'),
});

export const snapshotContentStatus = object('What is known of the content.', {
  creationTime: time('The moment that is saved.', { nullable: true }),
  readyToUse: bool('All volumes can be restored.'),
  error: snapshotError,
  volumeSnapshotStatus: atomicList(
    object('State of one VolumeSnapshot.', {
      volumeSnapshotName: needed(str('Its name.')),
      creationTime: time('The moment that is saved.', { nullable: true }),
      readyToUse: bool('It can be restored.'),
      error: snapshotError,
    }),
    'State of the VolumeSnapshots.',
  ),
});

export type Indication = (typeof INDICATIONS)[number];
export type SnapshotError = Static<typeof snapshotError>;
export type SnapshotSpec = Static<typeof snapshotSpec>;
export type SnapshotStatus = Static<typeof snapshotStatus>;
export type VolumeBackup = Static<typeof volumeBackup>;
export type SnapshotContentSpec = Static<typeof snapshotContentSpec>;
export type SnapshotContentStatus = Static<typeof snapshotContentStatus>;
export type SourceVirtualMachine = Static<typeof sourceVirtualMachine>;
