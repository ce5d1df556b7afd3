/** Who may take the protection of a machine away: whether the caller may, and who else by RBAC, where that may be read. */
import {
  CLUSTER_ROLE_BINDINGS,
  CLUSTER_ROLES,
  ROLE_BINDINGS,
  ROLES,
  SELF_SUBJECT_ACCESS_REVIEWS,
} from '../../api/kinds/builtin/resource-types.ts';
import { VIRTUAL_MACHINES } from '../../api/kinds/kubevirt/kubevirt.ts';
import { qualifiedResource } from '../../api/meta/gvk.ts';
import type { ObjectKey } from '../../api/meta/object.ts';
import type { Client } from '../../client/client.ts';
import type { ProtectionSettings } from '../../domain/protection/protection-settings.ts';
import { UNPROTECT_VERB } from '../../domain/protection/unprotect-permission.ts';
import type { ClusterReader } from './cluster-reader.ts';
import { type Asked, type Grant, grantsOf } from './who-may.ts';

export interface Lifting {
  /** What it takes on the machine: one of the first, and all of the others. */
  readonly verbs: readonly string[];
  /** Whether the caller has it. */
  readonly you: boolean;
  /** Who is granted the last of the verbs; absent where the caller may not read RBAC. At most MAX_GRANTS. */
  readonly grants?: readonly Grant[];
}

/** Bindings that are told of. */
const MAX_GRANTS = 100;

/** Any of these changes a label. */
const CHANGES = ['patch', 'update'];
const RBAC_TYPES = [ROLES, ROLE_BINDINGS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS] as const;

/** Asks the server about the caller, and reads roles and bindings. */
export async function whoMayLift(
  reader: ClusterReader,
  key: ObjectKey,
  { settings, signal }: { readonly settings: ProtectionSettings; readonly signal: AbortSignal },
): Promise<Lifting> {
  const { group, resource } = VIRTUAL_MACHINES;
  const own = settings.unprotectNeedsPermission;
  const asked: Asked = { group, resource, ...key, verbs: own ? [UNPROTECT_VERB] : CHANGES };
  const [canChange, canUnprotect, roles, roleBindings, clusterRoles, clusterRoleBindings] = await Promise.all([
    anyOf(reader.client, { ...asked, verbs: CHANGES }, signal),
    own ? anyOf(reader.client, asked, signal) : true,
    reader.some(ROLES, { namespace: key.namespace }),
    reader.some(ROLE_BINDINGS, { namespace: key.namespace }),
    reader.some(CLUSTER_ROLES, {}),
    reader.some(CLUSTER_ROLE_BINDINGS, {}),
  ]);
  const isReadable = RBAC_TYPES.every((type) => !reader.notListed.has(qualifiedResource(type)));
  const rbac = { roles, roleBindings, clusterRoles, clusterRoleBindings } as unknown as Parameters<typeof grantsOf>[0];
  return {
    verbs: own ? [...CHANGES, UNPROTECT_VERB] : CHANGES,
    you: canChange && canUnprotect,
    ...(isReadable && { grants: grantsOf(rbac, asked).slice(0, MAX_GRANTS) }),
  };
}

async function anyOf(client: Client, { verbs, ...resourceAttributes }: Asked, signal: AbortSignal): Promise<boolean> {
  const answers = await Promise.all(
    verbs.map((verb) =>
      client.create(
        SELF_SUBJECT_ACCESS_REVIEWS,
        {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SelfSubjectAccessReview',
          metadata: {},
          spec: { resourceAttributes: { ...resourceAttributes, verb } },
        },
        { signal },
      ),
    ),
  );
  return answers.some(({ status }) => status?.allowed === true);
}

/** Grants that a line names. */
const MAX_NAMED = 5;

/** In one line: `you; Group system:masters (ClusterRoleBinding cluster-admin), ...`. */
export function liftingText({ you, grants, verbs }: Lifting): string {
  const who = you ? 'you' : 'not you';
  if (grants === undefined) return `${who} (it takes ${verbsText(verbs)} on the machine)`;
  const named = grants.slice(0, MAX_NAMED).map(({ subject, binding }) => `${subject} (${binding})`);
  const more = grants.length > MAX_NAMED ? [`and ${grants.length - MAX_NAMED} more`] : [];
  return [who, ...named, ...more].join('; ');
}

const verbsText = ([first, second, ...others]: readonly string[]): string =>
  [`${first} or ${second}`, ...others].join(', and ');
