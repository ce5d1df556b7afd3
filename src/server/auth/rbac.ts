/**
 * Role-based access control (rbac.authorization.k8s.io/v1) over the stored roles and bindings. Rules are compiled into
 * an index by subject when a role or binding changes, and verdicts are remembered per user object, so that a request
 * costs one look-up. RBAC only allows: what no rule grants is refused.
 */
import { fromLabelSelectorObject, matchesLabels } from '../../api/selector/label-selector.ts';
import type { ObjectStore, StoreWatch } from '../cache/object-store.ts';
import type { AuthorizationAttributes, AuthorizationVerdict, InstantAuthorizer, UserInfo } from './identity.ts';

/** rbac.authorization.k8s.io/v1 PolicyRule. */
export interface PolicyRule {
  verbs: string[];
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
  nonResourceURLs?: string[];
}

interface Subject {
  kind: string;
  name: string;
  namespace?: string;
}

interface RoleRef {
  kind: string;
  name: string;
}

interface RoleLike {
  metadata: { name: string; namespace?: string; labels?: Record<string, string> };
  rules?: PolicyRule[];
  aggregationRule?: { clusterRoleSelectors?: Parameters<typeof fromLabelSelectorObject>[0][] };
}

interface BindingLike {
  metadata: { name: string; namespace?: string };
  subjects?: Subject[];
  roleRef: RoleRef;
}

/** One binding as it applies to one subject. `namespace` undefined = everywhere. */
interface Grant {
  readonly namespace: string | undefined;
  readonly rules: readonly PolicyRule[];
  readonly reason: (subject: string) => string;
}

export const RBAC_GROUP = 'rbac.authorization.k8s.io';
const PREFIXES = {
  role: `${RBAC_GROUP}/roles`,
  clusterRole: `${RBAC_GROUP}/clusterroles`,
  roleBinding: `${RBAC_GROUP}/rolebindings`,
  clusterRoleBinding: `${RBAC_GROUP}/clusterrolebindings`,
} as const;

/** Verdicts remembered for one user before its memory is dropped and begun anew. */
const VERDICTS_PER_USER = 4096;

export interface Rbac {
  readonly authorize: InstantAuthorizer;
  /** Every rule a user holds in a namespace (and cluster-wide), for SelfSubjectRulesReview. */
  rulesFor(user: UserInfo, namespace: string): readonly PolicyRule[];
  /** What binding this role grants, collected rules included; undefined when there is no such role. */
  rulesOf(role: {
    readonly kind: string;
    readonly namespace: string;
    readonly name: string;
  }): readonly PolicyRule[] | undefined;
  stop(): void;
}

/** Starts an authorizer on the store's RBAC objects. */
export function createRbac(store: ObjectStore): Rbac {
  let index: ReadonlyMap<string, readonly Grant[]> | undefined;
  let verdicts = new WeakMap<UserInfo, Map<string, AuthorizationVerdict>>();
  const stale = (): void => {
    index = undefined;
    verdicts = new WeakMap();
  };
  const watches: StoreWatch[] = Object.values(PREFIXES).map((prefix) => store.watch(prefix, store.revision(), stale));
  const grantsOf = (user: UserInfo): Grant[] => {
    index ??= buildIndex(store);
    return subjectKeys(user).flatMap((key) => index!.get(key) ?? []);
  };

  const decide = (user: UserInfo, attributes: AuthorizationAttributes): AuthorizationVerdict => {
    index ??= buildIndex(store);
    for (const key of subjectKeys(user)) {
      for (const grant of index.get(key) ?? []) {
        if (attributes.type === 'path') {
          if (grant.namespace !== undefined) continue;
          if (grant.rules.some((rule) => allowsPath(rule, attributes)))
            return { allowed: true, reason: grant.reason(key) };
        } else {
          if (grant.namespace !== undefined && grant.namespace !== attributes.namespace) continue;
          if (grant.rules.some((rule) => allowsResource(rule, attributes)))
            return { allowed: true, reason: grant.reason(key) };
        }
      }
    }
    return { allowed: false, reason: '' };
  };

  return {
    authorize(user, attributes) {
      if (user.groups.includes('system:masters')) return { allowed: true, reason: '' };
      let remembered = verdicts.get(user);
      if (!remembered || remembered.size >= VERDICTS_PER_USER) {
        remembered = new Map();
        verdicts.set(user, remembered);
      }
      const key = attributesKey(attributes);
      let verdict = remembered.get(key);
      if (!verdict) {
        verdict = decide(user, attributes);
        remembered.set(key, verdict);
      }
      return verdict;
    },
    rulesFor: (user, namespace) =>
      grantsOf(user)
        .filter((grant) => grant.namespace === undefined || grant.namespace === namespace)
        .flatMap((grant) => grant.rules),
    rulesOf({ kind, namespace, name }) {
      const prefix = kind === 'ClusterRole' ? PREFIXES.clusterRole : PREFIXES.role;
      const role = store.peek({ prefix, namespace: kind === 'ClusterRole' ? '' : namespace, name });
      if (!role) return undefined;
      const { rules = [], aggregationRule } = role.object as unknown as RoleLike;
      return aggregationRule ? effectiveRules(role.object as unknown as RoleLike, clusterRolesIn(store)) : rules;
    },
    stop() {
      for (const watch of watches) watch.stop();
    },
  };
}

const attributesKey = (a: AuthorizationAttributes): string =>
  a.type === 'path'
    ? `${a.verb} ${a.path}`
    : `${a.verb}\n${a.group}\n${a.resource}\n${a.subresource}\n${a.namespace}\n${a.name}`;

/** Index keys of everything a user is: itself, its groups, its service account. */
function subjectKeys(user: UserInfo): string[] {
  const keys = [`User ${user.username}`];
  for (const group of user.groups) keys.push(`Group ${group}`);
  const parts = user.username.split(':');
  if (parts.length === 4 && parts[0] === 'system' && parts[1] === 'serviceaccount')
    keys.push(`ServiceAccount ${parts[2]}/${parts[3]}`);
  return keys;
}

function subjectKey(subject: Subject, bindingNamespace: string | undefined): string {
  return subject.kind === 'ServiceAccount'
    ? `ServiceAccount ${subject.namespace || bindingNamespace || ''}/${subject.name}`
    : `${subject.kind} ${subject.name}`;
}

const clusterRolesIn = (store: Pick<ObjectStore, 'list'>): ReadonlyMap<string, RoleLike> =>
  new Map(store.list(PREFIXES.clusterRole).items.map(({ name, object }) => [name, object as unknown as RoleLike]));

function buildIndex(store: ObjectStore): ReadonlyMap<string, readonly Grant[]> {
  const read = <T>(prefix: string): T[] => store.list(prefix).items.map((item) => item.object as unknown as T);
  const clusterRoles = clusterRolesIn(store);
  const roles = new Map(
    read<RoleLike>(PREFIXES.role).map((role) => [`${role.metadata.namespace}/${role.metadata.name}`, role]),
  );
  const index = new Map<string, Grant[]>();
  const add = (binding: BindingLike, namespace: string | undefined): void => {
    const { kind, name } = binding.roleRef;
    const role = kind === 'ClusterRole' ? clusterRoles.get(name) : roles.get(`${namespace ?? ''}/${name}`);
    if (!role) return;
    const rules = effectiveRules(role, clusterRoles);
    const where =
      namespace === undefined
        ? `ClusterRoleBinding "${binding.metadata.name}"`
        : `RoleBinding "${binding.metadata.name}/${namespace}"`;
    for (const subject of binding.subjects ?? []) {
      const key = subjectKey(subject, namespace);
      const shown = `${subject.kind} "${subject.kind === 'ServiceAccount' ? `${subject.name}/${subject.namespace || namespace || ''}` : subject.name}"`;
      const grant: Grant = {
        namespace,
        rules,
        reason: () => `RBAC: allowed by ${where} of ${kind} "${name}" to ${shown}`,
      };
      const grants = index.get(key);
      if (grants) grants.push(grant);
      else index.set(key, [grant]);
    }
  };
  for (const binding of read<BindingLike>(PREFIXES.clusterRoleBinding)) add(binding, undefined);
  for (const binding of read<BindingLike>(PREFIXES.roleBinding)) add(binding, binding.metadata.namespace ?? '');
  return index;
}

/**
 * A role's own rules and, for an aggregating role, those of the roles it selects, which may aggregate others in turn.
 * The aggregation controller writes the same into the stored rules; until it has, this is what counts.
 */
export function effectiveRules(
  role: RoleLike,
  clusterRoles: ReadonlyMap<string, RoleLike>,
  seen: ReadonlySet<RoleLike> = new Set([role]),
): readonly PolicyRule[] {
  const selectors = role.aggregationRule?.clusterRoleSelectors;
  if (!selectors) return role.rules ?? [];
  const compiled = selectors.map((selector) => fromLabelSelectorObject(selector));
  const selected = [...clusterRoles.values()]
    .filter(
      (other) => !seen.has(other) && compiled.some((selector) => matchesLabels(selector, other.metadata.labels ?? {})),
    )
    .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  const next = new Set([...seen, ...selected]);
  return [...(role.rules ?? []), ...selected.flatMap((other) => effectiveRules(other, clusterRoles, next))];
}

const has = (list: readonly string[] | undefined, value: string): boolean =>
  list !== undefined && (list.includes('*') || list.includes(value));

/** Whether a rule grants a resource request (upstream's RuleAllows). */
export function allowsResource(rule: PolicyRule, a: AuthorizationAttributes & { type: 'resource' }): boolean {
  if (!has(rule.verbs, a.verb) || !has(rule.apiGroups, a.group)) return false;
  const full = a.subresource === '' ? a.resource : `${a.resource}/${a.subresource}`;
  const resources = rule.resources ?? [];
  if (
    !resources.includes('*') &&
    !resources.includes(full) &&
    !(a.subresource !== '' && resources.includes(`*/${a.subresource}`))
  )
    return false;
  return !rule.resourceNames?.length || rule.resourceNames.includes(a.name);
}

/** Whether a rule grants a non-resource request; a URL may end in `*`. */
export function allowsPath(rule: PolicyRule, a: AuthorizationAttributes & { type: 'path' }): boolean {
  if (!has(rule.verbs, a.verb)) return false;
  return (rule.nonResourceURLs ?? []).some(
    (url) => url === '*' || url === a.path || (url.endsWith('*') && a.path.startsWith(url.slice(0, -1))),
  );
}
