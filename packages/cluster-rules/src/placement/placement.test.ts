import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Affinity, Node, Pod, PodAffinityTerm, Taint, Toleration } from '../../../apimachinery/src/types/types.ts';
import { matchesTerm } from './node-affinity.ts';
import { nodeUsage } from './node-usage.ts';
import { placePod } from './place-pod.ts';
import { podRequests } from './pod-requests.ts';
import { allocationScores } from './score.ts';
import { tolerates } from './taints.ts';

interface PodOptions {
  readonly labels?: Record<string, string>;
  readonly namespace?: string;
  readonly requests?: Record<string, string>;
  readonly limits?: Record<string, string>;
  readonly tolerations?: Toleration[];
  readonly nodeSelector?: Record<string, string>;
  readonly affinity?: Affinity;
  readonly hostPort?: number;
  readonly phase?: 'Succeeded' | 'Running';
}

const pod = (name: string, options: PodOptions = {}): Pod => {
  const { labels, namespace = 'ns', requests, limits, tolerations, nodeSelector, affinity, hostPort, phase } = options;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, uid: name, ...(labels && { labels }) },
    spec: {
      containers: [
        {
          name: 'c',
          resources: { ...(requests && { requests }), ...(limits && { limits }) },
          ...(hostPort && { ports: [{ containerPort: hostPort, hostPort }] }),
        },
      ],
      ...(tolerations && { tolerations }),
      ...(nodeSelector && { nodeSelector }),
      ...(affinity && { affinity }),
    },
    ...(phase && { status: { phase } }),
  };
};

interface NodeOptions {
  readonly labels?: Record<string, string>;
  readonly taints?: Taint[];
  readonly unschedulable?: boolean;
  readonly allocatable?: Record<string, string>;
}

const ROOM = { cpu: '4', memory: '8Gi', pods: '110' };
const node = (name: string, options: NodeOptions = {}): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels: { 'kubernetes.io/hostname': name, ...options.labels } },
  spec: { ...(options.taints && { taints: options.taints }), ...(options.unschedulable && { unschedulable: true }) },
  status: { allocatable: options.allocatable ?? ROOM },
});

const place = (
  wanted: Pod,
  nodes: readonly (readonly [Node, ...Pod[]])[],
  namespaces: Record<string, Record<string, string>> = {},
) => {
  const usages = nodes.map(([one, ...pods]) => nodeUsage(one, pods));
  const placement = placePod(wanted, usages, { namespaceLabels: (name) => namespaces[name] });
  return placement.type === 'node' ? placement.name : placement.message;
};

const term = (labels: Record<string, string>, more: Partial<PodAffinityTerm> = {}): PodAffinityTerm => ({
  labelSelector: { matchLabels: labels },
  topologyKey: 'kubernetes.io/hostname',
  ...more,
});
const away = (labels: Record<string, string>, more?: Partial<PodAffinityTerm>): Affinity => ({
  podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term(labels, more)] },
});
const beside = (labels: Record<string, string>, more?: Partial<PodAffinityTerm>): Affinity => ({
  podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term(labels, more)] },
});
const taint: Taint = { key: 'k', value: 'v', effect: 'NoSchedule' };

const cases: { name: string; pod: Pod; nodes: (readonly [Node, ...Pod[]])[]; placed: string }[] = [
  { name: 'no nodes', pod: pod('p'), nodes: [], placed: 'no nodes available to schedule pods' },
  { name: 'one free node', pod: pod('p'), nodes: [[node('a')]], placed: 'a' },
  { name: 'equal nodes: first by name', pod: pod('p'), nodes: [[node('b')], [node('a')]], placed: 'a' },
  {
    name: 'memory is short',
    pod: pod('p', { requests: { memory: '9Gi' } }),
    nodes: [[node('a')]],
    placed: '0/1 nodes are available: 1 Insufficient memory.',
  },
  {
    name: 'what others request is taken, what ended ones did is not',
    pod: pod('p', { requests: { cpu: '2500m' } }),
    nodes: [
      [node('a'), pod('x', { requests: { cpu: '2' } })],
      [node('b'), pod('y', { requests: { cpu: '2' }, phase: 'Succeeded' })],
    ],
    placed: 'b',
  },
  {
    name: 'a device the node does not offer, given as a limit only',
    pod: pod('p', { limits: { 'devices.kubevirt.io/kvm': '1' } }),
    nodes: [[node('a')], [node('b', { allocatable: { ...ROOM, 'devices.kubevirt.io/kvm': '0' } })]],
    placed: '0/2 nodes are available: 2 Insufficient devices.kubevirt.io/kvm.',
  },
  {
    name: 'a device the node offers',
    pod: pod('p', { limits: { 'devices.kubevirt.io/kvm': '1' } }),
    nodes: [[node('a')], [node('b', { allocatable: { ...ROOM, 'devices.kubevirt.io/kvm': '1k' } })]],
    placed: 'b',
  },
  {
    name: 'too many pods',
    pod: pod('p'),
    nodes: [[node('a', { allocatable: { ...ROOM, pods: '1' } }), pod('x')]],
    placed: '0/1 nodes are available: 1 Too many pods.',
  },
  {
    name: 'every reason is counted, sorted as text',
    pod: pod('p', { requests: { cpu: '5', memory: '9Gi' }, nodeSelector: { disk: 'ssd' } }),
    nodes: [
      [node('a', { unschedulable: true })],
      [node('b', { taints: [taint] })],
      [node('c')],
      [node('d', { labels: { disk: 'ssd' } })],
      [node('e', { labels: { disk: 'ssd' } })],
    ],
    placed:
      "0/5 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint(s), " +
      '1 node(s) were unschedulable, 2 Insufficient cpu, 2 Insufficient memory.',
  },
  {
    name: 'a cordoned node takes a pod that tolerates it',
    pod: pod('p', { tolerations: [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }] }),
    nodes: [[node('a', { unschedulable: true })]],
    placed: 'a',
  },
  {
    name: 'node name by field',
    pod: pod('p', {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['b'] }] }],
          },
        },
      },
    }),
    nodes: [[node('a')], [node('b')]],
    placed: 'b',
  },
  {
    name: 'a preferred node outweighs a freer one',
    pod: pod('p', {
      affinity: {
        nodeAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 1, preference: { matchExpressions: [{ key: 'disk', operator: 'In', values: ['ssd'] }] } },
          ],
        },
      },
    }),
    nodes: [[node('a')], [node('b', { labels: { disk: 'ssd' } }), pod('x', { requests: { cpu: '2', memory: '4Gi' } })]],
    placed: 'b',
  },
  {
    name: 'the freer node',
    pod: pod('p', { requests: { cpu: '1' } }),
    nodes: [[node('a'), pod('x', { requests: { cpu: '1', memory: '1Gi' } })], [node('b')]],
    placed: 'b',
  },
  {
    name: 'pods without requests are spread too',
    pod: pod('p'),
    nodes: [[node('a'), pod('x')], [node('b')]],
    placed: 'b',
  },
  {
    name: 'a node to avoid is taken only when there is no other',
    pod: pod('p'),
    nodes: [
      [node('a', { taints: [{ key: 'k', effect: 'PreferNoSchedule' }] })],
      [node('b'), pod('x', { requests: { cpu: '3' } })],
    ],
    placed: 'b',
  },
  {
    name: 'not beside its like',
    pod: pod('p', { labels: { app: 'x' }, affinity: away({ app: 'x' }) }),
    nodes: [
      [node('a'), pod('x', { labels: { app: 'x' } })],
      [node('b'), pod('y', { labels: { app: 'x' } })],
    ],
    placed: "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules.",
  },
  {
    name: 'its like in another namespace does not count',
    pod: pod('p', { affinity: away({ app: 'x' }) }),
    nodes: [[node('a'), pod('x', { labels: { app: 'x' }, namespace: 'other' })]],
    placed: 'a',
  },
  {
    name: 'unless the term names it',
    pod: pod('p', { affinity: away({ app: 'x' }, { namespaceSelector: { matchLabels: { team: 't' } } }) }),
    nodes: [[node('a'), pod('x', { labels: { app: 'x' }, namespace: 'other' })]],
    placed: "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.",
  },
  {
    name: 'a pod already there does not want it',
    pod: pod('p', { labels: { app: 'x' } }),
    nodes: [[node('a'), pod('x', { affinity: away({ app: 'x' }) })]],
    placed: "0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules.",
  },
  {
    name: 'anti-affinity spreads over the whole domain',
    pod: pod('p', { affinity: away({ app: 'x' }, { topologyKey: 'zone' }) }),
    nodes: [
      [node('a', { labels: { zone: '1' } }), pod('x', { labels: { app: 'x' } })],
      [node('b', { labels: { zone: '1' } })],
      [node('c', { labels: { zone: '2' } }), pod('busy', { requests: { cpu: '3' } })],
    ],
    placed: 'c',
  },
  {
    name: 'beside another',
    pod: pod('p', { affinity: beside({ app: 'db' }) }),
    nodes: [[node('a')], [node('b'), pod('db', { labels: { app: 'db' }, requests: { cpu: '3' } })]],
    placed: 'b',
  },
  {
    name: 'beside nobody',
    pod: pod('p', { affinity: beside({ app: 'db' }) }),
    nodes: [[node('a')]],
    placed: "0/1 nodes are available: 1 node(s) didn't match pod affinity rules.",
  },
  {
    name: 'the first of a group that wants its like beside it',
    pod: pod('p', { labels: { app: 'x' }, affinity: beside({ app: 'x' }) }),
    nodes: [[node('a')]],
    placed: 'a',
  },
  {
    name: 'a selector no server would accept matches nothing',
    pod: pod('p'),
    nodes: [
      [
        node('a'),
        pod('x', {
          affinity: away({}, { labelSelector: { matchExpressions: [{ key: 'a', operator: 'Nonsense' as 'In' }] } }),
        }),
      ],
    ],
    placed: 'a',
  },
  {
    name: 'a host port in use',
    pod: pod('p', { hostPort: 80 }),
    nodes: [[node('a'), pod('x', { hostPort: 80 })]],
    placed: "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.",
  },
  {
    name: 'a host port that is free',
    pod: pod('p', { hostPort: 80 }),
    nodes: [[node('a'), pod('x', { hostPort: 81 })]],
    placed: 'a',
  },
];
for (const { name, pod: wanted, nodes, placed } of cases) {
  test(`placePod(): ${name}`, () => assert.equal(place(wanted, nodes, { other: { team: 't' } }), placed));
}

const tolerations: [toleration: Toleration, taint: Taint, tolerated: boolean][] = [
  [{ key: 'k', operator: 'Equal', value: 'v', effect: 'NoSchedule' }, taint, true],
  [{ key: 'k', value: 'v' }, taint, true],
  [{ key: 'k', value: 'w' }, taint, false],
  [{ key: 'k', operator: 'Exists' }, taint, true],
  [{ key: 'k', operator: 'Exists', effect: 'NoExecute' }, taint, false],
  [{ key: 'x', operator: 'Exists' }, taint, false],
  [{ operator: 'Exists' }, taint, true],
  [{ operator: 'Equal', value: 'v' }, taint, false],
  [{ key: 'k' }, { key: 'k', effect: 'NoExecute' }, true],
  [{ key: 'k', operator: 'Gt', value: '5' }, { key: 'k', value: '7', effect: 'NoSchedule' }, true],
  [{ key: 'k', operator: 'Lt', value: '5' }, { key: 'k', value: '7', effect: 'NoSchedule' }, false],
];
test('tolerates()', () => {
  for (const [toleration, one, tolerated] of tolerations) {
    assert.equal(tolerates(toleration, one), tolerated, JSON.stringify([toleration, one]));
  }
});

test('matchesTerm() knows every operator, and own labels only', () => {
  const one = node('a', { labels: { size: '10', empty: '' } });
  const expression = (key: string, operator: string, ...values: string[]): boolean =>
    matchesTerm(one, { matchExpressions: [{ key, operator: operator as 'In', values }] });
  assert.deepEqual(
    [
      expression('size', 'In', '9', '10'),
      expression('size', 'NotIn', '10'),
      expression('none', 'NotIn', '10'),
      expression('empty', 'Exists'),
      expression('none', 'DoesNotExist'),
      expression('size', 'Gt', '9'),
      expression('size', 'Lt', '9'),
      expression('empty', 'Gt', '0'),
      expression('size', 'Nonsense', '10'),
      expression('constructor', 'Exists'),
      expression('__proto__', 'Exists'),
    ],
    [true, false, true, true, true, true, false, false, false, false, false],
  );
  assert.equal(matchesTerm(one, {}), false);
});

test('podRequests() counts containers, sidecars, init containers and overhead', () => {
  const cpu = (amount: string) => ({ resources: { requests: { cpu: amount } } });
  const spec = {
    containers: [
      { name: 'a', ...cpu('500m') },
      { name: 'b', ...cpu('250m') },
    ],
    initContainers: [
      { name: 'i', ...cpu('600m') },
      { name: 's', restartPolicy: 'Always', ...cpu('200m') },
      { name: 'j', ...cpu('900m') },
    ],
    overhead: { cpu: '10m' },
  };
  const sum = podRequests({ apiVersion: 'v1', kind: 'Pod', metadata: {}, spec });
  // The init container beside the sidecar needs 1100m, which is more than 750m + 200m.
  assert.equal(sum.get('cpu'), 1110);
});

// S-046
test('placePod() never overfills a node, and always finds room where there is some', () => {
  const size = fc.integer({ min: 1, max: 4000 });
  fc.assert(
    fc.property(fc.array(size, { maxLength: 30 }), fc.integer({ min: 1, max: 4 }), (sizes, count) => {
      const nodes = Array.from({ length: count }, (_, i) => ({ node: node(`n${i}`), pods: [] as Pod[], used: 0 }));
      for (const [i, milli] of sizes.entries()) {
        const wanted = pod(`p${i}`, { requests: { cpu: `${milli}m` } });
        const result = placePod(
          wanted,
          nodes.map((one) => nodeUsage(one.node, one.pods)),
        );
        const fits = nodes.some((one) => one.used + milli <= 4000);
        assert.equal(result.type === 'node', fits);
        const chosen = result.type === 'node' ? nodes.find((one) => one.node.metadata.name === result.name) : undefined;
        if (!chosen) continue;
        chosen.pods.push(wanted);
        chosen.used += milli;
        assert.ok(chosen.used <= 4000);
      }
    }),
  );
});

test('allocationScores() stay within 0 and 100, also on a node that offers nothing', () => {
  for (const usage of [nodeUsage(node('a'), []), nodeUsage(node('b', { allocatable: {} }), [])]) {
    const { least, balanced } = allocationScores(pod('p', { requests: { cpu: '64' } }), usage);
    for (const score of [least, balanced]) assert.ok(score >= 0 && score <= 100, String(score));
  }
});

// S-632: A guest with a TPM goes only to nodes that have an emulator for one; where none has, its instance says so and
//   other guests are not affected.
test('a guest with a TPM goes where an emulator for it is, and hears of it where none is', () => {
  const labels = { 'coracle.dev/tpm': 'true' };
  const guest = pod('p', { nodeSelector: labels });
  assert.equal(place(guest, [[node('a')], [node('b', { labels })]], {}), 'b');
  const nowhere = '0/2 nodes are available: 2 node(s) had no TPM emulator (swtpm).';
  assert.equal(place(guest, [[node('a')], [node('b')]], {}), nowhere);
});
