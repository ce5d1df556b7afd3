/**
 * Role-based access control (rbac.authorization.k8s.io/v1) over the stored roles and bindings. Bindings are indexed by
 * subject as they change, and decisions are remembered per user object, so that a request costs one look-up. RBAC only allows: what no rule grants is refused.
 */

import { fromLabelSelectorObject, matchesLabels } from '@coracle/apimachinery/selector/label-selector';
import type { PolicyRule } from '@coracle/apimachinery/types/types';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import type { Change, ObjectStore, StoredObject, StoreKey } from '../cache/object-store.ts';
import { BindingIndex, type Bound, type RoleRef } from './binding-index.ts';
import type { AuthorizationAttributes, AuthorizationDecision, InstantAuthorizer, UserInfo } from './identity.ts';

interface RoleLike {
  metadata: { name: string; namespace?: string; labels?: Record<string, string> };
  rules?: PolicyRule[] | null;
  aggregationRule?: { clusterRoleSelectors?: Parameters<typeof fromLabelSelectorObject>[0][] };
}

export const RBAC_GROUP = 'rbac.authorization.k8s.io';
const PREFIXES = {
  role: `${RBAC_GROUP}/roles`,
  clusterRole: `${RBAC_GROUP}/clusterroles`,
  roleBinding: `${RBAC_GROUP}/rolebindings`,
  clusterRoleBinding: `${RBAC_GROUP}/clusterrolebindings`,
} as const;

/** Decisions remembered for one user before its memory is dropped and begun anew. */
const DECISIONS_PER_USER = 4096;

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
  const bindings = new BindingIndex(PREFIXES.clusterRoleBinding);
  const roles = new Roles(store);
  let decisions = new WeakMap<UserInfo, Map<string, AuthorizationDecision>>();
  const revision = store.revision();
  bindings.load(store, PREFIXES.clusterRoleBinding);
  bindings.load(store, PREFIXES.roleBinding);
  const follow = (prefix: string, take: (changes: readonly Change[]) => void) =>
    store.watch(prefix, revision, (changes) => {
      take(changes);
      decisions = new WeakMap();
    });
  const watches = [
    follow(PREFIXES.clusterRoleBinding, (changes) => bindings.apply(changes)),
    follow(PREFIXES.roleBinding, (changes) => bindings.apply(changes)),
    follow(PREFIXES.clusterRole, () => roles.forgetCollected()),
    follow(PREFIXES.role, () => {}),
  ];

  const decide = (user: UserInfo, attributes: AuthorizationAttributes): AuthorizationDecision => {
    for (const key of subjectKeys(user)) {
      for (const bound of bindings.of(key)) {
        if (bound.namespace !== undefined) {
          if (attributes.type === 'path' || bound.namespace !== attributes.namespace) continue;
        }
        if (roles.rulesOf(bound).some((rule) => allows(rule, attributes)))
          return { allowed: true, reason: reasonOf(bound, key) };
      }
    }
    return { allowed: false, reason: '' };
  };

  return {
    authorize(user, attributes) {
      if (user.groups.includes('system:masters')) return { allowed: true, reason: '' };
      let remembered = decisions.get(user);
      if (!remembered || remembered.size >= DECISIONS_PER_USER) {
        remembered = new Map();
        decisions.set(user, remembered);
      }
      return getOrInsert(remembered, attributesKey(attributes), () => decide(user, attributes));
    },
    rulesFor: (user, namespace) =>
      subjectKeys(user)
        .flatMap((key) => bindings.of(key))
        .filter((bound) => bound.namespace === undefined || bound.namespace === namespace)
        .flatMap((bound) => roles.rulesOf(bound)),
    rulesOf({ kind, namespace, name }) {
      const role = store.peek(keyOf({ kind, name }, namespace))?.object as unknown as RoleLike | undefined;
      if (!role?.aggregationRule) return role && (role.rules ?? []);
      return effectiveRules(
        role,
        store.list(PREFIXES.clusterRole).items.map(({ object }) => object as unknown as RoleLike),
      );
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

/** Upstream's words. Of the account `b` of namespace `a`, whose key says `a/b`, they say `b/a`. */
function reasonOf({ name, namespace, role }: Bound, key: string): string {
  const where = namespace === undefined ? `ClusterRoleBinding "${name}"` : `RoleBinding "${name}/${namespace}"`;
  const blank = key.indexOf(' ');
  const kind = key.slice(0, blank);
  const subject = key.slice(blank + 1);
  const slash = subject.indexOf('/');
  const shown = kind === 'ServiceAccount' ? `${subject.slice(slash + 1)}/${subject.slice(0, slash)}` : subject;
  return `RBAC: allowed by ${where} of ${role.kind} "${role.name}" to ${kind} "${shown}"`;
}

const keyOf = ({ kind, name }: RoleRef, namespace: string): StoreKey =>
  kind === 'ClusterRole'
    ? { prefix: PREFIXES.clusterRole, namespace: '', name }
    : { prefix: PREFIXES.role, namespace, name };

/** The rules behind a binding. Those that are in use stay parsed. */
class Roles {
  readonly #store: ObjectStore;
  readonly #known = new WeakMap<StoredObject, RoleLike>();
  /** Of roles that collect those of others, until a ClusterRole changes. */
  #collected = new Map<string, readonly PolicyRule[]>();

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  forgetCollected(): void {
    this.#collected = new Map();
  }

  rulesOf({ role: ref, namespace = '' }: Pick<Bound, 'role' | 'namespace'>): readonly PolicyRule[] {
    const stored = this.#store.get(keyOf(ref, namespace));
    if (!stored) return [];
    const role = this.#roleOf(stored);
    if (role.aggregationRule === undefined) return role.rules ?? [];
    return getOrInsert(this.#collected, ref.name, () =>
      effectiveRules(
        role,
        this.#store.list(PREFIXES.clusterRole).items.map((item) => this.#roleOf(item)),
      ),
    );
  }

  #roleOf(stored: StoredObject): RoleLike {
    return getOrInsert(this.#known, stored, () => {
      const { metadata, rules, aggregationRule } = stored.object as unknown as RoleLike;
      const { name, labels } = metadata;
      return {
        metadata: { name, ...(labels && { labels }) },
        ...(rules && { rules }),
        ...(aggregationRule && { aggregationRule }),
      };
    });
  }
}

/**
 * A role's own rules and, for an aggregating role, those of the roles it selects, which may aggregate others in turn.
 * The aggregation controller writes the same into the stored rules; until it has, this is what counts.
 */
export function effectiveRules(
  role: RoleLike,
  clusterRoles: readonly RoleLike[],
  seen: ReadonlySet<RoleLike> = new Set([role]),
): readonly PolicyRule[] {
  const selectors = role.aggregationRule?.clusterRoleSelectors;
  if (!selectors) return role.rules ?? [];
  const compiled = selectors.map((selector) => fromLabelSelectorObject(selector));
  const selected = clusterRoles
    .filter(
      (other) => !seen.has(other) && compiled.some((selector) => matchesLabels(selector, other.metadata.labels ?? {})),
    )
    .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  const next = new Set([...seen, ...selected]);
  return [...(role.rules ?? []), ...selected.flatMap((other) => effectiveRules(other, clusterRoles, next))];
}

/** Every right there is. */
export const EVERYTHING: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
];

/** True when a list of a rule names a value, or all. */
export const names = (list: readonly string[] | undefined, value: string): boolean =>
  list !== undefined && (list.includes('*') || list.includes(value));

/** Whether a rule grants a request. */
export const allows = (rule: PolicyRule, attributes: AuthorizationAttributes): boolean =>
  attributes.type === 'path' ? allowsPath(rule, attributes) : allowsResource(rule, attributes);

/** Whether a rule grants a resource request (upstream's RuleAllows). */
export function allowsResource(rule: PolicyRule, a: AuthorizationAttributes & { type: 'resource' }): boolean {
  if (!names(rule.verbs, a.verb) || !names(rule.apiGroups, a.group)) return false;
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
  if (!names(rule.verbs, a.verb)) return false;
  return (rule.nonResourceURLs ?? []).some(
    (url) => url === '*' || url === a.path || (url.endsWith('*') && a.path.startsWith(url.slice(0, -1))),
  );
}
