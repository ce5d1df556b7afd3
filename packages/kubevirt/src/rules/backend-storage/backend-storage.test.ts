import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PersistentVolumeClaim, StorageClass } from '../../../../apimachinery/src/types/types.ts';
import type { VirtualMachine, VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import {
  backendStorageClaimOf,
  backendStorageClaimOfVm,
  needsBackendStorage,
  newStateClaim,
} from './backend-storage.ts';
import { isStateClaimReady, stateClass } from './state-class.ts';

type Spec = VirtualMachineInstance['spec'];
const spec = (domain: object): Spec => ({ domain: { devices: {}, ...domain } }) as Spec;
const vm = { metadata: { namespace: 'a', name: 'vm' } };

test('needsBackendStorage() holds for state that shall last, and for nothing else', () => {
  const efi = (efi: object) => ({ firmware: { bootloader: { efi } } });
  const cases: [string, object, boolean][] = [
    ['nothing', {}, false],
    ['a TPM', { devices: { tpm: {} } }, false],
    ['a persistent TPM', { devices: { tpm: { persistent: true } } }, true],
    ['a persistent TPM that is off', { devices: { tpm: { persistent: true, enabled: false } } }, false],
    ['a persistent TPM that is on', { devices: { tpm: { persistent: true, enabled: true } } }, true],
    ['EFI', efi({}), false],
    ['EFI with variables that go', efi({ persistent: false }), false],
    ['EFI with variables that stay', efi({ persistent: true }), true],
  ];
  for (const [what, domain, wanted] of cases) assert.equal(needsBackendStorage(spec(domain)), wanted, what);
});

// S-633
test('backendStorageClaimOf() finds the claim in use by its label, else by its old name', () => {
  const claim = (name: string, more: object = {}): PersistentVolumeClaim =>
    ({ metadata: { namespace: 'a', name, ...more } }) as PersistentVolumeClaim;
  const mine = { 'persistent-state-for': 'vm' };
  const cases: [string, PersistentVolumeClaim[], string | undefined][] = [
    ['none', [claim('data')], undefined],
    ['by label', [claim('data'), claim('x', { labels: mine })], 'x'],
    ['of another machine', [claim('x', { labels: { 'persistent-state-for': 'other' } })], undefined],
    ['of another namespace', [claim('x', { namespace: 'b', labels: mine })], undefined],
    ['on its way out', [claim('x', { labels: mine, deletionTimestamp: '2026-01-01T00:00:00Z' })], undefined],
    ['by the name of before labels', [claim('persistent-state-for-vm')], 'persistent-state-for-vm'],
    ['label before name', [claim('persistent-state-for-vm'), claim('x', { labels: mine })], 'x'],
    ['of a target that has not taken over', [claim('t', { labels: { 'kubevirt.io/migrationName': 'm' } })], undefined],
    [
      'the newer one of a hand-over that broke off',
      [
        claim('t', { labels: mine, creationTimestamp: '2026-01-02T00:00:00Z' }),
        claim('s', { labels: mine, creationTimestamp: '2026-01-01T00:00:00Z' }),
      ],
      't',
    ],
  ];
  for (const [what, claims, wanted] of cases)
    assert.equal(backendStorageClaimOf(vm, claims)?.metadata.name, wanted, what);
  const machine = (domain: object) =>
    ({ ...vm, spec: { template: { spec: spec(domain) } } }) as unknown as VirtualMachine;
  const claims = [claim('x', { labels: mine })];
  assert.equal(backendStorageClaimOfVm(machine({}), claims), undefined, 'a machine that needs none has none');
  assert.equal(
    backendStorageClaimOfVm(machine({ devices: { tpm: { persistent: true } } }), claims)?.metadata.name,
    'x',
  );
});

test('newStateClaim() belongs to the machine, and to a standalone instance', () => {
  const vmi = (owners?: object[]) =>
    ({
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: { namespace: 'a', name: 'vm', uid: 'u', ...(owners && { ownerReferences: owners }) },
    }) as unknown as VirtualMachineInstance;
  const from = { storageClass: 'local', accessMode: 'ReadWriteMany' };
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'vm', uid: 'v', controller: true };
  const claim = newStateClaim(vmi([owner]), from);
  assert.deepEqual(claim.metadata.ownerReferences, [owner]);
  assert.equal(claim.metadata.generateName, 'persistent-state-for-vm-');
  assert.equal(claim.metadata.labels?.['persistent-state-for'], 'vm');
  assert.equal(claim.spec?.resources?.requests?.['storage'], '10Mi');
  assert.equal(claim.spec?.volumeMode, 'Filesystem');
  assert.deepEqual(
    newStateClaim(vmi(), from).metadata.ownerReferences?.map(({ kind, uid }) => [kind, uid]),
    [['VirtualMachineInstance', 'u']],
  );
  const target = newStateClaim(vmi(), { ...from, migration: 'm' });
  assert.equal(target.metadata.labels?.['persistent-state-for'], undefined);
  assert.equal(target.metadata.labels?.['kubevirt.io/migrationName'], 'm');
});

// S-633
test('stateClass() takes what is configured, the default for machines, the default, in this order', () => {
  const storageClass = (name: string, annotation?: string, provisioner = 'csi.example'): StorageClass =>
    ({ metadata: { name, ...(annotation && { annotations: { [annotation]: 'true' } }) }, provisioner }) as StorageClass;
  const virt = 'storageclass.kubevirt.io/is-default-virt-class';
  const plain = 'storageclass.kubernetes.io/is-default-class';
  const local = storageClass('local', plain, 'local.coracle.dev');
  const cases: [string, StorageClass[], string | undefined, string | undefined][] = [
    ['none', [storageClass('a')], undefined, undefined],
    ['the default', [storageClass('a'), storageClass('b', plain)], undefined, 'b ReadWriteOnce'],
    ['the default for machines', [storageClass('v', virt), storageClass('b', plain)], undefined, 'v ReadWriteOnce'],
    ['configured', [storageClass('v', virt), storageClass('c')], 'c', 'c ReadWriteMany'],
    ['our pool serves every node of it', [local], undefined, 'local ReadWriteMany'],
  ];
  for (const [what, classes, configured, wanted] of cases) {
    const found = stateClass(classes, configured);
    assert.equal(found && `${found.storageClass} ${found.accessMode}`, wanted, what);
  }
});

test('isStateClaimReady() waits for binding, except where a Pod must come first', () => {
  const claim = (phase: string | undefined, storageClassName?: string) =>
    ({ metadata: {}, spec: { storageClassName }, status: { phase } }) as PersistentVolumeClaim;
  const classes: Record<string, StorageClass> = {
    late: { metadata: {}, provisioner: 'p', volumeBindingMode: 'WaitForFirstConsumer' } as StorageClass,
    early: { metadata: {}, provisioner: 'p' } as StorageClass,
  };
  const ready = (phase: string | undefined, name?: string): boolean | string => {
    try {
      return isStateClaimReady(claim(phase, name), (wanted) => classes[wanted]);
    } catch (error) {
      return (error as Error).message;
    }
  };
  assert.equal(ready('Bound'), true);
  assert.equal(ready('Lost'), 'backend storage PVC lost');
  assert.equal(ready('Pending'), 'no storage class name');
  assert.equal(ready('Pending', 'gone'), 'storage class gone not found');
  assert.equal(ready('Pending', 'early'), false);
  assert.equal(ready('Pending', 'late'), true);
  assert.equal(ready(undefined), false);
});
