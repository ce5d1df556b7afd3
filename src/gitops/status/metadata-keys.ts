/** Labels, annotations and names that Config Sync and its apply engine use. */
import { PROPAGATION_POLICY } from '../../api/kinds/config-sync/kinds.ts';

export { PROPAGATION_POLICY, RECONCILER_FINALIZER } from '../../api/kinds/config-sync/kinds.ts';

export const MANAGED_BY = { key: 'app.kubernetes.io/managed-by', value: 'configmanagement.gke.io' } as const;
export const PART_OF = 'applyset.kubernetes.io/part-of';
export const DECLARED_VERSION = 'configsync.gke.io/declared-version';
export const MANAGED = 'configmanagement.gke.io/managed';
export const RESOURCE_ID = 'configsync.gke.io/resource-id';
export const MANAGER = 'configsync.gke.io/manager';
export const OWNING_INVENTORY = 'config.k8s.io/owning-inventory';
export const TOKEN = 'configmanagement.gke.io/token';
export const SOURCE_PATH = 'configmanagement.gke.io/source-path';
export const GIT_CONTEXT = 'configsync.gke.io/git-context';
export const DECLARED_FIELDS = 'configsync.gke.io/declared-fields';
export const INVENTORY_LABEL = 'cli-utils.sigs.k8s.io/inventory-id';
/** Of a further part of an inventory, which upstream does not have: the id of the sync's apply set. */
export const PART_OF_INVENTORY = 'coracle.dev/part-of-inventory';
/** Of a managed object: which declared objects depend on it, and what becomes of its deletion by hand. */
export const DEPENDENTS = 'coracle.dev/dependents';
/** Of a sync, or of one object: what becomes of deletions by hand of what declared objects depend on. */
export const DELETE_WITH_DEPENDENTS = 'coracle.dev/delete-with-dependents';
export const STATUS_MODE = 'configsync.gke.io/status';

export const DEPENDS_ON = 'config.kubernetes.io/depends-on';
export const APPLY_TIME_MUTATION = 'config.kubernetes.io/apply-time-mutation';
export const MUTATION = 'client.lifecycle.config.k8s.io/mutation';
export const DELETION = 'client.lifecycle.config.k8s.io/deletion';
export const ON_REMOVE = 'cli-utils.sigs.k8s.io/on-remove';
export const LOCAL_CONFIG = 'config.kubernetes.io/local-config';
export const NAMESPACE_SELECTOR = 'configmanagement.gke.io/namespace-selector';
export const CLUSTER_SELECTOR = 'configmanagement.gke.io/cluster-selector';
export const CLUSTER_NAME_SELECTOR = 'configsync.gke.io/cluster-name-selector';
export const CLUSTER_NAME = 'configmanagement.gke.io/cluster-name';
/** Of hierarchical namespaces: how far above one a directory lies, and who says so. */
export const DEPTH_SUFFIX = '.tree.hnc.x-k8s.io/depth';
export const HNC_MANAGED_BY = 'hnc.x-k8s.io/managed-by';

export const MANAGER_FINALIZER = 'configsync.gke.io/reconciler-manager';

/** Field manager of the objects that are applied. */
export const FIELD_MANAGER = 'configsync.gke.io';
/** Field manager of what belongs to the sync itself. */
export const OWN_FIELD_MANAGER = 'configsync.gke.io/reconciler-manager';

/** Namespaces that are let go and never deleted. */
export const SPECIAL_NAMESPACES: ReadonlySet<string> = new Set([
  'default',
  'kube-system',
  'kube-public',
  'kube-node-lease',
  'gatekeeper-system',
]);
/** Namespaces of Config Sync itself, which no source declares. */
export const SYSTEM_NAMESPACES: ReadonlySet<string> = new Set([
  'config-management-system',
  'resource-group-system',
  'config-management-monitoring',
]);

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

/** True for annotations that say whose an object is and how it is kept: nobody else changes them. */
export const isGuardedAnnotation = (key: string): boolean => isOwnAnnotation(key) || key === MUTATION;
/** The same of labels. */
export const isGuardedLabel = (key: string): boolean => RESERVED.test(key) || key === MANAGED_BY.key || key === PART_OF;
