/**
 * Administrators' access to devices that others use: only from a namespace that is marked for it. Upstream asks in the
 * kind's strategy, which may look up namespaces.
 */

import { objectAt, objectsAt, textAt, valueAt } from '../../api/kinds/builtin/read-value.ts';
import type { FieldError } from '../../api/meta/status.ts';
import { invalid } from '../../api/meta/status.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import type { AdmissionPlugin } from './plugin.ts';

const LABEL = 'resource.kubernetes.io/admin-access';
const DETAIL = `admin access to devices requires the \`${LABEL}: true\` label on the containing namespace`;

/** The first path at which admin access is asked for; undefined when none is. */
function askedAt(object: unknown, resource: string, subresource: string): string | undefined {
  if (subresource === 'status') {
    const results = objectsAt(object, 'status', 'allocation', 'devices', 'results');
    const i = results.findIndex((result) => valueAt(result, 'adminAccess') === true);
    return i < 0 ? undefined : `status.allocation.devices.results[${i}].adminAccess`;
  }
  const spec = resource === 'resourceclaims' ? objectAt(object, 'spec') : objectAt(object, 'spec', 'spec');
  const requests = objectsAt(spec, 'devices', 'requests');
  const i = requests.findIndex((request) => valueAt(request, 'exactly', 'adminAccess') === true);
  // Templates are told the path of a claim, too.
  return i < 0 ? undefined : `spec.devices.requests[${i}].adminAccess`;
}

/** The plug-in over this store's namespaces. */
export function deviceAdminAccess(store: Pick<ObjectStore, 'peek'>): AdmissionPlugin {
  return {
    name: 'DeviceAdminAccess',
    matches: (operation, info, subresource) =>
      info.group === 'resource.k8s.io' &&
      (info.resource === 'resourceclaims' || info.resource === 'resourceclaimtemplates') &&
      (subresource === '' ? operation === 'CREATE' : subresource === 'status' && operation === 'UPDATE'),
    validate({ info, object, oldObject, namespace, name, subresource }) {
      const field = askedAt(object, info.resource, subresource);
      if (field === undefined) return;
      // What was granted cannot be changed any more.
      if (subresource === 'status' && askedAt(oldObject, info.resource, subresource) !== undefined) return;
      const found = store.peek({ prefix: '/namespaces', namespace: '', name: namespace });
      if (textAt(found?.object, 'metadata', 'labels', LABEL) === 'true') return;
      const error: FieldError = { type: 'FieldValueForbidden', field, detail: DETAIL };
      throw invalid({ group: info.group, kind: info.kind }, name, [error]);
    },
  };
}
