/**
 * The VirtualMachineRestore controller. One pass: target stopped, or wait as the policy says > lock it > claims > the
 * machine, which is written once and marked > its revisions and claims > what was replaced goes > let it go.
 */
import {
  VIRTUAL_MACHINE_RESTORES,
  type VirtualMachine,
  type VirtualMachineRestore,
  type VirtualMachineSnapshot,
  type VirtualMachineSnapshotContent,
} from '../../api/kinds/kubevirt/kubevirt.ts';
import { controllerReference } from '../../api/meta/controller-reference.ts';
import { cloneJson } from '../../api/meta/deep-clone.ts';
import { deepEqual } from '../../api/meta/deep-equal.ts';
import { type DeepReadonly, formatTime, keyOf, type ObjectKey } from '../../api/meta/object.ts';
import { ApiError } from '../../api/meta/status.ts';
import { isAlreadyExists, isConflict, orAbsent } from '../../client/api-failure.ts';
import { commit } from '../../client/commit/commit.ts';
import {
  type Controller,
  createController,
  DONE,
  ownKeys,
  type ReconcileResult,
  requeueAfter,
  source,
} from '../../client/controller/controller.ts';
import { addFinalizer, hasFinalizer, isDeleting, removeFinalizer } from '../../client/finalizer/finalizer.ts';
import { type Aspect, hasAspect, withCondition } from '../../domain/snapshot/conditions.ts';
import { graceLeft, notReady } from '../../domain/snapshot/readiness-policy.ts';
import { isMarked } from '../../domain/snapshot/restored-claim.ts';
import { RESTORE_FINALIZER } from '../../domain/snapshot/snapshot-names.ts';
import { isFailed, isReady } from '../../domain/snapshot/snapshot-status.ts';
import { deleteReplacedDataVolumes } from './restore-data-volumes.ts';
import { isStopped, lockTarget, restoreMachine, targetOf, unlockTarget } from './restore-machine.ts';
import { type RestorePass, RestoreProblem } from './restore-pass.ts';
import { claimRevisions } from './restore-revisions.ts';
import { deleteReplacedStateClaims } from './restore-state-claim.ts';
import { ownClaims, removeUnusedClaims, restoreVolumes } from './restore-volumes.ts';
import type { SnapshotControllerOptions } from './snapshot-controller.ts';
import { stopTarget } from './stop-target.ts';

type Restore = DeepReadonly<VirtualMachineRestore>;
type Vm = DeepReadonly<VirtualMachine>;

/** When a restore that waits looks again, whatever the watches say. */
const RETRY_MS = 5000;

const isComplete = ({ status }: Restore): boolean => status?.complete === true;
const isProgressing = (restore: Restore): boolean => !isComplete(restore) && !hasAspect(restore.status, 'Failure');

/** Its target was deleted: it goes with it, and must not make another one. */
const isOrphaned = ({ metadata }: Restore, target: Vm | undefined): boolean =>
  target === undefined && metadata.ownerReferences?.some(({ kind }) => kind === 'VirtualMachine') === true;

/** Makes the controller; nothing happens before `start`. */
export function createRestoreController(options: SnapshotControllerOptions): Controller {
  const { client, clock, log, stores, restores, events } = options;
  const { snapshots, contents, vms, vmis, claims } = stores;

  const say = (restore: VirtualMachineRestore, ...aspects: readonly Aspect[]): void => {
    restore.status ??= {};
    for (const aspect of aspects)
      restore.status.conditions = [...withCondition(restore.status.conditions ?? [], aspect, clock.now())];
  };
  const progress = (restore: VirtualMachineRestore, doing: string, waiting: string): void =>
    say(
      restore,
      { type: 'Progressing', status: 'True', reason: doing },
      { type: 'Ready', status: 'False', reason: waiting },
    );
  const halt = (restore: VirtualMachineRestore, reason: string): void =>
    say(restore, { type: 'Progressing', status: 'False', reason }, { type: 'Ready', status: 'False', reason });

  const saveStatus = async (before: Restore, after: VirtualMachineRestore): Promise<boolean> => {
    if (deepEqual(before.status ?? {}, after.status ?? {})) return false;
    const whole = before as VirtualMachineRestore;
    await commit(client, VIRTUAL_MACHINE_RESTORES, {
      before: whole,
      after: { ...whole, ...(after.status && { status: after.status }) },
      subresource: 'status',
    });
    return true;
  };

  /** The content of the snapshot, when it can be restored. */
  const contentOf = (restore: Restore): [Vm['metadata']['uid'], DeepReadonly<VirtualMachineSnapshotContent>] => {
    const namespace = restore.metadata.namespace ?? '';
    const name = restore.spec.virtualMachineSnapshotName;
    const text = `${namespace}/${name}`;
    const snapshot: DeepReadonly<VirtualMachineSnapshot> | undefined = snapshots.get({ namespace, name });
    if (snapshot === undefined) throw new RestoreProblem(`VMSnapshot ${text} does not exist`);
    if (isFailed(snapshot)) throw new RestoreProblem(`VMSnapshot ${text} failed and is invalid to use`);
    if (!isReady(snapshot)) throw new RestoreProblem(`VMSnapshot ${text} not ready`);
    const contentName = snapshot.status?.virtualMachineSnapshotContentName;
    if (contentName === undefined) throw new RestoreProblem(`no snapshot content name in ${text}`);
    const content = contents.get({ namespace, name: contentName });
    if (content === undefined) throw new RestoreProblem(`VMSnapshotContent ${namespace}/${contentName} does not exist`);
    if (!isReady(content)) throw new RestoreProblem(`VMSnapshotContent ${namespace}/${contentName} not ready`);
    return [snapshot.status?.sourceUID, content];
  };

  const waitForTarget = async (cached: Restore, target: Vm): Promise<ReconcileResult> => {
    const restore = cloneJson<VirtualMachineRestore>(cached);
    const outcome = notReady(cached, clock.now());
    if (outcome.type === 'failed') {
      halt(restore, 'Operation failed');
      say(restore, { type: 'Failure', status: 'True', reason: outcome.reason });
      await saveStatus(cached, restore);
      return DONE;
    }
    halt(restore, 'Waiting for target to be ready');
    if (!deepEqual(cached.status, restore.status))
      events.event(cached, 'Normal', 'RestoreTargetNotReady', 'Restore target VMI still exists');
    if (outcome.type === 'stop') await stopTarget(target, vmis.get(keyOf(target)), client);
    await saveStatus(cached, restore);
    return requeueAfter(Math.min(RETRY_MS, graceLeft(cached, clock.now()) ?? RETRY_MS));
  };

  /** The steps; each either ends the pass or leaves it to the next. */
  const work = async (restore: VirtualMachineRestore, target: Vm | undefined): Promise<ReconcileResult> => {
    const [sourceUid, content] = contentOf(restore);
    const pass: RestorePass = { restore, target, content, client, stores, events };
    const restored = target !== undefined && isMarked(target, restore);
    if (target !== undefined && !restored && sourceUid !== undefined && target.metadata.uid !== sourceUid)
      throw new RestoreProblem('restore source and restore target are different but restore target already exists');
    if ((await lockTarget(pass)) === 'waiting') return requeueAfter(RETRY_MS);
    if (!restored && (await restoreVolumes(pass)) === 'waiting') {
      progress(restore, 'Creating new PVCs', 'Waiting for new PVCs');
      return requeueAfter(RETRY_MS);
    }
    if ((await restoreMachine(pass)) === 'waiting' || (await claimRevisions(pass)) === 'waiting') {
      progress(restore, 'Updating target spec', 'Waiting for target update');
      return requeueAfter(RETRY_MS);
    }
    await ownClaims(pass);
    await deleteReplacedDataVolumes(pass);
    await deleteReplacedStateClaims(pass);
    await unlockTarget(target!, restore.metadata.name ?? '', client);
    const done = `Successfully completed VirtualMachineRestore ${restore.metadata.name}`;
    events.event(restore, 'Normal', 'VirtualMachineRestoreComplete', done);
    restore.status = { ...restore.status, complete: true, restoreTime: formatTime(clock.now()) };
    say(
      restore,
      { type: 'Progressing', status: 'False', reason: 'Operation complete' },
      { type: 'Ready', status: 'True', reason: 'Operation complete' },
    );
    return DONE;
  };

  const remove = async (cached: Restore, target: Vm | undefined): Promise<ReconcileResult> => {
    if (!hasFinalizer(cached, RESTORE_FINALIZER)) return DONE;
    const restore = cloneJson<VirtualMachineRestore>(cached);
    if (!isComplete(cached)) await removeUnusedClaims({ restore, target, client, stores, events });
    if (target !== undefined) await unlockTarget(target, cached.metadata.name ?? '', client);
    halt(restore, 'VM restore is deleting');
    if (await saveStatus(cached, restore)) return DONE;
    const before = cached as VirtualMachineRestore;
    await commit(client, VIRTUAL_MACHINE_RESTORES, { before, after: removeFinalizer(before, RESTORE_FINALIZER) });
    return DONE;
  };

  /** It belongs to its target, unless to somebody else, and holds itself until that is let go. */
  const hold = async (cached: Restore, target: Vm | undefined): Promise<boolean> => {
    const before = cached as VirtualMachineRestore;
    let after = addFinalizer(before, RESTORE_FINALIZER);
    if (target !== undefined && !after.metadata.ownerReferences?.length) {
      const owner = controllerReference({ ...target, apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine' });
      after = { ...after, metadata: { ...after.metadata, ownerReferences: [owner] } };
    }
    return (await commit(client, VIRTUAL_MACHINE_RESTORES, { before, after })) !== undefined;
  };

  const reconcile = async (cached: Restore): Promise<ReconcileResult> => {
    const restore = cloneJson<VirtualMachineRestore>(cached);
    if (cached.status === undefined) {
      restore.status = { complete: false };
      progress(restore, 'Initializing VirtualMachineRestore', 'Initializing VirtualMachineRestore');
      await saveStatus(cached, restore);
      return DONE;
    }
    const target = targetOf(cached, stores);
    if (isDeleting(cached)) return remove(cached, target);
    if (!isProgressing(cached) || isOrphaned(cached, target) || (await hold(cached, target))) return DONE;
    try {
      if (target !== undefined && !isStopped(target, stores)) return await waitForTarget(cached, target);
      const result = await work(restore, target);
      await saveStatus(cached, restore);
      return result;
    } catch (error) {
      // What somebody else wrote meanwhile is read, and tried again.
      if (isConflict(error) || isAlreadyExists(error)) throw error;
      if (!(error instanceof RestoreProblem) && !(error instanceof ApiError)) throw error;
      const { message } = error;
      const halted = cloneJson<VirtualMachineRestore>(cached);
      halt(halted, message);
      if (!deepEqual(halted.status, cached.status))
        events.event(
          cached,
          'Warning',
          'VirtualMachineRestoreError',
          `VirtualMachineRestore encountered error ${message}`,
        );
      await saveStatus(cached, halted);
      return requeueAfter(RETRY_MS);
    }
  };

  /** A machine that names a restore which is not there would never start again. */
  const releaseHeld = async ({ namespace, name }: ObjectKey): Promise<void> => {
    for (const vm of vms.list(namespace)) {
      if (vm.status?.restoreInProgress !== name) continue;
      const there = await orAbsent(client.get(VIRTUAL_MACHINE_RESTORES, { namespace, name }));
      if (there === undefined) await unlockTarget(vm, name, client);
    }
  };

  const open = (namespace: string | undefined): readonly Restore[] =>
    restores.list(namespace).filter((each) => !isComplete(each));
  const ofTarget = ({ metadata }: { readonly metadata: { readonly namespace?: string; readonly name?: string } }) =>
    open(metadata.namespace).flatMap((each) => (each.spec.target.name === metadata.name ? [keyOf(each)] : []));
  const ofSnapshot = (snapshot: DeepReadonly<VirtualMachineSnapshot>): ObjectKey[] =>
    open(snapshot.metadata.namespace).flatMap((each) =>
      each.spec.virtualMachineSnapshotName === snapshot.metadata.name ? [keyOf(each)] : [],
    );

  return createController({
    name: 'restore',
    client,
    log,
    clock,
    concurrency: 4,
    sources: [
      ownKeys(restores),
      source(snapshots, ofSnapshot),
      source(contents, ({ metadata }) => open(metadata.namespace).map((each) => keyOf(each))),
      source(vms, (vm) => {
        const name = vm.status?.restoreInProgress;
        return [...ofTarget(vm), ...(name === undefined ? [] : [{ namespace: vm.metadata.namespace ?? '', name }])];
      }),
      source(vmis, ofTarget),
      source(claims, ({ metadata }) => open(metadata.namespace).map((each) => keyOf(each))),
    ],
    reconcile: async (key) => {
      const restore = restores.get(key);
      if (restore !== undefined) return reconcile(restore);
      await releaseHeld(key);
      return DONE;
    },
  });
}
