import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { keyOf, keyText, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { hasEnded, isDeleting } from '@coracle/apimachinery/meta/object-state';
import { RESOURCE_QUOTAS } from '@coracle/apimachinery/types/resource-types';
import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import { orAbsent } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { type ReconcileResult, requeueAfter } from '@coracle/client/controller/controller';
import { ControllerSteps } from '@coracle/client/controller/controller-steps';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { createExpectations } from '@coracle/client/expectations/expectations';
import { removeFinalizer } from '@coracle/client/finalizer/finalizer';
import {
  type ReadonlyMigration,
  type ReadonlyVmi,
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  type VirtualMachineInstanceMigration,
} from '../../kinds/kubevirt.ts';
import { CREATED_BY_LABEL, MIGRATION_FINALIZER, MIGRATION_JOB_LABEL } from '../../rules/launcher/launcher-labels.ts';
import type { LauncherPodOptions } from '../../rules/launcher/launcher-pod.ts';
import { byAge, isLauncherReady } from '../../rules/launcher/launcher-pods.ts';
import { launcherPodInformer, launchersOf } from '../launcher-pod-informer.ts';
import { MigrationActions } from './migration-actions.ts';
import { nextMigrationStatus } from './migration-status.ts';
import { hasMoved, isUnderWay, phaseOf, stateOf } from './migration-view.ts';
import { pendingTimeout } from './pending-timeout.ts';
import { createMigrationStateClaims } from './state-claims.ts';
import { backoffUntil, mayStart, retryMs, type WaitingMigration } from './throttle.ts';

export interface MigrationControllerOptions extends ControllerEnvironment {
  /** Cluster settings that shape the target Pod, read at each start. */
  readonly settings: () => Omit<LauncherPodOptions, 'idLabel'>;
}

/** Finalised migrations kept for each instance. */
const KEPT = 5;

/** Pause until a migration that waits for the Pods of an earlier one looks again. */
const PODS_RETRY_MS = 1000;

export interface Pass {
  readonly key: ObjectKey;
  readonly migration: ReadonlyMigration;
  readonly vmi: ReadonlyVmi | undefined;
  readonly pods: readonly ReadonlyPod[];
  target: ReadonlyPod | undefined;
  readonly source: ReadonlyPod | undefined;
  quotaExceeded: boolean;
  /** What its phase asks for could not all be done yet. */
  failed: boolean;
  result: ReconcileResult;
}

/** The steps of a migration: start, what its phase asks for, save. */
export class MigrationSteps extends ControllerSteps<MigrationControllerOptions> {
  readonly migrations = this.options.informers
    .of(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS)
    .addIndex('instance', (one) => [`${one.metadata.namespace}/${one.spec.vmiName}`]);
  readonly vmis = this.options.informers.of(VIRTUAL_MACHINE_INSTANCES);
  readonly quotas = this.options.informers.of(RESOURCE_QUOTAS);
  readonly pods = launcherPodInformer(this.options);
  readonly #events = createEventRecorder(this.client, { ...this.options, component: 'virtualmachine-controller' });
  readonly actions = new MigrationActions({
    ...this.options,
    events: this.#events,
    launcher: this.options.settings,
  });
  readonly #stateClaims = createMigrationStateClaims(this.options);
  readonly expectations = createExpectations(this.clock);

  podsOf(vmi: ReadonlyVmi | undefined): readonly ReadonlyPod[] {
    return vmi ? launchersOf(this.pods, vmi).sort(byAge) : [];
  }

  vmiOf(migration: ReadonlyMigration): ReadonlyVmi | undefined {
    return this.vmis.get({ namespace: migration.metadata.namespace ?? '', name: migration.spec.vmiName ?? '' });
  }

  targetOf(migration: ReadonlyMigration, of: readonly ReadonlyPod[]): ReadonlyPod | undefined {
    return of.find((pod) => pod.metadata.labels?.[MIGRATION_JOB_LABEL] === migration.metadata.uid);
  }

  #ofSameInstance(migration: ReadonlyMigration): readonly ReadonlyMigration[] {
    return this.migrations.byIndex('instance', `${migration.metadata.namespace}/${migration.spec.vmiName}`);
  }

  /** The instance's state names another migration that has not ended. */
  #isBlocked(migration: ReadonlyMigration, vmi: ReadonlyVmi | undefined): boolean {
    const holder = vmi?.status?.migrationState?.migrationUid;
    if (!holder || holder === migration.metadata.uid) return false;
    return this.#ofSameInstance(migration).some((one) => one.metadata.uid === holder && !hasEnded(one));
  }

  #heldUntil(migration: ReadonlyMigration, vmi = this.vmiOf(migration)): number | undefined {
    return backoffUntil(migration, { vmi, others: this.#ofSameInstance(migration) });
  }

  /** Pending, nothing in its way but the limits: then where it would leave from. */
  #waitingAt(migration: ReadonlyMigration): string | undefined {
    if (phaseOf(migration) !== 'Pending' || isDeleting(migration)) return undefined;
    if ((this.#heldUntil(migration) ?? 0) > this.clock.now()) return undefined;
    const vmi = this.vmiOf(migration);
    const own = this.podsOf(vmi);
    if (vmi?.status?.phase !== 'Running' || own.filter((pod) => !hasEnded(pod)).length !== 1) return undefined;
    return this.expectations.satisfied(keyText(keyOf(migration))) ? vmi.status.nodeName : undefined;
  }

  /** Source nodes of the migrations that have a target Pod, or are about to. */
  #runningFrom(): string[] {
    return this.migrations
      .list()
      .filter(
        (one) =>
          !hasEnded(one) &&
          (isUnderWay(one) ||
            !this.expectations.satisfied(keyText(keyOf(one))) ||
            !!this.targetOf(one, this.podsOf(this.vmiOf(one)))),
      )
      .map((one) => {
        const vmi = this.vmiOf(one);
        return stateOf(vmi, one)?.sourceNode ?? vmi?.status?.nodeName ?? '';
      });
  }

  async start(pass: Pass, vmi: ReadonlyVmi): Promise<void> {
    const { migration, key } = pass;
    const until = this.#heldUntil(migration, vmi);
    if (until !== undefined && until > this.clock.now()) {
      this.#events.event(vmi, 'Warning', 'MigrationBackoff', `backoff migrating vmi ${keyText(keyOf(vmi))}`);
      pass.result = requeueAfter(until - this.clock.now());
      return;
    }
    if (vmi.status?.phase !== 'Running' || !pass.source) return;
    if (pass.pods.filter((pod) => !hasEnded(pod)).length > 1) {
      pass.result = requeueAfter(PODS_RETRY_MS);
      return;
    }
    const waiting = this.migrations.list().flatMap((one): WaitingMigration[] => {
      const sourceNode = this.#waitingAt(one);
      return sourceNode === undefined ? [] : [{ migration: one, sourceNode }];
    });
    if (!mayStart(migration, { waiting, running: this.#runningFrom(), limits: this.actions.settings() })) {
      pass.result = requeueAfter(retryMs(migration));
      return;
    }
    const claims = await this.#stateClaims.prepare(migration, vmi);
    if (claims === 'wait') {
      pass.result = requeueAfter(PODS_RETRY_MS);
      return;
    }
    this.expectations.expectCreations(keyText(key), 1);
    try {
      const { source } = pass;
      pass.target = await this.actions.createTarget({ migration, vmi, source, stateClaim: claims?.target });
    } catch (error) {
      this.expectations.creationFailed(keyText(key));
      pass.quotaExceeded = error instanceof Error && error.message.includes('exceeded quota');
      throw error;
    }
  }

  /** A target that is not taken up in time is given up; the phase follows from its absence. */
  async #watchPending(pass: Pass, vmi: ReadonlyVmi, target: ReadonlyPod): Promise<void> {
    const decision = pendingTimeout(pass.migration, target, this.clock.now());
    if (decision.unschedulable) {
      const wanted = this.actions.missingHostModel(vmi, target);
      if (wanted)
        this.#events.event(
          vmi,
          'Warning',
          'NoSuitableNodesForHostModelMigration',
          `Migration cannot proceed since no node is suitable to run the required CPU model / required features: ${wanted}`,
        );
      this.#events.event(
        pass.migration,
        'Warning',
        'migrationTargetPodUnschedulable',
        `Migration target pod for VMI [${vmi.metadata.namespace}/${vmi.metadata.name}] is currently unschedulable.`,
      );
    }
    if (decision.expired !== undefined) await this.actions.deleteTarget(pass.migration, target, decision.expired);
    else if (decision.checkInMs !== undefined) pass.result = requeueAfter(decision.checkInMs);
  }

  /** The instance did not go to that Pod, and cannot any more: asked of the API, since the cache may lag behind. */
  async #isTargetUseless(migration: ReadonlyMigration, target: ReadonlyPod): Promise<boolean> {
    const now = await this.actions.readVmi(migration.metadata.namespace ?? '', migration.spec.vmiName ?? '');
    if (!now || now.metadata.uid !== target.metadata.labels?.[CREATED_BY_LABEL]) return true;
    if (now.status?.nodeName === target.spec.nodeName && target.spec.nodeName) return false;
    if (hasEnded(now)) return true;
    const state = stateOf(now, migration);
    return state === undefined || state.failed === true;
  }

  /** What the phase asks for. */
  async act(pass: Pass): Promise<void> {
    const { migration, vmi, target } = pass;
    const state = vmi && stateOf(vmi, migration);
    // Before its end is shown: an instance that starts anew must find what counts.
    const moved = phaseOf(migration) === 'Succeeded' || hasMoved(vmi, state);
    if (moved || phaseOf(migration) === 'Failed') await this.#stateClaims.settle(migration, moved);
    if (!vmi) return;
    const podName = `${target?.metadata.namespace}/${target?.metadata.name}`;
    const canceled = `migration canceled and pod ${podName} is deleted`;
    switch (phaseOf(migration)) {
      case 'Pending':
      case 'Scheduling':
        if (isDeleting(migration) || isDeleting(vmi)) {
          if (isDeleting(migration) && target) await this.actions.deleteTarget(migration, target, canceled);
        } else if (this.#isBlocked(migration, vmi))
          throw new Error('vmi is ineligible for migration because another migration job is running');
        else if (target) {
          if (!isLauncherReady(target)) await this.#watchPending(pass, vmi, target);
        } else if (phaseOf(migration) === 'Pending') await this.start(pass, vmi);
        return;
      case 'Scheduled':
        if (isDeleting(migration) && !state) {
          if (target && (await this.#isTargetUseless(migration, target)))
            await this.actions.deleteTarget(migration, target, canceled);
        } else if (target && isLauncherReady(target) && !isDeleting(vmi))
          await this.actions.handOff({ migration, vmi, source: pass.source, target });
        return;
      case 'PreparingTarget':
      case 'TargetReady':
        if (isDeleting(migration))
          await this.actions.endUnstarted(migration, vmi, { reason: 'Migration was canceled', aborted: true });
        else if (!target || hasEnded(target))
          await this.actions.endUnstarted(migration, vmi, { reason: 'Target pod is down', aborted: false });
        return;
      case 'Running':
        if (isDeleting(migration)) await this.actions.requestAbort(migration, vmi);
        return;
      case 'Failed':
        await this.actions.endUnstarted(migration, vmi, { reason: 'Target pod is down', aborted: false });
        if (target && !hasEnded(target) && (await this.#isTargetUseless(migration, target)))
          await this.actions.deleteTarget(migration, target, `migration failed and pod ${podName} is deleted`);
        return;
    }
  }

  async #collectGarbage(migration: ReadonlyMigration): Promise<void> {
    const finished = this.#ofSameInstance(migration).filter((one) => hasEnded(one) && !isDeleting(one));
    for (const one of finished.sort(byAge).slice(0, Math.max(0, finished.length - KEPT))) await this.#remove(one);
  }

  async #remove(migration: ReadonlyMigration): Promise<void> {
    const preconditions = { uid: migration.metadata.uid ?? '' };
    await orAbsent(this.client.delete(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, keyOf(migration), { preconditions }));
  }

  /** Saves status, or lets go of the migration when it has ended and nothing is left to do. */
  async save(pass: Pass): Promise<void> {
    const { migration, vmi, target } = pass;
    const { status, event } = nextMigrationStatus({
      ...pass,
      sourcePod: pass.source?.metadata.name,
      blocked: this.#isBlocked(migration, vmi),
      now: this.clock.now(),
    });
    const before = migration as VirtualMachineInstanceMigration;
    if (!deepEqual(before.status ?? {}, status)) {
      const after = { ...before, status };
      await commit(this.client, VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { before, after, subresource: 'status' });
      if (event) this.#events.event(migration, event.type, event.reason, event.message);
      return;
    }
    if (!hasEnded(migration)) return;
    // Without the instance nobody asks for this migration any more.
    if (!vmi && !isDeleting(migration)) await this.#remove(migration);
    // The target of a failed migration must be on its way out before the object that knows of it may go.
    if (pass.failed) return;
    const left = phaseOf(migration) === 'Failed' && target && !hasEnded(target) && !target.metadata.deletionTimestamp;
    const after = removeFinalizer(before, MIGRATION_FINALIZER);
    if (!left && after !== before) await commit(this.client, VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { before, after });
    if (vmi) await this.#collectGarbage(migration);
  }

  pendingKeys(namespace?: string): ObjectKey[] {
    return this.migrations
      .list(namespace)
      .filter((one) => phaseOf(one) === 'Pending')
      .map((one) => keyOf(one));
  }
}
