/**
 * The conditions of a VirtualMachineBackup, with the types, reasons and words of upstream (kubevirt pkg/storage/cbt).
 * Upstream's alpha had one condition `Done` where later versions have `Complete` and `Failed`; both are written, since
 * programs wait for either.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { isConditionTrue } from '@coracle/apimachinery/meta/object-state';
import type { BackupStatus } from '../../kinds/kubevirt.ts';

export type BackupCondition = NonNullable<BackupStatus['conditions']>[number];

/** It has ended, well or not. */
export const isBackupDone = (status: DeepReadonly<BackupStatus> | undefined): boolean =>
  isConditionTrue({ status }, 'Complete') || isConditionTrue({ status }, 'Failed');

/** Sets a condition; the time stays where the status does. `now` is RFC 3339. */
export function setBackupCondition(
  status: BackupStatus,
  condition: Omit<BackupCondition, 'lastTransitionTime'>,
  now: string,
): void {
  const old = status.conditions?.find(({ type }) => type === condition.type);
  const lastTransitionTime = old?.status === condition.status ? old.lastTransitionTime : now;
  status.conditions = [
    ...(status.conditions ?? []).filter(({ type }) => type !== condition.type),
    { ...condition, lastTransitionTime },
  ];
}

/** It waits; `message` says what for. */
export const setInitializing = (status: BackupStatus, message: string, now: string): void =>
  setBackupCondition(status, { type: 'Progressing', status: 'True', reason: 'Initializing', message }, now);

/** It has begun. */
export const setProgressing = (status: BackupStatus, now: string): void =>
  setBackupCondition(
    status,
    { type: 'Progressing', status: 'True', reason: 'Initiated', message: 'Backup is in progress' },
    now,
  );

export const COMPLETED_MESSAGE = 'Successfully completed VirtualMachineBackup';

/** It has ended well. */
export function setComplete(status: BackupStatus, now: string): void {
  end(status, { type: 'Complete', reason: 'Completed', message: COMPLETED_MESSAGE }, now);
}

/** It has failed for good. */
export function setFailed(
  status: BackupStatus,
  { reason, message }: { readonly reason: string; readonly message: string },
  now: string,
): void {
  end(status, { type: 'Failed', reason, message: `Backup has failed: ${message}` }, now);
}

function end(
  status: BackupStatus,
  { type, reason, message }: { readonly type: string; readonly reason: string; readonly message: string },
  now: string,
): void {
  for (const one of [type, 'Done']) setBackupCondition(status, { type: one, status: 'True', reason, message }, now);
  setBackupCondition(status, { type: 'Progressing', status: 'False', reason, message }, now);
}

export type QuiesceOutcome = 'Succeeded' | 'Failed' | 'Skipped';

/** What became of freezing the file systems of the guest. */
export function setQuiesced(status: BackupStatus, outcome: QuiesceOutcome, now: string): void {
  const words = { Succeeded: 'was successfully quiesced', Failed: 'quiesce failed', Skipped: 'quiesce was skipped' };
  setBackupCondition(
    status,
    {
      type: 'Quiesced',
      status: outcome === 'Succeeded' ? 'True' : 'False',
      reason: `Quiesce${outcome}`,
      message: `Guest filesystem ${words[outcome]}`,
    },
    now,
  );
}
