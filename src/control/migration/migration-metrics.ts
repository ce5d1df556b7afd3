/** Migrations as upstream's metrics have them (pkg/monitoring/metrics/virt-controller): pure, read off the objects. */
import type { ValueFamily } from '../../base/metrics/metric-family.ts';
import { phaseOf, type ReadonlyMigration, type ReadonlyVmi } from './migration-view.ts';

/** Upstream counts as running whatever has a target Pod that is ready. */
const RUNNING = ['Scheduled', 'PreparingTarget', 'TargetReady', 'Running'];

/** Counts by phase, how each one that is still there ended, and when the last one of each instance began and ended. */
export function migrationMetrics(
  vmis: readonly ReadonlyVmi[],
  migrations: readonly ReadonlyMigration[],
): ValueFamily[] {
  const count = (name: string, phases: readonly string[]): ValueFamily => ({
    name: `kubevirt_vmi_migrations_in_${name}_phase`,
    help: `Number of current ${name} migrations.`,
    type: 'gauge',
    samples: [{ labels: {}, value: migrations.filter((one) => phases.includes(phaseOf(one))).length }],
  });
  const ended = (name: string, phase: string): ValueFamily => ({
    name: `kubevirt_vmi_migration_${name}`,
    help: `Indicates if the VMI migration ${name}.`,
    type: 'gauge',
    samples: migrations
      .filter((one) => phaseOf(one) === phase)
      .map(({ metadata, spec }) => ({
        labels: { vmi: spec.vmiName ?? '', vmim: metadata.name ?? '', namespace: metadata.namespace ?? '' },
        value: 1,
      })),
  });
  const nameOf = (uid: string | undefined): string =>
    migrations.find(({ metadata }) => metadata.uid === uid)?.metadata.name ?? 'none';
  const time = (name: 'start' | 'end'): ValueFamily => ({
    name: `kubevirt_vmi_migration_${name}_time_seconds`,
    help: `The time at which the migration ${name}ed.`,
    type: 'gauge',
    samples: vmis.flatMap(({ metadata, status }) => {
      const state = status?.migrationState;
      const stamp = name === 'start' ? state?.startTimestamp : state?.endTimestamp;
      if (!state || !stamp) return [];
      const labels = {
        node: status.nodeName ?? '',
        namespace: metadata.namespace ?? '',
        name: metadata.name ?? '',
        migration_name: nameOf(state.migrationUid),
        ...(name === 'end' && { status: state.failed === true ? 'failed' : 'succeeded' }),
      };
      return [{ labels, value: Date.parse(stamp) / 1000 }];
    }),
  });
  return [
    count('unset', ['']),
    count('pending', ['Pending']),
    count('scheduling', ['Scheduling']),
    count('running', RUNNING),
    ended('succeeded', 'Succeeded'),
    ended('failed', 'Failed'),
    time('start'),
    time('end'),
  ];
}
