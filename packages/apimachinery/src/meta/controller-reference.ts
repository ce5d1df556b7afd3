import type { DeepReadonly, KubeObject, OwnerReference } from './object.ts';

/**
 * What a controller writes into the objects it makes for `owner`: they are its own, and it does not vanish before them
 * (foreground deletion; metav1.NewControllerRef).
 */
export const controllerReference = (owner: DeepReadonly<KubeObject>): OwnerReference => ({
  apiVersion: owner.apiVersion,
  kind: owner.kind,
  name: owner.metadata.name ?? '',
  uid: owner.metadata.uid ?? '',
  controller: true,
  blockOwnerDeletion: true,
});
