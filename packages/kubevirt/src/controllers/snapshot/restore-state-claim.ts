/** Steps of a restore: the claim with the firmware state, which is no volume of the machine but found by its label. */
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { PERSISTENT_VOLUME_CLAIMS } from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import { orAbsent } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { STATE_LABEL } from '../../rules/backend-storage/backend-storage.ts';
import { stateVolumeName } from '../../rules/snapshot/saved-volumes.ts';
import type { RestorePass, StepOutcome } from './restore-pass.ts';

/** Label of a claim whose place was taken: it goes when the restore is complete. */
const CLEANUP_LABEL = 'restore.kubevirt.io/cleanup-backend-pvc';

/** Puts the restored claim in the place of the one in use. */
export async function restoreStateClaim({ restore, client, stores }: RestorePass): Promise<StepOutcome> {
  const namespace = restore.metadata.namespace ?? '';
  const vm = restore.spec.target.name;
  const restored = restore.status?.restores?.find(({ volumeName }) => volumeName === stateVolumeName(vm));
  if (restored === undefined) return 'done';
  for (const claim of stores.claims.list(namespace)) {
    const { name, labels } = claim.metadata;
    const isRestored = name === restored.persistentVolumeClaim;
    const isInUse = labels?.[STATE_LABEL] === vm;
    if (isRestored === isInUse || isDeleting(claim)) continue;
    const { [STATE_LABEL]: _, ...others } = labels ?? {};
    const before = claim as PersistentVolumeClaim;
    const next = isRestored ? { ...others, [STATE_LABEL]: vm } : { ...others, [CLEANUP_LABEL]: stateVolumeName(vm) };
    if (!isRestored && !isInUse) continue;
    await commit(client, PERSISTENT_VOLUME_CLAIMS, {
      before,
      after: { ...before, metadata: { ...before.metadata, labels: next } },
    });
  }
  return 'done';
}

/** Deletes the claims whose place was taken. */
export async function deleteReplacedStateClaims({ restore, client, stores }: RestorePass): Promise<void> {
  const namespace = restore.metadata.namespace ?? '';
  const value = stateVolumeName(restore.spec.target.name);
  for (const claim of stores.claims.list(namespace)) {
    if (claim.metadata.labels?.[CLEANUP_LABEL] !== value || isDeleting(claim)) continue;
    const key = { namespace, name: claim.metadata.name ?? '' };
    await orAbsent(client.delete(PERSISTENT_VOLUME_CLAIMS, key, { preconditions: { uid: claim.metadata.uid ?? '' } }));
  }
}
