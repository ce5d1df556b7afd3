/** Labels, annotations and names that Config Sync and its apply engine use. */
import { isOwnAnnotation } from '@coracle/apimachinery/meta/management';

export {
  CLUSTER_NAME_SELECTOR,
  CLUSTER_SELECTOR,
  DEPENDENTS,
  isGuardedLabel,
  isOwnAnnotation,
  isReserved,
  MANAGED,
  MANAGED_BY,
  NAMESPACE_SELECTOR,
  OWNING_INVENTORY,
  PART_OF,
} from '@coracle/apimachinery/meta/management';
export { PROPAGATION_POLICY, RECONCILER_FINALIZER } from '../kinds/kinds.ts';

export const DECLARED_VERSION = 'configsync.gke.io/declared-version';
export const RESOURCE_ID = 'configsync.gke.io/resource-id';
export const MANAGER = 'configsync.gke.io/manager';
export const TOKEN = 'configmanagement.gke.io/token';
export const SOURCE_PATH = 'configmanagement.gke.io/source-path';
export const GIT_CONTEXT = 'configsync.gke.io/git-context';
export const DECLARED_FIELDS = 'configsync.gke.io/declared-fields';
export const INVENTORY_LABEL = 'cli-utils.sigs.k8s.io/inventory-id';
/** Of a further part of an inventory, which upstream does not have: the id of the sync's apply set. */
export const PART_OF_INVENTORY = 'coracle.dev/part-of-inventory';
/** Of a sync, or of one object: what becomes of deletions by hand of what declared objects depend on. */
export const DELETE_WITH_DEPENDENTS = 'coracle.dev/delete-with-dependents';
export const STATUS_MODE = 'configsync.gke.io/status';

export const DEPENDS_ON = 'config.kubernetes.io/depends-on';
export const APPLY_TIME_MUTATION = 'config.kubernetes.io/apply-time-mutation';
export const MUTATION = 'client.lifecycle.config.k8s.io/mutation';
export const DELETION = 'client.lifecycle.config.k8s.io/deletion';
export const ON_REMOVE = 'cli-utils.sigs.k8s.io/on-remove';
export const LOCAL_CONFIG = 'config.kubernetes.io/local-config';
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

/** True for annotations that say whose an object is and how it is kept: nobody else changes them. */
export const isGuardedAnnotation = (key: string): boolean => isOwnAnnotation(key) || key === MUTATION;
