/**
 * The default roles of Kubernetes' own components, and of what people run beside them: the second half of the bootstrap
 * policy (bootstrappolicy/policy.go). Nobody is bound to most of them here; tools refer to them by name.
 */
import type { PolicyBinding, PolicyRole } from './bootstrap-policy.ts';
import type { PolicyRule } from './rbac.ts';

const READ = ['get', 'list', 'watch'];
const rule = (apiGroups: string | string[], resources: string[], verbs: string[]): PolicyRule => ({
  verbs,
  apiGroups: typeof apiGroups === 'string' ? [apiGroups] : apiGroups,
  resources,
});
const named = (one: PolicyRule, ...resourceNames: string[]): PolicyRule => ({ ...one, resourceNames });

const CERTIFICATES = 'certificates.k8s.io';
const LEASES = 'coordination.k8s.io';
const STORAGE = 'storage.k8s.io';
const RESOURCE = 'resource.k8s.io';
const EVENTS = rule(['', 'events.k8s.io'], ['events'], ['create', 'patch', 'update']);
const TOKEN_REVIEWS = rule('authentication.k8s.io', ['tokenreviews'], ['create']);
const ACCESS_REVIEWS = rule('authorization.k8s.io', ['subjectaccessreviews'], ['create']);

/** What every node may do: the Node authorizer narrows it to the objects of the node. */
export const NODE_RULES: readonly PolicyRule[] = [
  TOKEN_REVIEWS,
  rule('authorization.k8s.io', ['localsubjectaccessreviews', 'subjectaccessreviews'], ['create']),
  rule('', ['services'], READ),
  rule('', ['nodes'], ['create', ...READ]),
  rule('', ['nodes/status'], ['patch', 'update']),
  rule('', ['nodes'], ['patch', 'update']),
  rule(['', 'events.k8s.io'], ['events'], ['create', 'patch', 'update']),
  rule('', ['pods'], READ),
  rule('', ['pods'], ['create', 'delete']),
  rule('', ['pods/status'], ['patch', 'update']),
  rule('', ['pods/eviction'], ['create']),
  rule('', ['configmaps', 'secrets'], READ),
  rule('', ['persistentvolumeclaims', 'persistentvolumes'], ['get']),
  rule('', ['endpoints'], ['get']),
  rule(CERTIFICATES, ['certificatesigningrequests'], ['create', ...READ]),
  rule(LEASES, ['leases'], ['create', 'delete', 'get', 'patch', 'update']),
  rule(STORAGE, ['volumeattachments'], ['get']),
  rule('', ['serviceaccounts/token'], ['create']),
  rule('', ['persistentvolumeclaims/status'], ['get', 'patch', 'update']),
  rule(STORAGE, ['csidrivers'], READ),
  rule(STORAGE, ['csinodes'], ['create', 'delete', 'get', 'patch', 'update']),
  rule('node.k8s.io', ['runtimeclasses'], READ),
  rule(RESOURCE, ['resourceclaims'], ['get']),
  rule(RESOURCE, ['resourceslices'], ['create', 'delete', 'deletecollection', ...READ, 'patch', 'update']),
  rule('', ['serviceaccounts'], ['get']),
];

const clusterRole = (name: string, ...rules: PolicyRule[]): PolicyRole => ({ kind: 'ClusterRole', name, rules });
const role = (namespace: string, name: string, ...rules: PolicyRule[]): PolicyRole => ({
  kind: 'Role',
  namespace,
  name,
  rules,
});
const approver = (short: string): PolicyRole =>
  clusterRole(
    `system:certificates.k8s.io:${short}-approver`,
    named(rule(CERTIFICATES, ['signers'], ['approve']), `kubernetes.io/${short}`),
  );
const ownLease = (name: string): PolicyRule[] => [
  rule(LEASES, ['leases'], ['create']),
  named(rule(LEASES, ['leases'], ['get', 'update']), name),
];
const leaderLocking: PolicyRule[] = [
  rule(LEASES, ['leases'], ['create', 'get', 'list', 'update', 'watch']),
  rule(LEASES, ['leasecandidates'], ['create', 'get', 'list', 'update', 'watch']),
];

export const SYSTEM_ROLES: readonly PolicyRole[] = [
  clusterRole('system:node', ...NODE_RULES),
  clusterRole('system:node-bootstrapper', rule(CERTIFICATES, ['certificatesigningrequests'], ['create', ...READ])),
  clusterRole(
    'system:certificates.k8s.io:certificatesigningrequests:nodeclient',
    rule(CERTIFICATES, ['certificatesigningrequests/nodeclient'], ['create']),
  ),
  clusterRole(
    'system:certificates.k8s.io:certificatesigningrequests:selfnodeclient',
    rule(CERTIFICATES, ['certificatesigningrequests/selfnodeclient'], ['create']),
  ),
  ...['kube-apiserver-client', 'kube-apiserver-client-kubelet', 'kubelet-serving', 'legacy-unknown'].map(approver),
  clusterRole(
    'system:node-problem-detector',
    rule('', ['nodes'], ['get']),
    rule('', ['nodes/status'], ['patch']),
    EVENTS,
  ),
  clusterRole(
    'system:node-proxier',
    rule('', ['endpoints', 'services'], ['list', 'watch']),
    rule('', ['nodes'], READ),
    EVENTS,
    rule('discovery.k8s.io', ['endpointslices'], ['list', 'watch']),
    rule('networking.k8s.io', ['servicecidrs'], ['list', 'watch']),
  ),
  clusterRole(
    'system:kubelet-api-admin',
    rule('', ['nodes'], READ),
    rule('', ['nodes'], ['proxy']),
    rule(
      '',
      ['nodes/configz', 'nodes/healthz', 'nodes/log', 'nodes/metrics', 'nodes/pods', 'nodes/proxy', 'nodes/stats'],
      ['*'],
    ),
  ),
  clusterRole('system:kube-aggregator', rule('', ['endpoints', 'services'], READ)),
  clusterRole('system:kube-dns', rule('', ['endpoints', 'services'], ['list', 'watch'])),
  clusterRole(
    'system:heapster',
    rule('', ['events', 'namespaces', 'nodes', 'pods'], READ),
    rule('extensions', ['deployments'], READ),
  ),
  clusterRole(
    'system:volume-scheduler',
    rule('', ['persistentvolumes'], [...READ, 'patch', 'update']),
    rule(STORAGE, ['storageclasses'], READ),
    rule('', ['persistentvolumeclaims'], [...READ, 'patch', 'update']),
  ),
  clusterRole('system:cluster-trust-bundle-discovery', rule(CERTIFICATES, ['clustertrustbundles'], READ)),
  clusterRole(
    'system:kube-controller-manager',
    EVENTS,
    ...ownLease('kube-controller-manager'),
    rule('', ['secrets', 'serviceaccounts'], ['create']),
    rule('', ['secrets'], ['delete']),
    rule('', ['configmaps', 'namespaces', 'secrets', 'serviceaccounts'], ['get']),
    rule('', ['secrets', 'serviceaccounts'], ['update']),
    TOKEN_REVIEWS,
    ACCESS_REVIEWS,
    rule('*', ['*'], ['list', 'watch']),
    rule('', ['serviceaccounts/token'], ['create']),
  ),
  clusterRole(
    'system:kube-scheduler',
    EVENTS,
    ...ownLease('kube-scheduler'),
    rule('', ['nodes'], READ),
    rule('', ['pods'], ['delete', ...READ]),
    rule('', ['bindings', 'pods/binding'], ['create']),
    rule('', ['pods/status'], ['patch', 'update']),
    rule('', ['replicationcontrollers', 'services'], READ),
    rule(['apps', 'extensions'], ['replicasets'], READ),
    rule('apps', ['statefulsets'], READ),
    rule('policy', ['poddisruptionbudgets'], READ),
    rule('', ['persistentvolumeclaims', 'persistentvolumes'], READ),
    TOKEN_REVIEWS,
    ACCESS_REVIEWS,
    rule(STORAGE, ['csinodes'], READ),
    rule('', ['namespaces'], READ),
    rule(STORAGE, ['csidrivers'], READ),
    rule(STORAGE, ['csistoragecapacities'], READ),
    rule(STORAGE, ['volumeattachments'], READ),
    rule(RESOURCE, ['deviceclasses'], READ),
    rule(RESOURCE, ['resourceclaims'], [...READ, 'patch', 'update']),
    rule(RESOURCE, ['resourceclaims/status'], ['patch', 'update']),
    rule(RESOURCE, ['resourceclaims/binding'], ['patch', 'update']),
    rule('', ['pods/finalizers'], ['update']),
    rule(RESOURCE, ['resourceslices'], READ),
  ),
  role('kube-system', 'system::leader-locking-kube-controller-manager', ...leaderLocking),
  role('kube-system', 'system::leader-locking-kube-scheduler', ...leaderLocking),
  role('kube-system', 'system:controller:bootstrap-signer', rule('', ['secrets'], READ)),
  role('kube-system', 'system:controller:cloud-provider', rule('', ['configmaps'], ['create', ...READ])),
  role('kube-system', 'system:controller:token-cleaner', rule('', ['secrets'], ['delete', ...READ]), EVENTS),
  role(
    'kube-public',
    'system:controller:bootstrap-signer',
    rule('', ['configmaps'], READ),
    named(rule('', ['configmaps'], ['update']), 'cluster-info'),
    EVENTS,
  ),
];

type Subject = PolicyBinding['subjects'][number];
const user = (name: string): Subject => ({ kind: 'User', name });
const group = (name: string): Subject => ({ kind: 'Group', name });
const account = (name: string): Subject => ({ kind: 'ServiceAccount', name, namespace: 'kube-system' });
const bind = (name: string, ...subjects: Subject[]): PolicyBinding => ({
  kind: 'ClusterRoleBinding',
  name,
  roleKind: 'ClusterRole',
  role: name,
  subjects,
});
const bindIn = (namespace: string, name: string, of: string, ...subjects: Subject[]): PolicyBinding => ({
  kind: 'RoleBinding',
  namespace,
  name,
  roleKind: 'Role',
  role: of,
  subjects,
});

const CONTROLLER_MANAGER = user('system:kube-controller-manager');
const SCHEDULER = user('system:kube-scheduler');

export const SYSTEM_BINDINGS: readonly PolicyBinding[] = [
  // Nodes have these rights by the Node authorizer; the binding stands empty, as upstream's.
  bind('system:node'),
  bind('system:node-proxier', user('system:kube-proxy')),
  bind('system:kube-controller-manager', CONTROLLER_MANAGER),
  bind('system:kube-scheduler', SCHEDULER),
  bind('system:volume-scheduler', SCHEDULER),
  bind('system:kube-dns', account('kube-dns')),
  bind('system:cluster-trust-bundle-discovery', group('system:serviceaccounts')),
  bindIn(
    'kube-system',
    'system::extension-apiserver-authentication-reader',
    'extension-apiserver-authentication-reader',
    CONTROLLER_MANAGER,
    SCHEDULER,
  ),
  bindIn(
    'kube-system',
    'system::leader-locking-kube-controller-manager',
    'system::leader-locking-kube-controller-manager',
    CONTROLLER_MANAGER,
    account('kube-controller-manager'),
  ),
  bindIn(
    'kube-system',
    'system::leader-locking-kube-scheduler',
    'system::leader-locking-kube-scheduler',
    SCHEDULER,
    account('kube-scheduler'),
  ),
  ...(
    [
      ['kube-system', 'bootstrap-signer'],
      ['kube-system', 'cloud-provider'],
      ['kube-system', 'token-cleaner'],
      ['kube-public', 'bootstrap-signer'],
    ] as const
  ).map(([namespace, name]) =>
    bindIn(namespace, `system:controller:${name}`, `system:controller:${name}`, account(name)),
  ),
  // What kubeadm binds: whoever holds a bootstrap token may become a node, and a node renews its own certificate.
  {
    ...bind('coracle:node-bootstrapper', group('system:bootstrappers')),
    role: 'system:node-bootstrapper',
  },
  {
    ...bind('coracle:node-autoapprove-bootstrap', group('system:bootstrappers')),
    role: 'system:certificates.k8s.io:certificatesigningrequests:nodeclient',
  },
  {
    ...bind('coracle:node-autoapprove-certificate-rotation', group('system:nodes')),
    role: 'system:certificates.k8s.io:certificatesigningrequests:selfnodeclient',
  },
];
