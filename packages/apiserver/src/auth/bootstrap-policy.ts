/**
 * The default roles and bindings that every cluster has and that tools take for granted, those of upstream's components and
 * controllers among them, as `bootstrap-policy.json` has them (bootstrappolicy of Kubernetes 1.36). Reconciled at start:
 * missing objects are created, missing rules and subjects are added, nothing extra is taken away, and an object whose
 * autoupdate annotation is "false" is left alone.
 */
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import type { PolicyRule } from '@coracle/apimachinery/types/types';
import policy from './bootstrap-policy.json' with { type: 'json' };

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

/** What every node may do: the Node authorizer narrows it to the objects of the node. */
export const NODE_RULES: readonly PolicyRule[] = policyRules(...policy.nodeRules);

type WrittenRole = Omit<PolicyRole, 'rules'> & { readonly rules: readonly string[] };

/** Cluster roles and roles of a fresh cluster. */
export const DEFAULT_ROLES: readonly PolicyRole[] = (policy.roles as readonly WrittenRole[]).map((role) => ({
  ...role,
  rules: policyRules(...role.rules),
}));

/** Bindings of a fresh cluster. */
export const DEFAULT_BINDINGS = policy.bindings as readonly PolicyBinding[];
