/** Why OpenKruise's label does not let an object go, in OpenKruise's words. */
import type { DeepReadonly, ObjectMeta } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { KRUISE_PROTECTION_LABEL, type KruiseHook } from './kruise-label.ts';

/** An object as far as the label is concerned: any of the kinds, whatever its spec. */
export interface KruiseSubject {
  readonly metadata: DeepReadonly<ObjectMeta>;
  readonly spec?: object;
}

/** What the rules ask of other objects; called only where the answer decides. */
export interface KruiseCounts {
  /** Pods of a namespace for which `isActivePod` holds. */
  activePods(namespace: string): number;
  /** Claims of a namespace for which `isBoundClaim` holds. */
  boundClaims(namespace: string): number;
  /** Objects of a definition's resource in all namespaces whose deletion has not begun. */
  customResources(group: string, resource: string): number;
}

/** OpenKruise leaves the objects of this namespace alone, and the namespace itself. */
const SYSTEM_NAMESPACE = 'kube-system';

/** The message of the refusal; undefined when the object may go. An object that is being deleted may. */
export function kruiseRefusal(
  { cascade }: KruiseHook,
  { metadata, spec }: KruiseSubject,
  counts: KruiseCounts,
): string | undefined {
  const value = metadata.labels?.[KRUISE_PROTECTION_LABEL];
  if (value !== 'Always' && value !== 'Cascading') return undefined;
  if (metadata.deletionTimestamp !== undefined) return undefined;
  if (metadata.namespace === SYSTEM_NAMESPACE) return undefined;
  if (cascade === 'namespace' && metadata.name === SYSTEM_NAMESPACE) return undefined;
  const refusal = `forbidden by ResourcesProtectionDeletion for ${KRUISE_PROTECTION_LABEL}=${value}`;
  if (value === 'Always') return refusal;
  const counted = (what: string, count: number): string | undefined =>
    count > 0 ? `${refusal} and ${what} ${count}>0` : undefined;
  switch (cascade) {
    case 'namespace': {
      const name = metadata.name ?? '';
      return counted('active pods', counts.activePods(name)) ?? counted('"Bound" status pvc', counts.boundClaims(name));
    }
    case 'definition': {
      const { group, names } = spec as unknown as {
        readonly group: string;
        readonly names: { readonly plural: string };
      };
      return counted('active CRs', counts.customResources(group, names.plural));
    }
    case 'replicas': {
      const { replicas } = (spec ?? {}) as { readonly replicas?: unknown };
      return counted('replicas', typeof replicas === 'number' ? replicas : 0);
    }
    case 'none':
      return undefined;
    default:
      return cascade satisfies never;
  }
}

const phaseOf = (object: { readonly status?: unknown }): string | undefined =>
  (object.status as { readonly phase?: string } | undefined)?.phase;

/** Whether a Pod counts (kube-controller-manager's IsPodActive): neither ended nor being deleted. */
export const isActivePod = (pod: { readonly metadata: DeepReadonly<ObjectMeta>; readonly status?: unknown }): boolean =>
  !isDeleting(pod) && phaseOf(pod) !== 'Succeeded' && phaseOf(pod) !== 'Failed';

/** Whether a claim counts: bound, and not being deleted. */
export const isBoundClaim = (claim: {
  readonly metadata: DeepReadonly<ObjectMeta>;
  readonly status?: unknown;
}): boolean => !isDeleting(claim) && phaseOf(claim) === 'Bound';
