import assert from 'node:assert/strict';
import { test } from 'node:test';
import { migrationOf, vmiOf } from './migration.fixture.ts';
import { migrationMetrics } from './migration-metrics.ts';

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
