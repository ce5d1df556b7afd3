import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod } from '../../../../apimachinery/src/types/types.ts';
import type { EvictionStrategy } from '../../kinds/kinds.ts';
import type { VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import { valuesOf } from '../../kinds/structural-schema.ts';
import { evictedPodOf, evictionDecision, evictionStrategyOf } from './eviction-decision.ts';

const vmiWith = (facts: { migratable?: string; mark?: string; strategy?: EvictionStrategy }): VirtualMachineInstance =>
  ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'vm', namespace: 'ns' },
    spec: { ...(facts.strategy && { evictionStrategy: facts.strategy }) },
    status: {
      nodeName: 'node-1',
      ...(facts.mark && { evacuationNodeName: facts.mark }),
      conditions: facts.migratable ? [{ type: 'LiveMigratable', status: facts.migratable }] : [],
    },
  }) as unknown as VirtualMachineInstance;

const TRIGGERED = 'Eviction triggered evacuation of VMI "ns/vm"';
const IN_PROGRESS = `Evacuation in progress: ${TRIGGERED}`;
const NOT_MIGRATABLE = 'VMI vm is configured with an eviction strategy but is not live-migratable';
const mark = { type: 'mark', nodeName: 'node-1', message: TRIGGERED };
const allow = { type: 'allow' };
const refuse = (message: string) => ({ type: 'refuse', message });

describe('evictionDecision()', () => {
  // strategy, migratable, already marked, on the instance's own node -> decision
  const table: [EvictionStrategy, boolean, boolean, boolean, object][] = [
    ['LiveMigrate', true, false, true, mark],
    ['LiveMigrate', true, true, true, refuse(IN_PROGRESS)],
    ['LiveMigrate', true, false, false, refuse('Eviction request for target Pod')],
    ['LiveMigrate', true, true, false, refuse(IN_PROGRESS)],
    ['LiveMigrate', false, false, true, refuse(NOT_MIGRATABLE)],
    ['LiveMigrate', false, true, true, refuse(NOT_MIGRATABLE)],
    ['LiveMigrate', false, false, false, refuse(NOT_MIGRATABLE)],
    ['LiveMigrateIfPossible', true, false, true, mark],
    ['LiveMigrateIfPossible', true, true, true, refuse(IN_PROGRESS)],
    ['LiveMigrateIfPossible', false, false, true, allow],
    ['LiveMigrateIfPossible', false, true, true, allow],
    ['External', true, false, true, mark],
    ['External', false, false, true, mark],
    ['External', false, true, true, refuse(IN_PROGRESS)],
    ['External', true, true, true, refuse(IN_PROGRESS)],
    ['External', false, false, false, refuse('Eviction request for target Pod')],
  ];
  for (const [strategy, migratable, marked, own, expected] of table) {
    // S-174: An eviction of a launcher is let go, refused or marked by strategy, with upstream's codes and words.
    it(`${strategy}, ${migratable ? '' : 'not '}migratable${marked ? ', marked' : ''}${own ? '' : ', target Pod'}`, () => {
      const vmi = vmiWith({ migratable: migratable ? 'True' : 'False', ...(marked && { mark: 'node-1' }) });
      assert.deepEqual(evictionDecision({ vmi, strategy, nodeName: own ? 'node-1' : 'node-2' }), expected);
    });
  }
  it('None lets every Pod go', () => {
    for (const migratable of ['True', 'False', ''])
      for (const from of ['', 'node-1'])
        for (const nodeName of ['node-1', 'node-2'])
          assert.deepEqual(
            evictionDecision({ vmi: vmiWith({ migratable, mark: from }), strategy: 'None', nodeName }),
            allow,
          );
  });
  it('says why it takes so long, from one migration that failed to the next', () => {
    const stuck = (migrationState: object) => {
      const vmi = vmiWith({ migratable: 'True', mark: 'node-1' });
      return { ...vmi, status: { ...vmi.status, migrationState } } as VirtualMachineInstance;
    };
    const of = (migrationState: object) =>
      evictionDecision({ vmi: stuck(migrationState), strategy: 'LiveMigrate', nodeName: 'node-1' });
    const ended = { failed: true, completed: true, endTimestamp: '2030-01-01T00:00:00Z' };
    assert.deepEqual(
      of({ ...ended, failureReason: 'no room' }),
      refuse(`${IN_PROGRESS}; its last migration failed at 2030-01-01T00:00:00Z and is tried again: no room`),
    );
    assert.deepEqual(
      of({ failed: true }),
      refuse(`${IN_PROGRESS}; its last migration failed and is tried again: no reason given`),
    );
    assert.deepEqual(of({ completed: true, endTimestamp: '2030-01-01T00:00:00Z' }), refuse(IN_PROGRESS));
    assert.deepEqual(of({ startTimestamp: '2030-01-01T00:00:00Z' }), refuse(IN_PROGRESS));
  });
  it('an instance that says nothing about migration is not migratable', () => {
    const vmi = vmiWith({});
    assert.deepEqual(evictionDecision({ vmi, strategy: 'LiveMigrate', nodeName: 'node-1' }), refuse(NOT_MIGRATABLE));
  });
});

const EVICTION_STRATEGIES = valuesOf<EvictionStrategy>('VirtualMachineInstanceSpec', 'evictionStrategy');

describe('evictionStrategyOf()', () => {
  for (const own of [undefined, ...EVICTION_STRATEGIES])
    for (const cluster of EVICTION_STRATEGIES)
      it(`${own ?? 'nothing'} on a cluster with ${cluster}`, () => {
        const vmi = vmiWith(own ? { strategy: own } : {});
        assert.equal(evictionStrategyOf(vmi, { evictionStrategy: cluster }), own ?? cluster);
      });
});

describe('evictedPodOf()', () => {
  const launcher = (change: { phase?: string; labels?: object; annotations?: object; owners?: object[] }): Pod =>
    ({
      metadata: {
        labels: { 'kubevirt.io': 'virt-launcher', ...change.labels },
        annotations: { 'kubevirt.io/domain': 'vm', ...change.annotations },
        ...(change.owners && { ownerReferences: change.owners }),
      },
      status: { phase: change.phase ?? 'Running' },
    }) as unknown as Pod;
  const cases: [string, Pod, object][] = [
    ['a launcher', launcher({}), { type: 'launcher', instance: 'vm' }],
    ['a launcher still pending', launcher({ phase: 'Pending' }), { type: 'launcher', instance: 'vm' }],
    ['a launcher that succeeded', launcher({ phase: 'Succeeded' }), { type: 'other' }],
    ['a launcher that failed', launcher({ phase: 'Failed' }), { type: 'other' }],
    ['a launcher of no domain', launcher({ annotations: { 'kubevirt.io/domain': undefined } }), { type: 'other' }],
    ['another Pod', launcher({ labels: { 'kubevirt.io': 'virt-api' } }), { type: 'other' }],
    [
      'a hotplug Pod',
      launcher({ labels: { 'kubevirt.io': 'hotplug-disk' }, owners: [{ name: 'launcher-1' }] }),
      { type: 'hotplug', launcher: 'launcher-1' },
    ],
    ['a hotplug Pod of nobody', launcher({ labels: { 'kubevirt.io': 'hotplug-disk' } }), { type: 'other' }],
  ];
  for (const [name, pod, expected] of cases) it(name, () => assert.deepEqual(evictedPodOf(pod), expected));
});
