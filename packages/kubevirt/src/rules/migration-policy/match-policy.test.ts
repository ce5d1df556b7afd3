import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MigrationPolicy } from '../../kinds/kinds.ts';
import type { KubeVirt } from '../../kinds/kubevirt.ts';
import { applyPolicy, matchPolicy } from './match-policy.ts';
import { migrationSettings } from './migration-settings.ts';

const policy = (
  name: string,
  instance: Record<string, string> | undefined,
  namespace: Record<string, string> | undefined,
  more: object = {},
): MigrationPolicy =>
  ({
    apiVersion: 'migrations.kubevirt.io/v1alpha1',
    kind: 'MigrationPolicy',
    metadata: { name },
    spec: {
      selectors: {
        ...(instance && { virtualMachineInstanceSelector: instance }),
        ...(namespace && { namespaceSelector: namespace }),
      },
      ...more,
    },
  }) as MigrationPolicy;

const subject = { instanceLabels: { a: '1', b: '2', c: '3' }, namespaceLabels: { x: '1', y: '2', z: '3' } };
const CASES: readonly [what: string, policies: MigrationPolicy[], winner: string | undefined][] = [
  ['none', [], undefined],
  ['a selector that matches', [policy('p', { a: '1' }, undefined)], 'p'],
  ['half a selector is none', [policy('p', { a: '1', b: 'other' }, undefined)], undefined],
  ['both have to match', [policy('p', { a: '1' }, { x: 'other' })], undefined],
  ['nothing selected selects nobody', [policy('p', undefined, undefined), policy('q', {}, {})], undefined],
  ['more labels win', [policy('a', { a: '1' }, undefined), policy('b', { a: '1', b: '2' }, undefined)], 'b'],
  [
    'more labels win across both',
    [policy('a', { a: '1' }, undefined), policy('b', undefined, { x: '1', y: '2' })],
    'b',
  ],
  ['as many: those of the instance', [policy('a', undefined, { x: '1' }), policy('b', { a: '1' }, undefined)], 'b'],
  [
    'as many: two and one',
    [policy('a', { a: '1' }, { x: '1', y: '2' }), policy('b', { a: '1', b: '2' }, { x: '1' })],
    'b',
  ],
  ['alike: by name', [policy('b', { a: '1' }, undefined), policy('a', { b: '2' }, undefined)], 'a'],
];
for (const [what, policies, winner] of CASES) {
  test(`matchPolicy(): ${what}`, () => {
    assert.equal(matchPolicy(policies, subject)?.metadata.name, winner);
    assert.equal(matchPolicy([...policies].reverse(), subject)?.metadata.name, winner);
  });
}

test('applyPolicy() overrides what it names and nothing else', () => {
  const { options } = migrationSettings(undefined);
  const applied = applyPolicy(
    options,
    policy('p', { a: '1' }, undefined, { bandwidthPerMigration: '1Gi', maxDowntimeMs: 50 }),
  );
  assert.equal(applied.changed, true);
  assert.deepEqual(applied.options, { ...options, bandwidthPerMigration: '1Gi', maxDowntimeMs: 50 });
  assert.deepEqual(applyPolicy(options, policy('p', { a: '1' }, undefined)), { options, changed: false });
});

test('allowWorkloadDisruption follows allowPostCopy unless it is written', () => {
  const { options } = migrationSettings(undefined);
  const disruption = (more: object) =>
    applyPolicy(options, policy('p', { a: '1' }, undefined, more)).options.allowWorkloadDisruption;
  assert.equal(disruption({ allowPostCopy: true }), true);
  assert.equal(disruption({ allowPostCopy: true, allowWorkloadDisruption: false }), false);
  const cluster = { spec: { configuration: { migrations: { allowPostCopy: true } } } } as unknown as KubeVirt;
  assert.equal(migrationSettings(cluster).options.allowWorkloadDisruption, true);
});

test('migrationSettings() has upstream defaults, and what is written wins', () => {
  const { options, ...limits } = migrationSettings(undefined);
  assert.deepEqual(limits, {
    parallelMigrationsPerCluster: 5,
    parallelOutboundMigrationsPerNode: 2,
    nodeDrainTaintKey: 'kubevirt.io/drain',
  });
  assert.deepEqual(
    [
      options.completionTimeoutPerGiB,
      options.progressTimeout,
      options.bandwidthPerMigration,
      options.allowWorkloadDisruption,
    ],
    [150, 150, '0', false],
  );
  const written = { parallelMigrationsPerCluster: 1, nodeDrainTaintKey: 'drain', crossClusterNetwork: 'n' };
  const own = migrationSettings({ spec: { configuration: { migrations: written } } } as unknown as KubeVirt);
  assert.deepEqual([own.parallelMigrationsPerCluster, own.nodeDrainTaintKey], [1, 'drain']);
  assert.equal(Object.hasOwn(own.options, 'crossClusterNetwork'), false);
});
