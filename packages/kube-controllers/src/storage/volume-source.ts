/** What a new volume is made from: finds the snapshot or the claim that a claim names, and says why it cannot be used. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import { holdingOf } from '@coracle/apimachinery/types/volume-claims';
import { isNotFound } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { capacityOf, modeOf, requestOf } from '@coracle/cluster-rules/storage/match-volume';
import { POOL_DRIVER } from '@coracle/cluster-rules/storage/pool-names';
import { placeOf } from '@coracle/cluster-rules/storage/provision-plan';
import { poolOfHandle } from '@coracle/cluster-rules/storage/snapshot-plan';
import { VOLUME_SNAPSHOT_CONTENTS, VOLUME_SNAPSHOTS } from '@coracle/cluster-rules/volume-snapshot/kinds';

type Claim = DeepReadonly<PersistentVolumeClaim>;

/** A source that is there: its pool, and its handle in it. */
export interface FoundSource {
  readonly pool: string;
  readonly kind: 'snapshot' | 'volume';
  readonly handle: string;
}

/** Thrown with the reason why the source cannot be used now; it may become usable. */
export class SourceError extends Error {}

const ALLOW_MODE_CHANGE = 'snapshot.storage.kubernetes.io/allow-volume-mode-change';

/** @throws SourceError */
export async function findSnapshotSource(
  client: Client,
  { claim, name }: { readonly claim: Claim; readonly name: string },
  signal: AbortSignal,
): Promise<FoundSource> {
  const namespace = claim.metadata.namespace ?? '';
  const snapshot = await existing(client.get(VOLUME_SNAPSHOTS, { namespace, name }, { signal }), `snapshot ${name}`);
  if (snapshot.metadata.deletionTimestamp !== undefined) throw new SourceError(`snapshot ${name} is being deleted`);
  const { boundVolumeSnapshotContentName, readyToUse, error } = snapshot.status ?? {};
  if (!boundVolumeSnapshotContentName || readyToUse !== true)
    throw new SourceError(`snapshot ${name} is not Ready${error?.message ? `: ${error.message}` : ''}`);
  const key = { namespace: '', name: boundVolumeSnapshotContentName };
  const content = await existing(client.get(VOLUME_SNAPSHOT_CONTENTS, key, { signal }), `content ${key.name}`);
  const { driver, volumeSnapshotRef, sourceVolumeMode } = content.spec;
  // Both have to name the other: else a snapshot of another namespace could be read by naming its content.
  if (volumeSnapshotRef.uid !== snapshot.metadata.uid) throw new SourceError(`snapshot ${name} is not bound`);
  if (driver !== POOL_DRIVER) throw new SourceError(`snapshot ${name} is one of driver ${driver}, not ${POOL_DRIVER}`);
  const place = poolOfHandle(content.status?.snapshotHandle);
  if (!place) throw new SourceError(`snapshot handle of ${content.metadata.name} is not available`);
  const { restoreSize } = content.status ?? {};
  if (restoreSize !== undefined && requestOf(claim) < restoreSize)
    throw new SourceError(
      `requested volume size ${requestOf(claim)} is less than the size ${restoreSize} for the source snapshot ${name}`,
    );
  const mayChangeMode = content.metadata.annotations?.[ALLOW_MODE_CHANGE] === 'true';
  if (sourceVolumeMode !== undefined && sourceVolumeMode !== modeOf(claim) && !mayChangeMode)
    throw new SourceError(
      `requested volume ${namespace}/${claim.metadata.name} modifies the mode of the source volume but does not have permission to do so. ${ALLOW_MODE_CHANGE} annotation is not present on snapshotcontent ${content.metadata.name}`,
    );
  return { ...place, kind: 'snapshot' };
}

/** @throws SourceError */
export async function findClaimSource(
  client: Client,
  { claim, name }: { readonly claim: Claim; readonly name: string },
  signal: AbortSignal,
): Promise<FoundSource> {
  const namespace = claim.metadata.namespace ?? '';
  const source = await existing(client.get(PERSISTENT_VOLUME_CLAIMS, { namespace, name }, { signal }), `claim ${name}`);
  if (source.metadata.deletionTimestamp !== undefined) throw new SourceError(`the source PVC ${name} is being deleted`);
  if (source.status?.phase !== 'Bound' || !source.spec?.volumeName)
    throw new SourceError(`the PVC ${name} is not bound: it cannot be cloned yet`);
  const key = { namespace: '', name: source.spec.volumeName };
  const volume = await existing(client.get(PERSISTENT_VOLUMES, key, { signal }), `volume ${key.name}`);
  if (holdingOf(volume, source) !== 'bound') throw new SourceError(`the PVC ${name} is not bound to its volume`);
  const place = placeOf(volume);
  if (!place) throw new SourceError(`the source PVC ${name} is not a volume of ${POOL_DRIVER}`);
  if (requestOf(claim) < capacityOf(volume))
    throw new SourceError(
      `new PVC request must be greater than or equal in size to the specified PVC data source, requested ${requestOf(claim)} but source is ${capacityOf(volume)}`,
    );
  if (modeOf(source) !== modeOf(claim))
    throw new SourceError('the source PVC and destination PVCs must be of the same volume mode for cloning');
  return { ...place, kind: 'volume' };
}

async function existing<T>(reading: Promise<T>, what: string): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (isNotFound(error)) throw new SourceError(`${what} not found`);
    throw error;
  }
}
