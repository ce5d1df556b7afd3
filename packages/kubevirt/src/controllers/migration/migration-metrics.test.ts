import assert from 'node:assert/strict';
import { test } from 'node:test';
import { migrationOf, vmiOf } from './migration.fixture.ts';
import { createPhaseTimes, migrationMetrics } from './migration-metrics.ts';

test('migrationMetrics() has upstream names and labels', () => {
  const phases = ['', 'Pending', 'Scheduling', 'Scheduled', 'PreparingTarget', 'TargetReady', 'Running'];
  const migrations = [
    ...phases.map((phase, index) => migrationOf(`m${index}`, phase === '' ? {} : { status: { phase } })),
    migrationOf('good', { status: { phase: 'Succeeded' } }),
    migrationOf('bad', { status: { phase: 'Failed' } }),
  ];
  const migrationState = {
    migrationUid: 'uid-bad',
    startTimestamp: '2030-01-01T00:00:10Z',
    endTimestamp: '2030-01-01T00:00:20Z',
    failed: true,
  };
  const going = vmiOf({ migrationState: { migrationUid: 'other', startTimestamp: '2030-01-01T00:00:30Z' } });
  const families = migrationMetrics([vmiOf(), vmiOf({ migrationState }), going], migrations);
  const samples = (name: string) => families.find((family) => family.name === name)?.samples;
  const counts = ['unset', 'pending', 'scheduling', 'running'].map(
    (name) => samples(`kubevirt_vmi_migrations_in_${name}_phase`)?.[0]?.value,
  );
  assert.deepEqual(counts, [1, 1, 1, 4]);
  assert.deepEqual(samples('kubevirt_vmi_migration_succeeded'), [
    { labels: { vmi: 'a', vmim: 'good', namespace: 'ns' }, value: 1 },
  ]);
  assert.deepEqual(samples('kubevirt_vmi_migration_failed'), [
    { labels: { vmi: 'a', vmim: 'bad', namespace: 'ns' }, value: 1 },
  ]);
  const of = { node: 'n1', namespace: 'ns', name: 'a' };
  assert.deepEqual(samples('kubevirt_vmi_migration_start_time_seconds'), [
    { labels: { ...of, migration_name: 'bad' }, value: Date.UTC(2030, 0, 1, 0, 0, 10) / 1000 },
    { labels: { ...of, migration_name: 'none' }, value: Date.UTC(2030, 0, 1, 0, 0, 30) / 1000 },
  ]);
  assert.deepEqual(samples('kubevirt_vmi_migration_end_time_seconds'), [
    { labels: { ...of, migration_name: 'bad', status: 'failed' }, value: Date.UTC(2030, 0, 1, 0, 0, 20) / 1000 },
  ]);
});

// S-274
// Compat KubeVirt's API, P2, yes: metrics of migrations, times from the creation to each phase among them
test('createPhaseTimes() counts each change of phase once, by the time from the creation', () => {
  const times = createPhaseTimes();
  const at = (second: number) =>
    `2030-01-01T00:${String(Math.floor(second / 60)).padStart(2, '0')}:${String(second % 60).padStart(2, '0')}Z`;
  const stamps: { phase: string; phaseTransitionTimestamp: string }[] = [];
  const in_ = (phase: string, second?: number) => {
    if (second !== undefined) stamps.push({ phase, phaseTransitionTimestamp: at(second) });
    return migrationOf('m', { status: { phase, phaseTransitionTimestamps: [...stamps] } });
  };
  const walk = [migrationOf('m'), in_('Pending', 0), in_('Scheduling', 1), in_('Running', 45), in_('Succeeded', 100)];
  // Seen first as it is now: nothing is known of when that came.
  times.observe(undefined, walk[1]!);
  for (const [index, one] of walk.entries()) if (index > 0) times.observe(walk[index - 1], one);
  times.observe(walk[4], in_('Succeeded'));
  times.observe(walk[0], migrationOf('n', { status: { phase: 'Failed' } }));
  const { name, bounds, samples } = times.family();
  assert.equal(name, 'kubevirt_vmi_migration_phase_transition_time_from_creation_seconds');
  assert.deepEqual(bounds, [0.5, 1, 2, 5, 10, 20, 30, 40, 50, 60, 90, 120, 180, 300, 600, 1200, 1800, 3600]);
  assert.deepEqual(
    samples.map(({ labels, durations }) => [labels, durations.sum, durations.count, durations.counts.indexOf(1)]),
    [
      [{ phase: 'Pending' }, 0, 1, 0],
      [{ phase: 'Scheduling' }, 1, 1, 1],
      [{ phase: 'Running' }, 45, 1, 8],
      [{ phase: 'Succeeded' }, 100, 1, 11],
    ],
  );
});
