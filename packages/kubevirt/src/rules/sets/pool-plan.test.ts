import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Part, partly } from '../../../../../test/testkit/partly.ts';
import type { PoolSpec, VirtualMachine, VirtualMachineInstance, VirtualMachinePool } from '../../kinds/kubevirt.ts';
import { freeIndices, newMember, POOL_REVISION_LABEL, updatedMember } from './pool-member.ts';
import { type PoolFacts, poolPlan } from './pool-plan.ts';

const NOW = Date.parse('2026-01-01T01:00:00Z');
type Vm = VirtualMachine;
type Vmi = VirtualMachineInstance;
type Template = PoolSpec['virtualMachineTemplate'];

const template = (memory: string, more: Part<VirtualMachine['spec']> = {}): Template =>
  partly<Template>({
    metadata: { labels: { app: 'x' } },
    spec: { runStrategy: 'Always', template: { spec: { domain: { memory: { guest: memory } } } }, ...more },
  });
const pool = (spec: Part<PoolSpec>, metadata: Part<VirtualMachinePool['metadata']> = {}) =>
  partly<VirtualMachinePool>({
    metadata: { name: 'p', namespace: 'n', uid: 'u', generation: 2, ...metadata },
    spec: { virtualMachineTemplate: template('2Gi'), ...spec },
  });
const vm = (index: number, revision = 'p-2', more: Part<Vm> = {}) =>
  partly<Vm>({
    metadata: {
      name: `p-${index}`,
      uid: `vm-${index}`,
      creationTimestamp: `2026-01-01T00:0${index}:00Z`,
      labels: { [POOL_REVISION_LABEL]: revision },
      ...more.metadata,
    },
    spec: more.spec ?? { template: {} },
    status: more.status,
  });
const instance = (name: string, revision: string, ready = true) =>
  partly<Vmi>({
    metadata: { name, uid: `vmi of ${name}`, labels: { [POOL_REVISION_LABEL]: revision } },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  });
const REVISIONS: Record<string, Template> = {
  'p-1': template('1Gi'),
  'p-2': template('2Gi'),
  'p-same': template('2Gi', { runStrategy: 'Manual' }),
  'p-disks': template('2Gi', { dataVolumeTemplates: [{ metadata: { name: 'd' } }] }),
};
const plan = (spec: Part<PoolSpec>, machines: Vm[], instances: Vmi[] = [], random: number[] = []) => {
  const facts: PoolFacts = {
    pool: pool(spec),
    machines,
    instanceOf: ({ metadata }) => instances.find((one) => one.metadata.name === metadata.name),
    templateOf: (revision) => REVISIONS[revision],
    now: NOW,
    random: () => random.shift() ?? 0.5,
  };
  const { create, remove, update, restart, relabel, waitMs } = poolPlan(facts);
  const names = (list: readonly { readonly metadata: { readonly name?: string } }[]) =>
    list.map(({ metadata }) => metadata.name);
  const said = {
    create,
    remove: names(remove),
    update: names(update),
    restart: names(restart),
    relabel: relabel.map(({ vmi, revision }) => `${vmi.metadata.name} ${revision}`),
    waitMs,
  };
  // What is nothing is left out.
  return Object.fromEntries(
    Object.entries(said).filter(([, value]) => (Array.isArray(value) ? value.length > 0 : !!value)),
  );
};
const three = [vm(0), vm(1), vm(2)];
const leaving = { metadata: { name: 'p-0', deletionTimestamp: 'now' } };
const sorted = (sortPolicy: 'Newest' | 'Oldest' | 'AscendingOrder' | 'DescendingOrder' | 'Random') => ({
  proactive: { selectionPolicy: { sortPolicy } },
});

describe('poolPlan(): how many', () => {
  const cases: [name: string, spec: Part<PoolSpec>, machines: Vm[], expected: object, random?: number[]][] = [
    ['one by default', {}, [], { create: 1 }],
    ['as many as are missing', { replicas: 5 }, three, { create: 2 }],
    ['no more than a burst', { replicas: 900 }, [], { create: 250 }],
    ['enough', { replicas: 3 }, three, {}],
    ['the newest', { replicas: 2, scaleInStrategy: sorted('Newest') }, three, { remove: ['p-2'] }],
    ['the oldest', { replicas: 2, scaleInStrategy: sorted('Oldest') }, three, { remove: ['p-0'] }],
    ['by number', { replicas: 1, scaleInStrategy: sorted('AscendingOrder') }, three, { remove: ['p-0', 'p-1'] }],
    ['from the end', { replicas: 1, scaleInStrategy: sorted('DescendingOrder') }, three, { remove: ['p-2', 'p-1'] }],
    ['any', { replicas: 2 }, three, { remove: ['p-1'] }, [0.9, 0.1, 0.5]],
    ['one that goes already counts', { replicas: 1 }, [vm(0, 'p-2', leaving), vm(1)], {}],
    ['paused', { replicas: 9, paused: true }, three, {}],
    ['unmanaged', { replicas: 1, scaleInStrategy: { unmanaged: {} } }, three, {}],
    ['opportunistic', { replicas: 1, scaleInStrategy: { opportunistic: {} } }, three, {}],
    [
      'only those that the selectors let through',
      {
        replicas: 0,
        scaleInStrategy: {
          proactive: {
            selectionPolicy: {
              sortPolicy: 'AscendingOrder',
              selectors: {
                labelSelector: { matchLabels: { tier: 'a' } },
                nodeSelectorRequirementMatcher: [{ key: 'zone', operator: 'In', values: ['z'] }],
              },
            },
          },
        },
      },
      [
        vm(0, 'p-2', { spec: { template: { metadata: { labels: { tier: 'a' } } } } }),
        vm(1, 'p-2', {
          spec: { template: { metadata: { labels: { tier: 'a' } }, spec: { nodeSelector: { zone: 'z' } } } },
        }),
      ],
      { remove: ['p-1'] },
    ],
  ];
  for (const [name, spec, machines, expected, random] of cases)
    it(name, () => assert.deepEqual(plan(spec, machines, [], random), expected));
});

describe('poolPlan(): a new template', () => {
  const old = [vm(0, 'p-1'), vm(1, 'p-1')];
  const order = { updateStrategy: sorted('AscendingOrder') };
  const new2 = [vm(0), vm(1)];
  const running = [instance('p-0', 'p-1'), instance('p-1', 'p-1')];
  const cases: [name: string, spec: Part<PoolSpec>, machines: Vm[], instances: Vmi[], expected: object][] = [
    ['machines get it first', order, old, running, { update: ['p-0', 'p-1'] }],
    ['then instances go', order, new2, running, { restart: ['p-0', 'p-1'] }],
    ['as many as may be missing', { ...order, maxUnavailable: 1 }, new2, running, { restart: ['p-0'], waitMs: 3000 }],
    [
      'a share, rounded down, one at least',
      { ...order, maxUnavailable: '60%' },
      new2,
      running,
      { restart: ['p-0'], waitMs: 3000 },
    ],
    ['none while one is not there', { ...order, maxUnavailable: 1 }, new2, [instance('p-1', 'p-1')], { waitMs: 3000 }],
    [
      'one that is not ready goes at once',
      { ...order, maxUnavailable: 1 },
      new2,
      [instance('p-0', 'p-1', false), instance('p-1', 'p-1')],
      { restart: ['p-0'], waitMs: 3000 },
    ],
    ['opportunistic: machines only', { updateStrategy: { opportunistic: {} } }, new2, running, {}],
    ['unmanaged: nothing', { updateStrategy: { unmanaged: {} } }, old, running, {}],
    [
      'what is the same for the guest',
      order,
      [vm(0, 'p-same'), vm(1)].slice(1),
      [instance('p-1', 'p-same')],
      { relabel: ['p-1 p-2'] },
    ],
    ['an unknown past', order, [vm(0)], [instance('p-0', 'p-0')], { restart: ['p-0'] }],
    ['other disks: made anew', order, [vm(0)], [instance('p-0', 'p-disks')], { remove: ['p-0'] }],
    ['a machine without its revision', order, [vm(0, 'gone')], [], { update: ['p-0'] }],
  ];
  for (const [name, spec, machines, instances, expected] of cases)
    it(name, () => assert.deepEqual(plan({ replicas: machines.length, ...spec }, machines, instances), expected));
});

describe('poolPlan(): machines that cannot start', () => {
  const failing = (count: number, since: string) =>
    vm(0, 'p-2', {
      status: {
        startFailure: { consecutiveFailCount: count },
        conditions: [{ type: 'Ready', status: 'False', lastTransitionTime: since }],
      },
    });
  const cases: [name: string, spec: Part<PoolSpec>, machine: Vm, expected: object][] = [
    ['stay where nobody asked for more', {}, failing(9, '2026-01-01T00:00:00Z'), {}],
    [
      'go after three failures and five minutes',
      { autohealing: {} },
      failing(3, '2026-01-01T00:55:00Z'),
      { remove: ['p-0'] },
    ],
    ['not before', { autohealing: {} }, failing(2, '2026-01-01T00:00:00Z'), {}],
    ['and are looked at when it is time', { autohealing: {} }, failing(3, '2026-01-01T00:56:00Z'), { waitMs: 60_000 }],
    [
      'as the pool says',
      { autohealing: { startUpFailureThreshold: 1, minFailingToStartDuration: '30s' } },
      failing(1, '2026-01-01T00:59:30Z'),
      { remove: ['p-0'] },
    ],
  ];
  for (const [name, spec, machine, expected] of cases)
    it(name, () => assert.deepEqual(plan(spec, [machine]), expected));
});

describe('members', () => {
  const of = pool(
    {
      nameGeneration: { appendIndexToConfigMapRefs: true, appendIndexToSecretRefs: true },
      scaleInStrategy: { proactive: { statePreservation: 'Offline' } },
      virtualMachineTemplate: template('1Gi', {
        dataVolumeTemplates: [{ metadata: { name: 'root' } }],
        template: {
          metadata: { labels: { os: 'linux' } },
          spec: {
            volumes: [
              { name: 'a', dataVolume: { name: 'root' } },
              { name: 'b', persistentVolumeClaim: { claimName: 'root' } },
              { name: 'c', persistentVolumeClaim: { claimName: 'shared' } },
              { name: 'd', configMap: { name: 'cm' } },
              { name: 'e', secret: { secretName: 's' } },
              { name: 'f', cloudInitNoCloud: { secretRef: { name: 'u' }, networkDataSecretRef: { name: 'n' } } },
              { name: 'g', sysprep: { configMap: { name: 'sys' } } },
            ],
          },
        },
      }),
    },
    { name: 'web', generation: 4 },
  );
  it('have a number in their name and in what is their own', () => {
    const made = newMember(of, 3);
    assert.equal(made.metadata.name, 'web-3');
    assert.deepEqual(made.metadata.labels, { app: 'x', [POOL_REVISION_LABEL]: 'web-4' });
    assert.deepEqual(made.metadata.finalizers, ['pool.kubevirt.io/finalizer']);
    assert.equal(made.metadata.ownerReferences?.[0]?.kind, of.kind);
    assert.deepEqual(made.spec.template.metadata?.labels, { os: 'linux', [POOL_REVISION_LABEL]: 'web-4' });
    assert.equal(made.spec.dataVolumeTemplates?.[0]?.metadata?.name, 'root-3');
    assert.equal(
      JSON.stringify(made.spec.template.spec?.volumes),
      JSON.stringify([
        { name: 'a', dataVolume: { name: 'root-3' } },
        { name: 'b', persistentVolumeClaim: { claimName: 'root-3' } },
        { name: 'c', persistentVolumeClaim: { claimName: 'shared' } },
        { name: 'd', configMap: { name: 'cm-3' } },
        { name: 'e', secret: { secretName: 's-3' } },
        { name: 'f', cloudInitNoCloud: { secretRef: { name: 'u-3' }, networkDataSecretRef: { name: 'n-3' } } },
        { name: 'g', sysprep: { configMap: { name: 'sys-3' } } },
      ]),
    );
    assert.equal(of.spec.virtualMachineTemplate.spec?.dataVolumeTemplates?.[0]?.metadata?.name, 'root');
  });
  it('stay who they are when the template changes', () => {
    const before = vm(5, 'p-1', {
      metadata: { name: 'p-5', annotations: { 'coracle.dev/firmware-identity': 'Generated', note: 'old' } },
      spec: { template: { spec: { domain: { firmware: { uuid: 'id', serial: 'no' } } } } },
    });
    const after = updatedMember(pool({}), before);
    assert.deepEqual(after.metadata.annotations, { 'coracle.dev/firmware-identity': 'Generated' });
    assert.deepEqual(after.spec.template.spec?.domain?.firmware, { uuid: 'id', serial: 'no' });
    assert.equal(after.spec.template.spec?.domain?.memory?.guest, '2Gi');
    assert.equal(after.metadata.labels?.[POOL_REVISION_LABEL], 'p-2');
  });
  it('take the lowest names that are free', () => {
    assert.deepEqual(
      freeIndices(pool({}), 3, (name) => name === 'p-1'),
      [0, 2, 3],
    );
  });
});
