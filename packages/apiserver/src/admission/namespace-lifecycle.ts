/** NamespaceLifecycle: nothing is created outside a living namespace, and the system's own namespaces stay. */
import { forbidden, type GroupResource, notFound } from '@coracle/apimachinery/meta/status';
import type { ObjectStore } from '../cache/object-store.ts';
import type { AdmissionPlugin } from './plugin.ts';

const NAMESPACES = { group: '', resource: 'namespaces' };
const NAMESPACES_PREFIX = '/namespaces';
const IMMORTAL: ReadonlySet<string> = new Set(['default', 'kube-system', 'kube-public']);

/** The plug-in over this store's namespaces. */
export function namespaceLifecycle(store: Pick<ObjectStore, 'peek'>): AdmissionPlugin {
  return {
    name: 'NamespaceLifecycle',
    changesNothing: true,
    matches(operation, info, subresource) {
      if (operation === 'DELETE') return info.group === '' && info.resource === 'namespaces' && subresource === '';
      // Access reviews may be asked about any namespace.
      return operation === 'CREATE' && info.namespaced && info.resource !== 'localsubjectaccessreviews';
    },
    // In the mutating pass: a namespace that is missing is said before anything is looked up inside it.
    mutate({ operation, info, namespace, name }) {
      if (operation === 'DELETE') {
        if (IMMORTAL.has(name)) throw forbidden(NAMESPACES, name, 'this namespace may not be deleted');
        return;
      }
      if (!store.peek({ prefix: NAMESPACES_PREFIX, namespace: '', name: namespace }))
        throw notFound(NAMESPACES, namespace);
      refuseTerminatingNamespace(store, { info, namespace, name });
    },
  };
}

/** Throws ApiError 403 when the namespace is on its way out, by the newest decided state: also when that is not durable yet. */
export function refuseTerminatingNamespace(
  store: Pick<ObjectStore, 'peek'>,
  { info, namespace, name }: { readonly info: GroupResource; readonly namespace: string; readonly name: string },
): void {
  const found = store.peek({ prefix: NAMESPACES_PREFIX, namespace: '', name: namespace });
  const phase = (found?.object['status'] as { phase?: string } | undefined)?.phase;
  if (found?.object.metadata.deletionTimestamp === undefined && phase !== 'Terminating') return;
  throw forbidden(info, name, `unable to create new content in namespace ${namespace} because it is being terminated`, [
    {
      reason: 'NamespaceTerminating',
      message: `namespace ${namespace} is being terminated`,
      field: 'metadata.namespace',
    },
  ]);
}
