/** Has the snapshot restored to a new machine, changed so that it is another one. */
import { isOwnedBy } from '@coracle/apimachinery/meta/controller-reference';
import type { ReadonlySnapshot } from '../../kinds/kubevirt.ts';
import { cloneRestore, cloneRestoreName } from '../../rules/clone/clone-objects.ts';
import { type CloneSource, clonePatches } from '../../rules/clone/clone-patches.ts';
import { contentNameOf } from '../../rules/snapshot/snapshot-names.ts';
import { snapshotLost } from './check-snapshot.ts';
import { type ClonePass, type CloneStep, fail, snapshotNameOf } from './clone-pass.ts';

export const startRestore: CloneStep = async (pass) => {
  const { clone, status, cluster } = pass;
  if (status.phase !== 'RestoreInProgress' || status.restoreName) return 'continue';
  const name = cloneRestoreName(clone);
  // From a pass that was cut off before it wrote the name down. To make it again could be refused: the target may be
  // there by now.
  const made = await cluster.restore(name);
  if (made === undefined) {
    const snapshotName = snapshotNameOf(pass);
    const snapshot = await cluster.snapshot(snapshotName);
    if (snapshot === undefined) return fail(pass, 'SnapshotDeleted', snapshotLost(snapshotName));
    await create(pass, { name, snapshot });
    pass.record('Normal', 'RestoreCreated', `created restore ${name} for clone ${clone.metadata.name}`);
  } else if (!isOwnedBy(made, clone.metadata.uid)) {
    throw new Error(`restore ${name} exists and was not made by clone ${clone.metadata.name}`);
  }
  status.restoreName = name;
  return 'stop';
};

async function create(
  { clone, cluster, record }: ClonePass,
  { name, snapshot }: { readonly name: string; readonly snapshot: ReadonlySnapshot },
): Promise<void> {
  const { spec, metadata } = clone;
  const contentName = contentNameOf(snapshot);
  const source = (await cluster.content(contentName))?.spec.source.virtualMachine;
  if (!source?.spec) throw new Error(`cannot get VM manifest from snapshot: ${contentName} holds none`);
  const patches = clonePatches(source as CloneSource, { spec, uid: metadata.uid ?? '' });
  try {
    await cluster.createRestore(cloneRestore(clone, { snapshotName: snapshot.metadata.name ?? '', patches }));
  } catch (error) {
    const why = (error as Error).message;
    record('Warning', 'RestoreCreationFailed', `failed creating restore ${name} for clone ${metadata.name}: ${why}`);
    throw error;
  }
}
