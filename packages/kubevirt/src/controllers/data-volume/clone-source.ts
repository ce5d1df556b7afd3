/** What a DataVolume is a copy of: a volume or a snapshot in a pool of ours. Nothing of it is copied that can be shared. */
import type { ObjectKey } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { quantityToBytes, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '@coracle/apimachinery/types/resource-types';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { capacityOf } from '@coracle/cluster-rules/storage/match-volume';
import { POOL_DRIVER } from '@coracle/cluster-rules/storage/pool-names';
import { placeOf } from '@coracle/cluster-rules/storage/provision-plan';
import { poolOfHandle } from '@coracle/cluster-rules/storage/snapshot-plan';
import { VOLUME_SNAPSHOT_CONTENTS, VOLUME_SNAPSHOTS } from '@coracle/cluster-rules/volume-snapshot/kinds';
import { MissingPart, type Named } from '../resolve-data-source.ts';

export interface CloneSource {
  readonly kind: 'volume' | 'snapshot';
  readonly handle: string;
  readonly pool: string;
  readonly bytes: number;
}

const keyOf = ({ namespace, name }: ObjectKey): ObjectKey => ({ namespace, name });

/** Finds the content. Throws MissingPart while it is not there, or not ready. */
export async function findCloneSource(client: Client, source: Named): Promise<CloneSource> {
  const what = `${source.namespace}/${source.name}`;
  if (source.type === 'snapshot') return findSnapshot(client, source, what);
  const claim = await orAbsent(client.get(PERSISTENT_VOLUME_CLAIMS, keyOf(source)));
  if (!claim) throw new MissingPart(`the source PVC ${what} does not exist`);
  if (isDeleting(claim)) throw new MissingPart(`the source PVC ${what} is being deleted`);
  if (claim.status?.phase !== 'Bound') throw new MissingPart(`the source PVC ${what} is not bound`);
  const volume = await orAbsent(client.get(PERSISTENT_VOLUMES, { namespace: '', name: claim.spec?.volumeName ?? '' }));
  const place = volume && placeOf(volume);
  if (!volume || !place) throw new MissingPart(`the source PVC ${what} is not a volume of ${POOL_DRIVER}`);
  return { kind: 'volume', ...place, bytes: capacityOf(volume) };
}

async function findSnapshot(client: Client, source: Named, what: string): Promise<CloneSource> {
  const snapshot = await orAbsent(client.get(VOLUME_SNAPSHOTS, keyOf(source)));
  if (!snapshot) throw new MissingPart(`the source VolumeSnapshot ${what} does not exist`);
  const { boundVolumeSnapshotContentName: name, readyToUse } = snapshot.status ?? {};
  if (!name || readyToUse !== true) throw new MissingPart(`the source VolumeSnapshot ${what} is not ready`);
  const content = await orAbsent(client.get(VOLUME_SNAPSHOT_CONTENTS, { namespace: '', name }));
  // Both name the other: else a snapshot of another namespace could be read by naming its content.
  if (content?.spec.volumeSnapshotRef.uid !== snapshot.metadata.uid || content?.spec.driver !== POOL_DRIVER)
    throw new MissingPart(`the source VolumeSnapshot ${what} is not one of ${POOL_DRIVER}`);
  const place = poolOfHandle(content.status?.snapshotHandle);
  if (!place) throw new MissingPart(`the source VolumeSnapshot ${what} has no content yet`);
  const { restoreSize } = snapshot.status ?? {};
  const size = restoreSize === undefined ? undefined : readQuantity(restoreSize);
  return { kind: 'snapshot', ...place, bytes: size === undefined ? 0 : quantityToBytes(size) };
}
