import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Pod } from '../../../../apimachinery/src/types/types.ts';
import type { VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import { launcherPod } from './launcher-pod.ts';
import { podShortfall } from './pod-shortfall.ts';

const GIB = 1024 ** 3;
const instance = (domain: object): VirtualMachineInstance =>
  ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'vm', namespace: 'n', uid: 'u' },
    spec: { domain: { devices: {}, memory: { guest: '4Gi' }, ...domain } },
  }) as VirtualMachineInstance;
const pod = (requests: object, limits: object = {}): Pod =>
  ({ spec: { containers: [{ name: 'compute', resources: { requests, limits } }] } }) as unknown as Pod;
const options = { memoryBytes: 4 * GIB, cpuAllocationRatio: 10 };

test('a Pod that asks for less than its guest is to get is too small, and the message says by how much', () => {
  const cases: readonly [what: string, domain: object, pod: Pod, says: RegExp | undefined][] = [
    ['next to nothing', {}, pod({ memory: '1Mi', cpu: '1' }), /asks for 1048576 bytes of memory.* 4294967296/],
    ['nothing at all', {}, pod({}), /asks for 0 bytes of memory/],
    ['the memory without an overhead', {}, pod({ memory: '4Gi', cpu: '100m' }), undefined],
    ['huge pages', {}, pod({ memory: '300Mi', 'hugepages-2Mi': '4Gi', cpu: '1' }), undefined],
    [
      'overcommitted by the instance',
      { resources: { requests: { memory: '1Gi' } } },
      pod({ memory: '1Gi', cpu: 1 }),
      undefined,
    ],
    ['less than even that', { resources: { requests: { memory: '1Gi' } } }, pod({ memory: '1Mi', cpu: 1 }), /memory/],
    ['a tenth of its processors', { cpu: { sockets: 8 } }, pod({ memory: '4Gi', cpu: '80m' }), /80m .* 800m/],
    [
      'processors of its own',
      { cpu: { cores: 2, dedicatedCpuPlacement: true } },
      pod({ memory: '4Gi', cpu: '200m' }),
      /2000m/,
    ],
    ['a processor that is named', { resources: { requests: { cpu: '3' } } }, pod({ memory: '4Gi', cpu: '1' }), /3000m/],
    [
      'a disk that is named',
      { resources: { requests: { 'ephemeral-storage': '1Gi' } } },
      pod({ memory: '4Gi', cpu: '1' }),
      /ephemeral-storage/,
    ],
    ['a limit below the machine', {}, pod({ memory: '4Gi', cpu: '1' }, { memory: '2Gi' }), /limited to 2Gi/],
    ['a limit of the machine', {}, pod({ memory: '4Gi', cpu: '1' }, { memory: '4Gi' }), undefined],
  ];
  for (const [what, domain, given, says] of cases) {
    const reported = podShortfall(given, instance(domain), options);
    if (says) assert.match(reported ?? '', says, what);
    else assert.equal(reported, undefined, what);
  }
});

// S-820
test('the Pod that the controllers make of an instance is large enough for it', () => {
  const amounts = fc.constantFrom(undefined, '1Gi', '4Gi', '5000M', '8Gi');
  const counts = fc.integer({ min: 1, max: 64 });
  fc.assert(
    fc.property(
      fc.record({ guest: fc.constantFrom('64Mi', '4Gi'), request: amounts, limit: amounts, cpu: amounts }),
      fc.record({ sockets: counts, cores: counts, dedicatedCpuPlacement: fc.boolean() }),
      fc.record({ ratio: fc.integer({ min: 1, max: 300 }), overcommit: fc.boolean() }),
      ({ guest, request, limit }, cpu, { ratio, overcommit }) => {
        const bytes = guest === '4Gi' ? 4 * GIB : GIB / 16;
        // As admission has it: a limit is no less than the guest's memory.
        const limits = limit !== undefined && limit !== '1Gi' ? { memory: limit } : {};
        const requests = request === undefined ? {} : { memory: request };
        const vmi = instance({
          memory: { guest },
          cpu,
          resources: { requests, limits, ...(overcommit && { overcommitGuestOverhead: true }) },
        });
        const made = launcherPod(vmi, {
          idLabel: 'vm',
          cpuAllocationRatio: ratio,
          useEmulation: true,
          launcherImage: 'l',
        } as Parameters<typeof launcherPod>[1]);
        const short = podShortfall(made, vmi, { memoryBytes: bytes, cpuAllocationRatio: ratio });
        // One whose limit follows a smaller request than the machine has is refused in words of that limit alone.
        if (cpu.dedicatedCpuPlacement && short !== undefined) assert.match(short, /is limited to/);
        else assert.equal(short, undefined);
      },
    ),
  );
});
