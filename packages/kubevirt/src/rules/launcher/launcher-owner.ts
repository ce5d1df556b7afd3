/**
 * Whose launcher a Pod is: its controller, by uid, name and kind, in the Pod's own namespace. A label alone, or an owner
 * of another namespace, says nothing: anybody who may make a Pod anywhere writes both.
 */

import { parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, OwnerReference, ReadonlyObject } from '@coracle/apimachinery/meta/object';
import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import { CREATED_BY_LABEL } from './launcher-labels.ts';

/** The reference of a Pod to the VirtualMachineInstance that it says controls it; undefined when it says none. */
export const instanceReference = (pod: ReadonlyPod | undefined): DeepReadonly<OwnerReference> | undefined =>
  pod?.metadata.ownerReferences?.find(
    ({ controller, kind, apiVersion }) =>
      controller === true && kind === 'VirtualMachineInstance' && parseApiVersion(apiVersion).group === 'kubevirt.io',
  );

/** Whether the Pod says of itself that it is a launcher of this very instance. */
export function isLauncherOf(pod: ReadonlyPod, instance: Pick<ReadonlyObject, 'metadata'>): boolean {
  const { namespace, name, uid } = instance.metadata;
  const owner = instanceReference(pod);
  return (
    owner !== undefined &&
    owner.uid === uid &&
    owner.name === name &&
    pod.metadata.namespace === namespace &&
    pod.metadata.labels?.[CREATED_BY_LABEL] === uid
  );
}
