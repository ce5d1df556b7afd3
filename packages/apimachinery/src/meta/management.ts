/** What a sync writes on the objects that it manages, about itself: Config Sync's keys, and one of ours. */
import type { DeepReadonly, ObjectMeta } from './object.ts';

/** Annotation of a sync: whether what it manages is deleted with it (`FOREGROUND`) or stays. */
export const PROPAGATION_POLICY = 'configsync.gke.io/deletion-propagation-policy';
export const MANAGED_BY = { key: 'app.kubernetes.io/managed-by', value: 'configmanagement.gke.io' } as const;
export const PART_OF = 'applyset.kubernetes.io/part-of';
export const MANAGED = 'configmanagement.gke.io/managed';
export const OWNING_INVENTORY = 'config.k8s.io/owning-inventory';
/** Of a managed object: which declared objects depend on it, and what becomes of its deletion by hand. */
export const DEPENDENTS = 'coracle.dev/dependents';
export const NAMESPACE_SELECTOR = 'configmanagement.gke.io/namespace-selector';
export const CLUSTER_SELECTOR = 'configmanagement.gke.io/cluster-selector';
export const CLUSTER_NAME_SELECTOR = 'configsync.gke.io/cluster-name-selector';

const RESERVED = /^(configmanagement|configsync)\.gke\.io\//;
const DECLARABLE: ReadonlySet<string> = new Set([
  NAMESPACE_SELECTOR,
  CLUSTER_SELECTOR,
  MANAGED,
  CLUSTER_NAME_SELECTOR,
  PROPAGATION_POLICY,
]);

/** True for a key that users may not declare. */
export const isReserved = (key: string): boolean => (RESERVED.test(key) && !DECLARABLE.has(key)) || key === DEPENDENTS;
/** True for annotations that a sync puts on an object. */
export const isOwnAnnotation = (key: string): boolean => isReserved(key) || key === MANAGED || key === OWNING_INVENTORY;
/** True for labels that say whose an object is and how it is kept. */
export const isGuardedLabel = (key: string): boolean => RESERVED.test(key) || key === MANAGED_BY.key || key === PART_OF;

/** Labels and annotations without those of a sync: a copy is not managed by it. */
export function withoutManagement({ labels = {}, annotations = {} }: DeepReadonly<ObjectMeta>): {
  readonly labels: Record<string, string>;
  readonly annotations: Record<string, string>;
} {
  const isOwnLabel = ([key, value]: readonly [string, string]): boolean =>
    key === MANAGED_BY.key ? value === MANAGED_BY.value : isGuardedLabel(key);
  return {
    labels: Object.fromEntries(Object.entries(labels).filter((one) => !isOwnLabel(one))),
    annotations: Object.fromEntries(Object.entries(annotations).filter(([key]) => !isOwnAnnotation(key))),
  };
}
