import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { VolumeSnapshot } from '../../../../cluster-rules/src/volume-snapshot/kinds.ts';
import type { VirtualMachine, VirtualMachineRestore, VolumeBackup } from '../../kinds/kubevirt.ts';
import { legacyFirmwareUuid } from '../identity/firmware-identity.ts';
import { notReady } from './readiness-policy.ts';
import { restoredClaim } from './restored-claim.ts';
import { replacedDataVolumes, restoredMachine } from './restored-machine.ts';
import { restoredName } from './restored-volumes.ts';

const CREATED = '2026-01-01T00:00:00Z';
const restore = (spec: Partial<VirtualMachineRestore['spec']> = {}): VirtualMachineRestore =>
  ({
    metadata: { name: 'r', namespace: 'n', uid: 'u', creationTimestamp: CREATED },
    spec: {
      target: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'a' },
      virtualMachineSnapshotName: 's',
      ...spec,
    },
  }) as VirtualMachineRestore;

describe('restoredName()', () => {
  const cases: [name: string, spec: Partial<VirtualMachineRestore['spec']>, expected: string][] = [
    ['no policy', {}, 'restore-u-disk'],
    ['RandomizeNames', { volumeRestorePolicy: 'RandomizeNames' }, 'restore-u-disk'],
    ['InPlace', { volumeRestorePolicy: 'InPlace' }, 'claim'],
    ['PrefixTargetName', { volumeRestorePolicy: 'PrefixTargetName' }, 'a-disk'],
    ['an override', { volumeRestoreOverrides: [{ volumeName: 'disk', restoreName: 'mine' }] }, 'mine'],
    [
      'an override of another',
      { volumeRestoreOverrides: [{ volumeName: 'x', restoreName: 'mine' }] },
      'restore-u-disk',
    ],
    ['an override of labels', { volumeRestoreOverrides: [{ volumeName: 'disk', labels: {} }] }, 'restore-u-disk'],
  ];
  for (const [name, spec, expected] of cases)
    it(name, () => assert.equal(restoredName(restore(spec), 'disk', 'claim'), expected));
});

describe('notReady()', () => {
  const at = (seconds: number): number => Date.parse(CREATED) + seconds * 1000;
  const cases: [VirtualMachineRestore['spec']['targetReadinessPolicy'], seconds: number, expected: string][] = [
    [undefined, 10, 'wait'],
    ['WaitGracePeriod', 299, 'wait'],
    [
      'WaitGracePeriod',
      301,
      'failed Restore target failed to be ready within 5m0s. Please power off the target VM before attempting restore',
    ],
    ['WaitEventually', 9999, 'wait'],
    ['StopTarget', 0, 'stop'],
    ['FailImmediate', 0, 'failed Restore target VMI must be powered off before restore operation'],
  ];
  for (const [policy, seconds, expected] of cases)
    it(`${policy} after ${seconds} s`, () => {
      const outcome = notReady(restore(policy && { targetReadinessPolicy: policy }), at(seconds));
      assert.equal([outcome.type, ...(outcome.type === 'failed' ? [outcome.reason] : [])].join(' '), expected);
    });
});

describe('restoredClaim()', () => {
  const backup = {
    volumeName: 'disk',
    volumeSnapshotName: 'vs',
    persistentVolumeClaim: {
      metadata: {
        name: 'claim',
        labels: { keep: 'yes', 'persistent-state-for': 'a' },
        annotations: { mine: 'yes', 'pv.kubernetes.io/bind-completed': 'yes', 'cdi.kubevirt.io/storage.x': 'y' },
      },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'local',
        volumeName: 'pv-1',
        resources: { requests: { storage: '1Gi' } },
      },
    },
  } as unknown as VolumeBackup;
  const claim = (restoreSize: string | undefined, dataVolume?: string) =>
    restoredClaim({
      restore: restore({ volumeRestoreOverrides: [{ volumeName: 'disk', labels: { keep: 'no' } }] }),
      name: 'new',
      backup,
      snapshot: { metadata: {}, status: restoreSize === undefined ? {} : { restoreSize } } as VolumeSnapshot,
      machine: { metadata: { name: 'a', namespace: 'n' } },
      dataVolume,
      owner: { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'a', uid: 'vm' },
    });
  it('is as it was saved, but what belonged to the old one', () => {
    const { metadata, spec } = claim(undefined);
    assert.deepEqual(metadata.labels, {
      keep: 'no',
      'restore.kubevirt.io/source-vm-name': 'a',
      'restore.kubevirt.io/source-vm-namespace': 'n',
    });
    assert.deepEqual(metadata.annotations, {
      mine: 'yes',
      'restore.kubevirt.io/lastRestoreUID': 'r-u',
      'restore.kubevirt.io/name': 'r',
    });
    assert.equal(spec?.volumeName, undefined);
    assert.equal(spec?.storageClassName, 'local');
    assert.equal(metadata.ownerReferences?.[0]?.uid, 'vm');
  });
  for (const [size, expected] of [
    [undefined, '1Gi'],
    ['512Mi', '1Gi'],
    ['1073741824', '1Gi'],
    ['2Gi', '2Gi'],
  ] as const)
    it(`asks for ${expected} where the snapshot needs ${size}`, () =>
      assert.equal(claim(size).spec?.resources?.requests?.['storage'], expected));
  it('belongs to the DataVolume that takes it over', () => {
    const { metadata } = claim(undefined, 'dv');
    assert.equal(metadata.ownerReferences, undefined);
    assert.equal(metadata.annotations?.['cdi.kubevirt.io/storage.populatedFor'], 'dv');
  });
});

describe('restoredMachine()', () => {
  const spec = (more: object = {}): VirtualMachine['spec'] =>
    ({
      runStrategy: 'Always',
      template: {
        spec: {
          domain: { devices: {} },
          volumes: [
            { name: 'disk', persistentVolumeClaim: { claimName: 'claim' } },
            { name: 'data', dataVolume: { name: 'dv' } },
            { name: 'loose', dataVolume: { name: 'other' } },
            { name: 'dump', memoryDump: { claimName: 'dump' } },
            { name: 'boot', containerDisk: { image: 'x' } },
          ],
        },
      },
      dataVolumeTemplates: [{ metadata: { name: 'dv' }, spec: {} }],
      ...more,
    }) as VirtualMachine['spec'];
  const target = (more: object): VirtualMachine =>
    ({
      metadata: { name: 'a', namespace: 'n', uid: 'vm', labels: { now: 'yes' } },
      spec: spec(more),
    }) as unknown as VirtualMachine;
  const made = (
    of: { target?: VirtualMachine; to?: string; saved?: object; patches?: string[] } = {},
  ): VirtualMachine =>
    restoredMachine({
      restore: restore({
        ...(of.to !== undefined && { target: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: of.to } }),
        ...(of.patches && { patches: of.patches }),
      }),
      saved: { metadata: { name: 'a', labels: { before: 'yes' } }, spec: spec(of.saved) },
      target: of.target,
      restores: ['disk', 'data', 'loose'].map((volumeName) => ({
        volumeName,
        persistentVolumeClaim: `new-${volumeName}`,
        volumeSnapshotName: 'vs',
        ...(volumeName === 'data' && { dataVolumeName: 'new-dv' }),
      })),
      revisions: {},
    });
  // S-979
  it('makes a machine that is gone as one of no sync: what took it out of Git would take it out again', () => {
    const labels = { before: 'yes', 'applyset.kubernetes.io/part-of': 'applyset-x-v1' };
    const annotations = {
      note: 'mine',
      'configmanagement.gke.io/managed': 'enabled',
      'configsync.gke.io/manager': ':root',
    };
    const { metadata } = restoredMachine({
      restore: restore({}),
      saved: { metadata: { name: 'a', labels, annotations }, spec: spec() },
      target: undefined,
      restores: [],
      revisions: {},
    });
    assert.deepEqual(metadata.labels, { before: 'yes' });
    assert.equal(metadata.annotations?.['note'], 'mine');
    assert.equal(metadata.annotations?.['configmanagement.gke.io/managed'], undefined);
    assert.equal(metadata.annotations?.['configsync.gke.io/manager'], undefined);
  });
  it('refers to the restored claims; a DataVolume without a template becomes a claim, a memory dump goes', () => {
    const { volumes } = made().spec.template.spec ?? {};
    assert.deepEqual(volumes, [
      { name: 'disk', persistentVolumeClaim: { claimName: 'new-disk' } },
      { name: 'data', dataVolume: { name: 'new-dv' } },
      { name: 'loose', persistentVolumeClaim: { claimName: 'new-loose' } },
      { name: 'boot', containerDisk: { image: 'x' } },
    ]);
    assert.deepEqual(made().spec.dataVolumeTemplates, [{ metadata: { name: 'new-dv' }, spec: {} }]);
  });
  const strategies: [name: string, VirtualMachine, running: unknown, runStrategy: unknown][] = [
    ['a new machine is halted', made(), undefined, 'Halted'],
    [
      'a new machine of one with running is off',
      made({ saved: { running: true, runStrategy: undefined } }),
      false,
      undefined,
    ],
    ['a machine keeps its run strategy', made({ target: target({ runStrategy: 'Manual' }) }), undefined, 'Manual'],
    [
      'a machine with running is off',
      made({ target: target({ running: true, runStrategy: undefined }) }),
      false,
      undefined,
    ],
  ];
  for (const [name, vm, running, runStrategy] of strategies)
    it(name, () => assert.deepEqual([vm.spec.running, vm.spec.runStrategy], [running, runStrategy]));
  it('keeps the metadata of a machine that is there, and takes those of the saved one for a new machine', () => {
    assert.deepEqual(made({ target: target({}) }).metadata.labels, { now: 'yes' });
    assert.deepEqual(made().metadata.labels, { before: 'yes' });
  });
  const firmware = (vm: VirtualMachine) => vm.spec.template.spec?.domain.firmware;
  it('decides the identity by the name of the target', () => {
    assert.equal(firmware(made())?.uuid, legacyFirmwareUuid('a'));
    const written = { template: { spec: { domain: { devices: {}, firmware: { uuid: 'x', serial: 'y' } } } } };
    assert.deepEqual(firmware(made({ saved: written })), { uuid: 'x', serial: 'y' });
    // Left to admission, which gives new ones.
    assert.deepEqual(firmware(made({ saved: written, to: 'b' })), { uuid: '', serial: '' });
    const patch = '{"op": "replace", "path": "/spec/template/spec/domain/firmware/uuid", "value": "z"}';
    assert.equal(firmware(made({ saved: written, to: 'b', patches: [patch] }))?.uuid, 'z');
  });
  it('refuses a patch that does not fit, and patches no machine that is there', () => {
    const patches = ['{"op": "remove", "path": "/spec/nothing"}'];
    assert.throws(() => made({ patches }), /^Error: error patching VM a: /);
    assert.equal(made({ patches, target: target({}) }).metadata.uid, 'vm');
  });
  it('names the DataVolumes that the machine has no more', () => {
    assert.deepEqual(replacedDataVolumes(target({}), made()), ['dv']);
  });
});
