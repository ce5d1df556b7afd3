import { controllerReference } from '@coracle/apimachinery/meta/controller-reference';
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { formatTime, keyOf, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { isAlreadyExists, isConflict, orAbsent } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { type ReconcileResult, requeueAfter } from '@coracle/client/controller/controller';
import { ControllerSteps } from '@coracle/client/controller/controller-steps';
import { addFinalizer, hasFinalizer, removeFinalizer } from '@coracle/client/finalizer/finalizer';
import {
  type ReadonlyContent,
  type ReadonlyRestore,
  type ReadonlySnapshot,
  type ReadonlyVm,
  VIRTUAL_MACHINE_RESTORES,
  type VirtualMachineRestore,
} from '../../kinds/kubevirt.ts';
import { type ConditionValue, hasCondition, withCondition } from '../../rules/snapshot/conditions.ts';
import { graceLeft, notReady } from '../../rules/snapshot/readiness-policy.ts';
import { isMarked } from '../../rules/snapshot/restored-claim.ts';
import { RESTORE_FINALIZER } from '../../rules/snapshot/snapshot-names.ts';
import { isFailed, isReady } from '../../rules/snapshot/snapshot-status.ts';
import { deleteReplacedDataVolumes } from './restore-data-volumes.ts';
import { isStopped, lockTarget, restoreMachine, targetOf, unlockTarget } from './restore-machine.ts';
import { type RestorePass, RestoreProblem } from './restore-pass.ts';
import { claimRevisions } from './restore-revisions.ts';
import { deleteReplacedStateClaims } from './restore-state-claim.ts';
import { ownClaims, removeUnusedClaims, restoreVolumes } from './restore-volumes.ts';
import type { SnapshotControllerOptions } from './snapshot-controller.ts';
import { stopTarget } from './stop-target.ts';

/** When a restore that waits looks again, whatever the watches say. */
const RETRY_MS = 5000;

const isComplete = ({ status }: ReadonlyRestore): boolean => status?.complete === true;

const isProgressing = (restore: ReadonlyRestore): boolean =>
  !isComplete(restore) && !hasCondition(restore.status, 'Failure');

/** Its target was deleted: it goes with it, and must not make another one. */
const isOrphaned = ({ metadata }: ReadonlyRestore, target: ReadonlyVm | undefined): boolean =>
  target === undefined && metadata.ownerReferences?.some(({ kind }) => kind === 'VirtualMachine') === true;

/** The steps of a VirtualMachineRestore. */
export class RestoreSteps extends ControllerSteps<SnapshotControllerOptions> {
  readonly #stores = this.options.stores;
  readonly #events = this.options.events;
  readonly restores = this.options.restores;
  readonly snapshots = this.#stores.snapshots;
  readonly contents = this.#stores.contents;
  readonly vms = this.#stores.vms;
  readonly vmis = this.#stores.vmis;
  readonly claims = this.#stores.claims;

  #say(restore: VirtualMachineRestore, ...aspects: readonly ConditionValue[]): void {
    restore.status ??= {};
    for (const aspect of aspects)
      restore.status.conditions = [...withCondition(restore.status.conditions ?? [], aspect, this.clock.now())];
  }

  #progress(restore: VirtualMachineRestore, doing: string, waiting: string): void {
    this.#say(
      restore,
      { type: 'Progressing', status: 'True', reason: doing },
      { type: 'Ready', status: 'False', reason: waiting },
    );
  }

  #halt(restore: VirtualMachineRestore, reason: string): void {
    this.#say(restore, { type: 'Progressing', status: 'False', reason }, { type: 'Ready', status: 'False', reason });
  }

  async #saveStatus(before: ReadonlyRestore, after: VirtualMachineRestore): Promise<boolean> {
    if (deepEqual(before.status ?? {}, after.status ?? {})) return false;
    const whole = before as VirtualMachineRestore;
    await commit(this.client, VIRTUAL_MACHINE_RESTORES, {
      before: whole,
      after: { ...whole, ...(after.status && { status: after.status }) },
      subresource: 'status',
    });
    return true;
  }

  /** The content of the snapshot, when it can be restored. */
  #contentOf(restore: ReadonlyRestore): [ReadonlyVm['metadata']['uid'], ReadonlyContent] {
    const namespace = restore.metadata.namespace ?? '';
    const name = restore.spec.virtualMachineSnapshotName;
    const text = `${namespace}/${name}`;
    const snapshot: ReadonlySnapshot | undefined = this.snapshots.get({ namespace, name });
    if (snapshot === undefined) throw new RestoreProblem(`VMSnapshot ${text} does not exist`);
    if (isFailed(snapshot)) throw new RestoreProblem(`VMSnapshot ${text} failed and is invalid to use`);
    if (!isReady(snapshot)) throw new RestoreProblem(`VMSnapshot ${text} not ready`);
    const contentName = snapshot.status?.virtualMachineSnapshotContentName;
    if (contentName === undefined) throw new RestoreProblem(`no snapshot content name in ${text}`);
    const content = this.contents.get({ namespace, name: contentName });
    if (content === undefined) throw new RestoreProblem(`VMSnapshotContent ${namespace}/${contentName} does not exist`);
    if (!isReady(content)) throw new RestoreProblem(`VMSnapshotContent ${namespace}/${contentName} not ready`);
    return [snapshot.status?.sourceUID, content];
  }

  async #waitForTarget(cached: ReadonlyRestore, target: ReadonlyVm): Promise<ReconcileResult> {
    const restore = cloneJson<VirtualMachineRestore>(cached);
    const outcome = notReady(cached, this.clock.now());
    if (outcome.type === 'failed') {
      this.#halt(restore, outcome.reason);
      this.#say(restore, { type: 'Failure', status: 'True', reason: outcome.reason });
      // The reason has a space as upstream's has.
      this.#events.event(cached, 'Warning', 'Operation failed', `VirtualMachineRestore failed ${outcome.reason}`);
      await this.#saveStatus(cached, restore);
      return;
    }
    this.#halt(restore, outcome.reason);
    if (!deepEqual(cached.status, restore.status))
      this.#events.event(
        cached,
        'Warning',
        'RestoreTargetNotReady',
        outcome.type === 'stop'
          ? outcome.reason
          : 'Restore target VMI still exists, please stop the restore target to proceed with restore',
      );
    if (outcome.type === 'stop') await stopTarget(target, this.vmis.get(keyOf(target)), this.client);
    await this.#saveStatus(cached, restore);
    return requeueAfter(Math.min(RETRY_MS, graceLeft(cached, this.clock.now()) ?? RETRY_MS));
  }

  /** The steps; each either ends the pass or leaves it to the next. */
  async #work(restore: VirtualMachineRestore, target: ReadonlyVm | undefined): Promise<ReconcileResult> {
    const [sourceUid, content] = this.#contentOf(restore);
    const pass: RestorePass = {
      restore,
      target,
      content,
      client: this.client,
      stores: this.#stores,
      events: this.#events,
    };
    const restored = target !== undefined && isMarked(target, restore);
    if (target !== undefined && !restored && sourceUid !== undefined && target.metadata.uid !== sourceUid)
      throw new RestoreProblem('restore source and restore target are different but restore target already exists');
    if ((await lockTarget(pass)) === 'waiting') return requeueAfter(RETRY_MS);
    if (!restored && (await restoreVolumes(pass)) === 'waiting') {
      this.#progress(restore, 'Creating new PVCs', 'Waiting for new PVCs');
      return requeueAfter(RETRY_MS);
    }
    if ((await restoreMachine(pass)) === 'waiting' || (await claimRevisions(pass)) === 'waiting') {
      this.#progress(restore, 'Updating target spec', 'Waiting for target update');
      return requeueAfter(RETRY_MS);
    }
    await ownClaims(pass);
    await deleteReplacedDataVolumes(pass);
    await deleteReplacedStateClaims(pass);
    await unlockTarget(target!, restore.metadata.name ?? '', this.client);
    const done = `Successfully completed VirtualMachineRestore ${restore.metadata.name}`;
    this.#events.event(restore, 'Normal', 'VirtualMachineRestoreComplete', done);
    restore.status = { ...restore.status, complete: true, restoreTime: formatTime(this.clock.now()) };
    this.#say(
      restore,
      { type: 'Progressing', status: 'False', reason: 'Operation complete' },
      { type: 'Ready', status: 'True', reason: 'Operation complete' },
    );
  }

  async #remove(cached: ReadonlyRestore, target: ReadonlyVm | undefined): Promise<ReconcileResult> {
    if (!hasFinalizer(cached, RESTORE_FINALIZER)) return;
    const restore = cloneJson<VirtualMachineRestore>(cached);
    if (!isComplete(cached))
      await removeUnusedClaims({ restore, target, client: this.client, stores: this.#stores, events: this.#events });
    if (target !== undefined) await unlockTarget(target, cached.metadata.name ?? '', this.client);
    this.#halt(restore, 'VM restore is deleting');
    if (await this.#saveStatus(cached, restore)) return;
    const before = cached as VirtualMachineRestore;
    await commit(this.client, VIRTUAL_MACHINE_RESTORES, { before, after: removeFinalizer(before, RESTORE_FINALIZER) });
  }

  /** It belongs to its target, unless to somebody else, and holds itself until that is let go. */
  async #hold(cached: ReadonlyRestore, target: ReadonlyVm | undefined): Promise<boolean> {
    const before = cached as VirtualMachineRestore;
    let after = addFinalizer(before, RESTORE_FINALIZER);
    if (target !== undefined && !after.metadata.ownerReferences?.length) {
      const owner = controllerReference({ ...target, apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine' });
      after = { ...after, metadata: { ...after.metadata, ownerReferences: [owner] } };
    }
    return (await commit(this.client, VIRTUAL_MACHINE_RESTORES, { before, after })) !== undefined;
  }

  async reconcile(cached: ReadonlyRestore): Promise<ReconcileResult> {
    const restore = cloneJson<VirtualMachineRestore>(cached);
    if (cached.status === undefined) {
      restore.status = { complete: false };
      this.#progress(restore, 'Initializing VirtualMachineRestore', 'Initializing VirtualMachineRestore');
      await this.#saveStatus(cached, restore);
      return;
    }
    const target = targetOf(cached, this.#stores);
    if (isDeleting(cached)) return this.#remove(cached, target);
    if (!isProgressing(cached) || isOrphaned(cached, target) || (await this.#hold(cached, target))) return;
    try {
      if (target !== undefined && !isStopped(target, this.#stores)) return await this.#waitForTarget(cached, target);
      const result = await this.#work(restore, target);
      await this.#saveStatus(cached, restore);
      return result;
    } catch (error) {
      // What somebody else wrote meanwhile is read, and tried again.
      if (isConflict(error) || isAlreadyExists(error)) throw error;
      if (!(error instanceof RestoreProblem) && !(error instanceof ApiError)) throw error;
      const { message } = error;
      const halted = cloneJson<VirtualMachineRestore>(cached);
      this.#halt(halted, message);
      if (!deepEqual(halted.status, cached.status))
        this.#events.event(
          cached,
          'Warning',
          'VirtualMachineRestoreError',
          `VirtualMachineRestore encountered error ${message}`,
        );
      await this.#saveStatus(cached, halted);
      return requeueAfter(RETRY_MS);
    }
  }

  /** A machine that names a restore which is not there would never start again. */
  async releaseHeld({ namespace, name }: ObjectKey): Promise<void> {
    for (const vm of this.vms.list(namespace)) {
      if (vm.status?.restoreInProgress !== name) continue;
      const there = await orAbsent(this.client.get(VIRTUAL_MACHINE_RESTORES, { namespace, name }));
      if (there === undefined) await unlockTarget(vm, name, this.client);
    }
  }

  open(namespace: string | undefined): readonly ReadonlyRestore[] {
    return this.restores.list(namespace).filter((each) => !isComplete(each));
  }

  readonly ofTarget = ({
    metadata,
  }: {
    readonly metadata: { readonly namespace?: string; readonly name?: string };
  }) => {
    return this.open(metadata.namespace).flatMap((each) =>
      each.spec.target.name === metadata.name ? [keyOf(each)] : [],
    );
  };

  readonly ofSnapshot = (snapshot: ReadonlySnapshot): ObjectKey[] => {
    return this.open(snapshot.metadata.namespace).flatMap((each) =>
      each.spec.virtualMachineSnapshotName === snapshot.metadata.name ? [keyOf(each)] : [],
    );
  };
}
