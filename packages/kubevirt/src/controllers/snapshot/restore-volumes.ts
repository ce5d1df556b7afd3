/** Step of a restore: the claims, each made from its VolumeSnapshot. */

import { controllerReference } from '@coracle/apimachinery/meta/controller-reference';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { OwnerReference } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { PERSISTENT_VOLUME_CLAIMS } from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolumeClaim, ReadonlyClaim } from '@coracle/apimachinery/types/types';
import { orAbsent, orThere } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { VOLUME_SNAPSHOTS } from '@coracle/cluster-rules/volume-snapshot/kinds';
import { DATA_VOLUMES } from '../../kinds/kinds.ts';
import type { VolumeRestore } from '../../kinds/kubevirt.ts';
import { ownerDataVolume } from '../../rules/data-volume/owner-data-volume.ts';
import { isMarked, RESTORE_NAME_ANNOTATION, restoredClaim } from '../../rules/snapshot/restored-claim.ts';
import { isInPlace, volumeRestores } from '../../rules/snapshot/restored-volumes.ts';
import { volumesOf } from '../../rules/snapshot/saved-volumes.ts';
import { type RestorePass, RestoreProblem, type StepOutcome } from './restore-pass.ts';

/** Whom restored claims belong to: the machine, unless the restore says nobody, or there is none yet. */
export const claimOwner = ({ restore, target }: RestorePass): OwnerReference | undefined =>
  restore.spec.volumeOwnershipPolicy === 'None' || target === undefined
    ? undefined
    : controllerReference({ ...target, apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine' });

/**
 * Lists the claims in the status first, then makes them; a claim that is replaced in its place goes before. Waits for
 * those that are to be bound at once.
 * @throws RestoreProblem
 */
export async function restoreVolumes(pass: RestorePass): Promise<StepOutcome> {
  const { restore, content } = pass;
  const restores = volumeRestores(restore, content);
  restore.status ??= {};
  if (!deepEqual(restore.status.restores ?? [], restores)) {
    restore.status.restores = restores;
    return 'waiting';
  }
  let outcome: StepOutcome = 'done';
  for (const volume of restores) if ((await restoreVolume(pass, volume)) === 'waiting') outcome = 'waiting';
  return outcome;
}

async function restoreVolume(pass: RestorePass, volume: VolumeRestore): Promise<StepOutcome> {
  const { restore, client, stores } = pass;
  const key = { namespace: restore.metadata.namespace ?? '', name: volume.persistentVolumeClaim };
  const claim = stores.claims.get(key) ?? (await orAbsent(client.get(PERSISTENT_VOLUME_CLAIMS, key)));
  if (claim === undefined) {
    await createClaim(pass, volume);
    return 'waiting';
  }
  if (!isMarked(claim, restore)) {
    if (!isInPlace(restore))
      throw new RestoreProblem(`PVC ${key.namespace}/${key.name} exists and was not made by this restore`);
    await removeClaim(pass, volume, claim);
    return 'waiting';
  }
  if (claim.status?.phase === 'Bound') return 'done';
  if (claim.status?.phase === 'Lost') throw new RestoreProblem(`PVC ${key.namespace}/${key.name} in status "Lost"`);
  return waitsForConsumer(claim, pass) ? 'done' : 'waiting';
}

/** Such a claim is bound when the machine starts. */
function waitsForConsumer({ spec }: ReadonlyClaim, { stores }: RestorePass): boolean {
  const name = spec?.storageClassName;
  if (!name) return false;
  const storageClass = stores.storageClasses.get({ namespace: '', name });
  if (storageClass === undefined) throw new RestoreProblem(`StorageClass ${name} does not exist`);
  return storageClass.volumeBindingMode === 'WaitForFirstConsumer';
}

async function createClaim(pass: RestorePass, volume: VolumeRestore): Promise<void> {
  const { restore, content, client, stores } = pass;
  const backup = content.spec.volumeBackups?.find(({ volumeName }) => volumeName === volume.volumeName);
  if (backup === undefined) throw new RestoreProblem(`volume backup for volume ${volume.volumeName} not found`);
  const key = { namespace: restore.metadata.namespace ?? '', name: volume.volumeSnapshotName };
  const snapshot = stores.volumeSnapshots.get(key) ?? (await orAbsent(client.get(VOLUME_SNAPSHOTS, key)));
  if (snapshot === undefined) throw new RestoreProblem(`missing volumeSnapshot ${volume.volumeSnapshotName}`);
  const claim = restoredClaim({
    restore,
    name: volume.persistentVolumeClaim,
    backup,
    snapshot,
    machine: content.spec.source.virtualMachine,
    dataVolume: volume.dataVolumeName,
    owner: claimOwner(pass),
  });
  await orThere(client.create(PERSISTENT_VOLUME_CLAIMS, claim));
}

/** Takes away what the restored claim takes the place of. Its DataVolume must not fill a new one meanwhile. */
async function removeClaim(
  { restore, client }: RestorePass,
  volume: VolumeRestore,
  claim: ReadonlyClaim,
): Promise<void> {
  const { namespace = '', name = '', uid = '' } = claim.metadata;
  const dataVolume = ownerDataVolume(claim);
  if (dataVolume !== undefined) {
    await orAbsent(
      client.patch(
        DATA_VOLUMES,
        { namespace, name: dataVolume },
        {
          type: 'merge',
          body: {
            metadata: {
              annotations: {
                [RESTORE_NAME_ANNOTATION]: restore.metadata.name,
                'cdi.kubevirt.io/storage.prePopulated': name,
              },
            },
          },
        },
      ),
    );
    const known = restore.status?.restores?.find(({ volumeName }) => volumeName === volume.volumeName);
    if (known !== undefined) known.dataVolumeName = dataVolume;
  }
  if (isDeleting(claim)) return;
  await orAbsent(client.delete(PERSISTENT_VOLUME_CLAIMS, { namespace, name }, { preconditions: { uid } }));
}

/** Claims of a machine that was made by the restore become its own. */
export async function ownClaims(pass: RestorePass): Promise<void> {
  const { restore, client, stores } = pass;
  const owner = claimOwner(pass);
  if (owner === undefined) return;
  for (const { persistentVolumeClaim: name, dataVolumeName } of restore.status?.restores ?? []) {
    const claim = stores.claims.get({ namespace: restore.metadata.namespace ?? '', name });
    if (claim === undefined || (claim.metadata.ownerReferences ?? []).length > 0) continue;
    if (dataVolumeName !== undefined) continue;
    const before = claim as PersistentVolumeClaim;
    const after = { ...before, metadata: { ...before.metadata, ownerReferences: [owner] } };
    await commit(client, PERSISTENT_VOLUME_CLAIMS, { before, after });
  }
}

/** A restore that ends before its time takes along the claims that it made and that its target does not use. */
export async function removeUnusedClaims({
  restore,
  target,
  client,
  stores,
}: Omit<RestorePass, 'content'>): Promise<void> {
  const used = new Set(
    (target ? volumesOf(target) : []).map((each) => each.persistentVolumeClaim?.claimName ?? each.dataVolume?.name),
  );
  for (const { persistentVolumeClaim: name } of restore.status?.restores ?? []) {
    const key = { namespace: restore.metadata.namespace ?? '', name };
    const claim = stores.claims.get(key) ?? (await orAbsent(client.get(PERSISTENT_VOLUME_CLAIMS, key)));
    if (claim === undefined || !isMarked(claim, restore) || used.has(name) || isInPlace(restore)) continue;
    const preconditions = { uid: claim.metadata.uid ?? '' };
    await orAbsent(client.delete(PERSISTENT_VOLUME_CLAIMS, key, { preconditions }));
  }
}
