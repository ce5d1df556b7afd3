/** Rules about migrations. */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { conditionOf, hasEnded } from '@coracle/apimachinery/meta/object-state';
import { readQuantity } from '@coracle/apimachinery/quantity/quantity';
import type { MigrationPolicy, ReadonlyMigration, ReadonlyVmi } from '../../../kinds/kubevirt.ts';
import type { AdmissionContext } from './admission-context.ts';
import { type Cause, Findings, invalidValue, unsupportedValue } from './causes.ts';
import { MIGRATION_SELECTOR_LABEL } from './mutate.ts';

const PRIORITIES = ['system-critical', 'user-triggered', 'system-maintenance'];

/** Validates a new migration by its own fields; what it says of its instance is `obstacleToMigration`. */
export function validateMigrationSpec(
  { spec }: ReadonlyMigration,
  { config, trusted }: AdmissionContext,
): readonly Cause[] {
  const found = new Findings('spec');
  const { priority, sendTo, receive } = spec;
  if (!spec.vmiName) found.required('.vmiName', 'vmiName is missing');
  if (priority !== undefined && !PRIORITIES.includes(priority))
    found.unsupported('.priority', `priority must be one of ${PRIORITIES.join(', ')}`);
  else if (priority !== undefined && !trusted) {
    const text = 'Migration priority queue, only virt-controller is allowed to set priority field';
    found.unsupported('.priority', text);
  }
  // Both together are a move within one cluster, to another namespace.
  if (sendTo !== undefined && receive !== undefined && sendTo.migrationID !== receive.migrationID)
    found.invalid('', 'sendTo and receive must name the same migrationID');
  if ((sendTo ?? receive) !== undefined && !config.isEnabled('DecentralizedLiveMigration'))
    found.invalid('', 'DecentralizedLiveMigration feature gate is not enabled in kubevirt resource');
  return found.causes;
}

/**
 * Why a migration cannot be for the sake of its instance or of another migration, undefined when it can. Upstream
 * answers these with 400 and no field.
 */
export function obstacleToMigration(
  migration: ReadonlyMigration,
  vmi: ReadonlyVmi | undefined,
  others: readonly ReadonlyMigration[],
): string | undefined {
  const { vmiName } = migration.spec;
  if (vmi === undefined) return `the VMI "${migration.metadata.namespace}/${vmiName}" does not exist`;
  if (hasEnded(vmi)) return 'Cannot migrate VMI in finalized state.';
  const decentralized = migration.spec.sendTo !== undefined || migration.spec.receive !== undefined;
  const migratable = conditionOf(vmi, 'LiveMigratable');
  const tolerated = decentralized && migratable?.reason === 'DisksNotLiveMigratable';
  if (migratable?.status === 'False' && !tolerated)
    return `Cannot migrate VMI, Reason: ${migratable.reason ?? ''}, Message: ${migratable.message ?? ''}`;
  const running = others.find((other) => other.spec.vmiName === vmiName && !hasEnded(other));
  if (running === undefined) return undefined;
  const job = running.metadata.uid ?? running.metadata.name;
  return `in-flight migration detected. Active migration job (${job}) is currently already in progress for VMI ${vmiName}.`;
}

/** A migration is what it was made as, and can be found by the label of its instance until it is done. */
export function validateMigrationUpdate(migration: ReadonlyMigration, old: ReadonlyMigration): Cause[] {
  if (!deepEqual(migration.spec, old.spec))
    return [unsupportedValue('', "update of Migration object's spec is restricted")];
  const before = old.metadata.labels?.[MIGRATION_SELECTOR_LABEL];
  if (hasEnded(migration) || before === undefined) return [];
  if (migration.metadata.labels === undefined)
    return [unsupportedValue('', "selector label can't be removed from an in-flight migration")];
  return migration.metadata.labels[MIGRATION_SELECTOR_LABEL] === before
    ? []
    : [unsupportedValue('', "selector label can't be modified on an in-flight migration")];
}

/** Findings about a MigrationPolicy: limits below nothing. */
export function validateMigrationPolicy({ spec }: DeepReadonly<MigrationPolicy>): Cause[] {
  const negative = (member: string, amount: bigint | number): Cause[] =>
    amount < 0 ? [invalidValue(`spec.${member}`, 'must not be negative')] : [];
  return [
    ...negative('completionTimeoutPerGiB', spec.completionTimeoutPerGiB ?? 0),
    ...negative('bandwidthPerMigration', readQuantity(spec.bandwidthPerMigration)?.nano ?? 0n),
  ];
}
