import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PersistentVolumeClaim } from '../../../../apimachinery/src/types/types.ts';
import type { VirtualMachine } from '../../kinds/kubevirt.ts';
import type { ClassChoice } from './snapshot-class.ts';
import { volumeSnapshotStatuses } from './volume-snapshot-statuses.ts';

const CLAIMS: Record<string, string | undefined> = { good: 'local', plain: 'nfs', two: 'twice', bare: undefined };
const CLASSES: Record<string, ClassChoice> = {
  local: { type: 'class', name: 'local', driver: 'd' },
  twice: { type: 'unclear', message: '2 matching VolumeSnapshotClasses for twice' },
};
const none = (storageClass: string): string =>
  `No VolumeSnapshotClass: Volume snapshots are not configured for this StorageClass [${storageClass}] [v]`;

// S-598: A machine says of each of its volumes whether it can be snapshotted, and if not why, and follows its claims
//   and the classes.
describe('volumeSnapshotStatuses()', () => {
  const cases: [name: string, source: object, reason: string | undefined][] = [
    ['a claim with a class', { persistentVolumeClaim: { claimName: 'good' } }, undefined],
    ['a DataVolume with a class', { dataVolume: { name: 'good' } }, undefined],
    ['a claim whose class takes none', { persistentVolumeClaim: { claimName: 'plain' } }, none('nfs')],
    ['a claim without a class', { persistentVolumeClaim: { claimName: 'bare' } }, none('')],
    ['two classes', { dataVolume: { name: 'two' } }, '2 matching VolumeSnapshotClasses for twice'],
    ['no claim', { persistentVolumeClaim: { claimName: 'lost' } }, 'PVC ns/lost not found'],
    ['no claim at all', { emptyDisk: {} }, 'Snapshot is not supported for this volumeSource type [v]'],
  ];
  for (const [name, source, reason] of cases)
    it(name, () => {
      const vm = {
        metadata: { namespace: 'ns' },
        spec: { template: { spec: { volumes: [{ name: 'v', ...source }] } } },
      } as unknown as VirtualMachine;
      const statuses = volumeSnapshotStatuses(vm, {
        claim: (claim) =>
          Object.hasOwn(CLAIMS, claim)
            ? ({ spec: { storageClassName: CLAIMS[claim] } } as PersistentVolumeClaim)
            : undefined,
        snapshotClass: (storageClass) => CLASSES[storageClass] ?? { type: 'none' },
      });
      assert.deepEqual(statuses, [{ name: 'v', enabled: reason === undefined, ...(reason && { reason }) }]);
    });
});
