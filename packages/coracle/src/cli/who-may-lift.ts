/** Who may take away what stands against a deletion: whether the caller may, and who else by RBAC, where that may be read. */

import { qualifiedResource } from '@coracle/apimachinery/meta/gvk';
import type { ObjectKey } from '@coracle/apimachinery/meta/object';
import {
  CLUSTER_ROLE_BINDINGS,
  CLUSTER_ROLES,
  NAMESPACES,
  ROLE_BINDINGS,
  ROLES,
  SELF_SUBJECT_ACCESS_REVIEWS,
} from '@coracle/apimachinery/types/resource-types';
import type { Client } from '@coracle/client/client';
import { VIRTUAL_MACHINES } from '@coracle/kubevirt/kinds/kubevirt';
import type { ProtectionSettings } from '@coracle/kubevirt/rules/protection/protection-settings';
import { UNPROTECT_VERB } from '@coracle/kubevirt/rules/protection/unprotect-permission';
import type { ClusterReader } from './cluster-reader.ts';
import { type Asked, type Grant, grantsOf } from './who-may.ts';

export interface Lifting {
  /** What it takes: one of patch and update where both are named, and all of the others. */
  readonly verbs: readonly string[];
  /** On what, in words: `the machine`. */
  readonly on: string;
  /** Whether the caller has it. */
  readonly you: boolean;
  /** Who is granted the last of the verbs; absent where the caller may not read RBAC. At most MAX_GRANTS. */
  readonly grants?: readonly Grant[];
}

/** Bindings that are listed. */
const MAX_GRANTS = 100;

/** Any of these changes a label. */
const CHANGES = ['patch', 'update'];
const RBAC_TYPES = [ROLES, ROLE_BINDINGS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS] as const;

/** Who may take upstream's label off a machine. */
export function whoMayLift(
  reader: ClusterReader,
  key: ObjectKey,
  { settings, signal }: { readonly settings: ProtectionSettings; readonly signal: AbortSignal },
): Promise<Lifting> {
  const { group, resource } = VIRTUAL_MACHINES;
  const change: Asked = { group, resource, ...key, verbs: CHANGES };
  const own = { ...change, verbs: [UNPROTECT_VERB] };
  return whoMay(reader, settings.unprotectNeedsPermission ? [change, own] : [change], { on: 'the machine', signal });
}

/** Who may stop a machine, by the subresource that `virtctl stop` uses. */
export function whoMayStop(reader: ClusterReader, key: ObjectKey, signal: AbortSignal): Promise<Lifting> {
  const { resource } = VIRTUAL_MACHINES;
  const stop: Asked = { group: SUBRESOURCES, resource, subresource: 'stop', ...key, verbs: ['update'] };
  return whoMay(reader, [stop], { on: `${resource}/stop of ${SUBRESOURCES}`, signal });
}
const SUBRESOURCES = 'subresources.kubevirt.io';

/** Who may change the labels of a namespace. A request about a namespace is one within it, so its own bindings count. */
export function whoMayLabelNamespace(reader: ClusterReader, name: string, signal: AbortSignal): Promise<Lifting> {
  const { group, resource } = NAMESPACES;
  return whoMay(reader, [{ group, resource, namespace: name, name, verbs: CHANGES }], { on: 'the namespace', signal });
}

/** Asks the server about the caller, who needs all of `rights`, and reads who is granted the last of them. */
async function whoMay(
  reader: ClusterReader,
  rights: readonly Asked[],
  { on, signal }: { readonly on: string; readonly signal: AbortSignal },
): Promise<Lifting> {
  const asked = rights.at(-1)!;
  const [answers, roles, roleBindings, clusterRoles, clusterRoleBindings] = await Promise.all([
    Promise.all(rights.map((right) => anyOf(reader.client, right, signal))),
    reader.some(ROLES, { namespace: asked.namespace }),
    reader.some(ROLE_BINDINGS, { namespace: asked.namespace }),
    reader.some(CLUSTER_ROLES, {}),
    reader.some(CLUSTER_ROLE_BINDINGS, {}),
  ]);
  const isReadable = RBAC_TYPES.every((type) => !reader.notListed.has(qualifiedResource(type)));
  const rbac = { roles, roleBindings, clusterRoles, clusterRoleBindings } as unknown as Parameters<typeof grantsOf>[0];
  return {
    verbs: rights.flatMap(({ verbs }) => verbs),
    on,
    you: answers.every((allowed) => allowed),
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
export function liftingText({ you, grants, verbs, on }: Lifting): string {
  const who = you ? 'you' : 'not you';
  if (grants === undefined) return `${who} (it takes ${verbsText(verbs)} on ${on})`;
  const named = grants.slice(0, MAX_NAMED).map(({ subject, binding }) => `${subject} (${binding})`);
  const more = grants.length > MAX_NAMED ? [`and ${grants.length - MAX_NAMED} more`] : [];
  return [who, ...named, ...more].join('; ');
}

const verbsText = (verbs: readonly string[]): string => {
  const changes = CHANGES.every((verb) => verbs.includes(verb)) ? CHANGES : [];
  const others = verbs.filter((verb) => !changes.includes(verb));
  return [...(changes.length > 0 ? [changes.join(' or ')] : []), ...others].join(', and ');
};
