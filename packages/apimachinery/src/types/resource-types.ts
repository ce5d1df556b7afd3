/** Typed names of the built-in resources that our controllers, the agent and the server itself talk about. */

import { clusterType as cluster, namespacedType as namespaced } from '../meta/gvk.ts';
import type { KubeObject } from '../meta/object.ts';
import type {
  APIService,
  ClusterRole,
  ClusterRoleBinding,
  CustomResourceDefinition,
  Role,
  RoleBinding,
  SubjectAccessReview,
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
  ReplicaSet,
  ResourceQuota,
  Secret,
  Service,
  ServiceAccount,
  StorageClass,
} from './types.ts';

export const PODS = namespaced<Pod>('v1', 'pods', 'Pod');
export const NODES = cluster<Node>('v1', 'nodes', 'Node');
export const NAMESPACES = cluster<Namespace>('v1', 'namespaces', 'Namespace');
export const CONFIG_MAPS = namespaced<ConfigMap>('v1', 'configmaps', 'ConfigMap');
export const SECRETS = namespaced<Secret>('v1', 'secrets', 'Secret');
export const SERVICES = namespaced<Service>('v1', 'services', 'Service');
export const SERVICE_ACCOUNTS = namespaced<ServiceAccount>('v1', 'serviceaccounts', 'ServiceAccount');
export const ENDPOINTS = namespaced<Endpoints>('v1', 'endpoints', 'Endpoints');
export const EVENTS = namespaced<Event>('v1', 'events', 'Event');
export const PERSISTENT_VOLUMES = cluster<PersistentVolume>('v1', 'persistentvolumes', 'PersistentVolume');
export const RESOURCE_CLAIMS = namespaced<KubeObject>('resource.k8s.io/v1', 'resourceclaims', 'ResourceClaim');
export const PERSISTENT_VOLUME_CLAIMS = namespaced<PersistentVolumeClaim>(
  'v1',
  'persistentvolumeclaims',
  'PersistentVolumeClaim',
);
export const RESOURCE_QUOTAS = namespaced<ResourceQuota>('v1', 'resourcequotas', 'ResourceQuota');
export const ENDPOINT_SLICES = namespaced<EndpointSlice>('discovery.k8s.io/v1', 'endpointslices', 'EndpointSlice');
export const NETWORK_POLICIES = namespaced<KubeObject>('networking.k8s.io/v1', 'networkpolicies', 'NetworkPolicy');
export const SERVICE_CIDRS = cluster<ServiceCidr>('networking.k8s.io/v1', 'servicecidrs', 'ServiceCIDR');
export const IP_ADDRESSES = cluster<IpAddress>('networking.k8s.io/v1', 'ipaddresses', 'IPAddress');
export const LEASES = namespaced<Lease>('coordination.k8s.io/v1', 'leases', 'Lease');
export const CONTROLLER_REVISIONS = namespaced<ControllerRevision>(
  'apps/v1',
  'controllerrevisions',
  'ControllerRevision',
);
export const REPLICA_SETS = namespaced<ReplicaSet>('apps/v1', 'replicasets', 'ReplicaSet');
export const JOBS = namespaced<Job>('batch/v1', 'jobs', 'Job');
export const POD_DISRUPTION_BUDGETS = namespaced<PodDisruptionBudget>(
  'policy/v1',
  'poddisruptionbudgets',
  'PodDisruptionBudget',
);
export const STORAGE_CLASSES = cluster<StorageClass>('storage.k8s.io/v1', 'storageclasses', 'StorageClass');

const RBAC = 'rbac.authorization.k8s.io/v1';
export const ROLES = namespaced<Role>(RBAC, 'roles', 'Role');
export const ROLE_BINDINGS = namespaced<RoleBinding>(RBAC, 'rolebindings', 'RoleBinding');
export const CLUSTER_ROLES = cluster<ClusterRole>(RBAC, 'clusterroles', 'ClusterRole');
export const CLUSTER_ROLE_BINDINGS = cluster<ClusterRoleBinding>(RBAC, 'clusterrolebindings', 'ClusterRoleBinding');

export const CUSTOM_RESOURCE_DEFINITIONS = cluster<CustomResourceDefinition>(
  'apiextensions.k8s.io/v1',
  'customresourcedefinitions',
  'CustomResourceDefinition',
);
export const API_SERVICES = cluster<APIService>('apiregistration.k8s.io/v1', 'apiservices', 'APIService');

const AUTHORIZATION = 'authorization.k8s.io/v1';
export const SELF_SUBJECT_ACCESS_REVIEWS = cluster<SubjectAccessReview>(
  AUTHORIZATION,
  'selfsubjectaccessreviews',
  'SelfSubjectAccessReview',
);
