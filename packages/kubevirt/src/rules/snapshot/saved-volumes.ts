/** Which claims a snapshot of a virtual machine saves. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { ReadonlyClaim } from '@coracle/apimachinery/types/types';
import type { ReadonlyVm, Volume } from '../../kinds/kubevirt.ts';
import { backendStorageClaimOfVm, STATE_LABEL } from '../backend-storage/backend-storage.ts';
import { labelValue } from '../instancetype/short-name.ts';

type ReadonlyVolume = DeepReadonly<Volume>;

/** A volume of a virtual machine and the claim behind it. */
export interface ClaimedVolume {
  readonly volume: string;
  readonly claim: string;
}

/** The claim behind a volume that a snapshot can hold; undefined for volumes of other kinds. */
export const snapshottableClaim = ({
  persistentVolumeClaim,
  dataVolume,
  memoryDump,
}: ReadonlyVolume): string | undefined => persistentVolumeClaim?.claimName ?? dataVolume?.name ?? memoryDump?.claimName;

/** The name under which the claim with the firmware state of a machine stands among its volumes (BackendPVCVolumeName). */
export const stateVolumeName = (vmName: string): string => labelValue(`${STATE_LABEL}-${vmName}`);

export const volumesOf = (vm: { readonly spec?: ReadonlyVm['spec'] }): readonly ReadonlyVolume[] =>
  vm.spec?.template?.spec?.volumes ?? [];

/**
 * The volumes with claims, that of the firmware state among them. `expanded` is the machine with its instance type and
 * preference applied, where that is known.
 */
export function claimedVolumes(
  vm: ReadonlyVm,
  { expanded = vm, claims }: { readonly expanded?: ReadonlyVm; readonly claims: Iterable<ReadonlyClaim> },
): ClaimedVolume[] {
  const found = volumesOf(vm).flatMap((volume): ClaimedVolume[] => {
    const claim = snapshottableClaim(volume);
    return claim === undefined ? [] : [{ volume: volume.name, claim }];
  });
  const state = backendStorageClaimOfVm(expanded, claims)?.metadata.name;
  return state === undefined ? found : [...found, { volume: stateVolumeName(vm.metadata.name ?? ''), claim: state }];
}
