/** NamespaceLifecycle: nothing is created outside a living namespace, and the system's own namespaces stay. */
import { forbidden, notFound } from '../../api/meta/status.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import type { AdmissionPlugin } from './plugin.ts';

const NAMESPACES = { group: '', resource: 'namespaces' };
const NAMESPACES_PREFIX = '/namespaces';
const IMMORTAL: ReadonlySet<string> = new Set(['default', 'kube-system', 'kube-public']);

/** The plug-in over this store's namespaces. */
export function namespaceLifecycle(store: Pick<ObjectStore, 'peek'>): AdmissionPlugin {
  return {
    name: 'NamespaceLifecycle',
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
      // The newest decided state, so that no create slips in behind a deletion that is on its way to the disk.
      const found = store.peek({ prefix: NAMESPACES_PREFIX, namespace: '', name: namespace });
      if (!found) throw notFound(NAMESPACES, namespace);
      const { deletionTimestamp } = found.object.metadata;
      const phase = (found.object['status'] as { phase?: string } | undefined)?.phase;
      if (deletionTimestamp === undefined && phase !== 'Terminating') return;
      throw forbidden(
        info,
        name,
        `unable to create new content in namespace ${namespace} because it is being terminated`,
        [
          {
            reason: 'NamespaceTerminating',
            message: `namespace ${namespace} is being terminated`,
            field: 'metadata.namespace',
          },
        ],
      );
    },
  };
}
