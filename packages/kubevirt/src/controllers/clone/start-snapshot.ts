/** Has the source saved, once that is there and can be. */
import { isOwnedBy } from '@coracle/apimachinery/meta/controller-reference';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { cloneSnapshot, cloneSnapshotName } from '../../rules/clone/clone-objects.ts';
import { uncloneable, unsaveableVolumes } from '../../rules/clone/cloneable.ts';
import { type CloneStep, fail, hasSnapshotSource, isBeforeRestore, wait } from './clone-pass.ts';

export const startSnapshot: CloneStep = async (pass) => {
  const { clone, status, cluster } = pass;
  if (!isBeforeRestore(pass) || hasSnapshotSource(clone) || status.snapshotName) return 'continue';
  const name = cloneSnapshotName(clone);
  // From a pass that was cut off before it wrote the name down. From here on the source may go.
  const made = await cluster.snapshot(name);
  if (made === undefined) {
    const { namespace } = clone.metadata;
    const source = await cluster.machine(clone.spec.source.name);
    if (source === undefined || isDeleting(source))
      return wait(
        pass,
        'SourceDoesNotExist',
        `Source doesnt exist: VirtualMachine ${namespace}/${clone.spec.source.name}`,
      );
    const never = uncloneable(source);
    if (never !== undefined) return fail(pass, 'SourceVMWithBackendStorageInvalid', never);
    const notNow = unsaveableVolumes(source);
    if (notNow !== undefined) return wait(pass, 'VMVolumeSnapshotsInvalid', notNow);
    await cluster.createSnapshot(cloneSnapshot(clone));
    pass.record('Normal', 'SnapshotCreated', `created snapshot ${name} for clone ${clone.metadata.name}`);
  } else if (!isOwnedBy(made, clone.metadata.uid)) {
    throw new Error(`snapshot ${name} exists and was not made by clone ${clone.metadata.name}`);
  }
  status.phase = 'SnapshotInProgress';
  status.snapshotName = name;
  return 'stop';
};
