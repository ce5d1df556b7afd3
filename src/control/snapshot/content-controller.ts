/**
 * The VirtualMachineSnapshotContent controller. One pass: freeze the guest > one VolumeSnapshot for each claim; when all
 * of them are taken: thaw > status. When nothing more is to be saved: thaw > finalizer.
 */
import {
  type SnapshotContentStatus,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  type VirtualMachineSnapshot,
  type VirtualMachineSnapshotContent,
} from '../../api/kinds/kubevirt/kubevirt.ts';
import { VOLUME_SNAPSHOTS } from '../../api/kinds/volume-snapshot/kinds.ts';
import { deepEqual } from '../../api/meta/deep-equal.ts';
import { type DeepReadonly, formatTime, keyOf } from '../../api/meta/object.ts';
import { ApiError } from '../../api/meta/status.ts';
import { orAbsent } from '../../client/api-failure.ts';
import { commit } from '../../client/commit/commit.ts';
import {
  type Controller,
  controllerOwner,
  createController,
  DONE,
  ownKeys,
  type ReconcileResult,
  requeueAfter,
  source,
} from '../../client/controller/controller.ts';
import { hasFinalizer, isDeleting, removeFinalizer } from '../../client/finalizer/finalizer.ts';
import { includesMemory, waitsForMemory } from '../../domain/memory-state/saved-memory.ts';
import { allTaken, contentStatus, type VolumeSnapshotFact } from '../../domain/snapshot/content-status.ts';
import { CONTENT_FINALIZER, contentNameOf } from '../../domain/snapshot/snapshot-names.ts';
import {
  FREEZE_LIMIT_REACHED,
  isReady,
  isTerminating,
  takesContentAlong,
} from '../../domain/snapshot/snapshot-status.ts';
import { createVolumeSnapshot } from './create-volume-snapshot.ts';
import { freezeSource, thawSource } from './freeze-source.ts';
import type { SnapshotControllerOptions } from './snapshot-controller.ts';
import { sourceState } from './source-state.ts';

type Content = DeepReadonly<VirtualMachineSnapshotContent>;
type Snapshot = DeepReadonly<VirtualMachineSnapshot>;

/** When a guest that could not be frozen or thawed is asked again. */
const FREEZE_RETRY_MS = 5000;

/** The guest refused to be frozen, or to be thawed for the reason that upstream tells: a state to show, not to throw. */
class FreezeRefused extends Error {}

/** Makes the controller; nothing happens before `start`. */
export function createContentController(options: SnapshotControllerOptions): Controller {
  const { client, clock, log, stores, events } = options;
  const { contents, snapshots, volumeSnapshots } = stores;

  const saveStatus = async (content: Content, status: SnapshotContentStatus): Promise<void> => {
    if (deepEqual(content.status ?? {}, status)) return;
    const before = content as VirtualMachineSnapshotContent;
    await commit(client, VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, {
      before,
      after: { ...before, status },
      subresource: 'status',
    });
  };

  /** Nothing more is to be saved: the guest goes on, and nothing holds the content any more. */
  const letGo = async (content: Content, snapshot: Snapshot | undefined): Promise<void> => {
    if (!hasFinalizer(content, CONTENT_FINALIZER)) return;
    if (content.status?.creationTime === undefined && snapshot !== undefined) {
      try {
        await thawSource(sourceState(snapshot, stores), client);
      } catch (error) {
        // The node thaws it when the time of the snapshot is over.
        log.warn('guest not thawed', { content: content.metadata.name, error: String(error) });
      }
    }
    const before = content as VirtualMachineSnapshotContent;
    const after = removeFinalizer(before, CONTENT_FINALIZER);
    await commit(client, VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, { before, after });
  };
  /** Nobody asks any more for what was never saved. */
  const removeUnfinished = async (content: Content): Promise<void> => {
    if (isDeleting(content) || isReady(content)) return;
    const preconditions = { uid: content.metadata.uid ?? '' };
    await orAbsent(client.delete(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, keyOf(content), { preconditions }));
  };

  const freeze = async (snapshot: Snapshot): Promise<void> => {
    const found = sourceState(snapshot, stores);
    if (found === undefined) throw new Error('unable to get snapshot source');
    try {
      await freezeSource(found, snapshot, client);
    } catch (error) {
      throw new FreezeRefused(error instanceof Error ? error.message : String(error));
    }
  };

  /** The VolumeSnapshots as they are, after those that are still to be made were made. */
  const takeVolumeSnapshots = async (
    content: Content,
    snapshot: Snapshot | undefined,
  ): Promise<VolumeSnapshotFact[]> => {
    const namespace = content.metadata.namespace ?? '';
    const wereTaken = content.status?.creationTime !== undefined;
    const facts: VolumeSnapshotFact[] = [];
    let frozen = false;
    for (const backup of content.spec.volumeBackups ?? []) {
      const name = backup.volumeSnapshotName;
      if (name === undefined) continue;
      const key = { namespace, name };
      // The cache may lag behind what an earlier pass made.
      const found = volumeSnapshots.get(key) ?? (await orAbsent(client.get(VOLUME_SNAPSHOTS, key)));
      if (found !== undefined) facts.push({ name, type: 'present', snapshot: found });
      else if (wereTaken) {
        events.event(content, 'Warning', 'VolumeSnapshotMissing', `VolumeSnapshot ${name} no longer exists`);
        facts.push({ name, type: 'missing' });
      } else if (snapshot === undefined || isDeleting(snapshot)) facts.push({ name, type: 'skipped' });
      else {
        // A guest whose memory is saved stands still by itself then; frozen file systems in it would stay so for ever.
        if (!frozen && !includesMemory(snapshot)) await freeze(snapshot);
        frozen = true;
        facts.push({
          name,
          type: 'present',
          snapshot: await createVolumeSnapshot(content, backup, { ...options, waits: waitsForMemory(snapshot) }),
        });
      }
    }
    return facts;
  };

  const thaw = async (snapshot: Snapshot | undefined): Promise<void> => {
    try {
      if (snapshot !== undefined && !includesMemory(snapshot)) await thawSource(sourceState(snapshot, stores), client);
    } catch (error) {
      if (error instanceof ApiError && error.message.includes(FREEZE_LIMIT_REACHED))
        throw new FreezeRefused(error.message);
      throw error;
    }
  };

  const reconcile = async (content: Content): Promise<ReconcileResult> => {
    const key = {
      namespace: content.metadata.namespace ?? '',
      name: content.spec.virtualMachineSnapshotName ?? '',
    };
    const snapshot = snapshots.get(key) ?? (await orAbsent(client.get(VIRTUAL_MACHINE_SNAPSHOTS, key)));
    if (snapshot === undefined || isTerminating(snapshot, clock.now())) {
      await letGo(content, snapshot);
      if (snapshot === undefined) await removeUnfinished(content);
      if (snapshot !== undefined && takesContentAlong(snapshot, content)) return DONE;
    }
    if (isDeleting(content)) return DONE;
    try {
      const facts = await takeVolumeSnapshots(content, snapshot);
      // It looks again when the snapshot says how that came out.
      if (snapshot !== undefined && waitsForMemory(snapshot)) return DONE;
      if (allTaken(facts) && content.status?.creationTime === undefined) await thaw(snapshot);
      await saveStatus(content, contentStatus({ status: content.status, facts, now: clock.now() }));
      return DONE;
    } catch (error) {
      if (!(error instanceof FreezeRefused)) throw error;
      const { message } = error;
      const known = content.status?.error;
      const failure = known?.message === message ? known : { time: formatTime(clock.now()), message };
      const before = content.status as SnapshotContentStatus | undefined;
      await saveStatus(content, { ...before, readyToUse: false, error: failure });
      return requeueAfter(FREEZE_RETRY_MS);
    }
  };

  return createController({
    name: 'snapshot-content',
    client,
    log,
    clock,
    concurrency: 4,
    sources: [
      ownKeys(contents),
      source(snapshots, (snapshot) => [
        { namespace: snapshot.metadata.namespace ?? '', name: contentNameOf(snapshot) },
      ]),
      controllerOwner(volumeSnapshots, { group: 'snapshot.kubevirt.io', kind: 'VirtualMachineSnapshotContent' }),
    ],
    reconcile: async (key) => {
      const content = contents.get(key);
      return content === undefined ? DONE : reconcile(content);
    },
  });
}
