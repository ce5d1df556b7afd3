import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { type DeepReadonly, formatTime, keyOf, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { quantityToBytes } from '@coracle/apimachinery/quantity/quantity';
import { commit } from '@coracle/client/commit/commit';
import { type ReconcileResult, requeueAfter } from '@coracle/client/controller/controller';
import { ControllerSteps } from '@coracle/client/controller/controller-steps';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import type { EventRecorder } from '@coracle/client/events/recorder';
import { addFinalizer, hasFinalizer, removeFinalizer } from '@coracle/client/finalizer/finalizer';
import {
  type ReadonlyBackup,
  type ReadonlyVmi,
  VIRTUAL_MACHINE_BACKUP_TRACKERS,
  VIRTUAL_MACHINE_BACKUPS,
  VIRTUAL_MACHINE_INSTANCES,
  type VirtualMachineBackup,
  type VirtualMachineBackupTracker,
} from '../../kinds/kubevirt.ts';
import {
  COMPLETED_MESSAGE,
  type QuiesceOutcome,
  setComplete,
  setFailed,
  setInitializing,
  setProgressing,
  setQuiesced,
} from '../../rules/backup/backup-conditions.ts';
import { type BackupRequest, checkpointNameOf } from '../../rules/backup/backup-request.ts';
import { CHECKPOINT_FINALIZER, CHECKPOINT_VOLUMES } from '../../rules/backup/checkpoint-handles.ts';
import { isRunning, obstacleToBackup } from './backup-prerequisites.ts';
import type { BackupStores } from './backup-stores.ts';

type Status = NonNullable<VirtualMachineBackup['status']>;

export const BACKUP_FINALIZER = 'backup.kubevirt.io/vmbackup-protection';

const TRACKER_KIND = 'VirtualMachineBackupTracker';

/** When what is missing is looked for again, and a backup under way is sent to the agent again. */
const RETRY_MS = 5000;

export interface BackupControllerOptions extends Pick<ControllerEnvironment, 'client' | 'clock' | 'log'> {
  readonly stores: BackupStores;
  readonly events: EventRecorder;
}

/** What the agent says of the backup; undefined when it is of another one, or of none. */
const reportOf = (vmi: ReadonlyVmi | undefined, { metadata }: ReadonlyBackup) => {
  const report = vmi?.status?.changedBlockTracking?.backupStatus ?? undefined;
  return report?.backupName === metadata.name ? report : undefined;
};

type Report = NonNullable<ReturnType<typeof reportOf>>;

/** What the agent says, in the status of the backup. */
function takeReport(status: Status, report: Report, now: string): void {
  if (report.checkpointName !== undefined) status.checkpointName = report.checkpointName;
  if (report.volumes && report.volumes.length > 0)
    status.includedVolumes = report.volumes.map(({ volumeName, type }) => ({
      volumeName,
      ...((type === 'Full' || type === 'Incremental') && { type }),
    }));
  const { quiesceStatus } = report;
  if (quiesceStatus === 'Succeeded' || quiesceStatus === 'Failed' || quiesceStatus === 'Skipped')
    setQuiesced(status, quiesceStatus satisfies QuiesceOutcome, now);
}

/** The steps of a VirtualMachineBackup: start, progress, end. */
export class BackupSteps extends ControllerSteps<BackupControllerOptions> {
  readonly stores = this.options.stores;
  readonly #events = this.options.events;

  #now(): string {
    return formatTime(this.clock.now());
  }

  async #write(backup: ReadonlyBackup, change: (status: Status) => void): Promise<void> {
    const before = backup as VirtualMachineBackup;
    const status = cloneJson<Status>(before.status ?? {});
    change(status);
    await commit(this.client, VIRTUAL_MACHINE_BACKUPS, { before, after: { ...before, status }, subresource: 'status' });
  }

  async #fail(backup: ReadonlyBackup, reason: string, message: string, report?: Report): Promise<void> {
    await this.#write(backup, (status) => {
      if (report) takeReport(status, report, this.#now());
      setFailed(status, { reason, message }, this.#now());
    });
    this.#events.event(backup, 'Warning', 'VirtualMachineBackupFailed', message);
  }

  #ask(vmi: ReadonlyVmi, request: BackupRequest): Promise<unknown> {
    return this.client.raw(
      'PUT',
      `/apis/subresources.kubevirt.io/v1/namespaces/${vmi.metadata.namespace}/virtualmachineinstances/${vmi.metadata.name}/backup`,
      { body: request },
    );
  }

  async #clearReport(vmi: ReadonlyVmi): Promise<void> {
    const { metadata } = vmi;
    await this.client.patch(
      VIRTUAL_MACHINE_INSTANCES,
      keyOf(vmi),
      {
        type: 'merge',
        body: { metadata: { uid: metadata.uid }, status: { changedBlockTracking: { backupStatus: null } } },
      },
      { subresource: 'status' },
    );
  }

  /** The tracker whose checkpoint the backup builds on, and the machine. */
  #sourceOf(backup: ReadonlyBackup) {
    const namespace = backup.metadata.namespace ?? '';
    const { kind, name } = backup.spec.source;
    const tracker = kind === TRACKER_KIND ? this.stores.trackers.get({ namespace, name }) : undefined;
    const machine = kind === TRACKER_KIND ? tracker?.spec.source.name : name;
    const key = { namespace, name: machine ?? '' };
    return { namespace, name: machine, tracker, vm: this.stores.vms.get(key), vmi: this.stores.vmis.get(key) };
  }

  #requestOf(backup: ReadonlyBackup, tracker: DeepReadonly<VirtualMachineBackupTracker> | undefined): BackupRequest {
    const { metadata, spec } = backup;
    const claim = this.stores.claims.get({ namespace: metadata.namespace ?? '', name: spec.pvcName ?? '' });
    const latest = tracker?.status?.latestCheckpoint?.name;
    const capacity = claim?.status?.capacity?.['storage'] ?? claim?.spec?.resources?.requests?.['storage'];
    return {
      backupName: metadata.name ?? '',
      backupUid: metadata.uid ?? '',
      cmd: 'Start',
      mode: 'Push',
      backupStartTime: metadata.creationTimestamp ?? this.#now(),
      skipQuiesce: spec.skipQuiesce === true,
      targetPath: claim?.metadata.uid ?? '',
      checkpoint: checkpointNameOf({ name: metadata.name ?? '', uid: metadata.uid ?? '' }),
      ...(tracker && { keepsCheckpoint: true }),
      ...(latest && spec.forceFullBackup !== true && { incremental: latest }),
      ...(capacity !== undefined && { maxBytes: quantityToBytes(String(capacity)) }),
    };
  }

  async start(backup: ReadonlyBackup): Promise<ReconcileResult> {
    const found = this.#sourceOf(backup);
    const wait = async (message: string): Promise<ReconcileResult> => {
      await this.#write(backup, (status) => setInitializing(status, message, this.#now()));
      return requeueAfter(RETRY_MS);
    };
    if (found.name === undefined) return wait(`BackupTracker ${backup.spec.source.name} does not exist`);
    if (backup.spec.mode === 'Pull') return this.#fail(backup, 'Failed', 'pull mode is not served here, mode Push is');
    const { namespace, name, vm, vmi, tracker } = found;
    const pvcName = backup.spec.pvcName ?? '';
    const target = { name: pvcName, claim: this.stores.claims.get({ namespace, name: pvcName }) };
    const obstacle = obstacleToBackup({ namespace, name, vm, vmi }, target);
    if (obstacle !== undefined || !vmi) return wait(obstacle ?? '');
    const other = vmi.status?.changedBlockTracking?.backupStatus?.backupName;
    if (other !== undefined && other !== backup.metadata.name)
      return wait(`another backup ${other} is already in progress, cannot start backup ${backup.metadata.name}`);
    if (!hasFinalizer(backup, BACKUP_FINALIZER)) {
      const before = backup as VirtualMachineBackup;
      await commit(this.client, VIRTUAL_MACHINE_BACKUPS, { before, after: addFinalizer(before, BACKUP_FINALIZER) });
      return;
    }
    await this.#ask(vmi, this.#requestOf(backup, tracker));
    await this.#write(backup, (status) => {
      setProgressing(status, this.#now());
      status.startTimestamp = this.#now();
    });
    return requeueAfter(RETRY_MS);
  }

  async goOn(backup: ReadonlyBackup): Promise<ReconcileResult> {
    const { vmi, tracker } = this.#sourceOf(backup);
    if (!vmi || !isRunning(vmi)) {
      const message = vmi ? `VMI is not in a running state: ${vmi.status?.phase}` : 'VMI was deleted during backup';
      await this.#fail(backup, vmi ? 'SourceUnhealthy' : 'SourceLost', message);
      return;
    }
    const report = reportOf(vmi, backup);
    if (report?.completed !== true) {
      if (report) await this.#write(backup, (status) => takeReport(status, report, this.#now()));
      await this.#ask(vmi, this.#requestOf(backup, tracker));
      return requeueAfter(RETRY_MS);
    }
    if (report.failed === true) {
      await this.#fail(backup, 'Failed', report.backupMsg ?? 'unknown, no completion message', report);
      return;
    }
    if (tracker && report.checkpointName !== undefined) {
      // So that the checkpoint goes with the tracker, and not before it is written down how.
      const volumes = (report.volumes ?? []).map(({ volumeName }) => volumeName).join();
      if (
        !hasFinalizer(tracker, CHECKPOINT_FINALIZER) ||
        tracker.metadata.annotations?.[CHECKPOINT_VOLUMES] !== volumes
      ) {
        const before = tracker as VirtualMachineBackupTracker;
        const after = cloneJson<VirtualMachineBackupTracker>(addFinalizer(before, CHECKPOINT_FINALIZER));
        after.metadata.annotations = { ...after.metadata.annotations, [CHECKPOINT_VOLUMES]: volumes };
        await commit(this.client, VIRTUAL_MACHINE_BACKUP_TRACKERS, { before, after });
      }
      const latestCheckpoint = { name: report.checkpointName, creationTime: report.startTimestamp };
      const body = { metadata: { uid: tracker.metadata.uid }, status: { latestCheckpoint } };
      await this.client.patch(
        VIRTUAL_MACHINE_BACKUP_TRACKERS,
        keyOf(tracker),
        { type: 'merge', body },
        { subresource: 'status' },
      );
    }
    await this.#write(backup, (status) => {
      takeReport(status, report, this.#now());
      if (!tracker) delete status.checkpointName;
      setComplete(status, this.#now());
    });
    this.#events.event(backup, 'Normal', 'VirtualMachineBackupCompletedSuccessfully', COMPLETED_MESSAGE);
  }

  /** The report of a backup that has ended, or goes, makes room for the next one. */
  async end(backup: ReadonlyBackup): Promise<ReconcileResult> {
    const { vmi } = this.#sourceOf(backup);
    const report = reportOf(vmi, backup);
    if (vmi && report) {
      if (report.completed !== true && isRunning(vmi)) {
        await this.#ask(vmi, { backupName: backup.metadata.name ?? '', cmd: 'Abort' });
        return requeueAfter(RETRY_MS / 5);
      }
      await this.#clearReport(vmi);
    }
    if (!isDeleting(backup) || !hasFinalizer(backup, BACKUP_FINALIZER)) return;
    const before = backup as VirtualMachineBackup;
    await commit(this.client, VIRTUAL_MACHINE_BACKUPS, { before, after: removeFinalizer(before, BACKUP_FINALIZER) });
  }

  ofMachine({ namespace, name }: { readonly namespace?: string; readonly name?: string }): ObjectKey[] {
    return this.stores.backups
      .list(namespace)
      .filter((backup) => this.#sourceOf(backup).name === name)
      .map((backup) => keyOf(backup));
  }
}
