/**
 * Removes the checkpoint of a tracker that is deleted: its snapshots, in every pool that a Ready node serves. Where none is
 * served the tracker goes all the same: it must not hold its namespace up.
 */
import {
  VIRTUAL_MACHINE_BACKUP_TRACKERS,
  type VirtualMachineBackupTracker,
} from '../../api/kinds/kubevirt/kubevirt.ts';
import type { DeepReadonly } from '../../api/meta/object.ts';
import { commit } from '../../client/commit/commit.ts';
import type { AskAgent } from '../../client/controller/ask-agent.ts';
import { type Controller, createController, DONE, ownKeys } from '../../client/controller/controller.ts';
import type { ControllerEnvironment } from '../../client/controller/environment.ts';
import { hasFinalizer, isDeleting, removeFinalizer } from '../../client/finalizer/finalizer.ts';
import { CHECKPOINT_FINALIZER, CHECKPOINT_VOLUMES, checkpointHandle } from '../../domain/backup/checkpoint-handles.ts';
import { POOL_LABEL } from '../../domain/storage/pool-names.ts';
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
    for (const { metadata, status } of stores.nodes.list()) {
      const pool = metadata.labels?.[POOL_LABEL];
      const isReady = status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True');
      if (pool !== undefined && isReady) found.set(pool, metadata.name ?? '');
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
      if (!tracker || !isDeleting(tracker) || !hasFinalizer(tracker, CHECKPOINT_FINALIZER)) return DONE;
      for (const node of nodesByPool().values())
        for (const handle of checkpointHandles(tracker))
          await askAgent(node, '/storage/v1/deleteSnapshot', { handle }, { signal });
      const before = tracker as VirtualMachineBackupTracker;
      const after = removeFinalizer(before, CHECKPOINT_FINALIZER);
      await commit(client, VIRTUAL_MACHINE_BACKUP_TRACKERS, { before, after });
      return DONE;
    },
  });
}
