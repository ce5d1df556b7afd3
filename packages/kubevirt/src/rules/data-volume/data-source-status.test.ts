import assert from 'node:assert/strict';
import { test } from 'node:test';
import { partly } from '../../../../../test/testkit/partly.ts';
import type { DataSource, DataVolumePhase } from '../../kinds/kinds.ts';
import { type DataSourceTargets, dataSourceStatus } from './data-source-status.ts';

const NOW = Date.parse('2026-11-27T01:00:00Z');
const at = (name: string) => ({ namespace: 'a', name });
const sourceOf = (name: string, source: DataSource['spec']['source'], status?: DataSource['status']): DataSource =>
  partly<DataSource>({ metadata: { namespace: 'a', name }, spec: { source }, ...(status && { status }) });
const sources = new Map(
  [
    sourceOf('one', { pvc: at('full') }),
    sourceOf('two', { dataSource: at('one') }),
    sourceOf('three', { dataSource: at('two') }),
    sourceOf('four', { dataSource: at('three') }),
    sourceOf('five', { dataSource: at('four') }),
  ].map((one) => [one.metadata.name, one]),
);
const targets: DataSourceTargets = {
  dataSource: ({ name }) => sources.get(name),
  dataVolume: ({ name }) => (name in PHASES ? partly({ status: { phase: PHASES[name] } }) : undefined),
  claim: ({ name }) => (name === 'by-hand' ? partly({}) : undefined),
  snapshot: ({ name }) => (name === 'gone' ? undefined : partly({ status: { readyToUse: name === 'taken' } })),
};
const PHASES: Readonly<Record<string, DataVolumePhase>> = { full: 'Succeeded', busy: 'ImportInProgress' };

// S-1315
for (const [source, reason, message] of [
  [{ pvc: at('full') }, 'Ready', 'DataSource is ready to be consumed'],
  [{ pvc: at('by-hand') }, 'Ready', 'DataSource is ready to be consumed'],
  [{ pvc: at('busy') }, 'ImportInProgress', 'Import DataVolume phase ImportInProgress'],
  [{ pvc: at('gone') }, 'NotFound', 'PVC not found'],
  [{ snapshot: at('taken') }, 'Ready', 'DataSource is ready to be consumed'],
  [{ snapshot: at('busy') }, 'SnapshotNotReady', 'Snapshot phase is not ready'],
  [{ snapshot: at('gone') }, 'NotFound', 'Snapshot not found'],
  [{ dataSource: at('three') }, 'Ready', 'DataSource is ready to be consumed'],
  [{ dataSource: at('four') }, 'MaxReferenceDepthReached', 'It leads to more than 3 other DataSources'],
  [{ dataSource: at('self') }, 'SelfReference', 'DataSource self leads to itself'],
  [{ dataSource: at('gone') }, 'NotFound', 'DataSource not found'],
  [{}, 'NoSource', 'No source PVC set'],
] as const)
  test(`a DataSource of ${JSON.stringify(source)}: ${reason}`, () => {
    const status = dataSourceStatus(sourceOf('self', source), targets, NOW);
    const [ready] = status?.conditions ?? [];
    assert.deepEqual(
      [ready?.status, ready?.reason, ready?.message],
      [reason === 'Ready' ? 'True' : 'False', reason, message],
    );
    const end = 'dataSource' in source ? (reason === 'Ready' ? { pvc: at('full') } : undefined) : source;
    assert.deepEqual(status?.source, reason === 'NoSource' ? undefined : end);
    const again = dataSourceStatus(partly<DataSource>({ ...sourceOf('self', source), status }), targets, NOW + 60_000);
    assert.deepEqual(again, status, 'an unchanged condition keeps its times');
  });
