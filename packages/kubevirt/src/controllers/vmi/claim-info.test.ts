import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PersistentVolumeClaim } from '../../../../apimachinery/src/types/types.ts';
import type { VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import { applyClaimInfo } from './claim-info.ts';

const claim = {
  metadata: { name: 'data' },
  spec: { accessModes: ['ReadWriteMany'], resources: { requests: { storage: '1Gi' } } },
  status: { capacity: { storage: '2Gi' } },
} as unknown as PersistentVolumeClaim;
const vmi = (status: object): VirtualMachineInstance =>
  ({
    metadata: {},
    spec: {
      domain: { devices: {} },
      volumes: [
        { name: 'root', containerDisk: { image: 'x' } },
        { name: 'data', persistentVolumeClaim: { claimName: 'data' } },
        { name: 'dv', dataVolume: { name: 'absent' } },
      ],
    },
    status,
  }) as unknown as VirtualMachineInstance;

test('applyClaimInfo() tells of claims that exist and leaves the rest as it is', () => {
  const object = vmi({ volumeStatus: [{ name: 'root', target: 'vda' }] });
  const of = (name: string) => (name === 'data' ? claim : undefined);
  applyClaimInfo(object, of);
  const info = {
    claimName: 'data',
    accessModes: ['ReadWriteMany'],
    volumeMode: 'Filesystem',
    capacity: { storage: '2Gi' },
    requests: { storage: '1Gi' },
  };
  assert.deepEqual(object.status?.volumeStatus, [
    { name: 'data', target: '', persistentVolumeClaimInfo: info },
    { name: 'root', target: 'vda' },
  ]);
  const attached = vmi({ volumeStatus: [{ name: 'data', target: 'vdb', persistentVolumeClaimInfo: info }] });
  const before = attached.status?.volumeStatus;
  applyClaimInfo(attached, of);
  assert.equal(attached.status?.volumeStatus, before, 'the same list: no write');
});
