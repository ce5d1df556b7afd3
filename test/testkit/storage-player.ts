/** Plays the storage of a cluster: claims become bound, VolumeSnapshots are taken. Data are none; a test may hold it. */

import { formatTime } from '../../packages/apimachinery/src/meta/object.ts';
import { ApiError } from '../../packages/apimachinery/src/meta/status.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { PersistentVolumeClaim } from '../../packages/apimachinery/src/types/types.ts';
import type { Client } from '../../packages/client/src/client.ts';
import { VOLUME_SNAPSHOTS, type VolumeSnapshot } from '../../packages/cluster-rules/src/volume-snapshot/kinds.ts';

export interface StoragePlayer {
  /** What it leaves undone. */
  readonly holds: Set<'bind' | 'snapshot'>;
  /** Size that snapshots ask a restored claim for; that of the claim when absent. */
  restoreSize: string | undefined;
  stop(): Promise<void>;
}

/** Starts it, over all namespaces. Snapshots of a group are taken when all of it are there. */
export function playStorage(client: Client): StoragePlayer {
  let running = true;
  const player: StoragePlayer = {
    holds: new Set(),
    restoreSize: undefined,
    async stop() {
      running = false;
      await played;
    },
  };
  const play = async (): Promise<void> => {
    while (running) {
      if (!player.holds.has('bind')) {
        for (const claim of (await client.list(PERSISTENT_VOLUME_CLAIMS)).items) await bind(claim, client);
      }
      if (!player.holds.has('snapshot')) {
        const { items } = await client.list(VOLUME_SNAPSHOTS);
        for (const one of items) await take(one, items, player.restoreSize, client);
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  const played = play();
  return player;
}

async function bind({ metadata, spec, status }: PersistentVolumeClaim, client: Client): Promise<void> {
  if (status?.phase === 'Bound' || metadata.deletionTimestamp !== undefined) return;
  const capacity = { storage: spec?.resources?.requests?.['storage'] ?? '1Gi' };
  await ignoringGone(
    client.patch(
      PERSISTENT_VOLUME_CLAIMS,
      { namespace: metadata.namespace ?? '', name: metadata.name ?? '' },
      { type: 'merge', body: { status: { phase: 'Bound', accessModes: spec?.accessModes, capacity } } },
      { subresource: 'status' },
    ),
  );
}

async function take(
  { metadata, status }: VolumeSnapshot,
  all: readonly VolumeSnapshot[],
  restoreSize: string | undefined,
  client: Client,
): Promise<void> {
  if (status?.readyToUse) return;
  const group = metadata.annotations?.['coracle.dev/snapshot-group'];
  const members = all.filter((other) => other.metadata.annotations?.['coracle.dev/snapshot-group'] === group).length;
  if (group !== undefined && members < Number(metadata.annotations?.['coracle.dev/snapshot-group-size'])) return;
  const body = {
    status: {
      readyToUse: true,
      creationTime: formatTime(Date.now()),
      ...(restoreSize !== undefined && { restoreSize }),
    },
  };
  const key = { namespace: metadata.namespace ?? '', name: metadata.name ?? '' };
  await ignoringGone(client.patch(VOLUME_SNAPSHOTS, key, { type: 'merge', body }, { subresource: 'status' }));
}

async function ignoringGone(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
  }
}
