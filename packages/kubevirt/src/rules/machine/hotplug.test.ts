import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VirtualMachineInstance } from '../../kinds/kinds.ts';
import type { NodeFacts } from './machine-plan.ts';
import { machinePlan } from './plan.ts';

const FACTS: NodeFacts = {
  architecture: 'amd64',
  qemuVersion: '7.2.22',
  accelerator: 'tcg',
  machineTypes: ['pc-i440fx-7.2', 'pc-q35-7.2'],
  machineAliases: { q35: 'pc-q35-7.2', pc: 'pc-i440fx-7.2' },
  cpuModels: ['max'],
  cpuFeatures: [],
  devices: ['virtio-mem-pci'],
  sandbox: true,
};
const GI = 1024 ** 3;

/** Room for sockets, and for bytes of memory; undefined where there is none. */
function room(domain: object, facts = FACTS): [number | undefined, number | undefined] {
  const vmi = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'a', namespace: 'b', uid: '99999999-2222-4333-8444-555555555555' },
    spec: { architecture: 'amd64', domain: { devices: {}, memory: { guest: '1Gi', maxGuest: '4Gi' }, ...domain } },
  } as unknown as VirtualMachineInstance;
  const { cpu, hotMemory } = machinePlan(vmi, facts);
  return [cpu.maxSockets, hotMemory?.bytes];
}

// S-435
test('a machine has room for what its instance may be given, and no other device than before where that is nothing', () => {
  const cpu = { sockets: 1, maxSockets: 4 };
  const cases: [name: string, domain: object, expected: [number | undefined, number | undefined]][] = [
    ['both', { cpu }, [4, 3 * GI]],
    [
      'what it has already',
      { cpu: { sockets: 4, maxSockets: 4 }, memory: { guest: '1Gi', maxGuest: '1Gi' } },
      [undefined, undefined],
    ],
    ['no maxima', { cpu: { sockets: 1 }, memory: { guest: '1Gi' } }, [undefined, undefined]],
    ['no ACPI', { cpu, features: { acpi: { enabled: false } } }, [undefined, undefined]],
    ['an old board', { cpu, machine: { type: 'pc' } }, [4, undefined]],
    ['a small guest', { cpu, memory: { guest: '1022Mi', maxGuest: '4Gi' } }, [4, undefined]],
    ['memory in odd portions', { cpu, memory: { guest: '1025Mi', maxGuest: '4Gi' } }, [4, undefined]],
    ['more memory than a host can address', { cpu, memory: { guest: '1Gi', maxGuest: '1Ei' } }, [4, undefined]],
    ['huge pages', { cpu, memory: { guest: '1Gi', maxGuest: '4Gi', hugepages: { pageSize: '2Mi' } } }, [4, undefined]],
    ['more processors than can be numbered', { cpu: { ...cpu, maxSockets: 200, cores: 3 } }, [63, 3 * GI]],
    ['more of them than that at once', { cpu: { sockets: 70, maxSockets: 200, cores: 3 } }, [undefined, 3 * GI]],
  ];
  for (const [name, domain, expected] of cases) assert.deepEqual(room(domain), expected, name);
  assert.deepEqual(room({ cpu }, { ...FACTS, devices: [] }), [4, undefined], 'a QEMU without the device');
});
