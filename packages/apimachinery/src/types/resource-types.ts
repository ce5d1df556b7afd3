/** Typed names of the built-in resources that our controllers, the agent and the server itself talk about. */

import type { ResourceType } from '../meta/gvk.ts';
import type { KubeObject } from '../meta/object.ts';
import type {
  APIService,
  ClusterRole,
  ClusterRoleBinding,
  CustomResourceDefinition,
  Role,
  RoleBinding,
  SelfSubjectReview,
  SelfSubjectRulesReview,
  SubjectAccessReview,
  TokenReview,
} from './access-types.ts';
import type { IpAddress, ServiceCidr } from './service-cidrs.ts';
import type {
  ConfigMap,
  ControllerRevision,
  EndpointSlice,
  Endpoints,
  Event,
  Job,
  Lease,
  Namespace,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  PodDisruptionBudget,
  PriorityClass,
  ReplicaSet,
  ResourceQuota,
  Secret,
  Service,
  ServiceAccount,
  StorageClass,
} from './types.ts';

type Scope = 'Namespaced' | 'Cluster';

const define = <T extends KubeObject>(
  apiVersion: string,
  resource: string,
  kind: string,
  scope: Scope,
): ResourceType<T> => {
  const slash = apiVersion.indexOf('/');
  return Object.freeze({
    group: slash < 0 ? '' : apiVersion.slice(0, slash),
    version: apiVersion.slice(slash + 1),
    resource,
    kind,
    namespaced: scope === 'Namespaced',
  });
};

export const PODS: ResourceType<Pod> = define('v1', 'pods', 'Pod', 'Namespaced');
export const NODES: ResourceType<Node> = define('v1', 'nodes', 'Node', 'Cluster');
export const NAMESPACES: ResourceType<Namespace> = define('v1', 'namespaces', 'Namespace', 'Cluster');
export const CONFIG_MAPS: ResourceType<ConfigMap> = define('v1', 'configmaps', 'ConfigMap', 'Namespaced');
export const SECRETS: ResourceType<Secret> = define('v1', 'secrets', 'Secret', 'Namespaced');
export const SERVICES: ResourceType<Service> = define('v1', 'services', 'Service', 'Namespaced');
export const SERVICE_ACCOUNTS: ResourceType<ServiceAccount> = define(
  'v1',
  'serviceaccounts',
  'ServiceAccount',
  'Namespaced',
);
export const ENDPOINTS: ResourceType<Endpoints> = define('v1', 'endpoints', 'Endpoints', 'Namespaced');
export const EVENTS: ResourceType<Event> = define('v1', 'events', 'Event', 'Namespaced');
export const PERSISTENT_VOLUMES: ResourceType<PersistentVolume> = define(
  'v1',
  'persistentvolumes',
  'PersistentVolume',
  'Cluster',
);
export const RESOURCE_CLAIMS: ResourceType<KubeObject> = define(
  'resource.k8s.io/v1',
  'resourceclaims',
  'ResourceClaim',
  'Namespaced',
);
export const PERSISTENT_VOLUME_CLAIMS: ResourceType<PersistentVolumeClaim> = define(
  'v1',
  'persistentvolumeclaims',
  'PersistentVolumeClaim',
  'Namespaced',
);
export const RESOURCE_QUOTAS: ResourceType<ResourceQuota> = define(
  'v1',
  'resourcequotas',
  'ResourceQuota',
  'Namespaced',
);
export const ENDPOINT_SLICES: ResourceType<EndpointSlice> = define(
  'discovery.k8s.io/v1',
  'endpointslices',
  'EndpointSlice',
  'Namespaced',
);
export const NETWORK_POLICIES: ResourceType<KubeObject> = define(
  'networking.k8s.io/v1',
  'networkpolicies',
  'NetworkPolicy',
  'Namespaced',
);
export const SERVICE_CIDRS: ResourceType<ServiceCidr> = define(
  'networking.k8s.io/v1',
  'servicecidrs',
  'ServiceCIDR',
  'Cluster',
);
export const IP_ADDRESSES: ResourceType<IpAddress> = define(
  'networking.k8s.io/v1',
  'ipaddresses',
  'IPAddress',
  'Cluster',
);
export const LEASES: ResourceType<Lease> = define('coordination.k8s.io/v1', 'leases', 'Lease', 'Namespaced');
export const CONTROLLER_REVISIONS: ResourceType<ControllerRevision> = define(
  'apps/v1',
  'controllerrevisions',
  'ControllerRevision',
  'Namespaced',
);
export const REPLICA_SETS: ResourceType<ReplicaSet> = define('apps/v1', 'replicasets', 'ReplicaSet', 'Namespaced');
export const JOBS: ResourceType<Job> = define('batch/v1', 'jobs', 'Job', 'Namespaced');
export const POD_DISRUPTION_BUDGETS: ResourceType<PodDisruptionBudget> = define(
  'policy/v1',
  'poddisruptionbudgets',
  'PodDisruptionBudget',
  'Namespaced',
);
export const STORAGE_CLASSES: ResourceType<StorageClass> = define(
  'storage.k8s.io/v1',
  'storageclasses',
  'StorageClass',
  'Cluster',
);
export const PRIORITY_CLASSES: ResourceType<PriorityClass> = define(
  'scheduling.k8s.io/v1',
  'priorityclasses',
  'PriorityClass',
  'Cluster',
);

const RBAC = 'rbac.authorization.k8s.io/v1';
export const ROLES: ResourceType<Role> = define(RBAC, 'roles', 'Role', 'Namespaced');
export const ROLE_BINDINGS: ResourceType<RoleBinding> = define(RBAC, 'rolebindings', 'RoleBinding', 'Namespaced');
export const CLUSTER_ROLES: ResourceType<ClusterRole> = define(RBAC, 'clusterroles', 'ClusterRole', 'Cluster');
export const CLUSTER_ROLE_BINDINGS: ResourceType<ClusterRoleBinding> = define(
  RBAC,
  'clusterrolebindings',
  'ClusterRoleBinding',
  'Cluster',
);

export const CUSTOM_RESOURCE_DEFINITIONS: ResourceType<CustomResourceDefinition> = define(
  'apiextensions.k8s.io/v1',
  'customresourcedefinitions',
  'CustomResourceDefinition',
  'Cluster',
);
export const API_SERVICES: ResourceType<APIService> = define(
  'apiregistration.k8s.io/v1',
  'apiservices',
  'APIService',
  'Cluster',
);

export const TOKEN_REVIEWS: ResourceType<TokenReview> = define(
  'authentication.k8s.io/v1',
  'tokenreviews',
  'TokenReview',
  'Cluster',
);
export const SELF_SUBJECT_REVIEWS: ResourceType<SelfSubjectReview> = define(
  'authentication.k8s.io/v1',
  'selfsubjectreviews',
  'SelfSubjectReview',
  'Cluster',
);
const AUTHORIZATION = 'authorization.k8s.io/v1';
export const SUBJECT_ACCESS_REVIEWS: ResourceType<SubjectAccessReview> = define(
  AUTHORIZATION,
  'subjectaccessreviews',
  'SubjectAccessReview',
  'Cluster',
);
export const SELF_SUBJECT_ACCESS_REVIEWS: ResourceType<SubjectAccessReview> = define(
  AUTHORIZATION,
  'selfsubjectaccessreviews',
  'SelfSubjectAccessReview',
  'Cluster',
);
export const LOCAL_SUBJECT_ACCESS_REVIEWS: ResourceType<SubjectAccessReview> = define(
  AUTHORIZATION,
  'localsubjectaccessreviews',
  'LocalSubjectAccessReview',
  'Namespaced',
);
export const SELF_SUBJECT_RULES_REVIEWS: ResourceType<SelfSubjectRulesReview> = define(
  AUTHORIZATION,
  'selfsubjectrulesreviews',
  'SelfSubjectRulesReview',
  'Cluster',
);
