import { keyOf, keyText, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { conditionOf, hasEnded, isDeleting } from '@coracle/apimachinery/meta/object-state';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { createController, ownKeys, source } from '@coracle/client/controller/controller';
import type { Runnable } from '@coracle/client/controller/environment';
import { MIGRATION_JOB_LABEL, MIGRATION_JOB_NAME_ANNOTATION } from '../../rules/launcher/launcher-labels.ts';
import { currentPod } from '../../rules/launcher/launcher-pods.ts';
import { type MigrationControllerOptions, MigrationSteps, type Pass } from './migration-steps.ts';
import { stateClaimRules } from './state-claims.ts';
/** Rights the controller needs, and no others. */
export const migrationControllerRules = policyRules(
  'get list watch patch delete : kubevirt.io : virtualmachineinstancemigrations',
  'patch : kubevirt.io : virtualmachineinstancemigrations/status',
  'get list watch patch : kubevirt.io : virtualmachineinstances',
  'patch : kubevirt.io : virtualmachineinstances/status',
  // A Pod that blocks its owner's deletion takes this right on the owner.
  'update : kubevirt.io : virtualmachineinstances/finalizers',
  'get list watch : kubevirt.io : kubevirts',
  'get list watch : migrations.kubevirt.io : migrationpolicies',
  'get list watch create delete : core : pods',
  ...stateClaimRules,
  'get list watch : core : namespaces nodes resourcequotas',
  'create patch : core : events',
);

/** Makes the controller; nothing happens before `start`. */
export function createMigrationController(options: MigrationControllerOptions): Runnable {
  const steps = new MigrationSteps(options);
  const controller = createController({
    ...options,
    name: 'migration',
    concurrency: 4,
    sources: [
      ownKeys(steps.migrations),
      // Room for another one.
      source(steps.migrations, (one, previous) =>
        previous && (hasEnded(one) || isDeleting(one)) ? steps.pendingKeys() : [],
      ),
      source(steps.vmis, (vmi) =>
        steps.migrations.byIndex('instance', `${vmi.metadata.namespace}/${vmi.metadata.name}`).map((one) => keyOf(one)),
      ),
      source(steps.pods, (pod, previous) => {
        const namespace = pod.metadata.namespace ?? '';
        const name = pod.metadata.annotations?.[MIGRATION_JOB_NAME_ANNOTATION];
        if (pod.metadata.labels?.[MIGRATION_JOB_LABEL] === undefined || !name) return [];
        if (!previous) steps.expectations.observeCreation(keyText({ namespace, name }));
        return [{ namespace, name }];
      }),
      source(steps.quotas, (quota, previous) => {
        const isRejected = (key: ObjectKey): boolean =>
          conditionOf(steps.migrations.get(key), 'migrationRejectedByResourceQuota') !== undefined;
        return previous ? steps.pendingKeys(quota.metadata.namespace).filter(isRejected) : [];
      }),
    ],
    reconcile: async (key) => {
      const migration = steps.migrations.get(key);
      if (!migration) return steps.expectations.forget(keyText(key));
      if (!steps.expectations.satisfied(keyText(key))) return;
      // The cache of instances may lag behind that of migrations: absence is asked of the API.
      const vmi = steps.vmiOf(migration) ?? (await steps.actions.readVmi(key.namespace, migration.spec.vmiName ?? ''));
      const own = steps.podsOf(vmi);
      const pass: Pass = {
        key,
        migration,
        vmi,
        pods: own,
        target: steps.targetOf(migration, own),
        source: vmi ? currentPod(vmi, own) : undefined,
        quotaExceeded: false,
        failed: false,
        result: undefined,
      };
      let error: unknown;
      try {
        await steps.act(pass);
      } catch (thrown) {
        error = thrown;
        pass.failed = true;
      }
      await steps.save(pass);
      if (error) throw error;
      return pass.result;
    },
  });
  return {
    name: 'migration',
    start: async (signal) => {
      await Promise.all([steps.pods.start(signal), controller.start(signal)]);
    },
  };
}
