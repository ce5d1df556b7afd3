/** Writes default roles and bindings into the store: creates what is missing, adds what was taken away, keeps the rest. */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { ObjectStore } from '../cache/object-store.ts';
import type { PolicyBinding, PolicyRole } from './bootstrap-policy.ts';
import { RBAC_GROUP } from './rbac.ts';

/** Upstream writes this annotation under kubernetes.io, unlike the group itself. */
const AUTOUPDATE = 'rbac.authorization.kubernetes.io/autoupdate';

export interface PolicySet {
  readonly roles: readonly PolicyRole[];
  readonly bindings: readonly PolicyBinding[];
}

const plural = (kind: PolicyRole['kind'] | PolicyBinding['kind']): string => `${kind.toLowerCase()}s`;

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

/** Union of two lists of plain values; undefined when the first already holds everything. */
function missing(have: readonly unknown[], want: readonly unknown[]): unknown[] {
  const known = new Set(have.map((item) => canonical(item)));
  return want.filter((item) => !known.has(canonical(item)));
}

const canonical = (value: unknown): string =>
  JSON.stringify(value, (_key, inner: unknown) =>
    inner !== null && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );

interface Ensured {
  readonly listField: 'rules' | 'subjects';
  /** Takes away what is not named as well. */
  readonly exact: boolean;
}

/** Reconciles a set of roles and bindings; resolves when all of it is durable. `stamp` fills uid and creation time. */
export async function reconcilePolicy(
  store: ObjectStore,
  policy: PolicySet,
  stamp: (object: UnstructuredObject) => void,
): Promise<void> {
  const ensure = (object: UnstructuredObject, { listField, exact }: Ensured): Promise<unknown> => {
    const { namespace = '', name = '' } = object.metadata;
    return store.write(
      { prefix: `${RBAC_GROUP}/${plural(object.kind as PolicyRole['kind'])}`, namespace, name },
      (current) => {
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
      },
    );
  };
  await Promise.all([
    ...policy.roles.map((role) => ensure(roleObject(role), { listField: 'rules', exact: role.exact ?? false })),
    ...policy.bindings.map((binding) => ensure(bindingObject(binding), { listField: 'subjects', exact: false })),
  ]);
}
