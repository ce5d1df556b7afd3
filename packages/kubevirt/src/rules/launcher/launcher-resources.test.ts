import assert from 'node:assert/strict';
import { test } from 'node:test';
import { quantityToBytes } from '@coracle/apimachinery/quantity/quantity';
import type { VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import { launcherResources, memoryOverhead } from './launcher-resources.ts';

test('launcherResources() asks for each device of the host under its resource name', () => {
  const spec = {
    domain: {
      devices: {
        gpus: [{ name: 'g', deviceName: 'vendor.example/gpu' }],
        hostDevices: [
          { name: 'a', deviceName: 'vendor.example/card' },
          { name: 'b', deviceName: 'vendor.example/card' },
        ],
      },
      memory: { guest: '64Mi' },
    },
  } as VirtualMachineInstance['spec'];
  const { requests, limits } = launcherResources(spec, { cpuAllocationRatio: 10, useEmulation: true });
  for (const list of [requests, limits]) {
    assert.equal(list['vendor.example/gpu'], '1');
    assert.equal(list['vendor.example/card'], '2');
  }
});

// S-300: A launcher with processors of its own asks for them whole, with equal limits.
test("launcherResources() asks for whole processors, and no more than them, where they are the guest's alone", () => {
  const cpu = { sockets: 1, cores: 2, threads: 2, dedicatedCpuPlacement: true };
  const of = (more: object): ReturnType<typeof launcherResources> =>
    launcherResources(
      {
        domain: { devices: {}, memory: { guest: '64Mi' }, cpu: { ...cpu, ...more } },
      } as VirtualMachineInstance['spec'],
      { cpuAllocationRatio: 10, useEmulation: true },
    );
  const { requests, limits } = of({});
  assert.deepEqual([requests['cpu'], limits['cpu']], ['4', '4']);
  assert.equal(limits['memory'], requests['memory']);
  assert.equal(of({ isolateEmulatorThread: true }).requests['cpu'], '5');
  const shared = of({ dedicatedCpuPlacement: false });
  assert.deepEqual(
    [shared.requests['cpu'], shared.limits['cpu'], shared.limits['memory']],
    ['400m', undefined, undefined],
  );
});

// S-1290: In namespaces that `autoCPULimitNamespaceLabelSelector` selects, a guest that names no limit of processors gets one.
test('a limit of processors that the namespace gives is one for each vCPU, and gives way to one that is named', () => {
  const limits = (resources: object, limitsCpu: boolean) =>
    launcherResources(
      {
        domain: { devices: {}, memory: { guest: '64Mi' }, cpu: { sockets: 2, cores: 2 }, resources },
      } as VirtualMachineInstance['spec'],
      { cpuAllocationRatio: 10, useEmulation: true, limitsCpu },
    ).limits['cpu'];
  assert.equal(limits({}, true), '4');
  assert.equal(limits({}, false), undefined);
  assert.equal(limits({ limits: { cpu: '1' } }, true), '1');
});

// S-436: A launcher Pod asks for upstream's memory overhead; `status.memory.memoryOverhead` shows it and grows when
//   processors or memory were plugged.
test('memoryOverhead() is 248 MiB, page tables, and what processors, devices and settings of the guest cost', () => {
  const MIB = 1024 ** 2;
  const cases: [name: string, domain: object, spec: object, mebibytes: number][] = [
    ['one processor and a screen', {}, {}, 248 + 8 + 32],
    ['no screen', { devices: { autoattachGraphicsDevice: false } }, {}, 248 + 8],
    ['four processors', { cpu: { sockets: 2, cores: 2 } }, {}, 248 + 32 + 32],
    ['arm64', {}, { architecture: 'arm64' }, 288 + 128],
    ['a device of the host', { devices: { gpus: [{ name: 'g', deviceName: 'a/b' }] } }, {}, 288 + 1024],
    ['an SR-IOV interface', { devices: { interfaces: [{ name: 'n', sriov: {} }] } }, {}, 288 + 1024],
    ['metrics of the host', {}, { volumes: [{ name: 'm', downwardMetrics: {} }] }, 288 + 1],
    ['a probe that runs a program', {}, { livenessProbe: { exec: { command: ['a'] } } }, 288 + 110],
    ['two', {}, { livenessProbe: { exec: {} }, readinessProbe: { exec: {} } }, 288 + 120],
    ['an encrypted guest', { launchSecurity: { sev: {} } }, {}, 288 + 256],
    ['a TPM', { devices: { tpm: {} } }, {}, 288 + 53],
    ['a TPM that is off', { devices: { tpm: { enabled: false } } }, {}, 288],
    ['dedicated processors', { cpu: { dedicatedCpuPlacement: true } }, {}, 288 + 100],
    [
      'guaranteed resources',
      { resources: { requests: { cpu: '1', memory: '1M' }, limits: { cpu: '1000m', memory: '1000k' } } },
      {},
      288 + 100,
    ],
  ];
  for (const [name, domain, spec, mebibytes] of cases) {
    const full = { ...spec, domain: { memory: { guest: '0' }, devices: {}, ...domain } };
    assert.equal(Number(memoryOverhead(full as VirtualMachineInstance['spec'])) / MIB, mebibytes, name);
  }
});

const sized = (domain: object, options: object) =>
  launcherResources({ domain: { devices: {}, ...domain } } as VirtualMachineInstance['spec'], {
    cpuAllocationRatio: 10,
    useEmulation: true,
    ...options,
  });
const bytes = (text: string | undefined): number => Number(quantityToBytes(text ?? ''));
const GIB = 1024 ** 3;

const SIZES: readonly (readonly [name: string, domain: object, options: object, requested: number, limit?: number])[] =
  [
    ['all of its memory', { memory: { guest: '2Gi' } }, {}, 2 * GIB],
    ['half of it, where the cluster overcommits', { memory: { guest: '2Gi' } }, { memoryOvercommit: 200 }, GIB],
    [
      'what the instance names, whatever the cluster says',
      { memory: { guest: '2Gi' }, resources: { requests: { memory: '1536Mi' } } },
      { memoryOvercommit: 200 },
      1.5 * GIB,
    ],
    [
      'all of it with processors of its own',
      { memory: { guest: '2Gi' }, cpu: { dedicatedCpuPlacement: true } },
      { memoryOvercommit: 200 },
      2 * GIB,
      2 * GIB,
    ],
    [
      'its limit, where it names nothing else',
      { memory: { guest: '1Gi' }, resources: { limits: { memory: '2Gi' } } },
      {},
      2 * GIB,
      2 * GIB,
    ],
  ];
for (const [name, domain, options, requested, limit] of SIZES) {
  // S-1540: The KubeVirt object's `memoryOvercommit` and `additionalGuestMemoryOverheadRatio` decide what launcher Pods ask
  //   for, and agents start guests whose Pods were made by them.
  test(`launcherResources() asks for the guest's memory: ${name}`, () => {
    const made = sized(domain, options);
    const overhead = Number(made.overheadBytes);
    assert.equal(bytes(made.requests['memory']), requested + overhead);
    assert.equal(made.limits['memory'] && bytes(made.limits['memory']), limit && limit + overhead);
  });
}

// S-1540
test('what a launcher needs is multiplied by the factor of the cluster, in whole thousands of bytes', () => {
  const plain = Number(sized({ memory: { guest: '1024M' } }, {}).overheadBytes);
  const larger = Number(sized({ memory: { guest: '1024M' } }, { overheadRatio: 1.567 }).overheadBytes);
  assert.equal(larger - plain, Math.trunc(Math.ceil(plain / 1000) * 0.567) * 1000);
  const reserved = { memory: { guest: '1024M', reservedOverhead: { addedOverhead: '64Mi' } } };
  assert.equal(Number(sized(reserved, {}).overheadBytes) - plain, 64 * 1024 ** 2);
});

// S-1541: A guest whose overhead is overcommitted is limited with it all the same; a guest with a network asks for tun.
test('launcherResources() overcommits the overhead in requests alone, and asks for tun where there is a card', () => {
  const resources = { requests: { memory: '64Mi' }, limits: { memory: '128Mi' }, overcommitGuestOverhead: true };
  const made = sized({ resources }, {});
  assert.equal(made.requests['memory'], '64Mi');
  assert.equal(bytes(made.limits['memory']), 128 * 1024 ** 2 + Number(made.overheadBytes));
  assert.equal(made.limits['devices.kubevirt.io/tun'], '1');
  const none = sized({ devices: { autoattachPodInterface: false } }, {});
  assert.equal(none.limits['devices.kubevirt.io/tun'], undefined);
});
