import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { formatTime, keyOf } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { orAbsent } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { type ReconcileResult, requeueAfter } from '@coracle/client/controller/controller';
import { ControllerSteps } from '@coracle/client/controller/controller-steps';
import { hasFinalizer, removeFinalizer } from '@coracle/client/finalizer/finalizer';
import { VOLUME_SNAPSHOTS } from '@coracle/cluster-rules/volume-snapshot/kinds';
import {
  type ReadonlyContent,
  type ReadonlySnapshot,
  type SnapshotContentStatus,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  type VirtualMachineSnapshotContent,
} from '../../kinds/kubevirt.ts';
import { includesMemory, waitsForMemory } from '../../rules/memory-state/saved-memory.ts';
import { allTaken, contentStatus, type VolumeSnapshotFact } from '../../rules/snapshot/content-status.ts';
import { CONTENT_FINALIZER } from '../../rules/snapshot/snapshot-names.ts';
import {
  FREEZE_LIMIT_REACHED,
  isReady,
  isTerminating,
  takesContentAlong,
} from '../../rules/snapshot/snapshot-status.ts';
import { createVolumeSnapshot } from './create-volume-snapshot.ts';
import { freezeSource, thawSource } from './freeze-source.ts';
import type { SnapshotControllerOptions } from './snapshot-controller.ts';
import { sourceState } from './source-state.ts';

/** When a guest that could not be frozen or thawed is asked again. */
const FREEZE_RETRY_MS = 5000;

/** The guest refused to be frozen, or to be thawed for the reason that upstream tells: a state to show, not to throw. */
class FreezeRefused extends Error {}

/** The steps of a VirtualMachineSnapshotContent: freeze, VolumeSnapshots, thaw. */
export class ContentSteps extends ControllerSteps<SnapshotControllerOptions> {
  readonly #stores = this.options.stores;
  readonly #events = this.options.events;
  readonly contents = this.#stores.contents;
  readonly snapshots = this.#stores.snapshots;
  readonly volumeSnapshots = this.#stores.volumeSnapshots;

  async #saveStatus(content: ReadonlyContent, status: SnapshotContentStatus): Promise<void> {
    if (deepEqual(content.status ?? {}, status)) return;
    const before = content as VirtualMachineSnapshotContent;
    await commit(this.client, VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, {
      before,
      after: { ...before, status },
      subresource: 'status',
    });
  }

  /** Nothing more is to be saved: the guest goes on, and nothing holds the content any more. */
  async #letGo(content: ReadonlyContent, snapshot: ReadonlySnapshot | undefined): Promise<void> {
    if (!hasFinalizer(content, CONTENT_FINALIZER)) return;
    if (content.status?.creationTime === undefined && snapshot !== undefined) {
      try {
        await thawSource(sourceState(snapshot, this.#stores), this.client);
      } catch (error) {
        // The node thaws it when the time of the snapshot is over.
        this.log.warn('guest not thawed', { content: content.metadata.name, error: String(error) });
      }
    }
    const before = content as VirtualMachineSnapshotContent;
    const after = removeFinalizer(before, CONTENT_FINALIZER);
    await commit(this.client, VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, { before, after });
  }

  /** Nobody asks any more for what was never saved. True when it goes. */
  async #removeUnfinished(content: ReadonlyContent): Promise<boolean> {
    if (isDeleting(content) || isReady(content)) return false;
    const preconditions = { uid: content.metadata.uid ?? '' };
    await orAbsent(this.client.delete(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, keyOf(content), { preconditions }));
    return true;
  }

  async #freeze(snapshot: ReadonlySnapshot): Promise<void> {
    const found = sourceState(snapshot, this.#stores);
    if (found === undefined) throw new Error('unable to get snapshot source');
    try {
      await freezeSource(found, snapshot, this.client);
    } catch (error) {
      throw new FreezeRefused(error instanceof Error ? error.message : String(error));
    }
  }

  /** The VolumeSnapshots as they are, after those that are still to be made were made. */
  async #takeVolumeSnapshots(
    content: ReadonlyContent,
    snapshot: ReadonlySnapshot | undefined,
  ): Promise<VolumeSnapshotFact[]> {
    const namespace = content.metadata.namespace ?? '';
    const wereTaken = content.status?.creationTime !== undefined;
    const facts: VolumeSnapshotFact[] = [];
    let frozen = false;
    for (const backup of content.spec.volumeBackups ?? []) {
      const name = backup.volumeSnapshotName;
      if (name === undefined) continue;
      const key = { namespace, name };
      // The cache may lag behind what an earlier pass made.
      const found = this.volumeSnapshots.get(key) ?? (await orAbsent(this.client.get(VOLUME_SNAPSHOTS, key)));
      if (found !== undefined) facts.push({ name, type: 'present', snapshot: found });
      else if (wereTaken) {
        this.#events.event(content, 'Warning', 'VolumeSnapshotMissing', `VolumeSnapshot ${name} no longer exists`);
        facts.push({ name, type: 'missing' });
      } else if (snapshot === undefined || isDeleting(snapshot)) facts.push({ name, type: 'skipped' });
      else {
        // A guest whose memory is saved stands still by itself then; frozen file systems in it would stay so for ever.
        if (!frozen && !includesMemory(snapshot)) await this.#freeze(snapshot);
        frozen = true;
        facts.push({
          name,
          type: 'present',
          snapshot: await createVolumeSnapshot(content, backup, { ...this.options, waits: waitsForMemory(snapshot) }),
        });
      }
    }
    return facts;
  }

  async #thaw(snapshot: ReadonlySnapshot | undefined): Promise<void> {
    try {
      if (snapshot !== undefined && !includesMemory(snapshot))
        await thawSource(sourceState(snapshot, this.#stores), this.client);
    } catch (error) {
      if (error instanceof ApiError && error.message.includes(FREEZE_LIMIT_REACHED))
        throw new FreezeRefused(error.message);
      throw error;
    }
  }

  async reconcile(content: ReadonlyContent): Promise<ReconcileResult> {
    const key = {
      namespace: content.metadata.namespace ?? '',
      name: content.spec.virtualMachineSnapshotName ?? '',
    };
    const snapshot = this.snapshots.get(key) ?? (await orAbsent(this.client.get(VIRTUAL_MACHINE_SNAPSHOTS, key)));
    if (snapshot === undefined || isTerminating(snapshot, this.clock.now())) {
      await this.#letGo(content, snapshot);
      if (snapshot === undefined && (await this.#removeUnfinished(content))) return;
      if (snapshot !== undefined && takesContentAlong(snapshot, content)) return;
    }
    if (isDeleting(content)) return;
    try {
      const facts = await this.#takeVolumeSnapshots(content, snapshot);
      // It looks again when the snapshot says how that came out.
      if (snapshot !== undefined && waitsForMemory(snapshot)) return;
      if (allTaken(facts) && content.status?.creationTime === undefined) await this.#thaw(snapshot);
      await this.#saveStatus(content, contentStatus({ status: content.status, facts, now: this.clock.now() }));
    } catch (error) {
      if (!(error instanceof FreezeRefused)) throw error;
      const { message } = error;
      const known = content.status?.error;
      const failure = known?.message === message ? known : { time: formatTime(this.clock.now()), message };
      const before = content.status as SnapshotContentStatus | undefined;
      await this.#saveStatus(content, { ...before, readyToUse: false, error: failure });
      return requeueAfter(FREEZE_RETRY_MS);
    }
  }
}
