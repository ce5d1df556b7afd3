/**
 * Completes the bindings that a test plays: a claim that it says is Bound, or whose Pod has a node, gets a volume,
 * since Pods go nowhere without.
 * Nothing is stored in it.
 */

import type { DeepReadonly } from '../../packages/apimachinery/src/meta/object.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { PersistentVolumeClaim } from '../../packages/apimachinery/src/types/types.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../../packages/client/src/api-failure.ts';
import type { Client } from '../../packages/client/src/client.ts';
import { createInformer } from '../../packages/client/src/informer/informer.ts';
import { BIND_COMPLETED, SELECTED_NODE } from '../../packages/cluster-rules/src/storage/claim-step.ts';
import { POOL_DRIVER } from '../../packages/cluster-rules/src/storage/pool-names.ts';

/** Plays until the signal aborts. */
export async function playVolumes(client: Client, signal: AbortSignal): Promise<void> {
  const claims = createInformer(client, PERSISTENT_VOLUME_CLAIMS);
  claims.onChange(({ type, object }) => {
    if (type === 'deleted' || !isPlayed(object)) return;
    bind(client, object).catch((error: unknown) => {
      if (!signal.aborted && !isNotFound(error) && !isConflict(error)) throw error;
    });
  });
  await claims.start(signal);
}

function isPlayed({ metadata, status }: DeepReadonly<PersistentVolumeClaim>): boolean {
  if (metadata.deletionTimestamp !== undefined || metadata.annotations?.[BIND_COMPLETED] !== undefined) return false;
  if (status?.phase === 'Lost') return false;
  return status?.phase === 'Bound' || metadata.annotations?.[SELECTED_NODE] !== undefined;
}

async function bind(client: Client, { metadata, spec }: DeepReadonly<PersistentVolumeClaim>): Promise<void> {
  const { namespace = '', name = '', uid = '' } = metadata;
  const key = { namespace, name };
  const volumeName = spec?.volumeName || `played-${uid}`;
  try {
    await client.create(PERSISTENT_VOLUMES, {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: volumeName },
      spec: {
        accessModes: [...(spec?.accessModes ?? [])],
        capacity: { storage: String(spec?.resources?.requests?.['storage'] ?? '1Gi') },
        storageClassName: spec?.storageClassName ?? '',
        volumeMode: spec?.volumeMode ?? 'Filesystem',
        csi: { driver: POOL_DRIVER, volumeHandle: uid },
        claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid },
      },
    });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
  const body = { metadata: { annotations: { [BIND_COMPLETED]: 'yes' } }, spec: { volumeName } };
  await client.patch(PERSISTENT_VOLUME_CLAIMS, key, { type: 'merge', body });
}
