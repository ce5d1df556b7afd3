import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type {
  Node,
  Pod,
  PodDisruptionBudget,
  TopologySpreadConstraint,
} from '../../../apimachinery/src/types/types.ts';
import { nodeUsage } from './node-usage.ts';
import { placePod } from './place-pod.ts';
import { findVictims } from './preemption.ts';

interface PodOptions {
  readonly priority?: number;
  readonly cpu?: string;
  readonly labels?: Record<string, string>;
  readonly started?: string;
  readonly spec?: object;
  readonly status?: object;
  readonly deleting?: boolean;
}

const pod = (
  name: string,
  { priority = 0, cpu = '1', labels = {}, started, spec, status, deleting }: PodOptions = {},
) =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'ns',
      uid: name,
      labels,
      ...(deleting && { deletionTimestamp: '2030-01-01T00:00:00Z' }),
    },
    spec: { priority, containers: [{ name: 'c', resources: { requests: { cpu } } }], ...spec },
    status: { ...(started && { startTime: started }), ...status },
  }) as unknown as Pod;

const node = (name: string, cpu = '2', more: Partial<Node> = {}): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels: { 'kubernetes.io/hostname': name } },
  status: { allocatable: { cpu, memory: '8Gi', pods: '10' } },
  ...more,
});

const budget = (allowed: number, labels: Record<string, string>): PodDisruptionBudget => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'b', namespace: 'ns' },
  spec: { selector: { matchLabels: labels } },
  status: { disruptionsAllowed: allowed, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 },
});

type Row = readonly [Node, ...Pod[]];

/** `node: victims` or the message, after placing has failed. */
function preempt(wanted: Pod, rows: readonly Row[], budgets: readonly PodDisruptionBudget[] = []): string {
  const nodes = rows.map(([one, ...pods]) => nodeUsage(one, pods));
  const placement = placePod(wanted, nodes);
  if (placement.type === 'node') return `fits ${placement.name}`;
  const found = findVictims({
    pod: wanted,
    nodes,
    refusals: placement.refusals,
    budgets,
    namespaceLabels: () => undefined,
  });
  return found.type === 'none'
    ? found.message
    : `${found.nodeName}: ${found.victims.map((one) => one.metadata.name).join(' ')}`;
}

const high = (options: PodOptions = {}) => pod('high', { priority: 10, ...options });
const PREFIX = 'no new claims to deallocate, preemption: ';

const cases: readonly { name: string; pod: Pod; rows: readonly Row[]; budgets?: PodDisruptionBudget[]; is: string }[] =
  [
    {
      name: 'nobody of lower priority',
      pod: high(),
      rows: [[node('a'), pod('x', { priority: 10, cpu: '2' })]],
      is: `${PREFIX}0/1 nodes are available: 1 No preemption victims found for incoming pod.`,
    },
    {
      name: 'nodes that would refuse in any case are no help',
      pod: high({ cpu: '3' }),
      rows: [
        [node('a'), pod('x', { cpu: '2' })],
        [node('b', '4', { spec: { unschedulable: true } })],
        [node('c', '4', { spec: { taints: [{ key: 'k', effect: 'NoSchedule' }] } }), pod('y')],
      ],
      is: `${PREFIX}0/3 nodes are available: 3 Preemption is not helpful for scheduling.`,
    },
    {
      name: 'the fewest and least important go',
      pod: high(),
      rows: [[node('a', '3'), pod('x', { priority: 1 }), pod('y', { priority: 2 }), pod('z', { priority: 3 })]],
      is: 'a: x',
    },
    {
      name: 'of equals the younger goes',
      pod: high(),
      rows: [
        [node('a'), pod('old', { started: '2030-01-01T00:00:00Z' }), pod('young', { started: '2030-01-01T00:00:09Z' })],
      ],
      is: 'a: young',
    },
    {
      name: 'the node whose victims matter least',
      pod: high(),
      rows: [
        [node('a', '1'), pod('x', { priority: 5 })],
        [node('b', '1'), pod('y', { priority: 4 })],
      ],
      is: 'b: y',
    },
    {
      name: 'a broken budget weighs more than priority',
      pod: high(),
      rows: [
        [node('a', '1'), pod('x', { priority: 5 })],
        [node('b', '1'), pod('y', { priority: 4, labels: { app: 'y' } })],
      ],
      budgets: [budget(0, { app: 'y' })],
      is: 'a: x',
    },
    {
      name: 'a budget that allows one is no hindrance',
      pod: high(),
      rows: [
        [node('a', '1'), pod('x', { priority: 5 })],
        [node('b', '1'), pod('y', { priority: 4, labels: { app: 'y' } })],
      ],
      budgets: [budget(1, { app: 'y' })],
      is: 'b: y',
    },
    {
      name: 'a budget is broken where nothing else helps',
      pod: high(),
      rows: [[node('a', '1'), pod('y', { labels: { app: 'y' } })]],
      budgets: [budget(0, { app: 'y' })],
      is: 'a: y',
    },
    {
      name: 'one that may never preempt',
      pod: high({ spec: { preemptionPolicy: 'Never' } }),
      rows: [[node('a', '1'), pod('x')]],
      is: `${PREFIX}not eligible due to preemptionPolicy=Never.`,
    },
    {
      name: 'room is being made already',
      pod: high({ status: { nominatedNodeName: 'a' } }),
      rows: [
        [
          node('a', '1'),
          pod('x', {
            deleting: true,
            status: { conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' }] },
          }),
        ],
        [node('b', '1'), pod('y')],
      ],
      is: `${PREFIX}not eligible due to a terminating pod on the nominated node.`,
    },
    {
      name: 'anti-affinity to a Pod of lower priority',
      pod: high({
        cpu: '0',
        spec: {
          affinity: {
            podAntiAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: [
                { labelSelector: { matchLabels: { app: 'x' } }, topologyKey: 'kubernetes.io/hostname' },
              ],
            },
          },
        },
      }),
      rows: [[node('a'), pod('x', { labels: { app: 'x' } }), pod('y')]],
      is: 'a: x',
    },
  ];
for (const { name, pod: wanted, rows, budgets, is } of cases)
  test(`findVictims(): ${name}`, () => assert.equal(preempt(wanted, rows, budgets), is));

test('findVictims() takes nobody of equal or higher priority, and nobody who need not go', () => {
  const small = fc.record({ priority: fc.integer({ min: -5, max: 12 }), cpu: fc.integer({ min: 1, max: 3 }) });
  fc.assert(
    fc.property(fc.array(fc.array(small, { maxLength: 5 }), { minLength: 1, maxLength: 4 }), (load) => {
      const rows = load.map(
        (pods, n): Row => [
          node(`n${n}`, '4'),
          ...pods.map(({ priority, cpu }, p) => pod(`p${n}-${p}`, { priority, cpu: String(cpu) })),
        ],
      );
      const nodes = rows.map(([one, ...pods]) => nodeUsage(one, pods));
      const wanted = high({ cpu: '2' });
      const placement = placePod(wanted, nodes);
      if (placement.type === 'node') return;
      const input = { pod: wanted, nodes, refusals: placement.refusals, budgets: [], namespaceLabels: () => undefined };
      const found = findVictims(input);
      if (found.type === 'none') return;
      const chosen = nodes.find(({ name }) => name === found.nodeName)!;
      assert.ok(found.victims.length > 0);
      for (const victim of found.victims) assert.ok((victim.spec.priority ?? 0) < 10);
      const fitsWithout = (gone: readonly unknown[]) =>
        placePod(wanted, [
          nodeUsage(
            chosen.node,
            chosen.pods.filter((one) => !gone.includes(one)),
          ),
        ]).type === 'node';
      assert.ok(fitsWithout(found.victims));
      for (const spared of found.victims) assert.ok(!fitsWithout(found.victims.filter((one) => one !== spared)));
    }),
  );
});

// Topology spread.

const zone = (name: string, value: string | undefined, more: Partial<Node> = {}): Node => ({
  ...node(name, '8', more),
  metadata: { name, labels: { 'kubernetes.io/hostname': name, ...(value && { zone: value }) } },
});
const spread = (more: Partial<TopologySpreadConstraint> = {}): TopologySpreadConstraint => ({
  maxSkew: 1,
  topologyKey: 'zone',
  whenUnsatisfiable: 'DoNotSchedule',
  labelSelector: { matchLabels: { app: 'w' } },
  ...more,
});
const w = (name: string, options: PodOptions = {}) => pod(name, { cpu: '0', labels: { app: 'w' }, ...options });
const wanting = (...topologySpreadConstraints: TopologySpreadConstraint[]) =>
  w('new', { spec: { topologySpreadConstraints } });

const spreads: readonly { name: string; pod: Pod; rows: readonly Row[]; is: string }[] = [
  {
    name: 'the emptier zone',
    pod: wanting(spread()),
    rows: [[zone('a', '1'), w('x')], [zone('b', '2')]],
    is: 'b',
  },
  {
    name: 'both full to the skew: any',
    pod: wanting(spread()),
    rows: [
      [zone('a', '1'), w('x')],
      [zone('b', '2'), w('y')],
    ],
    is: 'a',
  },
  {
    name: 'the only zone with room refuses for another reason, the other is ahead',
    pod: wanting(spread()),
    rows: [[zone('a', '1'), w('x')], [zone('b', '2', { spec: { unschedulable: true } })]],
    is: "0/2 nodes are available: 1 node(s) didn't match pod topology spread constraints, 1 node(s) were unschedulable.",
  },
  {
    name: 'a tainted zone does not count with nodeTaintsPolicy Honor',
    pod: wanting(spread({ nodeTaintsPolicy: 'Honor' })),
    rows: [[zone('a', '1'), w('x')], [zone('b', '2', { spec: { taints: [{ key: 'k', effect: 'NoSchedule' }] } })]],
    is: 'a',
  },
  {
    name: 'a node without the label',
    pod: wanting(spread()),
    rows: [[zone('a', undefined)]],
    is: "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label).",
  },
  {
    name: 'fewer domains than minDomains: the emptiest counts as 0',
    pod: wanting(spread({ minDomains: 2 })),
    rows: [[zone('a', '1'), w('x')]],
    is: "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints.",
  },
  {
    name: 'those that are leaving do not count',
    pod: wanting(spread()),
    rows: [[zone('a', '1'), w('x', { deleting: true })], [zone('b', '2', { spec: { unschedulable: true } })]],
    is: 'a',
  },
  {
    name: 'matchLabelKeys: only Pods of its own revision',
    pod: w('new', {
      labels: { app: 'w', rev: '2' },
      spec: { topologySpreadConstraints: [spread({ matchLabelKeys: ['rev'] })] },
    }),
    rows: [
      [zone('a', '1'), w('x', { labels: { app: 'w', rev: '1' } })],
      [zone('b', '2'), w('y', { labels: { app: 'w', rev: '2' } })],
    ],
    is: 'a',
  },
  {
    name: 'ScheduleAnyway only prefers',
    pod: wanting(spread({ whenUnsatisfiable: 'ScheduleAnyway' })),
    rows: [[zone('a', '1'), w('x'), w('y')], [zone('b', '2')]],
    is: 'b',
  },
];
for (const { name, pod: wanted, rows, is } of spreads)
  test(`topology spread: ${name}`, () => {
    const placement = placePod(
      wanted,
      rows.map(([one, ...pods]) => nodeUsage(one, pods)),
    );
    assert.equal(placement.type === 'node' ? placement.name : placement.message, is);
  });
