/**
 * Removes the checkpoint of a tracker that is deleted: its snapshots, in every pool that a Ready node serves. Where none is
 * served the tracker goes all the same: it must not hold its namespace up.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { isConditionTrue, isDeleting } from '@coracle/apimachinery/meta/object-state';
import { commit } from '@coracle/client/commit/commit';
import type { AskAgent } from '@coracle/client/controller/ask-agent';
import { type Controller, createController, ownKeys } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { hasFinalizer, removeFinalizer } from '@coracle/client/finalizer/finalizer';
import { POOL_LABEL } from '@coracle/cluster-rules/storage/pool-names';
import { VIRTUAL_MACHINE_BACKUP_TRACKERS, type VirtualMachineBackupTracker } from '../../kinds/kubevirt.ts';
import { CHECKPOINT_FINALIZER, CHECKPOINT_VOLUMES, checkpointHandle } from '../../rules/backup/checkpoint-handles.ts';
import type { BackupStores } from './backup-stores.ts';

/** Handles of the snapshots of a tracker's checkpoint. */
export function checkpointHandles({ metadata, status }: DeepReadonly<VirtualMachineBackupTracker>): string[] {
  const checkpoint = status?.latestCheckpoint?.name;
  const volumes = (metadata.annotations?.[CHECKPOINT_VOLUMES] ?? '').split(',').filter((name) => name !== '');
  return checkpoint === undefined
    ? []
    : volumes.map((volume) => checkpointHandle(metadata.namespace ?? '', checkpoint, volume));
}

/** Makes the controller; nothing happens before `start`. */
export function createTrackerController({
  client,
  clock,
  log,
  stores,
  askAgent,
}: Pick<ControllerEnvironment, 'client' | 'clock' | 'log'> & {
  readonly stores: BackupStores;
  readonly askAgent: AskAgent;
}): Controller {
  /** One Ready node for each pool. */
  const nodesByPool = (): Map<string, string> => {
    const found = new Map<string, string>();
    for (const node of stores.nodes.list()) {
      const pool = node.metadata.labels?.[POOL_LABEL];
      const isReady = isConditionTrue(node, 'Ready');
      if (pool !== undefined && isReady) found.set(pool, node.metadata.name ?? '');
    }
    return found;
  };
  return createController({
    name: 'backup-tracker',
    client,
    log,
    clock,
    sources: [ownKeys(stores.trackers)],
    reconcile: async (key, { signal }) => {
      const tracker = stores.trackers.get(key);
      if (!tracker || !isDeleting(tracker) || !hasFinalizer(tracker, CHECKPOINT_FINALIZER)) return;
      for (const node of nodesByPool().values())
        for (const handle of checkpointHandles(tracker))
          await askAgent(node, '/storage/v1/deleteSnapshot', { handle }, { signal });
      const before = tracker as VirtualMachineBackupTracker;
      const after = removeFinalizer(before, CHECKPOINT_FINALIZER);
      await commit(client, VIRTUAL_MACHINE_BACKUP_TRACKERS, { before, after });
    },
  });
}
