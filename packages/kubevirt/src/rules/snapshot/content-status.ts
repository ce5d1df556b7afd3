/** Status of a VirtualMachineSnapshotContent from its VolumeSnapshots. */

import { type DeepReadonly, formatTime } from '@coracle/apimachinery/meta/object';
import type { VolumeSnapshot } from '@coracle/cluster-rules/volume-snapshot/kinds';
import type { SnapshotContentStatus, SnapshotError } from '../../kinds/kubevirt.ts';

/** One VolumeSnapshot that a content names: as it is now, gone after it was there, or not made as nobody wants it. */
export type VolumeSnapshotFact =
  | { readonly name: string; readonly type: 'present'; readonly snapshot: DeepReadonly<VolumeSnapshot> }
  | { readonly name: string; readonly type: 'missing' | 'skipped' };

export interface ContentFacts {
  readonly status: DeepReadonly<SnapshotContentStatus> | undefined;
  readonly facts: readonly VolumeSnapshotFact[];
  readonly now: number;
}

/** Whether all VolumeSnapshots have been taken: the guest may go on. */
export const allTaken = (facts: readonly VolumeSnapshotFact[]): boolean =>
  facts.every((fact) => fact.type === 'present' && fact.snapshot.status?.creationTime !== undefined);

/** The status of a content. It has a creation time from when all its VolumeSnapshots are taken. */
export function contentStatus({ status, facts, now }: ContentFacts): SnapshotContentStatus {
  const named = (type: 'missing' | 'skipped'): string =>
    facts
      .filter((fact) => fact.type === type)
      .map(({ name }) => name)
      .join(',');
  const present = facts.flatMap((fact) => (fact.type === 'present' ? [fact] : []));
  const complete = present.length === facts.length;
  const ready = complete && present.every(({ snapshot }) => snapshot.status?.readyToUse === true);
  const failed = complete ? present.find(({ snapshot }) => snapshot.status?.error?.message !== undefined) : undefined;
  const message = named('missing')
    ? `VolumeSnapshots (${named('missing')}) missing`
    : named('skipped')
      ? `VolumeSnapshots (${named('skipped')}) skipped because vm snapshot is deleted`
      : failed && `VolumeSnapshot ${failed.name} error: ${failed.snapshot.status?.error?.message}`;

  const next: SnapshotContentStatus = { ...(status as SnapshotContentStatus | undefined) };
  if (allTaken(facts)) next.creationTime ??= formatTime(now);
  if (message === undefined) delete next.error;
  else if (!ready && next.error?.message !== message) next.error = { time: formatTime(now), message };
  next.readyToUse = ready;
  if (present.length === 0) delete next.volumeSnapshotStatus;
  else
    next.volumeSnapshotStatus = present.map(({ name, snapshot }) => ({
      volumeSnapshotName: name,
      ...stateOf(snapshot),
    }));
  return next;
}

function stateOf({ status }: DeepReadonly<VolumeSnapshot>): {
  creationTime?: string;
  readyToUse?: boolean;
  error?: SnapshotError;
} {
  const { creationTime, readyToUse, error } = status ?? {};
  return {
    ...(creationTime !== undefined && { creationTime }),
    ...(readyToUse !== undefined && { readyToUse }),
    ...(error && { error: { ...error } }),
  };
}
