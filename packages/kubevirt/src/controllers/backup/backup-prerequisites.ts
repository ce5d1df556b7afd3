/** What a backup has to wait for before it can begin, in upstream's words: data in, a sentence out. */

import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyClaim } from '@coracle/apimachinery/types/types';
import type { ReadonlyVm, ReadonlyVmi } from '../../kinds/kubevirt.ts';

export interface BackupSource {
  readonly namespace: string;
  /** Name of the virtual machine. */
  readonly name: string;
  readonly vm: ReadonlyVm | undefined;
  readonly vmi: ReadonlyVmi | undefined;
}

export interface BackupTarget {
  readonly name: string;
  readonly claim: ReadonlyClaim | undefined;
}

export const isRunning = (vmi: ReadonlyVmi | undefined): boolean =>
  vmi?.status?.phase === 'Running' && !isDeleting(vmi);

const isMoving = ({ status }: ReadonlyVmi): boolean =>
  status?.migrationState !== undefined &&
  status.migrationState !== null &&
  status.migrationState.completed !== true &&
  status.migrationState.failed !== true;

/** The sentence; undefined when it can begin. */
export function obstacleToBackup({ namespace, name, vm, vmi }: BackupSource, target: BackupTarget): string | undefined {
  if (!vm) return `VM ${namespace}/${name} doesnt exist`;
  if (!vmi || !isRunning(vmi)) return `vm ${name} is not running, cannot do backup`;
  const volumes = vmi.spec.volumes ?? [];
  const claims = volumes.flatMap((one) => one.persistentVolumeClaim?.claimName ?? one.dataVolume?.name ?? []);
  if (claims.length === 0) return `vm ${name} has no volumes to backup`;
  if (vmi.status?.changedBlockTracking?.state !== 'Enabled')
    return `vm ${name} has no ChangedBlockTracking, cannot start backup`;
  if (isMoving(vmi))
    return `vm ${name} is currently migrating, waiting for migration to complete before starting backup`;
  const { claim } = target;
  if (!claim) return `PVC ${namespace}/${target.name} doesnt exist`;
  if (claim.spec?.volumeMode === 'Block') return `PVC ${namespace}/${target.name} must be a filesystem PVC`;
  if (claim.status?.phase !== 'Bound') return `PVC ${namespace}/${target.name} is not bound`;
  if (claims.includes(target.name)) return `PVC ${namespace}/${target.name} is a volume of vm ${name}`;
  return undefined;
}
