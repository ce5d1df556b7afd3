import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PreferenceSpec, VirtualMachineInstanceSpec } from '../../kinds/kubevirt.ts';
import { checkRequirements, shortfallCauses } from './requirements.ts';

const spec = (
  domain: Partial<VirtualMachineInstanceSpec['domain']>,
  more: Partial<VirtualMachineInstanceSpec> = {},
): VirtualMachineInstanceSpec => ({ ...more, domain: { devices: {}, ...domain } });

describe('checkRequirements()', () => {
  const type = { cpu: { guest: 2 }, memory: { guest: '1Gi' } };
  const cpu = 'spec.template.spec.domain.cpu';
  const cores = { sockets: 1, cores: 2, threads: 1 };
  type Cpu = NonNullable<PreferenceSpec['cpu']>;
  const across = (name: string): Cpu => ({ preferredCPUTopology: 'spread', spreadOptions: { across: name } }) as Cpu;
  const byMachine = (amount: number, as: string): string =>
    `insufficient CPU resources of ${amount} vCPU provided by VirtualMachine, preference requires 4 vCPU provided as ${as}`;
  const cases: [
    name: string,
    preference: PreferenceSpec,
    layers: { instancetype?: typeof type },
    own: VirtualMachineInstanceSpec,
    message: string | undefined,
    ...fields: string[],
  ][] = [
    ['nothing is asked', {}, {}, spec({}), undefined],
    ['enough by the type', { requirements: { cpu: { guest: 2 } } }, { instancetype: type }, spec({}), undefined],
    [
      'too few by the type',
      { requirements: { cpu: { guest: 3 } } },
      { instancetype: type },
      spec({}),
      'insufficient CPU resources of 2 vCPU provided by instance type, preference requires 3 vCPU',
      'spec.instancetype',
    ],
    [
      'no processors',
      { requirements: { cpu: { guest: 3 } } },
      {},
      spec({}),
      'no CPU resources provided by VirtualMachine, preference requires 3 vCPU',
      cpu,
    ],
    ...(
      [
        [{}, 'sockets', 1, ['sockets']],
        [{ preferredCPUTopology: 'cores' }, 'cores', 2, ['cores']],
        [{ preferredCPUTopology: 'preferThreads' }, 'threads', 1, ['threads']],
        [{ preferredCPUTopology: 'any' }, 'cores, sockets and threads', 2, ['cores', 'sockets', 'threads']],
        [across('SocketsCores'), 'SocketsCores', 2, ['sockets', 'cores']],
        [across('CoresThreads'), 'CoresThreads', 2, ['cores', 'threads']],
        [across('SocketsCoresThreads'), 'SocketsCoresThreads', 2, ['sockets', 'cores', 'threads']],
      ] as [Cpu, string, number, string[]][]
    ).map(([preferred, as, amount, axes]): (typeof cases)[number] => [
      `too few as ${as}`,
      { cpu: preferred, requirements: { cpu: { guest: 4 } } },
      {},
      spec({ cpu: cores }),
      byMachine(amount, as),
      ...axes.map((axis) => `${cpu}.${axis}`),
    ]),
    [
      'enough by a product',
      { cpu: { preferredCPUTopology: 'any' }, requirements: { cpu: { guest: 2 } } },
      {},
      spec({ cpu: cores }),
      undefined,
    ],
    [
      'too little memory by the type',
      { requirements: { memory: { guest: '1.5Gi' } } },
      { instancetype: type },
      spec({}),
      'insufficient Memory resources of 1Gi provided by instance type, preference requires 1536Mi',
      'spec.instancetype',
    ],
    [
      'too little memory by the machine',
      { requirements: { memory: { guest: '2Gi' } } },
      {},
      spec({ memory: { guest: '1024Mi' } }),
      'insufficient Memory resources of 1Gi provided by VirtualMachine, preference requires 2Gi',
      'spec.template.spec.domain.memory',
    ],
    [
      'no memory',
      { requirements: { memory: { guest: '2Gi' } } },
      {},
      spec({ memory: {} }),
      'insufficient Memory resources of 0 provided by VirtualMachine, preference requires 2Gi',
      'spec.template.spec.domain.memory',
    ],
    [
      'another architecture',
      { requirements: { architecture: 'arm64' } },
      {},
      spec({}, { architecture: 'amd64' }),
      'preference requires architecture arm64 but amd64 is being requested',
      'spec.template.spec.architecture',
    ],
    [
      'processors are compared before memory',
      { requirements: { architecture: 'x', memory: { guest: '9Gi' }, cpu: { guest: 9 } } },
      { instancetype: type },
      spec({}),
      'insufficient CPU resources of 2 vCPU provided by instance type, preference requires 9 vCPU',
      'spec.instancetype',
    ],
  ];
  for (const [name, preference, layers, own, message, ...fields] of cases)
    it(name, () => {
      const found = checkRequirements({ ...layers, preference }, own);
      assert.equal(found?.message, message);
      assert.deepEqual(found?.fields.map(({ path }) => path) ?? [], fields);
    });
  it('becomes one cause with all paths as its field', () => {
    assert.deepEqual(shortfallCauses({ message: 'm', fields: [{ path: 'a' }, { path: 'b' }] }), [
      { type: 'FieldValueNotFound', field: 'a, b', detail: 'failure checking preference requirements: m' },
    ]);
  });
});
