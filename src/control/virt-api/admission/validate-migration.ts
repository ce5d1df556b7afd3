/** Rules about migrations. */
import type { VirtualMachineInstance, VirtualMachineInstanceMigration } from '../../../api/kinds/kubevirt/kubevirt.ts';
import { deepEqual } from '../../../api/meta/deep-equal.ts';
import type { DeepReadonly } from '../../../api/meta/object.ts';
import type { AdmissionContext } from './admission-context.ts';
import { type Cause, duplicateValue, invalidValue, missingValue, requiredValue, unsupportedValue } from './causes.ts';

type Migration = DeepReadonly<VirtualMachineInstanceMigration>;

const PRIORITIES = ['system-critical', 'user-triggered', 'system-maintenance'];

export const isFinalMigration = ({ status }: Migration): boolean =>
  status?.phase === 'Succeeded' || status?.phase === 'Failed';

/** Judges a new migration by its own fields; what it says of its instance is `validateMigrationOf`. */
export function validateMigrationSpec({ spec }: Migration, { config, trusted }: AdmissionContext): Cause[] {
  const causes: Cause[] = [];
  if (!spec.vmiName) causes.push(requiredValue('spec.vmiName', 'vmiName is missing'));
  if (spec.priority !== undefined && !PRIORITIES.includes(spec.priority)) {
    causes.push(unsupportedValue('spec.priority', `priority must be one of ${PRIORITIES.join(', ')}`));
  } else if (spec.priority !== undefined && !trusted) {
    causes.push(unsupportedValue('spec.priority', 'priority may be set by the migration controllers only'));
  }
  if (spec.sendTo !== undefined && spec.receive !== undefined) {
    causes.push(invalidValue('spec', 'sendTo and receive are mutually exclusive'));
  }
  if ((spec.sendTo ?? spec.receive) !== undefined && !config.isEnabled('DecentralizedLiveMigration')) {
    causes.push(invalidValue('spec', 'DecentralizedLiveMigration feature gate is not enabled'));
  }
  return causes;
}

/** Judges a new migration against its instance and the other migrations of the namespace. */
export function validateMigrationOf(
  migration: Migration,
  vmi: DeepReadonly<VirtualMachineInstance> | undefined,
  others: readonly Migration[],
): Cause[] {
  const { vmiName } = migration.spec;
  if (vmi === undefined)
    return [missingValue('spec.vmiName', `the VMI "${migration.metadata.namespace}/${vmiName}" does not exist`)];
  if (vmi.status?.phase === 'Succeeded' || vmi.status?.phase === 'Failed') {
    return [invalidValue('spec.vmiName', 'Cannot migrate VMI in finalized state.')];
  }
  const decentralized = migration.spec.sendTo !== undefined || migration.spec.receive !== undefined;
  const migratable = vmi.status?.conditions?.find(({ type }) => type === 'LiveMigratable');
  const tolerated = decentralized && migratable?.reason === 'DisksNotLiveMigratable';
  if (migratable?.status === 'False' && !tolerated) {
    return [
      invalidValue(
        'spec.vmiName',
        `Cannot migrate VMI, Reason: ${migratable.reason ?? ''}, Message: ${migratable.message ?? ''}`,
      ),
    ];
  }
  const running = others.find((other) => other.spec.vmiName === vmiName && !isFinalMigration(other));
  return running === undefined
    ? []
    : [
        duplicateValue(
          'spec.vmiName',
          `in-flight migration detected. Active migration job (${running.metadata.uid ?? running.metadata.name}) is currently already in progress for VMI ${vmiName}.`,
        ),
      ];
}

export const validateMigrationUpdate = (migration: Migration, old: Migration): Cause[] =>
  deepEqual(migration.spec, old.spec) ? [] : [unsupportedValue('', "update of Migration object's spec is restricted")];
