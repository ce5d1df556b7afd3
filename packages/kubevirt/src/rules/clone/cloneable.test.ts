import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { VirtualMachine, VirtualMachineSnapshotContent } from '../../kinds/kubevirt.ts';
import { uncloneable, uncloneableContent, unsaveableVolumes } from './cloneable.ts';

const claim = (name: string) => ({ name, persistentVolumeClaim: { claimName: name } });
const TPM = { devices: { tpm: { persistent: true } } };
const vmOf = (spec: object, volumeSnapshotStatuses: object[] = []): VirtualMachine =>
  ({
    metadata: { name: 'db', namespace: 'ns' },
    spec: { template: { spec: { domain: { devices: {} }, ...spec } } },
    status: { volumeSnapshotStatuses },
  }) as unknown as VirtualMachine;
const contentOf = (spec: object, volumeBackups?: object[], virtualMachineSnapshotName: string | undefined = 'snap') =>
  ({
    metadata: { name: 'content', namespace: 'ns' },
    spec: {
      ...(virtualMachineSnapshotName && { virtualMachineSnapshotName }),
      source: { virtualMachine: vmOf(spec) },
      volumeBackups,
    },
  }) as unknown as VirtualMachineSnapshotContent;

describe('uncloneable()', () => {
  const cases: [name: string, spec: object, problem: string | undefined][] = [
    ['a plain machine', {}, undefined],
    ['a persistent TPM', { domain: TPM }, 'Clone of source with backendstorage is not supported: VM ns/db'],
    ['a TPM that forgets', { domain: { devices: { tpm: {} } } }, undefined],
    [
      'persistent EFI variables',
      { domain: { devices: {}, firmware: { bootloader: { efi: { persistent: true } } } } },
      'Clone of source with backendstorage is not supported: VM ns/db',
    ],
  ];
  for (const [name, spec, problem] of cases) it(name, () => assert.equal(uncloneable(vmOf(spec)), problem));
});

describe('unsaveableVolumes()', () => {
  const volumes = [claim('a'), { name: 'b', dataVolume: { name: 'b' } }, { name: 'c', emptyDisk: { capacity: '1Mi' } }];
  const cases: [name: string, spec: object, statuses: object[], problem: string | undefined][] = [
    ['no volumes', {}, [], undefined],
    [
      'all can be saved',
      { volumes },
      [
        { name: 'a', enabled: true },
        { name: 'b', enabled: true },
      ],
      undefined,
    ],
    [
      'one cannot, one is not known',
      { volumes },
      [{ name: 'a', enabled: false }],
      'Virtual Machine volume a does not support snapshots\nVirtual Machine volume b snapshot support unknown',
    ],
  ];
  for (const [name, spec, statuses, problem] of cases)
    it(name, () => assert.equal(unsaveableVolumes(vmOf(spec, statuses)), problem));
});

// S-595
describe('uncloneableContent()', () => {
  const volumes = [claim('a'), claim('b'), { name: 'c', emptyDisk: { capacity: '1Mi' } }];
  const cases: [name: string, content: VirtualMachineSnapshotContent, problem: string | undefined][] = [
    ['no volumes', contentOf({}), undefined],
    ['all saved', contentOf({ volumes }, [{ volumeName: 'a' }, { volumeName: 'b' }]), undefined],
    ['one not saved', contentOf({ volumes }, [{ volumeName: 'b' }]), 'volume a is not backed up in snapshot snap'],
    [
      'none saved',
      contentOf({ volumes }),
      'volume a is not backed up in snapshot snap\nvolume b is not backed up in snapshot snap',
    ],
    ['of no snapshot', contentOf({}, [], ''), 'cannot get snapshot name from content content'],
    [
      'of a machine with a persistent TPM',
      contentOf({ domain: TPM }),
      'Clone of source with backendstorage is not supported: snapshot ns/snap',
    ],
  ];
  for (const [name, content, problem] of cases) it(name, () => assert.equal(uncloneableContent(content), problem));
});
