/**
 * Makes the migrations that bring more processors or memory to running guests, or a launcher of the present version, and takes
 * back those of changes called off; guests that cannot move are evicted where the cluster wants that.
 */

import { keyOf, keyText } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { NODES } from '@coracle/apimachinery/types/resource-types';
import type { Node } from '@coracle/apimachinery/types/types';
import { isApiError, orAbsent } from '@coracle/client/api-failure';
import { createController, requeueAfter, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment, Runnable } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { createExpectations } from '@coracle/client/expectations/expectations';
import {
  KUBEVIRTS,
  type ReadonlyMigration,
  type ReadonlyVmi,
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  type VirtualMachineInstanceMigration,
} from '../../kinds/kubevirt.ts';
import { WORKLOAD_UPDATE_ANNOTATION } from '../../rules/launcher/launcher-labels.ts';
import { hasPendingCondition, isMoving } from '../../rules/live-update/pending-changes.ts';
import {
  isOutdated,
  OUTDATED_LABEL,
  wantsToMove,
  workloadUpdatePlan,
} from '../../rules/live-update/workload-update-plan.ts';
import { migrationSettings } from '../../rules/migration-policy/migration-settings.ts';
import { createOutdatedLaunchers } from './outdated-launchers.ts';

/** Rights the controller needs, and no others. */
export const workloadUpdateControllerRules = policyRules(
  'get list watch create delete : kubevirt.io : virtualmachineinstancemigrations',
  'get list watch : kubevirt.io : kubevirts',
  'patch : kubevirt.io : kubevirts/status',
  'get list watch patch : kubevirt.io : virtualmachineinstances',
  'list : core : pods',
  'create : core : pods/eviction',
  'get list watch : core : nodes',
  'create patch : core : events',
);

/** All instances are looked at in one pass: there is one limit for all of them. */
const ALL = { namespace: '', name: 'workloads' };
/** Until it is looked again whether there is room for a migration that waits, or a node to go to. */
const WAITING_MS = 5000;

/** Makes the controller; nothing happens before `start`. */
export function createWorkloadUpdateController({ client, informers, clock, log }: ControllerEnvironment): Runnable {
  const nodes = informers.of<Node>(NODES);
  const vmis = informers.of(VIRTUAL_MACHINE_INSTANCES);
  const migrations = informers.of(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS);
  const kubevirts = informers.of(KUBEVIRTS);
  const events = createEventRecorder(client, { component: 'workload-update-controller', clock, log });
  /** By instance: a migration made for it that the cache does not show yet. */
  const expectations = createExpectations(clock);
  const textOf = (vmi: ReadonlyVmi): string => keyText(keyOf(vmi));

  /** It waits for something, or its launcher is, or is marked as, one of another version. */
  const concerns = (vmi: ReadonlyVmi): boolean =>
    hasPendingCondition(vmi) ||
    isOutdated(vmi, kubevirts.list()[0]) ||
    vmi.metadata.labels?.[OUTDATED_LABEL] !== undefined;

  const migrate = async (vmi: ReadonlyVmi): Promise<void> => {
    const text = textOf(vmi);
    // A migration that has just ended may be seen before what it brought.
    const newest = await orAbsent(client.get(VIRTUAL_MACHINE_INSTANCES, keyOf(vmi)));
    if (!newest || isMoving(newest) || !wantsToMove(newest, kubevirts.list()[0])) return;
    expectations.expectCreations(text, 1);
    try {
      const made = await client.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstanceMigration',
        metadata: {
          generateName: 'kubevirt-workload-update-',
          namespace: vmi.metadata.namespace ?? '',
          annotations: { [WORKLOAD_UPDATE_ANNOTATION]: '' },
        },
        spec: { vmiName: vmi.metadata.name ?? '', priority: 'user-triggered' },
      } as VirtualMachineInstanceMigration);
      const message = `Created Migration ${made.metadata.name} for automated workload update`;
      events.event(vmi, 'Normal', 'SuccessfulCreate', message);
    } catch (error) {
      expectations.creationFailed(text);
      const message = `Error creating a Migration for automated workload update: ${(error as Error).message}`;
      events.event(vmi, 'Warning', 'FailedCreate', message);
      throw error;
    }
  };

  const abort = async (migration: ReadonlyMigration): Promise<void> => {
    const { name = '', namespace = '', uid = '' } = migration.metadata;
    const vmi = vmis.get({ namespace, name: migration.spec.vmiName ?? '' });
    try {
      await client.delete(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { namespace, name }, { preconditions: { uid } });
      const message = `Aborted change for vmi: ${migration.spec.vmiName}`;
      if (vmi) events.event(vmi, 'Normal', 'SuccessfulChangeAbortion', message);
    } catch (error) {
      if (isApiError(error, 404, 409)) return;
      const message = `Failed to abort change for vmi: ${migration.spec.vmiName}: ${(error as Error).message}`;
      if (vmi) events.event(vmi, 'Normal', 'FailedChangeAbortion', message);
      throw error;
    }
  };

  const outdated = createOutdatedLaunchers(client, events);
  let evictedAt = Number.NEGATIVE_INFINITY;

  return createController({
    name: 'workload-update',
    client,
    log,
    clock,
    // Two passes at a time would each spend the same free slots.
    concurrency: 1,
    sources: [
      source(vmis, (vmi, previous) => (concerns(vmi) || (previous !== undefined && concerns(previous)) ? [ALL] : [])),
      source(migrations, (migration, previous) => {
        const key = { ...keyOf(migration), name: migration.spec.vmiName ?? '' };
        if (!previous) expectations.observeCreation(keyText(key));
        const vmi = vmis.get(key);
        return vmi && concerns(vmi) ? [ALL] : [];
      }),
      source(kubevirts, () => [ALL]),
    ],
    reconcile: async () => {
      const kubevirt = kubevirts.list()[0];
      const instances = vmis.list();
      const plan = workloadUpdatePlan({
        instances,
        migrations: migrations.list(),
        nodes: nodes.list(),
        kubevirt,
        parallelMigrationsPerCluster: migrationSettings(kubevirt).parallelMigrationsPerCluster,
        sinceEvictionMs: clock.monotonic() - evictedAt,
      });
      // One that fails must not hold up the others.
      const failures: unknown[] = [];
      const keep = (error: unknown) => failures.push(error);
      for (const { vmi, outdated: isOne } of plan.mark) await outdated.mark(vmi, isOne).catch(keep);
      await outdated.count(kubevirt, plan.outdated).catch(keep);
      if (plan.evict.length > 0) evictedAt = clock.monotonic();
      for (const vmi of plan.evict) await outdated.evict(vmi).catch(keep);
      for (const migration of plan.abort) await abort(migration).catch(keep);
      for (const vmi of plan.migrate) if (expectations.satisfied(textOf(vmi))) await migrate(vmi).catch(keep);
      if (failures.length > 0) throw failures[0];
      if (instances.some((vmi) => concerns(vmi))) return requeueAfter(WAITING_MS);
    },
  });
}
