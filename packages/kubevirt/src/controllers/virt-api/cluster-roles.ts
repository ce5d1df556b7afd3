/** The roles that come with KubeVirt, and what virt-api itself may do. */
import type { ClusterRole, ClusterRoleBinding, PolicyRule } from '@coracle/apimachinery/types/access-types';

const RBAC = 'rbac.authorization.k8s.io';
const SUBRESOURCES = 'subresources.kubevirt.io';
const EDIT_VERBS = ['get', 'delete', 'create', 'update', 'patch', 'list', 'watch'];
const ADMIN_VERBS = [...EDIT_VERBS, 'deletecollection'];
const VIEW_VERBS = ['get', 'list', 'watch'];

const rule = (apiGroup: string, resources: readonly string[], verbs: readonly string[]): PolicyRule => ({
  apiGroups: [apiGroup],
  resources: [...resources],
  verbs: [...verbs],
});
const below = (resource: string, subresources: readonly string[]): string[] =>
  subresources.map((subresource) => `${resource}/${subresource}`);

const VMI = 'virtualmachineinstances';
const VM = 'virtualmachines';
const GUEST_INFORMATION = [
  'guestosinfo',
  'filesystemlist',
  'userlist',
  'sev/fetchcertchain',
  'sev/querylaunchmeasurement',
  'objectgraph',
];

const INSTANCETYPES = [
  'virtualmachineinstancetypes',
  'virtualmachineclusterinstancetypes',
  'virtualmachinepreferences',
  'virtualmachineclusterpreferences',
];

/** Everything but migrations, whose write access is a role of its own. */
const OBJECTS: readonly (readonly [group: string, resources: readonly string[]])[] = [
  ['kubevirt.io', [VM, VMI, 'virtualmachineinstancepresets', 'virtualmachineinstancereplicasets']],
  ['snapshot.kubevirt.io', ['virtualmachinesnapshots', 'virtualmachinesnapshotcontents', 'virtualmachinerestores']],
  ['export.kubevirt.io', ['virtualmachineexports']],
  ['clone.kubevirt.io', ['virtualmachineclones']],
  ['backup.kubevirt.io', ['virtualmachinebackups', 'virtualmachinebackuptrackers']],
  ['instancetype.kubevirt.io', INSTANCETYPES],
  ['pool.kubevirt.io', ['virtualmachinepools']],
];

const objectRules = (verbs: readonly string[]): PolicyRule[] => [
  ...OBJECTS.map(([group, resources]) => rule(group, resources, verbs)),
  rule('kubevirt.io', ['virtualmachineinstancemigrations'], VIEW_VERBS),
  rule('migrations.kubevirt.io', ['migrationpolicies'], VIEW_VERBS),
];

/** A picture of the screen is for admins alone, though an editor may look at the screen: so upstream's roles have it. */
const screenshotRule = rule(SUBRESOURCES, below(VMI, ['vnc/screenshot']), ['get']);

/** What admin and edit may do to a guest beside its objects. */
const operatorRules: PolicyRule[] = [
  rule(
    SUBRESOURCES,
    [
      ...below(VMI, ['console', 'vnc', 'portforward', 'usbredir', ...GUEST_INFORMATION]),
      ...below(VM, ['expand-spec', 'portforward', 'objectgraph']),
    ],
    ['get'],
  ),
  rule(
    SUBRESOURCES,
    [
      ...below(VMI, [
        'pause',
        'unpause',
        'addvolume',
        'removevolume',
        'freeze',
        'unfreeze',
        'softreboot',
        'reset',
        'sev/setupsession',
        'sev/injectlaunchsecret',
        'evacuate/cancel',
      ]),
      ...below(VM, [
        'start',
        'stop',
        'restart',
        'addvolume',
        'removevolume',
        'memorydump',
        'removememorydump',
        'evacuate/cancel',
      ]),
    ],
    ['update'],
  ),
  rule(SUBRESOURCES, ['expand-vm-spec'], ['update']),
];

const role = (name: string, rules: PolicyRule[], labels: Record<string, string> = {}): ClusterRole => ({
  apiVersion: `${RBAC}/v1`,
  kind: 'ClusterRole',
  metadata: { name, labels: { 'kubevirt.io': '', ...labels } },
  rules,
});
const aggregateTo = (target: string): Record<string, string> => ({
  [`rbac.authorization.k8s.io/aggregate-to-${target}`]: 'true',
});
const defaults = { annotations: { 'rbac.authorization.kubernetes.io/autoupdate': 'true' } };

const defaultRole = role(
  'kubevirt.io:default',
  [rule('kubevirt.io', ['kubevirts'], ['get', 'list']), rule(SUBRESOURCES, ['version', 'guestfs'], ['get', 'list'])],
  { 'kubernetes.io/bootstrapping': 'rbac-defaults' },
);

/** Name of the service account that virt-api uses in a cluster, and of its role. */
export const VIRT_API_ACCOUNT = 'kubevirt-apiserver';

/** What virt-api's own client asks for: nothing else. */
export const virtApiRules: readonly PolicyRule[] = [
  rule('kubevirt.io', [VM], ['get', 'list', 'patch']),
  rule('kubevirt.io', [`${VM}/status`, `${VMI}/status`], ['patch']),
  rule('kubevirt.io', [VMI], ['get', 'list', 'patch']),
  rule('kubevirt.io', ['virtualmachineinstancemigrations'], ['get', 'list', 'create']),
  rule('kubevirt.io', ['virtualmachineinstancereplicasets'], ['list']),
  rule('kubevirt.io', ['kubevirts'], ['get', 'list', 'watch']),
  rule('kubevirt.io', ['virtualmachineinstancepresets'], ['list']),
  rule('instancetype.kubevirt.io', INSTANCETYPES, ['get']),
  rule('apps', ['controllerrevisions'], ['get', 'list', 'create']),
  rule('', ['persistentvolumeclaims'], ['get', 'list']),
  rule('cdi.kubevirt.io', ['datavolumes', 'datasources'], ['get']),
  rule('snapshot.storage.k8s.io', ['volumesnapshots'], ['get']),
  rule('snapshot.kubevirt.io', ['virtualmachinesnapshots', 'virtualmachinesnapshotcontents'], ['get']),
  rule('snapshot.kubevirt.io', ['virtualmachinerestores'], ['list']),
  rule('backup.kubevirt.io', ['virtualmachinebackups'], ['list']),
  rule('', ['pods'], ['get', 'list', 'delete']),
  rule('', ['nodes'], ['get']),
  rule('authorization.k8s.io', ['subjectaccessreviews'], ['create']),
];

/** admin, edit and view of virtual machines (joined to the roles of those names), default, migrate, and virt-api's own. */
export const kubevirtClusterRoles: readonly ClusterRole[] = [
  { ...defaultRole, metadata: { ...defaultRole.metadata, ...defaults } },
  role('kubevirt.io:admin', [...operatorRules, screenshotRule, ...objectRules(ADMIN_VERBS)], aggregateTo('admin')),
  role(
    'kubevirt.io:edit',
    [...operatorRules, ...objectRules(EDIT_VERBS), rule('kubevirt.io', ['kubevirts'], ['get', 'list'])],
    aggregateTo('edit'),
  ),
  role(
    'kubevirt.io:view',
    [
      rule(SUBRESOURCES, [...below(VM, ['expand-spec', 'objectgraph']), ...below(VMI, GUEST_INFORMATION)], ['get']),
      rule(SUBRESOURCES, ['expand-vm-spec'], ['update']),
      ...objectRules(VIEW_VERBS),
    ],
    aggregateTo('view'),
  ),
  // Moving guests about strains the whole cluster, so it is granted on its own.
  role('kubevirt.io:migrate', [
    rule(SUBRESOURCES, [`${VM}/migrate`], ['update']),
    rule('kubevirt.io', ['virtualmachineinstancemigrations'], ADMIN_VERBS),
  ]),
  role('instancetype.kubevirt.io:view', [
    rule(
      'instancetype.kubevirt.io',
      ['virtualmachineclusterinstancetypes', 'virtualmachineclusterpreferences'],
      VIEW_VERBS,
    ),
  ]),
  role(VIRT_API_ACCOUNT, [...virtApiRules]),
];

const toEverybody = (name: string, groups: readonly string[]): ClusterRoleBinding => ({
  apiVersion: `${RBAC}/v1`,
  kind: 'ClusterRoleBinding',
  metadata: { name, labels: { 'kubevirt.io': '' }, ...defaults },
  roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name },
  subjects: groups.map((group) => ({ kind: 'Group', apiGroup: RBAC, name: group })),
});

/** Who has which of the roles above without being asked. */
export const kubevirtClusterRoleBindings = (namespace = 'kubevirt'): ClusterRoleBinding[] => [
  toEverybody('kubevirt.io:default', ['system:authenticated']),
  toEverybody('instancetype.kubevirt.io:view', ['system:authenticated']),
  {
    apiVersion: `${RBAC}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name: VIRT_API_ACCOUNT, labels: { 'kubevirt.io': '' } },
    roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: VIRT_API_ACCOUNT },
    subjects: [{ kind: 'ServiceAccount', name: VIRT_API_ACCOUNT, namespace }],
  },
];
