/** Migrations as upstream's metrics have them (pkg/monitoring/metrics/virt-controller), read off the objects. */

import { createHistogram } from '@coracle/runtime/metrics/histogram';
import type { HistogramFamily, ValueFamily } from '@coracle/runtime/metrics/metric-family';
import type { ReadonlyMigration, ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { PHASE_TIME_BOUNDS } from '../../rules/metrics/vmi-phase-times.ts';
import { enteredAt, phaseOf } from './migration-view.ts';

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

/** More than there are phases: what is no phase of ours does not fill the memory. */
const MAX_PHASES = 32;

/** Counts how long migrations took from their creation to each phase: since the start of the process, as upstream does. */
export function createPhaseTimes() {
  const histogram = createHistogram({
    name: 'kubevirt_vmi_migration_phase_transition_time_from_creation_seconds',
    help: 'Histogram of VM migration phase transitions duration from creation time in seconds.',
    bounds: PHASE_TIME_BOUNDS,
    maxSeries: MAX_PHASES,
  });
  return {
    /** One change of a migration; counts where it is in another phase by it. */
    observe(before: ReadonlyMigration | undefined, after: ReadonlyMigration): void {
      const phase = phaseOf(after);
      if (!before || phaseOf(before) === phase) return;
      const entered = enteredAt(after, phase);
      const created = Date.parse(after.metadata.creationTimestamp ?? '');
      if (entered === undefined || Number.isNaN(created)) return;
      histogram.observe({ phase }, Math.max(0, entered - created) / 1000);
    },
    family: (): HistogramFamily => histogram.family(),
  };
}
