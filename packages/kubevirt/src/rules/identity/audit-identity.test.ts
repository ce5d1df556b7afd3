import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VirtualMachine, VirtualMachineInstance, VirtualMachineSnapshotContent } from '../../kinds/kubevirt.ts';
import { auditIdentities } from './audit-identity.ts';
import { legacyFirmwareUuid } from './firmware-identity.ts';

const V4 = '5d307ca9-b3ef-428c-8861-06e72d69f223';
const V1 = '5d307ca9-b3ef-128c-8861-06e72d69f223';

const vm = (name: string, uuid?: string, annotations?: Record<string, string>): VirtualMachine =>
  ({
    metadata: { name, namespace: 'ns', ...(annotations && { annotations }) },
    spec: { template: { spec: { domain: { devices: {}, ...(uuid && { firmware: { uuid } }) } } } },
  }) as unknown as VirtualMachine;

// S-617: `coracle identity audit` lists machines, instances and snapshots, of a server or of a backup, by how their
//   UUID came to be, as table and JSON; `coracle doctor` lists shared ones with the way out.
test('auditIdentities() says how each UUID came to be: as noted, else as it can be concluded', () => {
  const rows: readonly [VirtualMachine, origin: string, noted: boolean, written: boolean][] = [
    [vm('a', V4, { 'coracle.dev/firmware-identity': 'Given' }), 'Given', true, true],
    [vm('a', V4, { 'coracle.dev/firmware-identity': 'nonsense' }), 'Generated', false, true],
    [vm('a', V4), 'Generated', false, true],
    [vm('a', V1), 'Given', false, true],
    [vm('a', legacyFirmwareUuid('a').toUpperCase()), 'Legacy', false, true],
    [vm('a'), 'Legacy', false, false],
    [vm('a', legacyFirmwareUuid('b')), 'Given', false, true],
    [vm('a', V4, { 'restore.kubevirt.io/lastRestoreUID': 'x' }), 'Restored', false, true],
    [vm('a', V4, { 'kubectl.kubernetes.io/last-applied-configuration': `{"uuid":"${V4}"}` }), 'Given', false, true],
  ];
  for (const [machine, origin, noted, written] of rows) {
    const [row] = auditIdentities({ vms: [machine], vmis: [], snapshotContents: [] });
    assert.deepEqual(
      [row?.origin, row?.noted, row?.written],
      [origin, noted, written],
      JSON.stringify(machine.metadata),
    );
  }
});

// S-617
test('auditIdentities() lists instances, snapshots and who shares a UUID', () => {
  const instance = (name: string, uuid: string, owner?: string): VirtualMachineInstance =>
    ({
      metadata: {
        name,
        namespace: 'ns',
        ...(owner && { ownerReferences: [{ kind: 'VirtualMachine', name: owner, controller: true }] }),
      },
      spec: { domain: { firmware: { uuid } } },
      status: { phase: 'Running' },
    }) as unknown as VirtualMachineInstance;
  const content = {
    metadata: { name: 'vmsnapshot-content-1', namespace: 'ns' },
    spec: { virtualMachineSnapshotName: 'old', source: { virtualMachine: vm('a') } },
  } as unknown as VirtualMachineSnapshotContent;
  const rows = auditIdentities({
    vms: [vm('a', V4, { 'coracle.dev/firmware-identity': 'Given' }), vm('b', V4.toUpperCase())],
    vmis: [instance('a', V4, 'a'), instance('alone', V1)],
    snapshotContents: [content],
  });
  assert.deepEqual(
    rows.map(({ kind, name, uuid, origin, written, sharedWith }) => [kind, name, uuid, origin, written, sharedWith]),
    [
      ['VirtualMachine', 'a', V4, 'Given', true, ['VirtualMachine ns/b']],
      ['VirtualMachineInstance', 'a', V4, 'Given', true, ['VirtualMachine ns/b']],
      ['VirtualMachineInstance', 'alone', V1, 'Given', true, []],
      ['VirtualMachine', 'b', V4, 'Generated', true, ['VirtualMachine ns/a']],
      ['VirtualMachineSnapshot', 'old', legacyFirmwareUuid('a'), 'Legacy', false, []],
    ],
  );
});
