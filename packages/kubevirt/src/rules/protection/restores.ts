/**
 * Restores under way: what they need, and what of their target they replace. While one is under way KubeVirt's own
 * components may delete exactly what it puts another in the place of; for everybody else that stays guarded.
 */

import type { ReadonlyContent, ReadonlyRestore } from '../../kinds/kubevirt.ts';
import { hasCondition } from '../snapshot/conditions.ts';
import { isMarked } from '../snapshot/restored-claim.ts';
import { isInPlace } from '../snapshot/restored-volumes.ts';
import { CAPTURED_FIELDS, copiedRevisionName } from '../snapshot/saved-machine.ts';
import type { DeletionTarget, GuardingMachine, ProtectionLookup } from './deletion-target.ts';

/** Whether a restore has not ended, well or badly, and is not being deleted. */
export const isUnderWay = ({ metadata, status }: ReadonlyRestore): boolean =>
  metadata.deletionTimestamp === undefined && status?.complete !== true && !hasCondition(status, 'Failure');

/** Whether a restore reads the object: its snapshot, the content, what the content names. */
export function neededBy(
  { resource, namespace, name, object }: DeletionTarget,
  restore: ReadonlyRestore,
  lookup: ProtectionLookup,
): boolean {
  const snapshot = restore.spec.virtualMachineSnapshotName;
  switch (resource) {
    case 'virtualmachinesnapshots':
      return name === snapshot;
    case 'virtualmachinesnapshotcontents':
      return (object as ReadonlyContent).spec?.virtualMachineSnapshotName === snapshot;
    case 'volumesnapshots': {
      if (restore.status?.restores?.some(({ volumeSnapshotName }) => volumeSnapshotName === name)) return true;
      const backups = lookup.content(namespace, snapshot)?.spec.volumeBackups;
      return backups?.some(({ volumeSnapshotName }) => volumeSnapshotName === name) === true;
    }
    case 'controllerrevisions':
      return keptRevisions(lookup.content(namespace, snapshot)).includes(name);
    default:
      return false;
  }
}

/** Whether the restore that `vm` says is in progress replaces the object, and a component of KubeVirt's asks. */
export function isReplacedBy(target: DeletionTarget, vm: GuardingMachine, lookup: ProtectionLookup): boolean {
  if (!target.component) return false;
  const named = vm.object.status?.restoreInProgress;
  if (named === undefined) return false;
  for (const restore of lookup.restores(target.namespace)) {
    if (restore.metadata.name === named && restore.spec.target.name === vm.name)
      return replaces(restore, target, lookup);
  }
  return false;
}

function replaces(
  restore: ReadonlyRestore,
  { resource, namespace, name, object }: DeletionTarget,
  lookup: ProtectionLookup,
): boolean {
  if (resource === 'persistentvolumeclaims') {
    const isNamed = restore.status?.restores?.some((each) => each.persistentVolumeClaim === name);
    // One that it has made itself stays.
    return isNamed === true && isInPlace(restore) && !isMarked(object, restore);
  }
  if (resource !== 'controllerrevisions') return false;
  const { virtualMachineSnapshotName: snapshot, target } = restore.spec;
  // A revision of that name which says something else is made anew.
  return keptRevisions(lookup.content(namespace, snapshot)).some(
    (kept) => copiedRevisionName(kept, snapshot, target.name) === name,
  );
}

/** Names of the copies of instance type and preference that a content keeps. */
const keptRevisions = (content: ReadonlyContent | undefined): string[] =>
  CAPTURED_FIELDS.flatMap((field) => content?.spec.source.virtualMachine?.spec?.[field]?.revisionName ?? []);
