/**
 * The roles of kube-controller-manager's controllers, `system:controller:NAME`, bound to accounts of that name in
 * kube-system (bootstrappolicy/controller_policy.go). No controller of ours uses them: they are there because tools and
 * manifests name them, and for controllers that somebody runs beside this server.
 */
import type { PolicyBinding, PolicyRole } from './bootstrap-policy.ts';
import type { PolicyRule } from './rbac.ts';

const E = 'create patch update : core events.k8s.io : events';
const R = 'get list watch';
const DAEMON_PODS = 'create delete list patch watch : core : pods';
const APPS = 'apps extensions';

/** Rules as `verbs : groups : resources [: names]`; the core group is written `core`. */
const CONTROLLERS: Readonly<Record<string, readonly string[]>> = {
  'attachdetach-controller': [
    'list watch : core : persistentvolumeclaims persistentvolumes',
    `${R} : core : nodes`,
    'patch update : core : nodes/status',
    'list watch : core : pods',
    E,
    `create delete ${R} : storage.k8s.io : volumeattachments`,
    `${R} : storage.k8s.io : csidrivers`,
    `${R} : storage.k8s.io : csinodes`,
  ],
  'clusterrole-aggregation-controller': [`escalate ${R} patch update : rbac.authorization.k8s.io : clusterroles`],
  'cronjob-controller': [
    `${R} update : batch : cronjobs`,
    `create delete ${R} patch update : batch : jobs`,
    'update : batch : cronjobs/status',
    'update : batch : cronjobs/finalizers',
    'delete list watch : core : pods',
    E,
  ],
  'daemon-set-controller': [
    `${R} : ${APPS} : daemonsets`,
    `update : ${APPS} : daemonsets/status`,
    `update : ${APPS} : daemonsets/finalizers`,
    'list watch : core : nodes',
    DAEMON_PODS,
    'create : core : pods/binding',
    `create delete ${R} patch update : apps : controllerrevisions`,
    E,
  ],
  'deployment-controller': [
    `${R} update : ${APPS} : deployments`,
    `update : ${APPS} : deployments/status`,
    `update : ${APPS} : deployments/finalizers`,
    `create delete ${R} patch update : ${APPS} : replicasets`,
    `${R} update : core : pods`,
    E,
  ],
  'disruption-controller': [
    `${R} : ${APPS} : deployments`,
    `${R} : ${APPS} : replicasets`,
    `${R} : core : replicationcontrollers`,
    `${R} : policy : poddisruptionbudgets`,
    `${R} : apps : statefulsets`,
    'update : policy : poddisruptionbudgets/status',
    'patch update : core : pods/status',
    'get : * : */scale',
    E,
  ],
  'endpoint-controller': [
    `${R} : core : pods services`,
    `create delete ${R} update : core : endpoints`,
    'create : core : endpoints/restricted',
    E,
  ],
  'endpointslice-controller': [
    `${R} : core : nodes pods services`,
    'update : core : services/finalizers',
    `create delete ${R} update : discovery.k8s.io : endpointslices`,
    E,
  ],
  'endpointslicemirroring-controller': [
    `${R} : core : endpoints services`,
    'update : core : services/finalizers',
    'update : core : endpoints/finalizers',
    `create delete ${R} update : discovery.k8s.io : endpointslices`,
    E,
  ],
  'expand-controller': [
    `${R} patch update : core : persistentvolumes`,
    'patch update : core : persistentvolumeclaims/status',
    `${R} : core : persistentvolumeclaims`,
    E,
    'get : core : services',
  ],
  'ephemeral-volume-controller': [
    `${R} : core : pods`,
    'update : core : pods/finalizers',
    `create ${R} : core : persistentvolumeclaims`,
    E,
  ],
  'resource-claim-controller': [
    `${R} : core : pods`,
    'update : core : pods/finalizers',
    `create delete ${R} : resource.k8s.io : resourceclaims`,
    'patch update : resource.k8s.io : resourceclaims resourceclaims/status',
    'patch update : resource.k8s.io : resourceclaims/binding',
    'patch update : core : pods/status',
    E,
  ],
  'generic-garbage-collector': [`delete ${R} patch update : * : *`, E],
  'horizontal-pod-autoscaler': [
    `${R} : autoscaling : horizontalpodautoscalers`,
    'update : autoscaling : horizontalpodautoscalers/status',
    'get update : * : */scale',
    'list watch : core : pods',
    'list watch : metrics.k8s.io : pods',
    `${R} : custom.metrics.k8s.io : *`,
    `${R} : external.metrics.k8s.io : *`,
    E,
  ],
  'job-controller': [
    `${R} patch update : batch : jobs`,
    'update : batch : jobs/status',
    'update : batch : jobs/finalizers',
    DAEMON_PODS,
    E,
  ],
  'namespace-controller': [
    `delete ${R} : core : namespaces`,
    'update : core : namespaces/finalize namespaces/status',
    `delete deletecollection ${R} : * : *`,
  ],
  'node-controller': [
    `delete ${R} patch update : core : nodes`,
    'patch update : core : nodes/status',
    'patch update : core : pods/status',
    `delete ${R} : core : pods`,
    E,
  ],
  'persistent-volume-binder': [
    `create delete ${R} update : core : persistentvolumes`,
    'update : core : persistentvolumes/status',
    `${R} update : core : persistentvolumeclaims`,
    'update : core : persistentvolumeclaims/status',
    `create delete ${R} : core : pods`,
    `${R} : storage.k8s.io : storageclasses`,
    'list watch : core : nodes',
    E,
    'watch : core : events',
    'get : core : services',
  ],
  'pod-garbage-collector': ['delete list watch : core : pods', `${R} : core : nodes`, 'patch : core : pods/status'],
  'replicaset-controller': [
    `${R} update : ${APPS} : replicasets`,
    `update : ${APPS} : replicasets/status`,
    `update : ${APPS} : replicasets/finalizers`,
    DAEMON_PODS,
    E,
  ],
  'replication-controller': [
    `${R} update : core : replicationcontrollers`,
    'update : core : replicationcontrollers/status',
    'update : core : replicationcontrollers/finalizers',
    DAEMON_PODS,
    E,
  ],
  'resourcequota-controller': ['list watch : * : *', 'update : core : resourcequotas/status', E],
  'route-controller': ['list watch : core : nodes', 'patch : core : nodes/status', E],
  'service-account-controller': ['create : core : serviceaccounts', E],
  'service-controller': [
    `${R} : core : services`,
    'patch update : core : services/status',
    'list watch : core : nodes',
    E,
  ],
  'service-cidrs-controller': [
    `${R} patch update : networking.k8s.io : servicecidrs`,
    'patch update : networking.k8s.io : servicecidrs/finalizers',
    'patch update : networking.k8s.io : servicecidrs/status',
    `${R} : networking.k8s.io : ipaddresses`,
    E,
  ],
  'statefulset-controller': [
    'list watch : core : pods',
    `${R} : apps : statefulsets`,
    'update : apps : statefulsets/status',
    'update : apps : statefulsets/finalizers',
    'create delete get patch update : core : pods',
    `create delete ${R} patch update : apps : controllerrevisions`,
    `create ${R} : core : persistentvolumeclaims`,
    'delete update : core : persistentvolumeclaims',
    'update : core : pods/finalizers',
    E,
  ],
  'ttl-controller': ['list patch update watch : core : nodes', E],
  'certificate-controller': [
    `delete ${R} : certificates.k8s.io : certificatesigningrequests`,
    'update : certificates.k8s.io : certificatesigningrequests/approval certificatesigningrequests/status',
    'approve : certificates.k8s.io : signers : kubernetes.io/kube-apiserver-client-kubelet',
    'sign : certificates.k8s.io : signers : kubernetes.io/kube-apiserver-client kubernetes.io/kube-apiserver-client-kubelet kubernetes.io/kubelet-serving kubernetes.io/legacy-unknown',
    'create : authorization.k8s.io : subjectaccessreviews',
    E,
  ],
  'pvc-protection-controller': [`${R} update : core : persistentvolumeclaims`, `${R} : core : pods`, E],
  'pv-protection-controller': [`${R} update : core : persistentvolumes`, E],
  'volumeattributesclass-protection-controller': [
    `${R} : core : persistentvolumeclaims`,
    `${R} : core : persistentvolumes`,
    `${R} update : storage.k8s.io : volumeattributesclasses`,
    E,
  ],
  'ttl-after-finished-controller': [`delete ${R} : batch : jobs`, E],
  'root-ca-cert-publisher': ['create update : core : configmaps', E],
  'validatingadmissionpolicy-status-controller': [
    `${R} : admissionregistration.k8s.io : validatingadmissionpolicies`,
    'get patch update : admissionregistration.k8s.io : validatingadmissionpolicies/status',
    E,
  ],
  'legacy-service-account-token-cleaner': [
    'get : core : configmaps : kube-apiserver-legacy-service-account-token-tracking',
    'delete patch : core : secrets',
  ],
};

const words = (text: string | undefined): string[] => (text ?? '').split(' ').filter((word) => word !== '');

function ruleOf(text: string): PolicyRule {
  const [verbs, groups, resources, names] = text.split(' : ');
  return {
    verbs: words(verbs),
    apiGroups: words(groups).map((group) => (group === 'core' ? '' : group)),
    resources: words(resources),
    ...(names !== undefined && { resourceNames: words(names) }),
  };
}

const roleName = (name: string): string => `system:controller:${name}`;

export const CONTROLLER_ROLES: readonly PolicyRole[] = Object.entries(CONTROLLERS).map(([name, rules]) => ({
  kind: 'ClusterRole',
  name: roleName(name),
  rules: rules.map(ruleOf),
}));

export const CONTROLLER_BINDINGS: readonly PolicyBinding[] = Object.keys(CONTROLLERS).map((name) => ({
  kind: 'ClusterRoleBinding',
  name: roleName(name),
  roleKind: 'ClusterRole',
  role: roleName(name),
  subjects: [{ kind: 'ServiceAccount', name, namespace: 'kube-system' }],
}));
