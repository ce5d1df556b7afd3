import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { VirtualMachine } from '../../kinds/kubevirt.ts';
import { clusterConfigOf } from '../machine-defaults/cluster-config.ts';
import { explainExpansion } from './explain.ts';

const config = clusterConfigOf(undefined);
const vmWith = (template: object): VirtualMachine =>
  ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'vm' },
    spec: { instancetype: { name: 't' }, preference: { name: 'p' }, template },
  }) as unknown as VirtualMachine;

it('explainExpansion() names the layer of each field', () => {
  const submitted = vmWith({
    spec: { domain: { devices: {} }, volumes: [{ name: 'root', emptyDisk: { capacity: '1Gi' } }] },
  });
  const vm = vmWith({
    spec: {
      architecture: 'amd64',
      domain: { devices: {}, machine: { type: 'q35' } },
      volumes: [{ name: 'root', emptyDisk: { capacity: '1Gi' } }],
    },
  });
  const fields = explainExpansion({
    vm,
    submitted,
    config,
    instancetype: { cpu: { guest: 2 }, memory: { guest: '1Gi' }, annotations: { 'a.b/c': 'd' } },
    preference: { cpu: { preferredCPUTopology: 'cores' }, devices: { preferredDiskBus: 'virtio', preferredRng: {} } },
  });
  const at = (path: string): string => {
    const field = fields.find((candidate) => candidate.path === `spec.template.${path}`);
    return field === undefined ? 'absent' : `${field.value} by ${field.layer}`;
  };
  const expected: [path: string, text: string][] = [
    ['spec.volumes[0].name', 'root by user'],
    ['spec.architecture', 'amd64 by webhook'],
    ['spec.domain.machine.type', 'q35 by webhook'],
    ['spec.domain.cpu.cores', '2 by instancetype'],
    ['spec.domain.memory.guest', '1Gi by instancetype'],
    ['metadata.annotations[a.b/c]', 'd by instancetype'],
    ['spec.domain.devices.disks[0].name', 'root by cluster default'],
    ['spec.domain.devices.disks[0].disk.bus', 'virtio by preference'],
    ['spec.domain.devices.rng', '{} by preference'],
    ['spec.networks[0].name', 'default by cluster default'],
    ['spec.evictionStrategy', 'None by cluster default'],
  ];
  for (const [path, text] of expected) assert.equal(at(path), text, path);
});

it('explainExpansion() has nothing to say of a conflict', () => {
  const vm = vmWith({ spec: { domain: { devices: {}, memory: { guest: '1Gi' } } } });
  const instancetype = { cpu: { guest: 2 }, memory: { guest: '1Gi' } };
  assert.deepEqual(explainExpansion({ vm, config, instancetype }), []);
});
