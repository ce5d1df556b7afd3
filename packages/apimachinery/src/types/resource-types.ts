/** Typed names of the built-in resources that our controllers, the agent and the server itself talk about. */

import { clusterType as cluster, namespacedType as namespaced } from '../meta/gvk.ts';
import type { KubeObject } from '../meta/object.ts';
import type * as types from './types.ts';

export const PODS = namespaced<types.Pod>('v1', 'pods', 'Pod');
export const NODES = cluster<types.Node>('v1', 'nodes', 'Node');
export const NAMESPACES = cluster<types.Namespace>('v1', 'namespaces', 'Namespace');
export const CONFIG_MAPS = namespaced<types.ConfigMap>('v1', 'configmaps', 'ConfigMap');
export const SECRETS = namespaced<types.Secret>('v1', 'secrets', 'Secret');
export const SERVICES = namespaced<types.Service>('v1', 'services', 'Service');
export const SERVICE_ACCOUNTS = namespaced<types.ServiceAccount>('v1', 'serviceaccounts', 'ServiceAccount');
export const ENDPOINTS = namespaced<types.Endpoints>('v1', 'endpoints', 'Endpoints');
export const EVENTS = namespaced<types.Event>('v1', 'events', 'Event');
export const PERSISTENT_VOLUMES = cluster<types.PersistentVolume>('v1', 'persistentvolumes', 'PersistentVolume');
export const RESOURCE_CLAIMS = namespaced<KubeObject>('resource.k8s.io/v1', 'resourceclaims', 'ResourceClaim');
export const PERSISTENT_VOLUME_CLAIMS = namespaced<types.PersistentVolumeClaim>(
  'v1',
  'persistentvolumeclaims',
  'PersistentVolumeClaim',
);
export const RESOURCE_QUOTAS = namespaced<types.ResourceQuota>('v1', 'resourcequotas', 'ResourceQuota');
export const ENDPOINT_SLICES = namespaced<types.EndpointSlice>(
  'discovery.k8s.io/v1',
  'endpointslices',
  'EndpointSlice',
);
export const NETWORK_POLICIES = namespaced<KubeObject>('networking.k8s.io/v1', 'networkpolicies', 'NetworkPolicy');
export const SERVICE_CIDRS = cluster<types.ServiceCIDR>('networking.k8s.io/v1', 'servicecidrs', 'ServiceCIDR');
export const IP_ADDRESSES = cluster<types.IPAddress>('networking.k8s.io/v1', 'ipaddresses', 'IPAddress');
export const LEASES = namespaced<types.Lease>('coordination.k8s.io/v1', 'leases', 'Lease');
export const CONTROLLER_REVISIONS = namespaced<types.ControllerRevision>(
  'apps/v1',
  'controllerrevisions',
  'ControllerRevision',
);
export const REPLICA_SETS = namespaced<types.ReplicaSet>('apps/v1', 'replicasets', 'ReplicaSet');
export const JOBS = namespaced<types.Job>('batch/v1', 'jobs', 'Job');
export const POD_DISRUPTION_BUDGETS = namespaced<types.PodDisruptionBudget>(
  'policy/v1',
  'poddisruptionbudgets',
  'PodDisruptionBudget',
);
export const STORAGE_CLASSES = cluster<types.StorageClass>('storage.k8s.io/v1', 'storageclasses', 'StorageClass');

const RBAC = 'rbac.authorization.k8s.io/v1';
export const ROLES = namespaced<types.Role>(RBAC, 'roles', 'Role');
export const ROLE_BINDINGS = namespaced<types.RoleBinding>(RBAC, 'rolebindings', 'RoleBinding');
export const CLUSTER_ROLES = cluster<types.ClusterRole>(RBAC, 'clusterroles', 'ClusterRole');
export const CLUSTER_ROLE_BINDINGS = cluster<types.ClusterRoleBinding>(
  RBAC,
  'clusterrolebindings',
  'ClusterRoleBinding',
);

export const CUSTOM_RESOURCE_DEFINITIONS = cluster<types.CustomResourceDefinition>(
  'apiextensions.k8s.io/v1',
  'customresourcedefinitions',
  'CustomResourceDefinition',
);
export const API_SERVICES = cluster<types.APIService>('apiregistration.k8s.io/v1', 'apiservices', 'APIService');

const AUTHORIZATION = 'authorization.k8s.io/v1';
export const SELF_SUBJECT_ACCESS_REVIEWS = cluster<types.SubjectAccessReview>(
  AUTHORIZATION,
  'selfsubjectaccessreviews',
  'SelfSubjectAccessReview',
);

const ADMISSION = 'admissionregistration.k8s.io/v1';
export const VALIDATING_ADMISSION_POLICIES = cluster<types.ValidatingAdmissionPolicy>(
  ADMISSION,
  'validatingadmissionpolicies',
  'ValidatingAdmissionPolicy',
);
export const VALIDATING_ADMISSION_POLICY_BINDINGS = cluster<types.ValidatingAdmissionPolicyBinding>(
  ADMISSION,
  'validatingadmissionpolicybindings',
  'ValidatingAdmissionPolicyBinding',
);
