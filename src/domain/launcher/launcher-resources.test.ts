import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VirtualMachineInstance } from '../../api/kinds/kubevirt/kubevirt.ts';
import { launcherResources } from './launcher-resources.ts';

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
