/**
 * The account that the objects of a sync are written as, and the roles that it has without anybody's doing: a RootSync's is
 * cluster-admin or what `roleRefs` says, a RepoSync's none. Names and labels are upstream's; there is no Pod behind them.
 */
import { createHash } from 'node:crypto';
import { CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS, SERVICE_ACCOUNTS } from '@coracle/apimachinery/types/resource-types';
import type { ClusterRoleBinding } from '@coracle/apimachinery/types/types';
import { isAlreadyExists, isConflict, isNotFound } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { CONFIG_SYNC_NAMESPACE } from '../kinds/kinds.ts';
import { OWN_FIELD_MANAGER } from '../status/metadata-keys.ts';
import { reconcilerName, type SyncIdentity } from '../status/sync-identity.ts';
import type { SyncPlan } from './check-spec.ts';

const RBAC = 'rbac.authorization.k8s.io';
const SHARED = 'configsync.gke.io:root-reconciler';
const ATTEMPTS = 5;

type Subject = NonNullable<ClusterRoleBinding['subjects']>[number];

const labelsOf = ({ kind, namespace, name }: SyncIdentity) => ({
  'configsync.gke.io/managed-by': 'reconciler-manager',
  'configsync.gke.io/sync-kind': kind,
  'configsync.gke.io/sync-namespace': namespace,
  'configsync.gke.io/sync-name': name,
});
const selectorOf = (sync: SyncIdentity): string =>
  Object.entries(labelsOf(sync))
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
const subjectOf = (sync: SyncIdentity): Subject => ({
  kind: 'ServiceAccount',
  name: reconcilerName(sync),
  namespace: CONFIG_SYNC_NAMESPACE,
});
const isSubject = (sync: SyncIdentity) => (one: Subject) =>
  one.kind === 'ServiceAccount' && one.name === reconcilerName(sync) && one.namespace === CONFIG_SYNC_NAMESPACE;

/** Makes the account and its bindings, and takes bindings off that are no longer asked for. Rejects with ApiError. */
export async function ensureAccount(
  client: Client,
  sync: SyncIdentity,
  plan: SyncPlan,
  signal: AbortSignal,
): Promise<void> {
  await ignore(isAlreadyExists, () =>
    client.create(
      SERVICE_ACCOUNTS,
      {
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name: reconcilerName(sync), namespace: CONFIG_SYNC_NAMESPACE, labels: labelsOf(sync) },
      },
      { signal, fieldManager: OWN_FIELD_MANAGER },
    ),
  );
  if (sync.kind !== 'RootSync') return;
  await changeShared(client, sync, plan.roleRefs.length === 0, signal);
  await bindRoles(client, sync, plan.roleRefs, signal);
}

/** Takes account and bindings away. Rejects with ApiError. */
export async function removeAccount(client: Client, sync: SyncIdentity, signal: AbortSignal): Promise<void> {
  if (sync.kind === 'RootSync') {
    await changeShared(client, sync, false, signal);
    await bindRoles(client, sync, [], signal);
  }
  await ignore(isNotFound, () =>
    client.delete(SERVICE_ACCOUNTS, { namespace: CONFIG_SYNC_NAMESPACE, name: reconcilerName(sync) }, { signal }),
  );
}

/** Puts the account into the binding that all RootSyncs share, or takes it out; the last one takes the binding away. */
async function changeShared(client: Client, sync: SyncIdentity, isIn: boolean, signal: AbortSignal): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      const found = await client
        .get(CLUSTER_ROLE_BINDINGS, { namespace: '', name: SHARED }, { signal })
        .catch((error: unknown) => {
          if (!isNotFound(error)) throw error;
          return undefined;
        });
      const others = (found?.subjects ?? []).filter((one) => !isSubject(sync)(one));
      const has = (found?.subjects ?? []).some(isSubject(sync));
      if (has === isIn || (!found && !isIn)) return;
      const { uid, resourceVersion } = found?.metadata ?? {};
      const options = { signal, fieldManager: OWN_FIELD_MANAGER };
      if (!found)
        await client.create(
          CLUSTER_ROLE_BINDINGS,
          {
            apiVersion: `${RBAC}/v1`,
            kind: 'ClusterRoleBinding',
            metadata: { name: SHARED },
            roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: 'cluster-admin' },
            subjects: [subjectOf(sync)],
          },
          options,
        );
      else if (!isIn && others.length === 0)
        await client.delete(
          CLUSTER_ROLE_BINDINGS,
          { namespace: '', name: SHARED },
          { signal, preconditions: { uid: uid!, resourceVersion: resourceVersion! } },
        );
      else
        await client.patch(
          CLUSTER_ROLE_BINDINGS,
          { namespace: '', name: SHARED },
          {
            type: 'merge',
            body: { metadata: { uid, resourceVersion }, subjects: isIn ? [...others, subjectOf(sync)] : others },
          },
          options,
        );
      return;
    } catch (error) {
      if (!(isConflict(error) || isAlreadyExists(error) || isNotFound(error)) || attempt >= ATTEMPTS) throw error;
    }
  }
}

/** One binding for each role, named after it; those of roles that are not asked for go. */
async function bindRoles(
  client: Client,
  sync: SyncIdentity,
  roleRefs: SyncPlan['roleRefs'],
  signal: AbortSignal,
): Promise<void> {
  const wanted = new Map(
    roleRefs.map(({ kind, name, namespace = '' }) => {
      const digest = createHash('sha256').update(`${kind}/${namespace}/${name}`).digest('hex').slice(0, 10);
      return [`${namespace}/${reconcilerName(sync)}-${digest}`, { kind, name, namespace }];
    }),
  );
  for (const type of [CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS]) {
    const { items } = await client.list(type, { labelSelector: selectorOf(sync), signal });
    for (const { metadata } of items) {
      const key = { namespace: metadata.namespace ?? '', name: metadata.name ?? '' };
      if (wanted.delete(`${key.namespace}/${key.name}`)) continue;
      await ignore(isNotFound, () => client.delete(type, key, { signal }));
    }
  }
  for (const [id, { kind, name, namespace }] of wanted) {
    const metadata = {
      name: id.slice(id.indexOf('/') + 1),
      labels: labelsOf(sync),
      ...(namespace !== '' && { namespace }),
    };
    const rest = {
      roleRef: { apiGroup: RBAC, kind: kind as 'Role' | 'ClusterRole', name },
      subjects: [subjectOf(sync)],
    };
    const options = { signal, fieldManager: OWN_FIELD_MANAGER };
    const apiVersion = `${RBAC}/v1`;
    if (namespace === '')
      await client.create(
        CLUSTER_ROLE_BINDINGS,
        { apiVersion, kind: 'ClusterRoleBinding', metadata, ...rest },
        options,
      );
    else await client.create(ROLE_BINDINGS, { apiVersion, kind: 'RoleBinding', metadata, ...rest }, options);
  }
}

async function ignore(expected: (error: unknown) => boolean, act: () => Promise<unknown>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (!expected(error)) throw error;
  }
}
