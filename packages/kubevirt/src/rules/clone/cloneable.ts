/** What cannot be cloned, in upstream's words (kubevirt pkg/virt-controller/watch/clone). */

import type { ReadonlyContent, ReadonlyVm } from '../../kinds/kubevirt.ts';
import { needsBackendStorage } from '../backend-storage/backend-storage.ts';

type Volumes = NonNullable<NonNullable<ReadonlyVm['spec']['template']['spec']>['volumes']>;

const BACKEND_STORAGE = 'Clone of source with backendstorage is not supported';

/** Why a machine can never be cloned, or undefined: what it keeps in its TPM and EFI variables is its own. */
export function uncloneable({ metadata, spec }: ReadonlyVm): string | undefined {
  return spec.template.spec && needsBackendStorage(spec.template.spec)
    ? `${BACKEND_STORAGE}: VM ${metadata.namespace}/${metadata.name}`
    : undefined;
}

/** Why a machine cannot be cloned now, or undefined: volumes that cannot be snapshotted, or not known to be. */
export function unsaveableVolumes({ spec, status }: ReadonlyVm): string | undefined {
  const problems = claimsOf(spec.template.spec?.volumes).flatMap(({ name }) => {
    const known = status?.volumeSnapshotStatuses?.find((one) => one.name === name);
    if (known === undefined) return [`Virtual Machine volume ${name} snapshot support unknown`];
    return known.enabled ? [] : [`Virtual Machine volume ${name} does not support snapshots`];
  });
  return problems.length > 0 ? problems.join('\n') : undefined;
}

/** Why a snapshot that is ready cannot be cloned, or undefined. */
export function uncloneableContent({ metadata, spec }: ReadonlyContent): string | undefined {
  const snapshotName = spec.virtualMachineSnapshotName;
  if (snapshotName === undefined) return `cannot get snapshot name from content ${metadata.name}`;
  const template = spec.source.virtualMachine?.spec?.template.spec;
  if (!template) return undefined;
  if (needsBackendStorage(template)) return `${BACKEND_STORAGE}: snapshot ${metadata.namespace}/${snapshotName}`;
  const missing = claimsOf(template.volumes).filter(
    ({ name }) => !spec.volumeBackups?.some(({ volumeName }) => volumeName === name),
  );
  return missing.length > 0
    ? missing.map(({ name }) => `volume ${name} is not backed up in snapshot ${snapshotName}`).join('\n')
    : undefined;
}

const claimsOf = (volumes: Volumes | undefined): Volumes =>
  (volumes ?? []).filter(
    ({ persistentVolumeClaim, dataVolume }) => persistentVolumeClaim !== undefined || dataVolume !== undefined,
  );
