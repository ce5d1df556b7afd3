/** Phase, conditions and indications of a VirtualMachineSnapshot (kubevirt pkg/storage/snapshot, updateSnapshotStatus). */

import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import type {
  Indication,
  ReadonlyContent,
  ReadonlySnapshot,
  SnapshotContentStatus,
  SnapshotStatus,
} from '../../kinds/kubevirt.ts';
import { type ConditionValue, withCondition } from './conditions.ts';
import { timeUntilDeadline } from './deadline.ts';
import { snapshottableClaim, volumesOf } from './saved-volumes.ts';

/** What the guest's agent says when Windows could not hold its file systems still for as long as it took. */
export const FREEZE_LIMIT_REACHED = 'fsfreeze is limited';

const MESSAGES: Readonly<Record<Indication, string>> = {
  Online: 'Snapshot taken while the VM was running. Consistency depends on guest-agent quiescing.',
  GuestAgent: 'Guest agent was active and attempted to quiesce the filesystem for application consistency.',
  NoGuestAgent: 'Guest agent was not available. Snapshot is crash-consistent and may not be application-consistent.',
  QuiesceTimeout:
    'Guest agent quiesced the filesystem, but the freeze window timed out before completion. Snapshot is crash-consistent and may not be application-consistent.',
  Paused: 'Snapshot taken while the VM was paused. Snapshot is crash-consistent and may not be application-consistent.',
  PartialSnapshot:
    'Not all snapshotable volumes were included in the snapshot. Check status.snapshotVolumes for excluded volumes and VM VolumeSnapshotStatus for details.',
};

/** The source of a snapshot as it is now. */
export interface SourceView {
  readonly uid: string;
  readonly online: boolean;
  readonly paused: boolean;
  readonly guestAgent: boolean;
  readonly locked: boolean;
  /** Why it is not locked, or that it is. */
  readonly lockMessage: string;
}

export const isFailed = ({ status }: ReadonlySnapshot): boolean => status?.phase === 'Failed';
export const isSucceeded = ({ status }: ReadonlySnapshot): boolean => status?.phase === 'Succeeded';
export const isProgressing = (snapshot: ReadonlySnapshot): boolean => !isFailed(snapshot) && !isSucceeded(snapshot);
export const isReady = ({ status }: { readonly status?: { readonly readyToUse?: boolean } }): boolean =>
  status?.readyToUse === true;

/** It has failed, or its time is over before it succeeded. */
export function isOverdue(snapshot: ReadonlySnapshot, now: number): boolean {
  if (isFailed(snapshot)) return true;
  const left = isProgressing(snapshot) ? timeUntilDeadline(snapshot, now) : undefined;
  return left !== undefined && left < 0;
}

/** Nothing more is to be saved: it is being deleted, or overdue. */
export const isTerminating = (snapshot: ReadonlySnapshot, now: number): boolean =>
  isDeleting(snapshot) || isOverdue(snapshot, now);

/** Whether the content goes with its snapshot. One that is not ready is of no use. */
export const takesContentAlong = ({ spec }: ReadonlySnapshot, content: ReadonlyContent): boolean =>
  (spec.deletionPolicy ?? 'Delete') === 'Delete' || !isReady(content);

/**
 * Whether the source may be let go: the snapshot has succeeded, or nothing more is to be saved and the content is gone
 * where it is to go, which thaws the guest.
 */
export function mayUnlock(snapshot: ReadonlySnapshot, content: ReadonlyContent | undefined, now: number): boolean {
  if (isSucceeded(snapshot)) return true;
  return isTerminating(snapshot, now) && (content === undefined || !takesContentAlong(snapshot, content));
}

/** The status now. `source` is undefined while there is no such machine. */
export function snapshotStatus(
  snapshot: ReadonlySnapshot,
  facts: {
    readonly source: SourceView | undefined;
    readonly content: ReadonlyContent | undefined;
    readonly now: number;
  },
): SnapshotStatus {
  const { source, content, now } = facts;
  const next: SnapshotStatus = { readyToUse: false, ...(snapshot.status as SnapshotStatus | undefined) };
  const say = (aspect: ConditionValue): void => {
    next.conditions = [...withCondition(next.conditions ?? [], aspect, now)];
  };
  const progressing = (status: ConditionValue['status'], reason: string): void =>
    say({ type: 'Progressing', status, reason });

  if (source !== undefined) next.sourceUID = source.uid;
  if (content?.status !== undefined) {
    next.virtualMachineSnapshotContentName = content.metadata.name ?? '';
    const { creationTime, readyToUse, error } = content.status as SnapshotContentStatus;
    Object.assign(next, { creationTime, readyToUse, error });
    if (creationTime === undefined) delete next.creationTime;
    if (readyToUse === undefined) delete next.readyToUse;
    if (error === undefined) delete next.error;
  }
  if (isOverdue({ ...snapshot, status: next }, now)) {
    next.phase = 'Failed';
    say({ type: 'Failure', status: 'True', reason: 'snapshot deadline exceeded' });
    progressing('False', 'Operation failed');
  } else if (next.phase === 'Succeeded' || next.creationTime !== undefined) {
    next.phase = 'Succeeded';
    progressing('False', 'Operation complete');
    if (content !== undefined) listVolumes(next, content);
  } else if (isDeleting(snapshot)) {
    next.phase = 'Deleting';
    progressing('False', 'VM snapshot is deleting');
  } else {
    next.phase = 'InProgress';
    if (source === undefined) progressing('False', 'Source does not exist');
    else {
      progressing(source.locked ? 'True' : 'False', source.lockMessage);
      indicate(next, source);
    }
  }
  const ready = next.readyToUse === true;
  say({ type: 'Ready', status: ready ? 'True' : 'False', reason: ready ? 'Ready' : 'Not ready' });
  if (next.error !== undefined) progressing('False', 'In error state');
  return next;
}

/** What the guest did when it was saved; what was indicated once stays. */
function indicate(status: SnapshotStatus, source: SourceView): void {
  if (!source.online) {
    delete status.indications;
    delete status.sourceIndications;
    return;
  }
  const said = new Set(status.indications as Indication[] | undefined).add('Online');
  if (source.paused) said.add('Paused');
  else if (source.guestAgent) {
    said.add('GuestAgent');
    if (status.error?.message?.includes(FREEZE_LIMIT_REACHED)) said.add('QuiesceTimeout');
  } else said.add('NoGuestAgent');
  setIndications(status, [...said].sort());
}

function setIndications(status: SnapshotStatus, indications: Indication[]): void {
  status.indications = indications;
  status.sourceIndications = indications.map((indication) => ({ indication, message: MESSAGES[indication] }));
}

/** Which volumes of the saved machine are in the snapshot. */
function listVolumes(status: SnapshotStatus, content: ReadonlyContent): void {
  const saved = new Set((content.spec.volumeBackups ?? []).map(({ volumeName }) => volumeName));
  const vm = content.spec.source.virtualMachine;
  if (vm?.spec?.template === undefined) return;
  const volumes = volumesOf({ spec: vm.spec });
  // The claim with the firmware state is no volume of the spec.
  const names = new Set([...volumes.map(({ name }) => name), ...saved]);
  const [included, excluded] = [
    [...names].filter((name) => saved.has(name)),
    [...names].filter((name) => !saved.has(name)),
  ];
  status.snapshotVolumes = {
    ...(included.length > 0 && { includedVolumes: included }),
    ...(excluded.length > 0 && { excludedVolumes: excluded }),
  };
  const said = (status.indications ?? []) as Indication[];
  const partial = volumes.some((volume) => !saved.has(volume.name) && snapshottableClaim(volume) !== undefined);
  if (partial && !said.includes('PartialSnapshot')) setIndications(status, [...said, 'PartialSnapshot']);
}
