import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { InstancetypeSpec, PreferenceSpec } from '../../kinds/kubevirt.ts';
import { spreadConflict } from './cpu-topology.ts';
import { applyInstancetype } from './expand.ts';

const type = (more: Partial<InstancetypeSpec> = {}): InstancetypeSpec => ({
  cpu: { guest: 2 },
  memory: { guest: '4Gi' },
  ...more,
});
const applied = (layers: { instancetype: InstancetypeSpec; preference: PreferenceSpec }) => {
  const result = applyInstancetype({ ...layers, spec: {} });
  assert.ok(result.ok);
  return result;
};

describe('processor topology', () => {
  type Cpu = NonNullable<PreferenceSpec['cpu']>;
  const spread = (across?: string, ratio?: number): Cpu =>
    ({
      preferredCPUTopology: 'spread',
      spreadOptions: { ...(across && { across }), ...(ratio && { ratio }) },
    }) as Cpu;
  const cases: [guest: number, cpu: Cpu, sockets: number, cores: number, threads: number][] = [
    [1, { preferredCPUTopology: 'cores' }, 1, 1, 1],
    [4, {}, 4, 1, 1],
    [4, { preferredCPUTopology: 'sockets' }, 4, 1, 1],
    [4, { preferredCPUTopology: 'preferSockets' }, 4, 1, 1],
    [4, { preferredCPUTopology: 'any' }, 4, 1, 1],
    [4, { preferredCPUTopology: 'preferAny' }, 4, 1, 1],
    [4, { preferredCPUTopology: 'cores' }, 1, 4, 1],
    [4, { preferredCPUTopology: 'preferCores' }, 1, 4, 1],
    [4, { preferredCPUTopology: 'threads' }, 1, 1, 4],
    [4, { preferredCPUTopology: 'preferThreads' }, 1, 1, 4],
    [6, { preferredCPUTopology: 'preferSpread' }, 3, 2, 1],
    [1, spread(), 1, 1, 1],
    [2, spread(), 1, 2, 1],
    [6, spread(), 3, 2, 1],
    [9, spread('SocketsCores', 3), 3, 3, 1],
    [2, spread('CoresThreads'), 1, 1, 2],
    [18, spread('SocketsCoresThreads', 3), 3, 3, 2],
    [6, spread('SocketsCores', 3), 2, 3, 1],
    [7, spread('SocketsCores', 2), 3, 2, 1],
    [6, spread('CoresThreads'), 1, 3, 2],
    [8, spread('CoresThreads', 2), 1, 4, 2],
    [4, spread('SocketsCoresThreads'), 1, 2, 2],
    [8, spread('SocketsCoresThreads'), 2, 2, 2],
    [12, spread('SocketsCoresThreads', 3), 2, 3, 2],
    [24, spread('SocketsCoresThreads', 4), 3, 4, 2],
    [1, spread('SocketsCoresThreads', 4), 1, 1, 1],
  ];
  for (const [guest, cpu, sockets, cores, threads] of cases)
    it(`${guest} by ${JSON.stringify(cpu)}`, () => {
      const { spec } = applied({ instancetype: type({ cpu: { guest } }), preference: { cpu } });
      assert.deepEqual(spec.domain.cpu, { cores, sockets, threads });
    });
  it('takes the ratio of preferSpreadSocketToCoreRatio unless the options have one', () => {
    const preference: PreferenceSpec = { preferSpreadSocketToCoreRatio: 4, cpu: spread() };
    const cpuOf = (own: PreferenceSpec) =>
      applied({ instancetype: type({ cpu: { guest: 8 } }), preference: own }).spec.domain.cpu;
    assert.deepEqual(cpuOf(preference), { cores: 4, sockets: 2, threads: 1 });
    assert.deepEqual(cpuOf({ ...preference, cpu: spread('SocketsCores', 8) }), { cores: 8, sockets: 1, threads: 1 });
  });
  it('leaves out an axis that comes to nothing', () => {
    const instancetype = type({ cpu: { guest: 2 } });
    const { spec } = applied({ instancetype, preference: { cpu: spread('SocketsCoresThreads', 4) } });
    assert.deepEqual(spec.domain.cpu, { cores: 4, threads: 2 });
  });

  const indivisible: [guest: number, cpu: Cpu, message: string | undefined][] = [
    [4, spread(), undefined],
    [4, { preferredCPUTopology: 'cores' }, undefined],
    [
      1,
      spread(),
      '1 vCPUs provided by the instance type are not divisible by the Spec.PreferSpreadSocketToCoreRatio or Spec.CPU.PreferSpreadOptions.Ratio of 2 provided by the preference',
    ],
    [
      3,
      spread('CoresThreads'),
      '3 vCPUs provided by the instance type are not divisible by the number of threads per core 2',
    ],
    [4, spread('CoresThreads'), undefined],
    [
      6,
      spread('SocketsCoresThreads', 2),
      '6 vCPUs provided by the instance type are not divisible by the number of threads per core 2 and Spec.PreferSpreadSocketToCoreRatio or Spec.CPU.PreferSpreadOptions.Ratio of 2',
    ],
    [8, spread('SocketsCoresThreads', 4), undefined],
  ];
  for (const [guest, cpu, message] of indivisible)
    it(`${guest} ${message ? 'cannot' : 'can'} be laid out by ${JSON.stringify(cpu)}`, () => {
      const conflict = spreadConflict(type({ cpu: { guest } }), { cpu });
      assert.equal(conflict?.message, message);
      if (conflict) assert.equal(conflict.path, 'instancetype.spec.cpu.guest');
    });
});
