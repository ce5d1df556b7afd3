/** The roles of the components, from the rules that each names: for the embedded server, and printed for another one. */

import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import type { PolicyRule } from '@coracle/apimachinery/types/types';
import type { PolicyBinding, PolicyRole } from '@coracle/apiserver/auth/bootstrap-policy';
import { leaderRules } from '@coracle/client/leader/leader-lease';
import { partsPolicy } from '@coracle/kubevirt/rules/protection/parts-policy';
import { NODE_AGENT_RULES } from '@coracle/node-agent/agent/rbac';
import { AGENT_ACCOUNT, COMPONENT_NAMESPACE, type Component } from './components.ts';
import { instanceStatusPolicy } from './instance-status-policy.ts';
import { launcherPodsPolicy } from './launcher-pods-policy.ts';
import type { Manifest } from './policy-manifest.ts';
import { unprotectPolicy } from './unprotect-policy.ts';

/** Account that `coracle controllers` may be started as: it may ask for the components' tokens and do nothing else. */
export const STARTER_ACCOUNT = 'coracle-controllers';
/** Not `coracle:agent`, which the embedded server binds to its nodes. */
const AGENT_ROLE = 'coracle:node-agent';
const PART_OF = { 'app.kubernetes.io/part-of': 'coracle' };
const RBAC = 'rbac.authorization.k8s.io';

/** One ClusterRole and binding for each component, holding exactly the rules it names. */
export function policyOf(components: readonly Pick<Component, 'account' | 'rules' | 'localRules'>[]): {
  roles: PolicyRole[];
  bindings: PolicyBinding[];
} {
  return {
    roles: components.flatMap(({ account, rules, localRules = [] }): PolicyRole[] => {
      const own = { name: roleName(account), exact: true };
      return [
        { kind: 'ClusterRole', ...own, rules },
        ...localRules.map((local): PolicyRole => ({ kind: 'Role', ...own, ...local })),
      ];
    }),
    bindings: components.flatMap(({ account, localRules = [] }): PolicyBinding[] => {
      const own = { name: roleName(account), role: roleName(account), subjects: [subject(account)] };
      return [
        { kind: 'ClusterRoleBinding', roleKind: 'ClusterRole', ...own },
        ...localRules.map(
          ({ namespace }): PolicyBinding => ({ kind: 'RoleBinding', roleKind: 'Role', namespace, ...own }),
        ),
      ];
    }),
  };
}

/** What `coracle controllers` needs on a cluster of somebody else's. */
export function controllerManifests(components: readonly Component[]): Manifest[] {
  return [
    ...[
      COMPONENT_NAMESPACE,
      ...components.flatMap(({ localRules = [] }) => localRules.map((one) => one.namespace)),
    ].map(namespaceNamed),
    ...[...components.map(({ account }) => account), STARTER_ACCOUNT].map(account),
    ...components.map(({ account, rules }) => role(roleName(account), rules)),
    ...components.map(({ account }) => binding(roleName(account), account)),
    ...components.flatMap(({ account, namespaceRules = [], localRules = [], fills = [] }) => [
      ...localRole(roleName(account), account, [...leaderRules(account), ...namespaceRules]),
      ...localRules.flatMap((local) => localRole(roleName(account), account, local.rules, local.namespace)),
      ...fills.map(({ kind, name }) => empty(kind, name)),
    ]),
    ...localRole(
      STARTER_ROLE,
      STARTER_ACCOUNT,
      policyRules(`create : core : serviceaccounts/token : ${components.map(({ account }) => account).join(' ')}`),
    ),
    ...unprotectPolicy(PART_OF),
    ...partsPolicy(`system:serviceaccount:${COMPONENT_NAMESPACE}:`).map(
      ({ metadata, ...rest }) => ({ ...rest, metadata: { ...metadata, labels: PART_OF } }) as unknown as Manifest,
    ),
  ];
}

/** What `coracle node` needs there. */
export const agentManifests = (): Manifest[] => [
  namespaceNamed(COMPONENT_NAMESPACE),
  account(AGENT_ACCOUNT),
  role(AGENT_ROLE, NODE_AGENT_RULES),
  binding(AGENT_ROLE, AGENT_ACCOUNT),
  ...instanceStatusPolicy(PART_OF),
  ...launcherPodsPolicy(PART_OF),
];

const STARTER_ROLE = 'coracle:controllers';
const roleName = (account: string): string => `coracle:${account.replace(/^coracle-/, '')}`;
const namespaceNamed = (name: string): Manifest => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
const account = (name: string): Manifest => ({
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name, namespace: COMPONENT_NAMESPACE, labels: PART_OF },
});
const subject = (name: string) => ({ kind: 'ServiceAccount', name, namespace: COMPONENT_NAMESPACE }) as const;
/** A role of the cluster, or of one namespace, and below its binding. */
const role = (name: string, rules: readonly PolicyRule[], namespace?: string): Manifest => ({
  apiVersion: `${RBAC}/v1`,
  kind: namespace === undefined ? 'ClusterRole' : 'Role',
  metadata: { name, ...(namespace !== undefined && { namespace }), labels: PART_OF },
  rules,
});
const binding = (name: string, holder: string, namespace?: string): Manifest => ({
  apiVersion: `${RBAC}/v1`,
  kind: namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding',
  metadata: { name, ...(namespace !== undefined && { namespace }), labels: PART_OF },
  roleRef: { apiGroup: RBAC, kind: namespace === undefined ? 'ClusterRole' : 'Role', name },
  subjects: [subject(holder)],
});
/** Both in one namespace, the components' own when none is given. */
const localRole = (name: string, holder: string, rules: readonly PolicyRule[], namespace = COMPONENT_NAMESPACE) => [
  role(name, rules, namespace),
  binding(name, holder, namespace),
];
/** Without `data`, so that to apply it again takes nothing away. */
const empty = (kind: 'Secret' | 'ConfigMap', name: string): Manifest => ({
  apiVersion: 'v1',
  kind,
  metadata: { name, namespace: COMPONENT_NAMESPACE, labels: PART_OF },
  ...(kind === 'Secret' && { type: 'Opaque' }),
});
