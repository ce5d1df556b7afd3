/** Settings of live migrations: cluster-wide in the KubeVirt object, resolved in the state of one migration. */
import type { Static } from 'typebox';
import { bool, count, long, object, oneOf, quantity, str } from './fields.ts';

const shared = {
  nodeDrainTaintKey: str('Taint that means a node is drained; kubevirt.io/drain when absent.'),
  parallelOutboundMigrationsPerNode: count('Migrations away from one node at a time; 2 when absent.'),
  parallelMigrationsPerCluster: count('Migrations at a time; 5 when absent.'),
  allowAutoConverge: bool('Slows the guest down when it changes memory too fast.'),
  bandwidthPerMigration: quantity('Bytes a second; 0 means no limit.'),
  completionTimeoutPerGiB: long('Seconds a GiB; 150 when absent.'),
  maxDowntimeMs: long('Longest pause at the switch-over, in milliseconds; 900 when absent.', {
    minimum: 1,
    maximum: 2000000,
  }),
  progressTimeout: long('Seconds without progress until it is given up; 150 when absent.'),
  utilityVolumesTimeout: long('Seconds to wait for utility volumes; 150 when absent.'),
  unsafeMigrationOverride: bool('Migrates although it is known to be unsafe.'),
  allowPostCopy: bool('Goes on to post-copy when the time is over.'),
  allowWorkloadDisruption: bool('Pauses the guest, or goes on to post-copy, rather than giving up.'),
  disableTLS: bool('Sends the guest in plain text.'),
  network: str('Network that migrations use.'),
  matchSELinuxLevelOnMigration: bool('Lets the runtime choose the SELinux level of the target.'),
};

const factor = (description: string) => quantity(description);

export const migrationOptions = object('Settings that apply to one migration.', {
  ...shared,
  experimental: object('Settings on trial.', {
    stallDetector: object('Finds migrations that do not converge.', {
      stallMargin: long('Tolerance in percent.', { minimum: 0, maximum: 100 }),
      ewmaAlpha: factor('Weight of new samples.'),
      stallProgressTimeout: long('Window in seconds.', { minimum: 0 }),
      switchoverTimeout: long('Seconds for the switch-over.', { minimum: 0 }),
      precopyPossibleFactor: factor('How far the downtime may be exceeded.'),
      patienceWindowDecayFactor: factor('How the window shrinks.'),
      searchLocalMinima: bool('Waits for a local minimum.'),
      completionTimeoutFactor: factor('How far the time may be exceeded.'),
    }),
    downtimeTuning: object('Raises the downtime step by step.', {
      initialMs: long('First downtime in milliseconds.', { minimum: 1 }),
      steps: count('Number of steps.', { minimum: 1 }),
      startAfterIteration: long('Iteration after which it starts.', { minimum: 1 }),
      cooldownSeconds: count('Seconds between steps.', { minimum: 1 }),
    }),
    compression: oneOf(['none', 'zstd'], 'Compression of the stream.', { enforced: true }),
  }),
});

export const migrationConfiguration = object('Settings of live migrations.', {
  ...shared,
  crossClusterNetwork: str('Network between clusters.'),
  decentralizedLiveMigrationDatapath: oneOf(['Direct', 'Proxy'], 'Way of migrations between clusters.', {
    enforced: true,
  }),
});

export type MigrationOptions = Static<typeof migrationOptions>;
export type MigrationConfiguration = Static<typeof migrationConfiguration>;
