import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Part, partly } from '../../../../../test/testkit/partly.ts';
import type { VirtualMachineInstance, VirtualMachineInstanceReplicaSet } from '../../kinds/kubevirt.ts';
import { claimMembers, selectorOf } from './claim-members.ts';
import { replicaSetPlan } from './replica-set-plan.ts';
import { setConditions } from './set-conditions.ts';

const NOW = Date.parse('2026-01-01T00:01:00Z');
type Vmi = VirtualMachineInstance;

const vmi = (name: string, phase: string, more: { ready?: boolean; at?: string; part?: Part<Vmi['metadata']> } = {}) =>
  partly<Vmi>({
    metadata: { name, uid: name, creationTimestamp: `2026-01-01T00:00:0${name.length}Z`, ...more.part },
    status: {
      phase: phase as 'Running',
      conditions: [{ type: 'Ready', status: more.ready === false ? 'False' : 'True' }],
      phaseTransitionTimestamps: [
        ...(phase === 'Failed'
          ? []
          : [{ phase: 'Running' as const, phaseTransitionTimestamp: '2026-01-01T00:00:00Z' }]),
        { phase: phase as 'Running', phaseTransitionTimestamp: more.at ?? '2026-01-01T00:00:00Z' },
      ],
    },
  });
const leaving = { part: { deletionTimestamp: '2026-01-01T00:00:59Z' } };
const set = (spec: Part<VirtualMachineInstanceReplicaSet['spec']>, metadata = {}) =>
  partly<VirtualMachineInstanceReplicaSet>({ metadata: { name: 's', uid: 'set', ...metadata }, spec });

describe('replicaSetPlan()', () => {
  const a = vmi('a', 'Running');
  const cc = vmi('cc', 'Running');
  const cases: [name: string, spec: object, have: Vmi[], create: number, remove: string[], counts: [number, number]][] =
    [
      ['one by default', {}, [], 1, [], [0, 0]],
      ['as many as are missing', { replicas: 3 }, [a], 2, [], [1, 1]],
      ['no more than a burst', { replicas: 1000 }, [], 250, [], [0, 0]],
      ['nothing where there are enough', { replicas: 2 }, [a, cc], 0, [], [2, 2]],
      ['the youngest goes first', { replicas: 1 }, [a, cc], 0, ['cc'], [2, 2]],
      [
        'one that is not ready goes before',
        { replicas: 1 },
        [vmi('a', 'Running', { ready: false }), cc],
        0,
        ['a'],
        [2, 1],
      ],
      [
        'one that starts goes before that',
        { replicas: 1 },
        [vmi('b', 'Scheduling', { ready: false }), a],
        0,
        ['b'],
        [2, 1],
      ],
      ['one on its way out does not count', { replicas: 1 }, [vmi('a', 'Running', leaving)], 1, [], [0, 0]],
      ['one that ended is replaced', { replicas: 1 }, [vmi('a', 'Succeeded')], 1, ['a'], [0, 0]],
      ['one that never ran, long ago', { replicas: 1 }, [vmi('a', 'Failed')], 1, ['a'], [0, 0]],
      ['none', { replicas: 0 }, [a, vmi('b', 'Failed')], 0, ['b', 'a'], [1, 1]],
      ['paused: nothing', { replicas: 5, paused: true }, [a], 0, [], [1, 1]],
    ];
  for (const [name, spec, have, create, remove, [replicas, readyReplicas]] of cases)
    it(name, () => {
      const plan = replicaSetPlan(set(spec), have, NOW);
      assert.deepEqual(
        { ...plan, remove: plan.remove.map(({ metadata }) => metadata.name) },
        { create, remove, replicas, readyReplicas, waitMs: undefined },
      );
    });
  it('one that has just failed before it ran holds its place for ten seconds', () => {
    const failed = vmi('a', 'Failed', { at: '2026-01-01T00:00:57Z' });
    const plan = replicaSetPlan(set({ replicas: 2 }), [failed], NOW);
    assert.deepEqual([plan.create, plan.remove, plan.waitMs], [1, [], 7000]);
    const fewer = replicaSetPlan(set({ replicas: 0 }), [failed], NOW);
    assert.deepEqual([fewer.create, fewer.remove, fewer.waitMs], [0, [failed], undefined]);
  });
  it('a set on its way out makes nothing', () => {
    const plan = replicaSetPlan(set({ replicas: 2 }, { deletionTimestamp: 'now' }), [a], NOW);
    assert.deepEqual([plan.create, plan.remove], [0, []]);
  });
});

describe('claimMembers()', () => {
  const owner = (uid: string) => [{ apiVersion: 'v1', kind: 'K', name: 'n', uid, controller: true }];
  const one = (name: string, labels: Record<string, string>, more: Part<Vmi['metadata']> = {}) =>
    partly<Vmi>({ metadata: { name, labels, ...more } });
  const objects = [
    one('own', { app: 'x' }, { ownerReferences: owner('set') }),
    one('lost', { app: 'y' }, { ownerReferences: owner('set') }),
    one('lost-and-leaving', { app: 'y' }, { ownerReferences: owner('set'), deletionTimestamp: 'now' }),
    one('other', { app: 'x' }, { ownerReferences: owner('another') }),
    one('orphan', { app: 'x' }),
    one('leaving-orphan', { app: 'x' }, { deletionTimestamp: 'now' }),
    one('unrelated', { app: 'z' }),
  ];
  const names = (of: object) =>
    Object.fromEntries(
      Object.entries(of as Record<string, Vmi[]>).map(([key, list]) => [key, list.map((o) => o.metadata.name)]),
    );
  it('takes orphans and lets go what is no longer selected', () => {
    const by = set({ selector: { matchLabels: { app: 'x' } } });
    assert.deepEqual(names(claimMembers(by, selectorOf(by), objects)), {
      own: ['own', 'lost-and-leaving'],
      adopt: ['orphan'],
      release: ['lost'],
    });
  });
  it('a set on its way out takes nothing', () => {
    const by = set({ selector: { matchLabels: { app: 'x' } } }, { deletionTimestamp: 'now' });
    assert.deepEqual(names(claimMembers(by, selectorOf(by), objects)).adopt, []);
  });
  it('a selector that is empty, or cannot be read, selects nothing', () => {
    for (const selector of [{}, { matchExpressions: [{ key: 'a', operator: 'Bogus' as 'In' }] }]) {
      const by = set({ selector });
      assert.deepEqual(names(claimMembers(by, selectorOf(by), objects)).adopt, []);
    }
  });
});

it('setConditions(): each is there while it is true, and keeps its time', () => {
  const problem = { reason: 'FailedCreate', message: 'no' };
  const first = setConditions(undefined, { paused: true, problem, now: NOW });
  assert.deepEqual(
    first.map(({ type, reason, lastTransitionTime }) => [type, reason, lastTransitionTime]),
    [
      ['ReplicaFailure', 'FailedCreate', '2026-01-01T00:01:00Z'],
      ['ReplicaPaused', 'Paused', '2026-01-01T00:01:00Z'],
    ],
  );
  const [later] = setConditions(first, { paused: true, problem: undefined, now: NOW + 5000 });
  assert.equal(later?.lastTransitionTime, '2026-01-01T00:01:00Z');
  assert.deepEqual(setConditions(first, { paused: false, problem: undefined, now: NOW }), []);
});
