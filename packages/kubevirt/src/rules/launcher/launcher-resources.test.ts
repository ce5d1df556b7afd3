import assert from 'node:assert/strict';
import { test } from 'node:test';
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
  assert.deepEqual([shared.requests['cpu'], shared.limits], ['400m', {}]);
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
