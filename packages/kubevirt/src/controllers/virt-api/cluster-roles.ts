/** The roles that come with KubeVirt, and what virt-api itself may do. */

import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import type { ClusterRole, ClusterRoleBinding, PolicyRule } from '@coracle/apimachinery/types/types';

const RBAC = 'rbac.authorization.k8s.io';
const SUBRESOURCES = 'subresources.kubevirt.io';
const VIEW_VERBS = 'get list watch';
const EDIT_VERBS = 'get delete create update patch list watch';
const ADMIN_VERBS = `${EDIT_VERBS} deletecollection`;

const below = (resource: string, subresources: string): string =>
  subresources.replaceAll(/\S+/g, (subresource) => `${resource}/${subresource}`);

const VMI = 'virtualmachineinstances';
const VM = 'virtualmachines';
const GUEST_INFORMATION =
  'guestosinfo filesystemlist userlist sev/fetchcertchain sev/querylaunchmeasurement objectgraph';

const INSTANCETYPES = `virtualmachineinstancetypes virtualmachineclusterinstancetypes virtualmachinepreferences
  virtualmachineclusterpreferences`;

/** Everything but migrations, whose write access is a role of its own. */
const objectRules = (verbs: string): PolicyRule[] =>
  policyRules(
    `${verbs} : kubevirt.io : ${VM} ${VMI} virtualmachineinstancepresets virtualmachineinstancereplicasets`,
    `${verbs} : snapshot.kubevirt.io : virtualmachinesnapshots virtualmachinesnapshotcontents virtualmachinerestores`,
    `${verbs} : export.kubevirt.io : virtualmachineexports`,
    `${verbs} : clone.kubevirt.io : virtualmachineclones`,
    `${verbs} : backup.kubevirt.io : virtualmachinebackups virtualmachinebackuptrackers`,
    `${verbs} : instancetype.kubevirt.io : ${INSTANCETYPES}`,
    `${verbs} : pool.kubevirt.io : virtualmachinepools`,
    `${VIEW_VERBS} : kubevirt.io : virtualmachineinstancemigrations`,
    `${VIEW_VERBS} : migrations.kubevirt.io : migrationpolicies`,
  );

/** A picture of the screen is for admins alone, though an editor may look at the screen: so upstream's roles have it. */
const SCREENSHOT = `get : ${SUBRESOURCES} : ${VMI}/vnc/screenshot`;

/** What admin and edit may do to a guest beside its objects. */
const operatorRules = policyRules(
  `get : ${SUBRESOURCES} : ${below(VMI, `console vnc portforward usbredir ${GUEST_INFORMATION}`)}
    ${below(VM, 'expand-spec portforward objectgraph')}`,
  `update : ${SUBRESOURCES} : ${below(VMI, 'pause unpause addvolume removevolume freeze unfreeze softreboot reset')}
    ${below(VMI, 'sev/setupsession sev/injectlaunchsecret evacuate/cancel')}
    ${below(VM, 'start stop restart addvolume removevolume memorydump removememorydump evacuate/cancel')}`,
  `update : ${SUBRESOURCES} : expand-vm-spec`,
);

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
  policyRules('get list : kubevirt.io : kubevirts', `get list : ${SUBRESOURCES} : version guestfs`),
  { 'kubernetes.io/bootstrapping': 'rbac-defaults' },
);

/** Name of the service account that virt-api uses in a cluster, and of its role. */
export const VIRT_API_ACCOUNT = 'kubevirt-apiserver';

/** What virt-api's own client asks for: nothing else. */
export const virtApiRules = policyRules(
  `get list patch : kubevirt.io : ${VM}`,
  `patch : kubevirt.io : ${VM}/status ${VMI}/status`,
  `get list patch : kubevirt.io : ${VMI}`,
  'get list create : kubevirt.io : virtualmachineinstancemigrations',
  'list : kubevirt.io : virtualmachineinstancereplicasets',
  'get list watch : kubevirt.io : kubevirts',
  'list : kubevirt.io : virtualmachineinstancepresets',
  `get : instancetype.kubevirt.io : ${INSTANCETYPES}`,
  'get list create : apps : controllerrevisions',
  'get list : core : persistentvolumeclaims',
  'get : cdi.kubevirt.io : datavolumes datasources',
  'get : snapshot.storage.k8s.io : volumesnapshots',
  'get : snapshot.kubevirt.io : virtualmachinesnapshots virtualmachinesnapshotcontents',
  'list : snapshot.kubevirt.io : virtualmachinerestores',
  'list : backup.kubevirt.io : virtualmachinebackups',
  'get list delete : core : pods',
  'get : core : nodes',
  'create : authorization.k8s.io : subjectaccessreviews',
);

/** admin, edit and view of virtual machines (joined to the roles of those names), default, migrate, and virt-api's own. */
export const kubevirtClusterRoles: readonly ClusterRole[] = [
  { ...defaultRole, metadata: { ...defaultRole.metadata, ...defaults } },
  role(
    'kubevirt.io:admin',
    policyRules(...operatorRules, SCREENSHOT, ...objectRules(ADMIN_VERBS)),
    aggregateTo('admin'),
  ),
  role(
    'kubevirt.io:edit',
    policyRules(...operatorRules, ...objectRules(EDIT_VERBS), 'get list : kubevirt.io : kubevirts'),
    aggregateTo('edit'),
  ),
  role(
    'kubevirt.io:view',
    policyRules(
      `get : ${SUBRESOURCES} : ${below(VM, 'expand-spec objectgraph')} ${below(VMI, GUEST_INFORMATION)}`,
      `update : ${SUBRESOURCES} : expand-vm-spec`,
      ...objectRules(VIEW_VERBS),
    ),
    aggregateTo('view'),
  ),
  // Moving guests about strains the whole cluster, so it is granted on its own.
  role(
    'kubevirt.io:migrate',
    policyRules(
      `update : ${SUBRESOURCES} : ${VM}/migrate`,
      `${ADMIN_VERBS} : kubevirt.io : virtualmachineinstancemigrations`,
    ),
  ),
  role(
    'instancetype.kubevirt.io:view',
    policyRules(
      `${VIEW_VERBS} : instancetype.kubevirt.io : virtualmachineclusterinstancetypes virtualmachineclusterpreferences`,
    ),
  ),
  role(VIRT_API_ACCOUNT, virtApiRules),
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
