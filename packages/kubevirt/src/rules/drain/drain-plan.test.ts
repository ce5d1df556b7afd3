import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node, Pod, PodDisruptionBudget } from '../../../../apimachinery/src/types/types.ts';
import type { MigrationPolicy } from '../../kinds/kinds.ts';
import type { VirtualMachine, VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import { migrationSettings } from '../migration-policy/migration-settings.ts';
import { type DrainRow, drainPlan } from './drain-plan.ts';

const node = (name: string, memory = '1Gi', spec: object = {}): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels: { 'kubernetes.io/hostname': name } },
  spec,
  status: { allocatable: { cpu: '8', memory, pods: '110' } },
});

interface Guest {
  readonly strategy?: string;
  readonly migratable?: boolean;
  readonly runStrategy?: string;
  readonly status?: object;
  readonly pod?: object;
  readonly labels?: Record<string, string>;
  readonly deleting?: boolean;
}

/** A machine on `a`: its Pod, its instance, its VM. */
function guest(name: string, options: Guest = {}) {
  const { strategy, migratable = true, runStrategy = 'Always', status, pod, labels, deleting } = options;
  const uid = `uid-${name}`;
  const condition = migratable
    ? { type: 'LiveMigratable', status: 'True' }
    : { type: 'LiveMigratable', status: 'False', reason: 'DisksNotLiveMigratable', message: 'disk root is local' };
  return {
    pod: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: `virt-launcher-${name}`,
        namespace: 'ns',
        labels: { 'kubevirt.io': 'virt-launcher', 'kubevirt.io/created-by': uid, ...labels },
        annotations: { 'kubevirt.io/domain': name },
        ...(deleting && { deletionTimestamp: '2030-01-01T00:00:00Z' }),
      },
      spec: {
        nodeName: 'a',
        terminationGracePeriodSeconds: 40,
        containers: [{ name: 'compute', resources: { requests: { memory: '512Mi' } } }],
        ...pod,
      },
      status: { phase: 'Running' },
    } as unknown as Pod,
    vmi: {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: {
        name,
        namespace: 'ns',
        uid,
        ownerReferences: [
          { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name, uid: `vm-${name}`, controller: true },
        ],
      },
      spec: { ...(strategy && { evictionStrategy: strategy }), domain: { devices: {}, memory: { guest: '256Mi' } } },
      status: { phase: 'Running', nodeName: 'a', conditions: [condition], ...status },
    } as unknown as VirtualMachineInstance,
    vm: {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name, namespace: 'ns', uid: `vm-${name}` },
      spec: { runStrategy, template: { spec: { domain: { devices: {} } } } },
    } as unknown as VirtualMachine,
  };
}

const budget = (name: string, allowed: number): PodDisruptionBudget => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name, namespace: 'ns' },
  spec: { selector: { matchLabels: { app: 'web' } } },
  status: { disruptionsAllowed: allowed, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 },
});

function plan(
  guests: readonly ReturnType<typeof guest>[],
  more: { nodes?: Node[]; budgets?: PodDisruptionBudget[]; pods?: Pod[]; policies?: MigrationPolicy[] } = {},
): DrainRow[] {
  return drainPlan({
    nodeName: 'a',
    nodes: more.nodes ?? [node('a'), node('b')],
    pods: [...guests.map(({ pod }) => pod), ...(more.pods ?? [])],
    instances: guests.map(({ vmi }) => vmi),
    machines: guests.map(({ vm }) => vm),
    budgets: more.budgets ?? [],
    clusterStrategy: 'None',
    migrations: migrationSettings(undefined),
    policies: more.policies ?? [],
    namespaceLabels: () => undefined,
  });
}

const web = { app: 'web' };
const cases: readonly {
  name: string;
  guest: Guest;
  nodes?: Node[];
  budgets?: PodDisruptionBudget[];
  is: Partial<DrainRow>;
}[] = [
  {
    name: "None, from the cluster's default",
    guest: {},
    is: { strategy: 'None', outcome: 'restarts', target: 'b', seconds: 40, blocker: undefined },
  },
  {
    name: 'RerunOnFailure takes a shutdown for success',
    guest: { runStrategy: 'RerunOnFailure' },
    is: { outcome: 'stops' },
  },
  { name: 'Manual stays off', guest: { runStrategy: 'Manual' }, is: { outcome: 'stops', target: undefined } },
  {
    name: 'no room elsewhere: leaves, and waits to start',
    guest: {},
    nodes: [node('a'), node('b', '256Mi')],
    is: {
      outcome: 'restarts',
      target: undefined,
      blocker:
        'leaves, but will not start again yet: 0/2 nodes are available: 1 Insufficient memory, 1 node(s) were unschedulable.',
    },
  },
  {
    name: "a user's budget",
    guest: { labels: web },
    budgets: [budget('mine', 0)],
    is: {
      outcome: 'blocked',
      budgets: ['mine (allows 0)'],
      blocker: 'the disruption budget mine needs 1 healthy pods and has 1 currently',
    },
  },
  {
    name: 'a budget that allows it',
    guest: { labels: web },
    budgets: [budget('mine', 1)],
    is: { outcome: 'restarts' },
  },
  {
    name: 'two budgets',
    guest: { labels: web },
    budgets: [budget('mine', 1), budget('other', 1)],
    is: { outcome: 'blocked', blocker: 'more than one budget covers it (mine, other): the eviction API refuses that' },
  },
  {
    name: 'LiveMigrate',
    guest: { strategy: 'LiveMigrate' },
    is: { outcome: 'migrates', target: 'b', seconds: 5, blocker: undefined },
  },
  {
    name: 'LiveMigrate that cannot',
    guest: { strategy: 'LiveMigrate', migratable: false },
    is: {
      outcome: 'blocked',
      blocker: 'VMI g is configured with an eviction strategy but is not live-migratable: disk root is local',
    },
  },
  {
    name: 'LiveMigrate without a node to go to',
    guest: { strategy: 'LiveMigrate' },
    nodes: [node('a'), node('b', '1Gi', { unschedulable: true })],
    is: {
      outcome: 'blocked',
      blocker: 'no node can take the target Pod: 0/2 nodes are available: 2 node(s) were unschedulable.',
    },
  },
  {
    name: 'LiveMigrate that is under way',
    guest: { strategy: 'LiveMigrate', status: { evacuationNodeName: 'a' } },
    is: { outcome: 'migrates', target: 'b' },
  },
  {
    name: 'LiveMigrateIfPossible, and it is not',
    guest: { strategy: 'LiveMigrateIfPossible', migratable: false },
    is: { outcome: 'restarts' },
  },
  {
    name: 'External',
    guest: { strategy: 'External' },
    is: {
      outcome: 'waits',
      blocker: 'an outside controller must delete or move it once it is marked (status.evacuationNodeName)',
    },
  },
  {
    name: 'External, marked',
    guest: { strategy: 'External', status: { evacuationNodeName: 'a' } },
    is: { outcome: 'waits', blocker: 'waits for the outside controller to delete or move it' },
  },
  {
    name: 'the target of a migration',
    guest: { strategy: 'LiveMigrate', status: { nodeName: 'b' } },
    is: { outcome: 'blocked', blocker: 'it is the target of a migration that is not done' },
  },
  {
    name: 'the source, after its guest has moved',
    guest: {
      strategy: 'LiveMigrate',
      status: { nodeName: 'b', migrationState: { sourcePod: 'virt-launcher-g', completed: true } },
    },
    is: { outcome: 'leaves' },
  },
  {
    name: 'leaving already',
    guest: { strategy: 'LiveMigrate', deleting: true },
    is: { outcome: 'leaves', seconds: 40 },
  },
];
for (const { name, guest: options, is, ...more } of cases)
  test(`drainPlan(): ${name}`, () => {
    const [row] = plan([guest('g', options)], more);
    assert.deepEqual(Object.fromEntries(Object.keys(is).map((key) => [key, row?.[key as keyof DrainRow]])), is);
  });

// S-299: A drain shows where a guest is on its way to, what holds its target Pod, and how fast its migration policy
//   lets it move.
test('drainPlan(): a guest on its way goes where its target Pod is, and is held by what holds that', () => {
  const one = guest('g', { strategy: 'LiveMigrate', status: { evacuationNodeName: 'a' } });
  one.pod.metadata.creationTimestamp = '2030-01-01T00:00:10Z';
  const target = (spec: object, metadata: object = {}, status: object = {}): Pod =>
    ({
      ...one.pod,
      metadata: {
        ...one.pod.metadata,
        name: 'target',
        labels: { ...one.pod.metadata.labels, 'kubevirt.io/migrationJobUID': 'm' },
        annotations: { ...one.pod.metadata.annotations, 'kubevirt.io/migrationJobName': 'mine' },
        creationTimestamp: '2030-01-01T00:00:20Z',
        ...metadata,
      },
      spec: { ...one.pod.spec, nodeName: undefined, ...spec },
      status: { phase: 'Running', ...status },
    }) as unknown as Pod;
  const rowOf = (...pods: Pod[]) => {
    const [row] = plan([one], { pods });
    return [row?.outcome, row?.target, row?.blocker];
  };
  assert.deepEqual(rowOf(target({ nodeName: 'b' })), ['migrates', 'b', undefined], 'the only other node has it');
  assert.deepEqual(rowOf(target({})), ['migrates', undefined, undefined], 'nobody has looked for a node yet');
  const no = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/2 nodes are available.' };
  assert.deepEqual(rowOf(target({}, {}, { phase: 'Pending', conditions: [no] })), [
    'blocked',
    undefined,
    'no node can take the target Pod of migration mine: 0/2 nodes are available.',
  ]);
  const old = { creationTimestamp: '2030-01-01T00:00:00Z' };
  assert.equal(rowOf(target({ nodeName: 'b' }, old))[0], 'blocked', 'an earlier source that ends is no target');
});

// S-299
test('drainPlan(): the policy that is for a guest says how fast it may move', () => {
  const policy = {
    metadata: { name: 'slow' },
    spec: { bandwidthPerMigration: '8Mi', selectors: { virtualMachineInstanceSelector: { slow: 'y' } } },
  } as unknown as MigrationPolicy;
  const slow = guest('g', { strategy: 'LiveMigrate' });
  slow.vmi.metadata.labels = { slow: 'y' };
  assert.equal(plan([slow], { policies: [policy] })[0]?.seconds, 35);
  assert.equal(plan([guest('g', { strategy: 'LiveMigrate' })], { policies: [policy] })[0]?.seconds, 5);
});

test('drainPlan(): the last place is promised once, and migrations wait for a lane', () => {
  const rows = plan(
    ['g1', 'g2', 'g3'].map((name) => guest(name, { strategy: 'LiveMigrate' })),
    { nodes: [node('a'), node('b', '512Mi'), node('c', '1Gi')] },
  );
  assert.deepEqual(rows.map(({ target }) => target).sort(), ['b', 'c', 'c']);
  assert.deepEqual(
    rows.map(({ seconds }) => seconds),
    [5, 5, 10],
  );
  const four = plan(
    ['g1', 'g2', 'g3', 'g4'].map((name) => guest(name, { strategy: 'LiveMigrate' })),
    { nodes: [node('a'), node('b', '512Mi'), node('c', '1Gi')] },
  );
  assert.deepEqual(
    four.map(({ outcome }) => outcome),
    ['migrates', 'migrates', 'migrates', 'blocked'],
  );
});

test('drainPlan(): what a migration asked of this node does not hold for the next one', () => {
  const came = (extra: object): ReturnType<typeof guest> => {
    const one = guest('g', {
      strategy: 'LiveMigrate',
      labels: { 'kubevirt.io/migrationJobUID': 'm' },
      pod: { nodeSelector: { 'kubernetes.io/hostname': 'a', 'kubevirt.io/schedulable': 'true' } },
    });
    Object.assign(one.vmi.spec, extra);
    return one;
  };
  const nodes = ['a', 'b'].map((name): Node => {
    const one = node(name);
    return {
      ...one,
      metadata: { ...one.metadata, labels: { ...one.metadata.labels, 'kubevirt.io/schedulable': 'true' } },
    };
  });
  const outcomeOf = (one: ReturnType<typeof guest>, on = nodes) => plan([one], { nodes: on })[0]?.outcome;
  assert.equal(outcomeOf(came({})), 'migrates');
  assert.equal(
    outcomeOf(came({ nodeSelector: { 'kubernetes.io/hostname': 'a' } })),
    'blocked',
    'the instance asks for it',
  );
  assert.equal(outcomeOf(came({}), [nodes[0]!, node('b')]), 'blocked', 'what every launcher asks for is asked again');
  const born = came({});
  delete born.pod.metadata.labels?.['kubevirt.io/migrationJobUID'];
  assert.equal(outcomeOf(born), 'blocked', 'it was made with that selector');
});

// S-237
test('drainPlan(): a node whose agent does not answer can neither send nor end a guest', () => {
  const silent = {
    ...node('a'),
    status: { ...node('a').status, conditions: [{ type: 'Ready', status: 'Unknown' }] },
  } as Node;
  const rows = plan(
    ['External', 'LiveMigrate', 'None'].map((strategy) => guest(strategy.toLowerCase(), { strategy })),
    { nodes: [silent, node('b')] },
  );
  assert.deepEqual(
    rows.map(({ strategy, outcome }) => `${strategy} ${outcome}`),
    ['External waits', 'LiveMigrate blocked', 'None blocked'],
  );
  assert.match(rows[1]?.blocker ?? '', /^node a does not answer: .* until its agent is back$/);
});

test('drainPlan(): other Pods are evicted, those of daemon sets and mirrors are let be, ended ones are not there', () => {
  const other = (name: string, more: object = {}, status: object = {}): Pod =>
    ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'ns', ...more },
      spec: { nodeName: 'a', containers: [{ name: 'c' }] },
      status: { phase: 'Running', ...status },
    }) as unknown as Pod;
  const rows = plan([], {
    pods: [
      other('app'),
      other('daemon', { ownerReferences: [{ kind: 'DaemonSet', name: 'd', uid: 'd', controller: true }] }),
      other('ended', {}, { phase: 'Succeeded' }),
      other('mirror', { annotations: { 'kubernetes.io/config.mirror': 'x' } }),
    ],
  });
  assert.deepEqual(
    rows.map(({ pod, outcome }) => `${pod} ${outcome}`),
    ['app evicted', 'daemon ignored', 'mirror ignored'],
  );
});
