/** Who is granted something by RBAC, and by which binding: for those who want to know whom to ask. */
import type {
  ClusterRole,
  ClusterRoleBinding,
  PolicyRule,
  Role,
  RoleBinding,
  Subject,
} from '@coracle/apimachinery/types/types';
import { allowsResource, effectiveRules } from '@coracle/apiserver/auth/rbac';

/** One subject of one binding. */
export interface Grant {
  /** `User jane`, `Group ops`, `ServiceAccount shop/robot`. */
  readonly subject: string;
  /** `RoleBinding unprotect`, `ClusterRoleBinding cluster-admin`. */
  readonly binding: string;
  /** `Role x`, `ClusterRole y`. */
  readonly role: string;
}

export interface Rbac {
  readonly roles: readonly Role[];
  readonly roleBindings: readonly RoleBinding[];
  readonly clusterRoles: readonly ClusterRole[];
  readonly clusterRoleBindings: readonly ClusterRoleBinding[];
}

/** What is asked about: any of the verbs on one object. */
export interface Asked {
  readonly verbs: readonly string[];
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly namespace: string;
  readonly name: string;
}

/** Grants by the bindings of the namespace, then by those of the cluster; each subject once for each binding. */
export function grantsOf({ roles, roleBindings, clusterRoles, clusterRoleBindings }: Rbac, asked: Asked): Grant[] {
  const byName = new Map(clusterRoles.map((role) => [role.metadata.name ?? '', role as never]));
  const rulesOf = (kind: string, name: string): readonly PolicyRule[] => {
    if (kind === 'Role') return roles.find(({ metadata }) => metadata.name === name)?.rules ?? [];
    const role = byName.get(name);
    return role === undefined ? [] : effectiveRules(role, [...byName.values()]);
  };
  const allows = (rules: readonly PolicyRule[]): boolean => {
    const { group, resource, subresource = '', namespace, name } = asked;
    const at = { type: 'resource', group, version: '*', resource, subresource, namespace, name } as const;
    return rules.some((rule) => asked.verbs.some((verb) => allowsResource(rule, { ...at, verb })));
  };
  const grants = (kind: string, bindings: readonly (RoleBinding | ClusterRoleBinding)[]): Grant[] =>
    bindings
      .filter(({ roleRef }) => allows(rulesOf(roleRef.kind, roleRef.name)))
      .flatMap(({ metadata, roleRef, subjects = [] }) =>
        subjects.map((subject) => ({
          subject: textOf(subject),
          binding: `${kind} ${metadata.name}`,
          role: `${roleRef.kind} ${roleRef.name}`,
        })),
      );
  return [...grants('RoleBinding', roleBindings), ...grants('ClusterRoleBinding', clusterRoleBindings)];
}

const textOf = ({ kind, name, namespace }: Subject): string =>
  kind === 'ServiceAccount' ? `${kind} ${namespace}/${name}` : `${kind} ${name}`;
