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
