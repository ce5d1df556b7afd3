import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubeVirt, VirtualMachineInstance, VirtualMachineInstanceSpec } from '../../kinds/kubevirt.ts';
import { clusterConfigOf } from '../machine-defaults/cluster-config.ts';
import { setInstanceDefaults, setInstanceSpecDefaults } from '../machine-defaults/instance-defaults.ts';
import { neutraliseLiveFields } from './live-fields.ts';
import { liveUpdateDecision } from './live-update-decision.ts';

type Domain = Partial<VirtualMachineInstanceSpec['domain']>;
type Condition = readonly [type: string, status: string];

const config = clusterConfigOf(undefined as unknown as KubeVirt);
const specOf = (domain: Domain, more: Partial<VirtualMachineInstanceSpec> = {}): VirtualMachineInstanceSpec => ({
  ...more,
  domain: { devices: {}, ...structuredClone(domain) },
});

/** An instance that was started from `domain` and runs. */
function running(domain: Domain, conditions: readonly Condition[] = [], status: object = {}): VirtualMachineInstance {
  const vmi: VirtualMachineInstance = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'a', namespace: 'b' },
    spec: specOf(domain),
  };
  setInstanceDefaults(vmi, config);
  vmi.status = {
    ...vmi.status,
    conditions: [...conditions, ['LiveMigratable', 'True'] as const].map(([type, value]) => ({ type, status: value })),
    ...status,
  } as NonNullable<typeof vmi.status>;
  return vmi;
}

/** What becomes of an instance started from `before` when the machine says `after`. */
function decide(
  before: Domain,
  after: Domain,
  of: { conditions?: readonly Condition[]; status?: object; spec?: Partial<VirtualMachineInstanceSpec> } = {},
) {
  const wanted = specOf(after, of.spec);
  setInstanceSpecDefaults(wanted, config);
  return liveUpdateDecision({ wanted, vmi: running(before, of.conditions, of.status), cpuAllocationRatio: 10 });
}

const sockets = (count: number, more: object = {}): Domain => ({ cpu: { sockets: count, ...more } });
const guest = (amount: string, more: object = {}): Domain => ({ memory: { guest: amount, ...more } });
const MOVING = { migrationState: { migrationUid: 'x', startTimestamp: '2026-01-01T00:00:00Z' } };

describe('sockets', () => {
  it('are raised behind a test of what they replace', () =>
    assert.deepEqual(decide(sockets(1), sockets(3)).patch, [
      { op: 'test', path: '/spec/domain/cpu/sockets', value: 1 },
      { op: 'replace', path: '/spec/domain/cpu/sockets', value: 3 },
    ]));
  it('take written requests and limits along', () => {
    const resources = { requests: { cpu: '200m' }, limits: { cpu: '2' } };
    const cpu = { cores: 2 };
    const { patch } = decide({ ...sockets(1, cpu), resources }, { ...sockets(2, cpu), resources });
    assert.deepEqual(
      patch.filter(({ op }) => op === 'replace').map(({ path, value }) => [path, value]),
      [
        ['/spec/domain/cpu/sockets', 2],
        ['/spec/domain/resources/requests/cpu', '400m'],
        ['/spec/domain/resources/limits/cpu', '2200m'],
      ],
    );
  });
  it('that nobody wrote count as one', () =>
    assert.deepEqual(decide({ cpu: { cores: 2 } }, { cpu: { cores: 2 } }), { patch: [] }));
  const restarts: [name: string, from: number, to: number, spec: object, text: string][] = [
    ['too many', 1, 5, {}, "CPU sockets updated in template spec to a value higher than what's available"],
    ['fewer', 2, 1, {}, 'Reduction of CPU socket count requires a restart'],
    ['arm', 1, 2, { architecture: 'arm64' }, "ARM doesn't support CPU hotplug"],
  ];
  for (const [name, from, to, spec, text] of restarts)
    it(name, () => assert.deepEqual(decide(sockets(from), sockets(to), { spec }), { patch: [], restart: text }));
  it('wait for the change before, and for the end of a migration', () => {
    const failure = (why: string) => ({
      reason: 'HotPlugCPUError',
      message: `Error encountered while handling CPU change request: ${why}`,
    });
    const busy = decide(sockets(1), sockets(2), { conditions: [['HotVCPUChange', 'True']] });
    assert.deepEqual(busy, { patch: [], failure: failure('another CPU hotplug is in progress') });
    const moving = decide(sockets(1), sockets(2), { status: MOVING });
    assert.deepEqual(moving.failure, failure('CPU hotplug is not allowed while VMI is migrating'));
    const moved = { migrationState: { ...MOVING.migrationState, completed: true } };
    assert.equal(decide(sockets(1), sockets(2), { status: moved }).failure, undefined);
  });
});

describe('memory', () => {
  it('is raised and lowered down to what the guest booted with', () => {
    const status = { memory: { guestAtBoot: '1Gi', guestCurrent: '3Gi', guestRequested: '3Gi' } };
    for (const to of ['2Gi', '1Gi'])
      assert.deepEqual(decide(guest('3Gi', { maxGuest: '4Gi' }), guest(to), { status }).patch, [
        { op: 'test', path: '/spec/domain/memory/guest', value: '3Gi' },
        { op: 'replace', path: '/spec/domain/memory/guest', value: to },
      ]);
  });
  it('written in another way is the same', () =>
    assert.deepEqual(decide(guest('1Gi'), guest('1024Mi')), { patch: [] }));
  it('takes written requests and limits along', () => {
    const resources = { requests: { memory: '1Gi' }, limits: { memory: '2Gi' } };
    const { patch } = decide({ ...guest('1Gi'), resources }, { ...guest('3Gi'), resources });
    assert.deepEqual(
      patch.filter(({ op }) => op === 'replace').map(({ value }) => value),
      ['3Gi', '3Gi', '4Gi'],
    );
  });
  it('never requests less than the guest may have', () => {
    const resources = { requests: { memory: '1Gi' }, limits: { memory: '2Gi' } };
    const status = { memory: { guestAtBoot: '1Gi', guestCurrent: '4Gi', guestRequested: '1Gi' } };
    const { patch } = decide({ ...guest('1Gi'), resources }, { ...guest('2Gi'), resources }, { status });
    assert.deepEqual(
      patch.filter(({ op }) => op === 'replace').map(({ value }) => value),
      ['2Gi', '2Gi', '2Gi'],
    );
  });
  const prefix = 'memory updated in template spec';
  const restarts: [name: string, from: Domain, to: Domain, of: Parameters<typeof decide>[2], text: string][] = [
    [
      'where the change before has failed',
      guest('1Gi'),
      guest('1Gi'),
      { conditions: [['HotMemoryChange', 'False']] },
      `${prefix}. Memory-hotplug failed and is not available for this VM configuration`,
    ],
    [
      'of a guest that cannot move',
      guest('1Gi'),
      guest('2Gi'),
      { conditions: [['LiveMigratable', 'False']] },
      `${prefix}. Memory-hotplug is only available for migratable VMs`,
    ],
    [
      'without a maximum',
      guest('1023M'),
      guest('2Gi'),
      {},
      `${prefix}. Memory-hotplug is not available for this VM configuration`,
    ],
    [
      'beyond the maximum',
      guest('1Gi'),
      guest('5Gi'),
      {},
      'memory hotplug not supported, Guest memory is greater than the configured maxGuest memory',
    ],
    [
      'not aligned',
      guest('1Gi'),
      guest('1025Mi'),
      {},
      'memory hotplug not supported, Guest memory must be 2Mi aligned',
    ],
    [
      'below what it booted with',
      guest('2Gi'),
      guest('1Gi'),
      {},
      `${prefix} to a value lower than what the VM started with`,
    ],
    [
      'of a small guest',
      guest('512Mi'),
      guest('1Gi'),
      {},
      `${prefix}. Memory-hotplug is not available for this VM configuration`,
    ],
    [
      'to less than can be plugged',
      guest('2Gi'),
      guest('512Mi'),
      {},
      'memory hotplug not supported, Memory hotplug is only available for VMs with at least 1Gi of guest memory',
    ],
  ];
  for (const [name, from, to, of, text] of restarts)
    it(`${name}: a restart`, () => assert.deepEqual(decide(from, to, of), { patch: [], restart: text }));
  it('waits as processors do', () => {
    const refused = (why: string) => `error encountered while handling memory hotplug requests: ${why}`;
    const busy = decide(guest('1Gi'), guest('2Gi'), { conditions: [['HotMemoryChange', 'True']] });
    assert.deepEqual(busy.failure, {
      reason: 'HotPlugMemoryError',
      message: refused('another memory hotplug is in progress'),
    });
    const moving = decide(guest('1Gi'), guest('2Gi'), { status: MOVING });
    assert.equal(moving.failure?.message, refused('memory hotplug is not allowed while VMI is migrating'));
  });
  it('changes together with sockets, and waits behind them', () => {
    const both = decide({ ...sockets(1), ...guest('1Gi') }, { ...sockets(2), ...guest('2Gi') });
    assert.equal(both.patch.length, 4);
    const conditions: Condition[] = [['HotVCPUChange', 'True']];
    const behind = decide({ ...sockets(1), ...guest('1Gi') }, { ...sockets(2), ...guest('2Gi') }, { conditions });
    assert.deepEqual([behind.patch, behind.failure?.reason], [[], 'HotPlugCPUError']);
  });
});

describe('placement', () => {
  it('goes into the instance, and out of it', () => {
    const tolerations = [{ key: 'a', operator: 'Exists' as const }];
    assert.deepEqual(decide({}, {}, { spec: { nodeSelector: { a: 'b' }, tolerations } }).patch, [
      { op: 'add', path: '/spec/nodeSelector', value: { a: 'b' } },
      { op: 'add', path: '/spec/tolerations', value: tolerations },
    ]);
  });
  it('waits for the end of a migration', () => {
    const { failure } = decide({}, {}, { spec: { nodeSelector: { a: 'b' } }, status: MOVING });
    assert.equal(failure?.reason, 'AffinityChangeError');
  });
});

describe('neutraliseLiveFields()', () => {
  const template = (spec: object) => ({ spec: { domain: { devices: {} }, ...structuredClone(spec) } });
  const cases: [name: string, before: object, after: object, same: boolean][] = [
    ['sockets', { domain: { cpu: { sockets: 1, cores: 2 } } }, { domain: { cpu: { sockets: 2, cores: 2 } } }, true],
    [
      'sockets where there were none',
      { domain: { cpu: { cores: 2 } } },
      { domain: { cpu: { sockets: 2, cores: 2 } } },
      true,
    ],
    ['cores', { domain: { cpu: { cores: 2 } } }, { domain: { cpu: { cores: 3 } } }, false],
    ['a topology where there was none', { domain: {} }, { domain: { cpu: { sockets: 2 } } }, false],
    ['memory', { domain: { memory: { guest: '1Gi' } } }, { domain: { memory: { guest: '2Gi' } } }, true],
    ['memory where there was none', { domain: {} }, { domain: { memory: { guest: '2Gi' } } }, true],
    [
      'its maximum',
      { domain: { memory: { guest: '1Gi' } } },
      { domain: { memory: { guest: '1Gi', maxGuest: '2Gi' } } },
      false,
    ],
    ['placement', { nodeSelector: { a: 'b' } }, { affinity: {}, tolerations: [] }, true],
  ];
  for (const [name, before, after, same] of cases)
    it(name, () => {
      const [then, now] = [template(before), template(after)];
      neutraliseLiveFields(then, now);
      assert.equal(JSON.stringify(sorted(then)) === JSON.stringify(sorted(now)), same);
    });
});

/** With keys in one order. */
function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([key, of]) => [key, sorted(of)]),
  );
}
