/** Which claims a restore makes, and what they are called (kubevirt pkg/storage/snapshot/restore). */

import type { ReadonlyContent, ReadonlyRestore, VolumeRestore } from '../../kinds/kubevirt.ts';
import { volumesOf } from './saved-volumes.ts';

export const isInPlace = ({ spec }: ReadonlyRestore): boolean => spec.volumeRestorePolicy === 'InPlace';

/** Name of the claim, or of the DataVolume, that takes the place of `original` for a volume. */
export function restoredName({ metadata, spec }: ReadonlyRestore, volume: string, original: string): string {
  const override = spec.volumeRestoreOverrides?.find(
    ({ volumeName, restoreName }) => volumeName === volume && restoreName,
  );
  if (override?.restoreName) return override.restoreName;
  switch (spec.volumeRestorePolicy) {
    case 'InPlace':
      return original;
    case 'PrefixTargetName':
      return `${spec.target.name}-${volume}`;
    default:
      return `restore-${metadata.uid}-${volume}`;
  }
}

/**
 * `status.restores`: an entry for each saved volume but memory dumps, with what is known of it already.
 * @throws Error for a backup without a VolumeSnapshot
 */
export function volumeRestores(restore: ReadonlyRestore, content: ReadonlyContent): VolumeRestore[] {
  const vm = content.spec.source.virtualMachine;
  const dumps = new Set(
    volumesOf({ ...(vm?.spec && { spec: vm.spec }) }).flatMap(({ name, memoryDump }) => (memoryDump ? [name] : [])),
  );
  return (content.spec.volumeBackups ?? []).flatMap((backup): VolumeRestore[] => {
    const { volumeName, persistentVolumeClaim, volumeSnapshotName } = backup;
    if (dumps.has(volumeName)) return [];
    const known = restore.status?.restores?.find((each) => each.volumeName === volumeName);
    if (known !== undefined) return [{ ...known }];
    if (volumeSnapshotName === undefined) throw new Error(`VolumeSnapshotName missing ${volumeName}`);
    const claim = restoredName(restore, volumeName, persistentVolumeClaim.metadata?.name ?? '');
    return [{ volumeName, persistentVolumeClaim: claim, volumeSnapshotName }];
  });
}
