import type { DeepReadonly, KubeObject, OwnerReference } from '../../api/meta/object.ts';

/** A controller reference that keeps the owner from vanishing before its dependent (foreground deletion). */
export const ownerReferenceTo = (owner: DeepReadonly<KubeObject>): OwnerReference => ({
  apiVersion: owner.apiVersion,
  kind: owner.kind,
  name: owner.metadata.name ?? '',
  uid: owner.metadata.uid ?? '',
  controller: true,
  blockOwnerDeletion: true,
});
