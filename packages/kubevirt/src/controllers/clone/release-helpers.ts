/** Lets go of restore and snapshot when the claims of the target are bound, and so hold the data themselves. */
import { isOwnedBy } from '@coracle/apimachinery/meta/controller-reference';
import type { CloneStep } from './clone-pass.ts';

export const releaseHelpers: CloneStep = async ({ clone, status, cluster, record }) => {
  const { restoreName, snapshotName } = status;
  if (!restoreName && !snapshotName) return 'stop';
  // A restore that is gone was let go by a pass that was cut off before it wrote so.
  const restore = restoreName ? await cluster.restore(restoreName) : undefined;
  if (restore !== undefined) {
    for (const { persistentVolumeClaim } of restore.status?.restores ?? []) {
      const claim = await cluster.claim(persistentVolumeClaim);
      // One that was deleted waits for nothing.
      if (claim !== undefined && claim.status?.phase !== 'Bound') return 'stop';
    }
    record('Normal', 'PVCBound', `all PVC for clone ${clone.metadata.name} are bound`);
    if (isOwnedBy(restore, clone.metadata.uid)) await cluster.deleteRestore(restore);
  }
  const snapshot = snapshotName ? await cluster.snapshot(snapshotName) : undefined;
  if (snapshot !== undefined && isOwnedBy(snapshot, clone.metadata.uid)) await cluster.deleteSnapshot(snapshot);
  delete status.restoreName;
  delete status.snapshotName;
  return 'stop';
};
