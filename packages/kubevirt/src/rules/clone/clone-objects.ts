/**
 * The two objects that a clone makes to reach its target, and lets go when it has: a snapshot of the source, and a restore
 * of it to another machine. Their names follow from the UID of the clone, so that a clone finds its own again, whenever
 * its controller was stopped (kubevirt pkg/virt-controller/watch/clone/util.go).
 */

import { controllerReference } from '@coracle/apimachinery/meta/controller-reference';
import {
  KUBEVIRT_GROUP,
  type ReadonlyClone,
  SNAPSHOT_GROUP,
  SNAPSHOT_VERSION,
  type VirtualMachineClone,
  type VirtualMachineRestore,
  type VirtualMachineSnapshot,
} from '../../kinds/kubevirt.ts';
import { INCLUDE_MEMORY } from '../memory-state/resume-request.ts';

export const cloneSnapshotName = ({ metadata }: ReadonlyClone): string => `tmp-snapshot-${metadata.uid}`;
export const cloneRestoreName = ({ metadata }: ReadonlyClone): string => `tmp-restore-${metadata.uid}`;

/** The snapshot of a clone's source. */
export const cloneSnapshot = (clone: ReadonlyClone): VirtualMachineSnapshot => ({
  apiVersion: `${SNAPSHOT_GROUP}/${SNAPSHOT_VERSION}`,
  kind: 'VirtualMachineSnapshot',
  metadata: metadataOf(clone, cloneSnapshotName(clone)),
  spec: { source: { apiGroup: KUBEVIRT_GROUP, kind: 'VirtualMachine', name: clone.spec.source.name } },
});

/**
 * The restore that makes a clone's target, which boots: a guest that went on from its source's memory would be its source.
 * `patches`: see `clonePatches`.
 */
export function cloneRestore(
  clone: ReadonlyClone,
  { snapshotName, patches }: { readonly snapshotName: string; readonly patches: readonly string[] },
): VirtualMachineRestore {
  const { target, volumeNamePolicy } = clone.spec;
  return {
    apiVersion: `${SNAPSHOT_GROUP}/${SNAPSHOT_VERSION}`,
    kind: 'VirtualMachineRestore',
    metadata: { ...metadataOf(clone, cloneRestoreName(clone)), annotations: { [INCLUDE_MEMORY]: 'false' } },
    spec: {
      target: { apiGroup: KUBEVIRT_GROUP, kind: 'VirtualMachine', name: target?.name ?? '' },
      virtualMachineSnapshotName: snapshotName,
      patches: [...patches],
      ...(volumeNamePolicy !== undefined && { volumeRestorePolicy: volumeNamePolicy }),
    },
  };
}

const metadataOf = (clone: ReadonlyClone, name: string): VirtualMachineClone['metadata'] => ({
  name,
  namespace: clone.metadata.namespace ?? '',
  ownerReferences: [controllerReference(clone)],
});
