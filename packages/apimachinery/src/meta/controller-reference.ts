/** Owner references: which object belongs to which, and which of its owners is its controller. */
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

/** What is asked for its owners. */
interface Owned {
  readonly metadata: { readonly ownerReferences?: readonly Readonly<OwnerReference>[] | undefined };
}

/** The owner that controls the object; undefined where there is none, or where it is not of `kind`. */
export const controllerOf = ({ metadata }: Owned, kind?: string): Readonly<OwnerReference> | undefined =>
  metadata.ownerReferences?.find((owner) => owner.controller && (kind === undefined || owner.kind === kind));

/** True when the owner of `uid` controls the object. */
export const isControlledBy = ({ metadata }: Owned, uid: string | undefined): boolean =>
  metadata.ownerReferences?.some((owner) => owner.controller && owner.uid === uid) === true;

/** True when the object of `uid` is one of the owners. */
export const isOwnedBy = ({ metadata }: Owned, uid: string | undefined): boolean =>
  metadata.ownerReferences?.some((owner) => owner.uid === uid) === true;
