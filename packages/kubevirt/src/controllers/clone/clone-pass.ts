/** One pass over one clone: what the steps read and do, and the status they write. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import type { EventType } from '@coracle/client/events/recorder';
import type {
  CloneStatus,
  ReadonlyClone,
  ReadonlyRestore,
  ReadonlySnapshot,
  VirtualMachine,
  VirtualMachineRestore,
  VirtualMachineSnapshot,
  VirtualMachineSnapshotContent,
} from '../../kinds/kubevirt.ts';
import { cloneConditions, failed, PROCESSING, pending } from '../../rules/clone/clone-conditions.ts';

type Found<T> = Promise<DeepReadonly<T> | undefined>;

/**
 * The objects of the clone's namespace, by name. `undefined` means that the API has none: where the cache has none the
 * API itself is asked, so that what was made a moment ago is not taken for lost.
 */
export interface CloneCluster {
  machine(name: string): Found<VirtualMachine>;
  snapshot(name: string): Found<VirtualMachineSnapshot>;
  content(name: string): Found<VirtualMachineSnapshotContent>;
  restore(name: string): Found<VirtualMachineRestore>;
  claim(name: string): Found<PersistentVolumeClaim>;
  createSnapshot(snapshot: VirtualMachineSnapshot): Promise<void>;
  createRestore(restore: VirtualMachineRestore): Promise<void>;
  /** What is gone already is no error. */
  deleteSnapshot(snapshot: ReadonlySnapshot): Promise<void>;
  deleteRestore(restore: ReadonlyRestore): Promise<void>;
  deleteClone(clone: ReadonlyClone): Promise<void>;
}

export interface ClonePass {
  readonly clone: ReadonlyClone;
  /** What the pass makes of the status, stored at its end, also when a step fails. */
  readonly status: CloneStatus;
  readonly cluster: CloneCluster;
  /** An event about the clone. */
  record(type: EventType, reason: string, message: string): void;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** What follows: the next step, or the end of the pass. */
export type StepResult = 'continue' | 'stop';

export type CloneStep = (pass: ClonePass) => Promise<StepResult>;

/** True before there is a restore: the snapshot is not ready, or not even there. */
export const isBeforeRestore = ({ status }: ClonePass): boolean =>
  status.phase === undefined || status.phase === 'SnapshotInProgress';

export const hasSnapshotSource = ({ spec }: ReadonlyClone): boolean => spec.source.kind === 'VirtualMachineSnapshot';

/** The snapshot that is restored: the user's, or the one the clone has made. */
export const snapshotNameOf = ({ clone, status }: ClonePass): string =>
  hasSnapshotSource(clone) ? clone.spec.source.name : (status.snapshotName ?? '');

/** Ends the pass until something changes. `message`: what holds it up, if that is known. */
export function goOnLater({ clone, status, now }: ClonePass, message?: string): StepResult {
  status.conditions = cloneConditions(clone.status?.conditions, { ...PROCESSING, message }, now);
  return 'stop';
}

/** Ends the pass until something changes: users have to do something first. */
export function wait({ clone, status, record, now }: ClonePass, reason: string, message: string): StepResult {
  record('Normal', reason, message);
  status.conditions = cloneConditions(clone.status?.conditions, pending(message), now);
  return 'stop';
}

/** Ends the clone. `type` of the event: upstream's reasons are Normal. */
export function fail(
  { clone, status, record, now }: ClonePass,
  reason: string,
  message: string,
  type: EventType = 'Normal',
): StepResult {
  record(type, reason, message);
  status.phase = 'Failed';
  status.conditions = cloneConditions(clone.status?.conditions, failed(message), now);
  return 'stop';
}
