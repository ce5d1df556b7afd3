import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { StorageClass } from '../../../../apimachinery/src/types/types.ts';
import type { VolumeSnapshotClass } from '../../../../cluster-rules/src/volume-snapshot/kinds.ts';
import { chooseSnapshotClass } from './snapshot-class.ts';

const storage = { metadata: { name: 'fast' }, provisioner: 'd' } as StorageClass;
const classOf = (name: string, driver: string, isDefault = false): VolumeSnapshotClass =>
  ({
    metadata: {
      name,
      ...(isDefault && { annotations: { 'snapshot.storage.kubernetes.io/is-default-class': 'true' } }),
    },
    driver,
    deletionPolicy: 'Delete',
  }) as unknown as VolumeSnapshotClass;

describe('chooseSnapshotClass()', () => {
  const cases: [name: string, StorageClass | undefined, VolumeSnapshotClass[], expected: string][] = [
    ['no storage class', undefined, [classOf('x', 'd')], 'none'],
    ['no class of the driver', storage, [classOf('x', 'e')], 'none'],
    ['the one of the driver', storage, [classOf('x', 'e'), classOf('y', 'd')], 'class y'],
    ['of two the default', storage, [classOf('x', 'd'), classOf('y', 'd', true)], 'class y'],
    ['of two neither', storage, [classOf('x', 'd'), classOf('y', 'd')], '2 matching VolumeSnapshotClasses for fast'],
  ];
  for (const [name, of, classes, expected] of cases)
    it(name, () => {
      const choice = chooseSnapshotClass(of, classes);
      const text =
        choice.type === 'unclear' ? choice.message : choice.type === 'class' ? `class ${choice.name}` : 'none';
      assert.equal(text, expected);
    });
});
