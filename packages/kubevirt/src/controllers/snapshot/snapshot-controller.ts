/**
 * The VirtualMachineSnapshot controller. One pass: finalizer > lock the source > content > status; when it has succeeded,
 * failed or is deleted: content (kept or deleted) > unlock > status > finalizer.
 */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { keyOf, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { isNotFound, orAbsent } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import {
  type Controller,
  createController,
  ownKeys,
  type ReconcileResult,
  requeueAfter,
  source,
} from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import type { EventRecorder } from '@coracle/client/events/recorder';
import { addFinalizer, hasFinalizer, removeFinalizer } from '@coracle/client/finalizer/finalizer';
import type { Informer } from '@coracle/client/informer/informer';
import {
  type ReadonlyContent,
  type ReadonlySnapshot,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  type VirtualMachineRestore,
  type VirtualMachineSnapshot,
} from '../../kinds/kubevirt.ts';
import { timeUntilDeadline } from '../../rules/snapshot/deadline.ts';
import { contentNameOf, SNAPSHOT_FINALIZER } from '../../rules/snapshot/snapshot-names.ts';
import {
  isProgressing,
  isTerminating,
  mayUnlock,
  snapshotStatus,
  takesContentAlong,
} from '../../rules/snapshot/snapshot-status.ts';
import { createContent } from './create-content.ts';
import { keyOfSnapshotInProgress, lockSource, unlockSource } from './lock-source.ts';
import { BY_SOURCE, type SnapshotStores } from './snapshot-stores.ts';
import { isHeldBy, type SourceState, sourceState } from './source-state.ts';

export interface SnapshotControllerOptions extends Pick<ControllerEnvironment, 'client' | 'clock' | 'log'> {
  readonly stores: SnapshotStores;
  readonly restores: Informer<VirtualMachineRestore>;
  readonly events: EventRecorder;
}

/** When a source that could not be locked is tried again, whatever the watches say. */
const LOCK_RETRY_MS = 5000;

/** Makes the controller; nothing happens before `start`. */
export function createSnapshotController(options: SnapshotControllerOptions): Controller {
  const { client, clock, stores } = options;
  const { snapshots, contents, vms, vmis, claims, pods } = stores;

  /** Works on the source: locks it and writes the content, or lets it go. */
  const act = async (
    snapshot: ReadonlySnapshot,
    found: SourceState,
    content: ReadonlyContent | undefined,
  ): Promise<SourceState> => {
    const now = clock.now();
    if (isProgressing(snapshot) && !isTerminating(snapshot, now)) {
      if (!found.locked) return lockSource(found, snapshot, options);
      if (content === undefined) await createContent(found, snapshot, options);
    } else if (isHeldBy(found.vm, snapshot) && mayUnlock(snapshot, content, now)) {
      await unlockSource(found.vm, client);
    }
    return found;
  };

  const deleteContent = async (content: ReadonlyContent): Promise<void> => {
    if (isDeleting(content)) return;
    try {
      const preconditions = { uid: content.metadata.uid ?? '' };
      await client.delete(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, keyOf(content), { preconditions });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  };

  const reconcile = async (snapshot: ReadonlySnapshot): Promise<ReconcileResult> => {
    const before = snapshot as VirtualMachineSnapshot;
    const now = clock.now();
    const terminating = isTerminating(snapshot, now);
    if (!terminating && !hasFinalizer(snapshot, SNAPSHOT_FINALIZER)) {
      await commit(client, VIRTUAL_MACHINE_SNAPSHOTS, { before, after: addFinalizer(before, SNAPSHOT_FINALIZER) });
      return;
    }
    const key = { namespace: snapshot.metadata.namespace ?? '', name: contentNameOf(snapshot) };
    // What the cache does not know yet must not be left behind.
    const cached = contents.get(key);
    const content =
      cached ?? (terminating ? await orAbsent(client.get(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, key)) : undefined);
    let found = sourceState(snapshot, stores);
    if (snapshot.status !== undefined && found !== undefined) found = await act(snapshot, found, content);
    const goes = terminating && content !== undefined && takesContentAlong(snapshot, content);
    if (goes) await deleteContent(content);

    const status = snapshotStatus(snapshot, { source: found, content, now: clock.now() });
    if (!deepEqual(snapshot.status ?? {}, status)) {
      await commit(client, VIRTUAL_MACHINE_SNAPSHOTS, { before, after: { ...before, status }, subresource: 'status' });
    } else if (isDeleting(snapshot) && !goes && !(found && isHeldBy(found.vm, snapshot))) {
      await commit(client, VIRTUAL_MACHINE_SNAPSHOTS, { before, after: removeFinalizer(before, SNAPSHOT_FINALIZER) });
      return;
    }
    if (!isProgressing({ ...before, status })) return;
    const left = timeUntilDeadline(snapshot, clock.now());
    if (left === undefined) return;
    const untilDeadline = Math.max(left, 0) + 1;
    return requeueAfter(found?.locked === true ? untilDeadline : Math.min(LOCK_RETRY_MS, untilDeadline));
  };

  /** A machine that names a snapshot which is not there would stay locked for ever. */
  const releaseHeld = async ({ namespace, name }: ObjectKey): Promise<void> => {
    for (const vm of vms.list(namespace)) {
      if (vm.status?.snapshotInProgress !== name) continue;
      const there = await orAbsent(client.get(VIRTUAL_MACHINE_SNAPSHOTS, { namespace, name }));
      if (there === undefined) await unlockSource(vm, client);
    }
  };

  const ofSource = ({ metadata }: { readonly metadata: { readonly namespace?: string; readonly name?: string } }) =>
    snapshots.byIndex(BY_SOURCE, `${metadata.namespace}/${metadata.name}`).map((each) => keyOf(each));
  const waiting = (namespace: string | undefined): ObjectKey[] =>
    snapshots.list(namespace).flatMap((each) => (isProgressing(each) ? [keyOf(each)] : []));

  return createController({
    ...options,
    name: 'snapshot',
    concurrency: 4,
    sources: [
      ownKeys(snapshots),
      source(contents, ({ metadata, spec }) => [
        { namespace: metadata.namespace ?? '', name: spec.virtualMachineSnapshotName ?? '' },
      ]),
      source(vms, (vm) => [...ofSource(vm), ...keyOfSnapshotInProgress(vm)]),
      source(vmis, ofSource),
      source(claims, ({ metadata }) => waiting(metadata.namespace)),
      source(pods, (pod, previous) => (previous ? waiting(pod.metadata.namespace) : [])),
    ],
    reconcile: async (key) => {
      const snapshot = snapshots.get(key);
      if (snapshot !== undefined) return reconcile(snapshot);
      await releaseHeld(key);
    },
  });
}
