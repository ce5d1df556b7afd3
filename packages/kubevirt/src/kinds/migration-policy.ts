/** MigrationPolicy: settings of the migrations of the instances it selects (migrations.kubevirt.io/v1alpha1). */
import type { Static } from 'typebox';
import { bool, long, needed, object, quantity, stringMap } from './fields.ts';

export const migrationPolicySpec = object('Whom it selects, and how those migrate.', {
  selectors: needed(
    object('Whom it selects: both must match.', {
      namespaceSelector: stringMap('Labels of the namespace.'),
      virtualMachineInstanceSelector: stringMap('Labels of the instance.'),
    }),
  ),
  allowAutoConverge: bool('Slows the guest down until the migration converges.'),
  bandwidthPerMigration: quantity('Bytes a second that one migration may use.'),
  completionTimeoutPerGiB: long('Seconds a migration may take for each GiB.'),
  maxDowntimeMs: long('Longest pause at the switch-over, in milliseconds.', { minimum: 1, maximum: 2000000 }),
  allowPostCopy: bool('Starts the target before all memory is there.'),
  allowWorkloadDisruption: bool('Lets a migration that does not converge pause the guest or turn to post-copy.'),
});

export const migrationPolicyStatus = object('What is known of the policy.', {}, { nullable: true });

export type MigrationPolicySpec = Static<typeof migrationPolicySpec>;
