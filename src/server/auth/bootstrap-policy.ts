/**
 * The default roles and bindings that every cluster has and that tools take for granted, as data. Reconciled at start:
 * missing objects are created, missing rules and subjects are added, nothing extra is taken away, and an object whose
 * autoupdate annotation is "false" is left alone.
 */
import { type PolicyRule, RBAC_GROUP } from './rbac.ts';

export interface PolicyRole {
  readonly kind: 'ClusterRole' | 'Role';
  readonly namespace?: string;
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly rules: readonly PolicyRule[];
  /** The role is a component's own: its rules are exactly these, and rules of an older version go. */
  readonly exact?: boolean;
  /** Label whose bearers this role unites. */
  readonly aggregate?: readonly string[];
}

export interface PolicyBinding {
  readonly kind: 'ClusterRoleBinding' | 'RoleBinding';
  readonly namespace?: string;
  readonly name: string;
  readonly roleKind: 'ClusterRole' | 'Role';
  readonly role: string;
  readonly subjects: readonly {
    readonly kind: 'User' | 'Group' | 'ServiceAccount';
    readonly name: string;
    readonly namespace?: string;
  }[];
}

const READ = ['get', 'list', 'watch'];
const WRITE = ['create', 'delete', 'deletecollection', 'patch', 'update'];
const rule = (apiGroup: string, resources: string[], verbs: string[]): PolicyRule => ({
  verbs,
  apiGroups: [apiGroup],
  resources,
});
const paths = (nonResourceURLs: string[]): PolicyRule => ({ verbs: ['get'], nonResourceURLs });
const aggregateTo = (role: string): Record<string, string> => ({ [`${RBAC_GROUP}/aggregate-to-${role}`]: 'true' });

const CORE_WORKLOADS = [
  'configmaps',
  'endpoints',
  'persistentvolumeclaims',
  'pods',
  'replicationcontrollers',
  'replicationcontrollers/scale',
  'serviceaccounts',
  'services',
];
const APPS = [
  'controllerrevisions',
  'daemonsets',
  'deployments',
  'deployments/scale',
  'replicasets',
  'replicasets/scale',
  'statefulsets',
  'statefulsets/scale',
];
const APPS_WRITE = APPS.filter((resource) => resource !== 'controllerrevisions').concat('deployments/rollback');
const STATUS = (resources: string[]): string[] => resources.map((resource) => `${resource}/status`);

/** Cluster roles and roles of a fresh cluster. */
export const DEFAULT_ROLES: readonly PolicyRole[] = [
  {
    kind: 'ClusterRole',
    name: 'cluster-admin',
    rules: [
      { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
      { verbs: ['*'], nonResourceURLs: ['*'] },
    ],
  },
  { kind: 'ClusterRole', name: 'admin', rules: [], aggregate: [`${RBAC_GROUP}/aggregate-to-admin`] },
  {
    kind: 'ClusterRole',
    name: 'edit',
    rules: [],
    labels: aggregateTo('admin'),
    aggregate: [`${RBAC_GROUP}/aggregate-to-edit`],
  },
  {
    kind: 'ClusterRole',
    name: 'view',
    rules: [],
    labels: aggregateTo('edit'),
    aggregate: [`${RBAC_GROUP}/aggregate-to-view`],
  },
  {
    kind: 'ClusterRole',
    name: 'system:aggregate-to-admin',
    labels: aggregateTo('admin'),
    rules: [
      rule('authorization.k8s.io', ['localsubjectaccessreviews'], ['create']),
      rule(RBAC_GROUP, ['rolebindings', 'roles'], [...WRITE, ...READ]),
    ],
  },
  {
    kind: 'ClusterRole',
    name: 'system:aggregate-to-edit',
    labels: aggregateTo('edit'),
    rules: [
      rule('', ['pods/attach', 'pods/exec', 'pods/portforward', 'pods/proxy', 'secrets', 'services/proxy'], READ),
      rule('', ['serviceaccounts'], ['impersonate']),
      rule('', ['pods', 'pods/attach', 'pods/exec', 'pods/portforward', 'pods/proxy'], WRITE),
      rule('', ['pods/eviction'], ['create']),
      rule(
        '',
        [
          'configmaps',
          'events',
          'persistentvolumeclaims',
          'replicationcontrollers',
          'replicationcontrollers/scale',
          'secrets',
          'serviceaccounts',
          'services',
          'services/proxy',
        ],
        WRITE,
      ),
      rule('', ['serviceaccounts/token'], ['create']),
      rule('apps', APPS_WRITE, WRITE),
      rule('autoscaling', ['horizontalpodautoscalers'], WRITE),
      rule('batch', ['cronjobs', 'jobs'], WRITE),
      rule('networking.k8s.io', ['ingresses', 'networkpolicies'], WRITE),
      rule('policy', ['poddisruptionbudgets'], WRITE),
      rule('coordination.k8s.io', ['leases'], [...WRITE, ...READ]),
      rule('resource.k8s.io', ['resourceclaims', 'resourceclaimtemplates'], WRITE),
    ],
  },
  {
    kind: 'ClusterRole',
    name: 'system:aggregate-to-view',
    labels: aggregateTo('view'),
    rules: [
      rule(
        '',
        [...CORE_WORKLOADS, 'persistentvolumeclaims/status', 'services/status', 'replicationcontrollers/status'],
        READ,
      ),
      rule(
        '',
        [
          'bindings',
          'events',
          'limitranges',
          'namespaces',
          'namespaces/status',
          'pods/log',
          'pods/status',
          'resourcequotas',
          'resourcequotas/status',
        ],
        READ,
      ),
      rule('discovery.k8s.io', ['endpointslices'], READ),
      rule('apps', [...APPS, ...STATUS(['daemonsets', 'deployments', 'replicasets', 'statefulsets'])], READ),
      rule('autoscaling', ['horizontalpodautoscalers', 'horizontalpodautoscalers/status'], READ),
      rule('batch', ['cronjobs', 'cronjobs/status', 'jobs', 'jobs/status'], READ),
      rule('networking.k8s.io', ['ingresses', 'ingresses/status', 'networkpolicies'], READ),
      rule('policy', ['poddisruptionbudgets', 'poddisruptionbudgets/status'], READ),
      rule('resource.k8s.io', ['resourceclaims', 'resourceclaims/status', 'resourceclaimtemplates'], READ),
    ],
  },
  {
    kind: 'ClusterRole',
    name: 'system:discovery',
    rules: [
      paths([
        '/api',
        '/api/*',
        '/apis',
        '/apis/*',
        '/healthz',
        '/livez',
        '/openapi',
        '/openapi/*',
        '/readyz',
        '/version',
        '/version/',
      ]),
    ],
  },
  {
    kind: 'ClusterRole',
    name: 'system:public-info-viewer',
    rules: [paths(['/healthz', '/livez', '/readyz', '/version', '/version/'])],
  },
  {
    kind: 'ClusterRole',
    name: 'system:basic-user',
    rules: [
      rule('authorization.k8s.io', ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'], ['create']),
      rule('authentication.k8s.io', ['selfsubjectreviews'], ['create']),
    ],
  },
  {
    kind: 'ClusterRole',
    name: 'system:monitoring',
    rules: [
      paths([
        ...['/flagz', '/healthz', '/healthz/*', '/livez', '/livez/*', '/metrics', '/metrics/slis'],
        ...['/readyz', '/readyz/*', '/statusz'],
      ]),
    ],
  },
  {
    kind: 'ClusterRole',
    name: 'system:auth-delegator',
    rules: [
      rule('authentication.k8s.io', ['tokenreviews'], ['create']),
      rule('authorization.k8s.io', ['subjectaccessreviews'], ['create']),
    ],
  },
  {
    kind: 'ClusterRole',
    name: 'system:service-account-issuer-discovery',
    rules: [
      paths([
        '/.well-known/openid-configuration',
        '/.well-known/openid-configuration/',
        '/openid/v1/jwks',
        '/openid/v1/jwks/',
      ]),
    ],
  },
  {
    kind: 'ClusterRole',
    name: 'system:persistent-volume-provisioner',
    rules: [
      rule('', ['persistentvolumes'], ['create', 'delete', ...READ]),
      rule('', ['persistentvolumeclaims'], ['get', 'list', 'update', 'watch']),
      rule('storage.k8s.io', ['storageclasses'], READ),
      rule('', ['events'], ['watch']),
      rule('', ['nodes'], ['get', 'list']),
    ],
  },
  {
    kind: 'Role',
    namespace: 'kube-system',
    name: 'extension-apiserver-authentication-reader',
    rules: [
      {
        verbs: READ,
        apiGroups: [''],
        resources: ['configmaps'],
        resourceNames: ['extension-apiserver-authentication'],
      },
    ],
  },
];

const group = (name: string) => ({ kind: 'Group' as const, name });

/** Cluster role bindings of a fresh cluster. */
export const DEFAULT_BINDINGS: readonly PolicyBinding[] = [
  {
    kind: 'ClusterRoleBinding',
    name: 'cluster-admin',
    roleKind: 'ClusterRole',
    role: 'cluster-admin',
    subjects: [group('system:masters')],
  },
  {
    kind: 'ClusterRoleBinding',
    name: 'system:discovery',
    roleKind: 'ClusterRole',
    role: 'system:discovery',
    subjects: [group('system:authenticated')],
  },
  {
    kind: 'ClusterRoleBinding',
    name: 'system:basic-user',
    roleKind: 'ClusterRole',
    role: 'system:basic-user',
    subjects: [group('system:authenticated')],
  },
  {
    kind: 'ClusterRoleBinding',
    name: 'system:public-info-viewer',
    roleKind: 'ClusterRole',
    role: 'system:public-info-viewer',
    subjects: [group('system:authenticated'), group('system:unauthenticated')],
  },
  {
    kind: 'ClusterRoleBinding',
    name: 'system:monitoring',
    roleKind: 'ClusterRole',
    role: 'system:monitoring',
    subjects: [group('system:monitoring')],
  },
  {
    kind: 'ClusterRoleBinding',
    name: 'system:service-account-issuer-discovery',
    roleKind: 'ClusterRole',
    role: 'system:service-account-issuer-discovery',
    subjects: [group('system:serviceaccounts')],
  },
];
