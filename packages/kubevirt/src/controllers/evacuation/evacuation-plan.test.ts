import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from '../../../../apimachinery/src/types/types.ts';
import type { ReadonlyMigration, ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { budgetFor, wantedBudget } from './budget-plan.ts';
import { evacuationMetrics } from './evacuation-metrics.ts';
import { type EvacuationFacts, planEvacuation, priorityFor } from './evacuation-plan.ts';

interface Over {
  readonly strategy?: string;
  readonly migratable?: boolean;
  readonly marked?: string;
  readonly phase?: string;
  readonly deleting?: boolean;
  readonly drained?: string;
  readonly source?: string;
  readonly migrating?: boolean;
}
const vmi = (name: string, over: Over = {}): ReadonlyVmi =>
  ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: {
      name,
      namespace: 'ns',
      uid: name,
      ...(over.deleting && { deletionTimestamp: 't' }),
      annotations: {
        ...(over.drained && { 'coracle.dev/drained-from': over.drained }),
        ...(over.source && { 'kubevirt.io/eviction-source': over.source }),
      },
    },
    spec: { ...(over.strategy !== '' && { evictionStrategy: over.strategy ?? 'LiveMigrate' }) },
    status: {
      phase: over.phase ?? 'Running',
      nodeName: 'n1',
      ...(over.marked && { evacuationNodeName: over.marked }),
      ...(over.migrating && { migrationState: { startTimestamp: 't' } }),
      conditions: [{ type: 'LiveMigratable', status: (over.migratable ?? true) ? 'True' : 'False' }],
    },
  }) as unknown as ReadonlyVmi;
const migration = (
  vmiName: string,
  over: { phase?: string; evacuation?: string; deleting?: boolean } = {},
): ReadonlyMigration =>
  ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: {
      name: `m-${vmiName}`,
      namespace: 'ns',
      annotations: { ...(over.evacuation && { 'kubevirt.io/evacuationMigration': over.evacuation }) },
      ...(over.deleting && { deletionTimestamp: 't' }),
    },
    spec: { vmiName },
    status: { phase: over.phase ?? 'Pending' },
  }) as unknown as ReadonlyMigration;
const node = (spec: object = {}): Node => ({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' }, spec }) as Node;
const CORDONED = node({ unschedulable: true });
const TAINTED = node({ taints: [{ key: 'kubevirt.io/drain', effect: 'NoSchedule' }] });

type Outcome = Partial<Record<'migrate' | 'stuck' | 'external' | 'notice' | 'release' | 'cancel', string[]>> & {
  waiting?: number;
};
const CASES: readonly [what: string, facts: Partial<EvacuationFacts>, outcome: Outcome][] = [
  ['nothing is marked', { instances: [vmi('a')] }, {}],
  ['marked', { instances: [vmi('a', { marked: 'n1' })] }, { migrate: ['a'] }],
  ['marked by a drain', { node: CORDONED, instances: [vmi('a', { marked: 'n1' })] }, { migrate: ['a'], notice: ['a'] }],
  [
    'its Pod was marked for deletion while the node was silent',
    {
      instances: [vmi('a'), vmi('b', { strategy: 'None' }), vmi('c', { migratable: false }), vmi('d')],
      unfinished: [migration('d', { evacuation: 'n1' })],
      isCondemned: () => true,
    },
    { migrate: ['a'] },
  ],
  ['marked for another node', { instances: [vmi('a', { marked: 'n2' })] }, {}],
  [
    'ending',
    { instances: [vmi('a', { marked: 'n1', deleting: true }), vmi('b', { marked: 'n1', phase: 'Succeeded' })] },
    {},
  ],
  [
    'a drain taint covers all',
    { node: TAINTED, instances: [vmi('a'), vmi('b', { strategy: 'None' }), vmi('c', { strategy: 'External' })] },
    { migrate: ['a'] },
  ],
  [
    'a taint of another effect',
    { node: node({ taints: [{ key: 'kubevirt.io/drain', effect: 'NoExecute' }] }), instances: [vmi('a')] },
    {},
  ],
  [
    'another taint key',
    { node: node({ taints: [{ key: 'mine', effect: 'NoSchedule' }] }), drainTaintKey: 'mine', instances: [vmi('a')] },
    { migrate: ['a'] },
  ],
  [
    'External waits for somebody else',
    { instances: [vmi('a', { strategy: 'External', marked: 'n1', migratable: false })] },
    { external: ['a'] },
  ],
  ['cannot move', { instances: [vmi('a', { marked: 'n1', migratable: false })] }, { stuck: ['a'] }],
  [
    'cannot move, and need not',
    { node: TAINTED, instances: [vmi('a', { strategy: 'LiveMigrateIfPossible', migratable: false })] },
    {},
  ],
  [
    'can move, and does',
    { instances: [vmi('a', { strategy: 'LiveMigrateIfPossible', marked: 'n1' })] },
    { migrate: ['a'] },
  ],
  [
    "the cluster's strategy",
    { clusterStrategy: 'LiveMigrate', instances: [vmi('a', { strategy: '', marked: 'n1' })] },
    { migrate: ['a'] },
  ],
  ['no strategy at all', { instances: [vmi('a', { strategy: '', marked: 'n1' })] }, {}],
  ['one migration is enough', { instances: [vmi('a', { marked: 'n1' })], unfinished: [migration('a')] }, {}],
  ['under way by the state', { instances: [vmi('a', { marked: 'n1', migrating: true })] }, {}],
  ['Pods of an earlier one', { instances: [vmi('a', { marked: 'n1' })], livePods: () => 2 }, { waiting: 1 }],
  [
    'uncordoned: the mark of the drain goes',
    { instances: [vmi('a', { marked: 'n1', drained: 'n1' })] },
    { release: ['a'] },
  ],
  [
    'uncordoned: External too',
    { instances: [vmi('a', { marked: 'n1', drained: 'n1', strategy: 'External' })] },
    { release: ['a'] },
  ],
  ['uncordoned: a mark that no drain made stays', { instances: [vmi('a', { marked: 'n1' })] }, { migrate: ['a'] }],
  [
    'uncordoned: the drain of another node',
    { instances: [vmi('a', { marked: 'n1', drained: 'n2' })] },
    { migrate: ['a'] },
  ],
  ['still cordoned', { node: CORDONED, instances: [vmi('a', { marked: 'n1', drained: 'n1' })] }, { migrate: ['a'] }],
  ['still tainted', { node: TAINTED, instances: [vmi('a', { marked: 'n1', drained: 'n1' })] }, { migrate: ['a'] }],
  [
    "the descheduler's mark on a cordoned node is no drain's",
    { node: CORDONED, instances: [vmi('a', { marked: 'n1', source: 'descheduler' })] },
    { migrate: ['a'] },
  ],
  [
    'uncordoned: what has not begun is called off',
    { instances: [vmi('a', { marked: 'n1', drained: 'n1' })], unfinished: [migration('a', { evacuation: 'n1' })] },
    { release: ['a'], cancel: ['m-a'] },
  ],
  [
    'uncordoned: the mark went first',
    { instances: [vmi('a')], unfinished: [migration('a', { evacuation: 'n1' })] },
    { cancel: ['m-a'] },
  ],
  [
    'uncordoned: what moves arrives',
    {
      instances: [vmi('a', { marked: 'n1', drained: 'n1' })],
      unfinished: [migration('a', { evacuation: 'n1', phase: 'Running' })],
    },
    { release: ['a'] },
  ],
  ["uncordoned: a user's own migration goes on", { instances: [vmi('a')], unfinished: [migration('a')] }, {}],
  [
    "uncordoned: the descheduler's goes on",
    {
      instances: [vmi('a', { marked: 'n1', source: 'descheduler' })],
      unfinished: [migration('a', { evacuation: 'n1' })],
    },
    {},
  ],
  [
    'called off once',
    { instances: [vmi('a')], unfinished: [migration('a', { evacuation: 'n1', deleting: true })] },
    {},
  ],
];
for (const [what, given, outcome] of CASES) {
  test(`planEvacuation(): ${what}`, () => {
    const plan = planEvacuation({
      node: node(),
      instances: [],
      unfinished: [],
      drainTaintKey: 'kubevirt.io/drain',
      clusterStrategy: 'None',
      livePods: () => 1,
      ...given,
    });
    const names = (list: readonly { readonly metadata: { readonly name?: string } }[]) =>
      list.map(({ metadata }) => metadata.name);
    assert.deepEqual(
      {
        migrate: names(plan.migrate),
        stuck: names(plan.stuck),
        external: names(plan.external),
        notice: names(plan.notice),
        release: names(plan.release),
        cancel: names(plan.cancel),
        waiting: plan.waiting,
      },
      { migrate: [], stuck: [], external: [], notice: [], release: [], cancel: [], waiting: 0, ...outcome },
    );
  });
}

test('priorityFor() tells the descheduler from the rest', () => {
  assert.equal(priorityFor(vmi('a')), 'system-critical');
  assert.equal(priorityFor(vmi('a', { source: 'descheduler' })), 'system-maintenance');
});

const BUDGETS: readonly [what: string, over: Over, unfinished: ReadonlyMigration[], wanted: 1 | 2 | undefined][] = [
  ['None', { strategy: 'None' }, [], undefined],
  ['LiveMigrate', {}, [], 1],
  ['LiveMigrate that cannot', { migratable: false }, [], 1],
  ['LiveMigrateIfPossible', { strategy: 'LiveMigrateIfPossible' }, [], 1],
  ['LiveMigrateIfPossible that cannot', { strategy: 'LiveMigrateIfPossible', migratable: false }, [], undefined],
  ['External', { strategy: 'External', migratable: false }, [], 1],
  ['under way', {}, [migration('a')], 2],
  ['ending', { deleting: true }, [migration('a')], undefined],
  ['ended', { phase: 'Failed' }, [], undefined],
];
for (const [what, over, unfinished, wanted] of BUDGETS) {
  test(`wantedBudget(): ${what}`, () => {
    assert.equal(wantedBudget(vmi('a', over), { clusterStrategy: 'None', unfinished }), wanted);
  });
}

test('budgetFor() is owned by the instance and selects its launchers', () => {
  const { metadata, spec } = budgetFor(vmi('a'), 2);
  assert.deepEqual(
    [metadata.generateName, metadata.namespace, metadata.ownerReferences?.[0]?.uid],
    ['kubevirt-disruption-budget-', 'ns', 'a'],
  );
  assert.deepEqual(spec, { minAvailable: 2, selector: { matchLabels: { 'kubevirt.io/created-by': 'a' } } });
});

test('evacuationMetrics() counts the seconds of each mark', () => {
  const marked = vmi('a', { marked: 'n1', strategy: 'External' });
  const since = { type: 'EvictionRequested', status: 'True', lastTransitionTime: '2030-01-01T00:00:00Z' };
  const noted = { ...marked, status: { ...marked.status, conditions: [since] } } as unknown as ReadonlyVmi;
  const families = evacuationMetrics([noted, vmi('b')], Date.UTC(2030, 0, 1, 0, 1));
  assert.deepEqual(families[0]?.samples, [
    { labels: { node: 'n1', namespace: 'ns', name: 'a', strategy: 'External' }, value: 60 },
  ]);
});
