/** What an instance's status says of the claims behind its volumes: agents decide by it whether it can move. */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { PersistentVolumeClaim, ReadonlyClaim } from '@coracle/apimachinery/types/types';
import type { Informer } from '@coracle/client/informer/informer';
import type { ReadonlyVmi, VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import { STATE_VOLUME } from '../../rules/backend-storage/backend-storage.ts';
import { claimNames } from '../../rules/machine/claim-names.ts';

type VolumeStatuses = NonNullable<NonNullable<VirtualMachineInstance['status']>['volumeStatus']>;

/**
 * Writes `persistentVolumeClaimInfo` for each volume with a claim, and for the firmware state (upstream's virt-controller
 * does). Entries and fields of others stay; nothing is changed where nothing differs.
 */
export function applyClaimInfo(
  vmi: VirtualMachineInstance,
  claimOf: (name: string) => ReadonlyClaim | undefined,
  stateClaim?: ReadonlyClaim,
): void {
  const before: VolumeStatuses = vmi.status?.volumeStatus ?? [];
  const byName = new Map(before.map((status) => [status.name, status]));
  const volumes = (vmi.spec.volumes ?? []).map(({ name, persistentVolumeClaim, dataVolume }) => {
    const claimName = persistentVolumeClaim?.claimName ?? dataVolume?.name;
    return { name, claim: claimName === undefined ? undefined : claimOf(claimName) };
  });
  for (const { name, claim } of [...volumes, { name: STATE_VOLUME, claim: stateClaim }]) {
    if (!claim) continue;
    const claimName = claim.metadata.name ?? '';
    const { spec, status } = claim;
    const persistentVolumeClaimInfo = {
      claimName,
      ...(spec?.accessModes && { accessModes: [...spec.accessModes] }),
      volumeMode: spec?.volumeMode ?? 'Filesystem',
      ...(status?.capacity && { capacity: { ...status.capacity } }),
      ...(spec?.resources?.requests && { requests: { ...spec.resources.requests } }),
    };
    const known = byName.get(name);
    byName.set(name, { target: '', ...known, name, persistentVolumeClaimInfo } as VolumeStatuses[number]);
  }
  const after = [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  if (vmi.status && !deepEqual(before, after)) vmi.status.volumeStatus = after;
}

/** The first of them that does not exist. */
export const missingClaim = (vmi: ReadonlyVmi, claims: Informer<PersistentVolumeClaim>): string | undefined =>
  claimNames(vmi.spec).find((name) => claims.get({ namespace: vmi.metadata.namespace ?? '', name }) === undefined);

/** Whether all claims of its DataVolumes are bound, which those are that are filled; undefined where it names no DataVolume. */
export function dataVolumesReady(vmi: ReadonlyVmi, claims: Informer<PersistentVolumeClaim>): boolean | undefined {
  const names = (vmi.spec.volumes ?? []).flatMap(({ dataVolume }) => dataVolume?.name ?? []);
  const { namespace = '' } = vmi.metadata;
  const isBound = (name: string): boolean => claims.get({ namespace, name })?.status?.phase === 'Bound';
  return names.length === 0 ? undefined : names.every(isBound);
}
