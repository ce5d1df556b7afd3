/**
 * The VirtualMachineInstanceMigration controller: brings up a second launcher Pod within the limits, hands the migration
 * to the agents of both nodes, follows what they report, and clears up. One pass: act on the phase, then write the next.
 */
import { PODS, RESOURCE_QUOTAS } from '../../api/kinds/builtin/resource-types.ts';
import type { Pod } from '../../api/kinds/builtin/types.ts';
import {
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  type VirtualMachineInstanceMigration,
} from '../../api/kinds/kubevirt/kubevirt.ts';
import { deepEqual } from '../../api/meta/deep-equal.ts';
import { type DeepReadonly, keyOf, keyText, type ObjectKey } from '../../api/meta/object.ts';
import { isNotFound } from '../../client/api-failure.ts';
import { commit } from '../../client/commit/commit.ts';
import {
  createController,
  DONE,
  ownKeys,
  type ReconcileResult,
  requeueAfter,
  source,
} from '../../client/controller/controller.ts';
import type { ControllerEnvironment, Runnable } from '../../client/controller/environment.ts';
import { createEventRecorder } from '../../client/events/recorder.ts';
import { createExpectations } from '../../client/expectations/expectations.ts';
import { removeFinalizer } from '../../client/finalizer/finalizer.ts';
import { createInformer } from '../../client/informer/informer.ts';
import {
  CREATED_BY_LABEL,
  LAUNCHER_LABEL,
  LAUNCHER_VALUE,
  MIGRATION_JOB_LABEL,
  MIGRATION_JOB_NAME_ANNOTATION,
} from '../../domain/launcher/launcher-labels.ts';
import { isLauncherOf } from '../../domain/launcher/launcher-owner.ts';
import type { LauncherPodOptions } from '../../domain/launcher/launcher-pod.ts';
import { byAge, currentPod, isLauncherReady, isPodFinal } from '../../domain/launcher/launcher-pods.ts';
import { isFinal } from '../../domain/run-strategy/run-strategy.ts';
import { createMigrationActions } from './migration-actions.ts';
import { nextMigrationStatus } from './migration-status.ts';
import {
  byCreation,
  hasMoved,
  isDeleting,
  isFinalMigration,
  isUnderWay,
  MIGRATION_FINALIZER,
  phaseOf,
  type ReadonlyMigration,
  type ReadonlyVmi,
  stateOf,
} from './migration-view.ts';
import { pendingTimeout } from './pending-timeout.ts';
import { createMigrationStateClaims, stateClaimRules } from './state-claims.ts';
import { backoffUntil, mayStart, retryMs, type WaitingMigration } from './throttle.ts';

type ReadonlyPod = DeepReadonly<Pod>;

export interface MigrationControllerOptions extends ControllerEnvironment {
  /** Cluster settings that shape the target Pod, read at each start. */
  readonly settings: () => Omit<LauncherPodOptions, 'idLabel'>;
}

/** Rights the controller needs, and no others. */
export const migrationControllerRules = [
  {
    apiGroups: ['kubevirt.io'],
    resources: ['virtualmachineinstancemigrations'],
    verbs: ['get', 'list', 'watch', 'patch', 'delete'],
  },
  { apiGroups: ['kubevirt.io'], resources: ['virtualmachineinstancemigrations/status'], verbs: ['patch'] },
  {
    apiGroups: ['kubevirt.io'],
    resources: ['virtualmachineinstances'],
    verbs: ['get', 'list', 'watch', 'patch'],
  },
  { apiGroups: ['kubevirt.io'], resources: ['virtualmachineinstances/status'], verbs: ['patch'] },
  // A Pod that blocks its owner's deletion takes this right on the owner.
  { apiGroups: ['kubevirt.io'], resources: ['virtualmachineinstances/finalizers'], verbs: ['update'] },
  { apiGroups: ['kubevirt.io'], resources: ['kubevirts'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: ['migrations.kubevirt.io'], resources: ['migrationpolicies'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch', 'create', 'delete'] },
  ...stateClaimRules,
  { apiGroups: [''], resources: ['namespaces', 'nodes', 'resourcequotas'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
];

/** Finalised migrations kept for each instance. */
const KEPT = 5;
/** Pause until a migration that waits for the Pods of an earlier one looks again. */
const PODS_RETRY_MS = 1000;

interface Pass {
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

/** Makes the controller; nothing happens before `start`. */
export function createMigrationController(options: MigrationControllerOptions): Runnable {
  const { client, clock, log, informers } = options;
  const migrations = informers.of(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS);
  const vmis = informers.of(VIRTUAL_MACHINE_INSTANCES);
  const quotas = informers.of(RESOURCE_QUOTAS);
  const pods = createInformer(client, PODS, {
    clock,
    log,
    labelSelector: `${LAUNCHER_LABEL}=${LAUNCHER_VALUE}`,
    indexes: { instance: (pod) => [pod.metadata.labels?.[CREATED_BY_LABEL] ?? ''].filter((uid) => uid !== '') },
  });
  migrations.addIndex('instance', (one) => [`${one.metadata.namespace}/${one.spec.vmiName}`]);
  const events = createEventRecorder(client, { component: 'virtualmachine-controller', clock, log });
  const actions = createMigrationActions({ client, clock, log, informers, events, launcher: options.settings });
  const stateClaims = createMigrationStateClaims(options);
  const expectations = createExpectations(clock);

  const podsOf = (vmi: ReadonlyVmi | undefined): readonly ReadonlyPod[] =>
    vmi
      ? pods
          .byIndex('instance', vmi.metadata.uid ?? '')
          .filter((pod) => isLauncherOf(pod, vmi))
          .sort(byAge)
      : [];
  const vmiOf = (migration: ReadonlyMigration): ReadonlyVmi | undefined =>
    vmis.get({ namespace: migration.metadata.namespace ?? '', name: migration.spec.vmiName ?? '' });
  const targetOf = (migration: ReadonlyMigration, of: readonly ReadonlyPod[]): ReadonlyPod | undefined =>
    of.find((pod) => pod.metadata.labels?.[MIGRATION_JOB_LABEL] === migration.metadata.uid);
  const ofSameInstance = (migration: ReadonlyMigration): readonly ReadonlyMigration[] =>
    migrations.byIndex('instance', `${migration.metadata.namespace}/${migration.spec.vmiName}`);
  const textOf = (migration: ReadonlyMigration): string => keyText(keyOf(migration));

  /** The instance's state names another migration that has not ended. */
  const isBlocked = (migration: ReadonlyMigration, vmi: ReadonlyVmi | undefined): boolean => {
    const holder = vmi?.status?.migrationState?.migrationUid;
    if (!holder || holder === migration.metadata.uid) return false;
    return ofSameInstance(migration).some((one) => one.metadata.uid === holder && !isFinalMigration(one));
  };
  const heldUntil = (migration: ReadonlyMigration, vmi = vmiOf(migration)): number | undefined =>
    backoffUntil(migration, { vmi, others: ofSameInstance(migration) });
  const isBackingOff = (migration: ReadonlyMigration): boolean => (heldUntil(migration) ?? 0) > clock.now();
  /** Pending, nothing in its way but the limits: then where it would leave from. */
  const waitingAt = (migration: ReadonlyMigration): string | undefined => {
    if (phaseOf(migration) !== 'Pending' || isDeleting(migration) || isBackingOff(migration)) return undefined;
    const vmi = vmiOf(migration);
    const own = podsOf(vmi);
    if (vmi?.status?.phase !== 'Running' || own.filter((pod) => !isPodFinal(pod)).length !== 1) return undefined;
    return expectations.satisfied(textOf(migration)) ? vmi.status.nodeName : undefined;
  };
  /** Source nodes of the migrations that have a target Pod, or are about to. */
  const runningFrom = (): string[] =>
    migrations
      .list()
      .filter((one) => {
        if (isFinalMigration(one)) return false;
        return isUnderWay(one) || !expectations.satisfied(textOf(one)) || !!targetOf(one, podsOf(vmiOf(one)));
      })
      .map((one) => {
        const vmi = vmiOf(one);
        return stateOf(vmi, one)?.sourceNode ?? vmi?.status?.nodeName ?? '';
      });

  const start = async (pass: Pass, vmi: ReadonlyVmi): Promise<void> => {
    const { migration, key } = pass;
    const until = heldUntil(migration, vmi);
    if (until !== undefined && until > clock.now()) {
      events.event(
        vmi,
        'Warning',
        'MigrationBackoff',
        `backoff migrating vmi ${vmi.metadata.namespace}/${vmi.metadata.name}`,
      );
      pass.result = requeueAfter(until - clock.now());
      return;
    }
    if (vmi.status?.phase !== 'Running' || !pass.source) return;
    if (pass.pods.filter((pod) => !isPodFinal(pod)).length > 1) {
      pass.result = requeueAfter(PODS_RETRY_MS);
      return;
    }
    const waiting = migrations.list().flatMap((one): WaitingMigration[] => {
      const sourceNode = waitingAt(one);
      return sourceNode === undefined ? [] : [{ migration: one, sourceNode }];
    });
    if (!mayStart(migration, { waiting, running: runningFrom(), limits: actions.settings() })) {
      pass.result = requeueAfter(retryMs(migration));
      return;
    }
    const claims = await stateClaims.prepare(migration, vmi);
    if (claims === 'wait') {
      pass.result = requeueAfter(PODS_RETRY_MS);
      return;
    }
    expectations.expectCreations(keyText(key), 1);
    try {
      pass.target = await actions.createTarget({ migration, vmi, source: pass.source, stateClaim: claims?.target });
    } catch (error) {
      expectations.creationFailed(keyText(key));
      pass.quotaExceeded = error instanceof Error && error.message.includes('exceeded quota');
      throw error;
    }
  };

  /** A target that is not taken up in time is given up; the phase follows from its absence. */
  const watchPending = async (pass: Pass, vmi: ReadonlyVmi, target: ReadonlyPod): Promise<void> => {
    const verdict = pendingTimeout(pass.migration, target, clock.now());
    if (verdict.unschedulable) {
      const wanted = actions.missingHostModel(vmi, target);
      if (wanted)
        events.event(
          vmi,
          'Warning',
          'NoSuitableNodesForHostModelMigration',
          `Migration cannot proceed since no node is suitable to run the required CPU model / required features: ${wanted}`,
        );
      events.event(
        pass.migration,
        'Warning',
        'migrationTargetPodUnschedulable',
        `Migration target pod for VMI [${vmi.metadata.namespace}/${vmi.metadata.name}] is currently unschedulable.`,
      );
    }
    if (verdict.expired !== undefined) await actions.deleteTarget(pass.migration, target, verdict.expired);
    else if (verdict.checkInMs !== undefined) pass.result = requeueAfter(verdict.checkInMs);
  };

  /** The instance did not go to that Pod, and cannot any more: asked of the API, since the cache may lag behind. */
  const isTargetUseless = async (migration: ReadonlyMigration, target: ReadonlyPod): Promise<boolean> => {
    const now = await actions.readVmi(migration.metadata.namespace ?? '', migration.spec.vmiName ?? '');
    if (!now || now.metadata.uid !== target.metadata.labels?.[CREATED_BY_LABEL]) return true;
    if (now.status?.nodeName === target.spec.nodeName && target.spec.nodeName) return false;
    if (isFinal(now.status?.phase)) return true;
    const state = stateOf(now, migration);
    return state === undefined || state.failed === true;
  };

  /** What the phase asks for. */
  const act = async (pass: Pass): Promise<void> => {
    const { migration, vmi, target } = pass;
    const state = vmi && stateOf(vmi, migration);
    // Before its end is shown: an instance that starts anew must find what counts.
    const moved = phaseOf(migration) === 'Succeeded' || hasMoved(vmi, state);
    if (moved || phaseOf(migration) === 'Failed') await stateClaims.settle(migration, moved);
    if (!vmi) return;
    const canceled = `migration canceled and pod ${target?.metadata.namespace}/${target?.metadata.name} is deleted`;
    switch (phaseOf(migration)) {
      case 'Pending':
      case 'Scheduling':
        if (isDeleting(migration) || vmi.metadata.deletionTimestamp !== undefined) {
          if (isDeleting(migration) && target) await actions.deleteTarget(migration, target, canceled);
        } else if (isBlocked(migration, vmi))
          throw new Error('vmi is ineligible for migration because another migration job is running');
        else if (target) {
          if (!isLauncherReady(target)) await watchPending(pass, vmi, target);
        } else if (phaseOf(migration) === 'Pending') await start(pass, vmi);
        return;
      case 'Scheduled':
        if (isDeleting(migration) && !state) {
          if (target && (await isTargetUseless(migration, target)))
            await actions.deleteTarget(migration, target, canceled);
        } else if (target && isLauncherReady(target) && vmi.metadata.deletionTimestamp === undefined)
          await actions.handOff({ migration, vmi, source: pass.source, target });
        return;
      case 'PreparingTarget':
      case 'TargetReady':
        if (isDeleting(migration))
          await actions.endUnstarted(migration, vmi, { reason: 'Migration was canceled', aborted: true });
        else if (!target || isPodFinal(target))
          await actions.endUnstarted(migration, vmi, { reason: 'Target pod is down', aborted: false });
        return;
      case 'Running':
        if (isDeleting(migration)) await actions.requestAbort(migration, vmi);
        return;
      case 'Failed':
        await actions.endUnstarted(migration, vmi, { reason: 'Target pod is down', aborted: false });
        if (target && !isPodFinal(target) && (await isTargetUseless(migration, target)))
          await actions.deleteTarget(
            migration,
            target,
            `migration failed and pod ${target.metadata.namespace}/${target.metadata.name} is deleted`,
          );
        return;
      default:
        return;
    }
  };

  const collectGarbage = async (migration: ReadonlyMigration): Promise<void> => {
    const finished = ofSameInstance(migration).filter((one) => isFinalMigration(one) && !isDeleting(one));
    for (const one of [...finished].sort(byCreation).slice(0, Math.max(0, finished.length - KEPT))) await remove(one);
  };
  const remove = async (migration: ReadonlyMigration): Promise<void> => {
    try {
      await client.delete(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, keyOf(migration), {
        preconditions: { uid: migration.metadata.uid ?? '' },
      });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  };

  /** Saves status, or lets go of the migration when it has ended and nothing is left to do. */
  const save = async (pass: Pass): Promise<void> => {
    const { migration, vmi, target } = pass;
    const { status, event } = nextMigrationStatus({
      migration,
      vmi,
      target,
      sourcePod: pass.source?.metadata.name,
      blocked: isBlocked(migration, vmi),
      quotaExceeded: pass.quotaExceeded,
      now: clock.now(),
    });
    const before = migration as VirtualMachineInstanceMigration;
    if (!deepEqual(before.status ?? {}, status)) {
      await commit(client, VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, {
        before,
        after: { ...before, status },
        subresource: 'status',
      });
      if (event) events.event(migration, event.type, event.reason, event.message);
      return;
    }
    if (!isFinalMigration(migration)) return;
    // Without the instance nobody asks for this migration any more.
    if (!vmi && !isDeleting(migration)) await remove(migration);
    // The target of a failed migration must be on its way out before the object that knows of it may go.
    if (pass.failed) return;
    const left = phaseOf(migration) === 'Failed' && target && !isPodFinal(target) && !target.metadata.deletionTimestamp;
    const after = removeFinalizer(before, MIGRATION_FINALIZER);
    if (!left && after !== before) await commit(client, VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { before, after });
    if (vmi) await collectGarbage(migration);
  };

  const pendingKeys = (namespace?: string): ObjectKey[] =>
    migrations
      .list(namespace)
      .filter((one) => phaseOf(one) === 'Pending')
      .map((one) => keyOf(one));

  const controller = createController({
    name: 'migration',
    client,
    log,
    clock,
    concurrency: 4,
    sources: [
      ownKeys(migrations),
      // Room for another one.
      source(migrations, (one, previous) =>
        previous && (isFinalMigration(one) || isDeleting(one)) ? pendingKeys() : [],
      ),
      source(vmis, (vmi) =>
        migrations.byIndex('instance', `${vmi.metadata.namespace}/${vmi.metadata.name}`).map((one) => keyOf(one)),
      ),
      source(pods, (pod, previous) => {
        const namespace = pod.metadata.namespace ?? '';
        const name = pod.metadata.annotations?.[MIGRATION_JOB_NAME_ANNOTATION];
        if (pod.metadata.labels?.[MIGRATION_JOB_LABEL] === undefined || !name) return [];
        if (!previous) expectations.observeCreation(keyText({ namespace, name }));
        return [{ namespace, name }];
      }),
      source(quotas, (quota, previous) =>
        previous
          ? pendingKeys(quota.metadata.namespace).filter((key) =>
              migrations.get(key)?.status?.conditions?.some(({ type }) => type === 'migrationRejectedByResourceQuota'),
            )
          : [],
      ),
    ],
    reconcile: async (key) => {
      const migration = migrations.get(key);
      if (!migration) {
        expectations.forget(keyText(key));
        return DONE;
      }
      if (!expectations.satisfied(keyText(key))) return DONE;
      let vmi = vmiOf(migration);
      // The cache of instances may lag behind that of migrations: absence is asked of the API.
      vmi ??= await actions.readVmi(key.namespace, migration.spec.vmiName ?? '');
      const own = podsOf(vmi);
      const pass: Pass = {
        key,
        migration,
        vmi,
        pods: own,
        target: targetOf(migration, own),
        source: vmi ? currentPod(vmi, own) : undefined,
        quotaExceeded: false,
        failed: false,
        result: DONE,
      };
      let error: unknown;
      try {
        await act(pass);
      } catch (thrown) {
        error = thrown;
        pass.failed = true;
      }
      await save(pass);
      if (error) throw error;
      return pass.result;
    },
  });
  return {
    name: 'migration',
    start: async (signal) => {
      await Promise.all([pods.start(signal), controller.start(signal)]);
    },
  };
}
