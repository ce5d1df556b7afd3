/** Writes default roles and bindings into the store: creates what is missing, adds what was taken away, keeps the rest. */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { stableText } from '@coracle/apimachinery/schema/list-types';
import type { ObjectStore } from '../cache/object-store.ts';
import type { PolicyBinding, PolicyRole } from './bootstrap-policy.ts';
import { RBAC_GROUP } from './rbac.ts';

/** Upstream writes this annotation under kubernetes.io, unlike the group itself. */
const AUTOUPDATE = 'rbac.authorization.kubernetes.io/autoupdate';

const meta = (item: PolicyRole | PolicyBinding, labels: Readonly<Record<string, string>> = {}) => ({
  name: item.name,
  ...(item.namespace !== undefined && { namespace: item.namespace }),
  labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults', ...labels },
  annotations: { [AUTOUPDATE]: 'true' },
});

function roleObject(role: PolicyRole): UnstructuredObject {
  return {
    kind: role.kind,
    apiVersion: `${RBAC_GROUP}/v1`,
    metadata: meta(role, role.labels),
    ...(role.aggregate && {
      aggregationRule: { clusterRoleSelectors: role.aggregate.map((label) => ({ matchLabels: { [label]: 'true' } })) },
    }),
    rules: role.rules.map((rule) => ({ ...rule })),
  };
}

function bindingObject(binding: PolicyBinding): UnstructuredObject {
  return {
    kind: binding.kind,
    apiVersion: `${RBAC_GROUP}/v1`,
    metadata: meta(binding),
    roleRef: { apiGroup: RBAC_GROUP, kind: binding.roleKind, name: binding.role },
    subjects: binding.subjects.map((subject) =>
      subject.kind === 'ServiceAccount' ? { ...subject } : { ...subject, apiGroup: RBAC_GROUP },
    ),
  };
}

/** What of `want` is not in `have`: plain values. */
function missing(have: readonly unknown[], want: readonly unknown[]): unknown[] {
  const known = new Set(have.map(stableText));
  return want.filter((item) => !known.has(stableText(item)));
}

/** Reconciles a set of roles and bindings; resolves when all of it is durable. `stamp` fills uid and creation time. */
export async function reconcilePolicy(
  store: ObjectStore,
  policy: { readonly roles: readonly PolicyRole[]; readonly bindings: readonly PolicyBinding[] },
  stamp: (object: UnstructuredObject) => void,
): Promise<void> {
  /** `exact` takes away what is not named as well. */
  const ensure = (object: UnstructuredObject, listField: 'rules' | 'subjects', exact = false): Promise<unknown> => {
    const { namespace = '', name = '' } = object.metadata;
    return store.write({ prefix: `${RBAC_GROUP}/${object.kind.toLowerCase()}s`, namespace, name }, (current) => {
      if (!current) {
        stamp(object);
        return { type: 'put', object };
      }
      const live = current.object as Readonly<UnstructuredObject>;
      if (live.metadata.annotations?.[AUTOUPDATE] === 'false') return { type: 'keep' };
      const have = (live[listField] as unknown[] | undefined) ?? [];
      const want = object[listField] as unknown[];
      // At most starts, and found without writing each rule out.
      if (deepEqual(have, want)) return { type: 'keep' };
      const added = missing(have, want);
      const tooMany = exact && missing(want, have).length > 0;
      if (added.length === 0 && !tooMany) return { type: 'keep' };
      const next = tooMany ? want : [...have, ...added];
      return { type: 'put', object: { ...structuredClone(live), [listField]: next } as UnstructuredObject };
    });
  };
  await Promise.all([
    ...policy.roles.map((role) => ensure(roleObject(role), 'rules', role.exact)),
    ...policy.bindings.map((binding) => ensure(bindingObject(binding), 'subjects')),
  ]);
}
