/** Which sync it is, and the names that upstream derives from that. */
import { CONFIG_SYNC_NAMESPACE } from '../kinds/kinds.ts';

export type SyncKind = 'RootSync' | 'RepoSync';

export interface SyncIdentity {
  readonly kind: SyncKind;
  readonly namespace: string;
  readonly name: string;
}

/** Of upstream's Deployment, and of the service account that objects are written as. */
export function reconcilerName({ kind, namespace, name }: SyncIdentity): string {
  if (kind === 'RootSync') return name === 'root-sync' ? 'root-reconciler' : `root-reconciler-${name}`;
  return name === 'repo-sync' ? `ns-reconciler-${namespace}` : `ns-reconciler-${namespace}-${name}-${name.length}`;
}

/** Who the API server knows the reconciler as. */
export const reconcilerUser = (sync: SyncIdentity): string =>
  `system:serviceaccount:${CONFIG_SYNC_NAMESPACE}:${reconcilerName(sync)}`;

/** Value of annotation `configsync.gke.io/manager`. */
export function managerName({ kind, namespace, name }: SyncIdentity): string {
  if (kind === 'RootSync') return name === 'root-sync' ? ':root' : `:root_${name}`;
  return name === 'repo-sync' ? namespace : `${namespace}_${name}`;
}

/** The sync that a value of annotation `configsync.gke.io/manager`, or of `config.k8s.io/owning-inventory`, names. */
export function syncOfManager(manager: string): SyncIdentity {
  if (manager === ':root') return { kind: 'RootSync', namespace: CONFIG_SYNC_NAMESPACE, name: 'root-sync' };
  if (manager.startsWith(':root_'))
    return { kind: 'RootSync', namespace: CONFIG_SYNC_NAMESPACE, name: manager.slice(':root_'.length) };
  const [namespace = '', name = 'repo-sync'] = manager.split('_');
  return { kind: namespace === CONFIG_SYNC_NAMESPACE ? 'RootSync' : 'RepoSync', namespace, name };
}

/** Value of annotation `config.k8s.io/owning-inventory`, and of the inventory's label. */
export const inventoryId = ({ namespace, name }: SyncIdentity): string => `${namespace}_${name}`;
