/**
 * "Delete only when stopped": a machine whose guest is there is not deleted. Ours; upstream's protection knows no such
 * condition. It asks about the instance and not about the run strategy: a machine that stops has not stopped.
 */

import { isControlledBy } from '@coracle/apimachinery/meta/controller-reference';
import { isDeleting, isFinal } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyVm, ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { DELETE_ONLY_WHEN_STOPPED, type ProtectionSettings } from './protection-settings.ts';

/** Whether the machine has to be stopped first. One whose deletion has begun is past that. */
export const mustStopFirst = ({ metadata }: ReadonlyVm, settings: ProtectionSettings): boolean =>
  metadata.deletionTimestamp === undefined &&
  (settings.deleteOnlyWhenStopped || metadata.labels?.[DELETE_ONLY_WHEN_STOPPED] === 'true');

/** Why a machine that has to be stopped first may not go yet; undefined when it may. `vmi`: the one of its name. */
export function notStopped(vm: ReadonlyVm, vmi: ReadonlyVmi | undefined): string | undefined {
  // An instance that somebody made by hand under the same name is none of the machine's.
  if (!vmi || !isControlledBy(vmi, vm.metadata.uid)) return undefined;
  const phase = vmi.status?.phase ?? '';
  if (isFinal(phase)) return undefined;
  const { namespace = '', name = '' } = vm.metadata;
  const state = !isDeleting(vmi) ? `is ${phase || 'Pending'}` : 'is being stopped';
  const whose =
    vm.metadata.labels?.[DELETE_ONLY_WHEN_STOPPED] === 'true' ? 'label' : 'annotation of the KubeVirt or an SSP object';
  return (
    `VirtualMachine ${namespace}/${name} may be deleted only when it is stopped (${whose} ${DELETE_ONLY_WHEN_STOPPED}), ` +
    `and its instance ${state}; stop it first, with: virtctl stop ${name} -n ${namespace}`
  );
}
