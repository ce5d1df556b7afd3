import assert from 'node:assert/strict';
import { test } from 'node:test';
import { quantityToBytes } from '../../../../apimachinery/src/quantity/quantity.ts';
import type { NodeFacts } from '../../../../kubevirt/src/rules/machine/machine-plan.ts';
import { labelChanges, type NodeDescription, nodeLabels, nodeStatus, shareOfHost } from './node-object.ts';

const GIB = 1024 ** 3;
const described = (share: number): NodeDescription => ({
  name: 'n',
  facts: { accelerator: 'tcg', architecture: 'amd64', qemuVersion: '7.2.0' } as NodeFacts,
  cpus: 2,
  memoryBytes: (8 * GIB) / share,
  storageBytes: GIB,
  share,
  address: '127.0.0.1',
  port: 1,
  labels: {},
  obsoleteCpuModels: new Set(['qemu64']),
  bootId: 'b',
  machineId: 'm',
  kernelVersion: 'k',
  osImage: 'o',
  version: 'v',
});

test('nodeStatus() keeps memory for the host once, however many nodes share it', () => {
  const offered = (share: number): number =>
    share * Number(quantityToBytes(nodeStatus(described(share), undefined, 0).allocatable?.['memory'] ?? ''));
  assert.equal(offered(1), 8 * GIB - 256 * 1024 ** 2);
  for (const share of [2, 4]) assert.ok(Math.abs(offered(share) - offered(1)) < share * 1024, String(share));
});

// S-219
test('nodeLabels() tell what launchers ask for, and nothing that is no label', () => {
  const facts = {
    ...described(1).facts,
    machineTypes: ['none', 'pc-q35-7.2'],
    machineAliases: { q35: 'pc-q35-7.2' },
    cpuModels: ['Haswell', 'max', 'n270-', 'qemu64'],
    offeredCpuFeatures: ['aes', 'sse4.1'],
  } as unknown as NodeFacts;
  const labels = (accelerator: 'kvm' | 'tcg') =>
    Object.keys(nodeLabels({ ...described(1), facts: { ...facts, accelerator } }))
      .filter((label) => label.includes('.node.kubevirt.io/'))
      .sort();
  const both = [
    'cpu-feature.node.kubevirt.io/aes',
    'cpu-feature.node.kubevirt.io/sse4.1',
    'cpu-model.node.kubevirt.io/Haswell',
    'machine-type.node.kubevirt.io/pc-q35-7.2',
    'machine-type.node.kubevirt.io/q35',
  ];
  assert.deepEqual(labels('tcg'), both);
  assert.ok(labels('kvm').includes('hyperv.node.kubevirt.io/vpindex'));
  assert.deepEqual(
    labels('kvm').filter((label) => !label.startsWith('hyperv.')),
    both,
  );
});

// S-632
test('a node says that guests can have a TPM only while it has an emulator for one', () => {
  const offers = { machineTypes: [], machineAliases: {}, cpuModels: [] } as unknown as NodeFacts;
  const tpm = (more: object): string | undefined =>
    nodeLabels({ ...described(1), facts: { ...offers, ...more } })['coracle.dev/tpm'];
  assert.equal(tpm({}), undefined);
  assert.equal(tpm({ tpm: true }), 'true');
  const lost = labelChanges({ labels: { 'coracle.dev/tpm': 'true' } }, nodeLabels({ ...described(1), facts: offers }));
  assert.equal(lost['coracle.dev/tpm'], null);
});

// S-401
// S-1520: A Node with the annotation node-labeller.kubevirt.io/skip-node keeps its labels of machine types and processors as they are.
test('labelChanges(): offers that are no longer made go, those of others stay, and all of them when the node is skipped', () => {
  const labels = {
    'cpu-model.node.kubevirt.io/qemu64': 'true',
    'cpu-model.node.kubevirt.io/Haswell': 'true',
    'host-model-cpu.node.kubevirt.io/fake': 'true',
    'kubevirt.io/schedulable': 'false',
    mine: '',
  };
  const wanted = {
    'cpu-model.node.kubevirt.io/Haswell': 'true',
    'cpu-model.node.kubevirt.io/max': 'true',
    os: 'linux',
  };
  assert.deepEqual(labelChanges({ labels }, wanted), {
    'cpu-model.node.kubevirt.io/max': 'true',
    os: 'linux',
    'cpu-model.node.kubevirt.io/qemu64': null,
    'host-model-cpu.node.kubevirt.io/fake': null,
  });
  const annotations = { 'node-labeller.kubevirt.io/skip-node': 'true' };
  assert.deepEqual(labelChanges({ labels, annotations }, wanted), { os: 'linux' });
});

// S-400: Every node of a host offers all of its processors, and its part of memory and disk.
test('shareOfHost(): each node of a host has all of its processors, and its part of memory and disk', () => {
  const host = { cpus: 2, memoryBytes: 8 * GIB, storageBytes: 100 };
  assert.deepEqual(shareOfHost(host, 1), { ...host, share: 1 });
  assert.deepEqual(shareOfHost(host, 3), {
    cpus: 2,
    memoryBytes: Math.floor((8 * GIB) / 3),
    storageBytes: 33,
    share: 3,
  });
});

// S-502: A node whose disk is nearly full says DiskPressure, where, and how much is missing.
test('a node says DiskPressure, its directory and what is missing, until there is room to spare', () => {
  const at = (free: number, before?: ReturnType<typeof nodeStatus>) => {
    const node = {
      ...described(1),
      storageBytes: 100 * GIB,
      disk: { free, total: 100 * GIB, directory: '/data/node' },
    };
    return nodeStatus(node, before, 0);
  };
  const pressure = (status: ReturnType<typeof nodeStatus>) =>
    status.conditions?.find(({ type }) => type === 'DiskPressure');
  const fine = at(3 * GIB);
  assert.deepEqual([pressure(fine)?.status, pressure(fine)?.reason], ['False', 'KubeletHasNoDiskPressure']);
  assert.equal(Number(quantityToBytes(fine.allocatable?.['ephemeral-storage'] ?? '')), 99 * GIB);
  const full = at(1.5 * GIB);
  assert.deepEqual([pressure(full)?.status, pressure(full)?.reason], ['True', 'KubeletHasDiskPressure']);
  assert.match(
    pressure(full)?.message ?? '',
    /^the disk of \/data\/node is nearly full: about 1024 MiB have to be freed/,
  );
  assert.equal(pressure(at(2.2 * GIB, full))?.status, 'True');
  assert.equal(pressure(at(2.6 * GIB, full))?.status, 'False');
  assert.equal(pressure(at(2.2 * GIB, fine))?.status, 'False');
});
