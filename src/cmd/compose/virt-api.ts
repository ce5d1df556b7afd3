/** KubeVirt's API beside the Kubernetes one: admission, subresources, roles. (temporary frame) */

import type { UnstructuredObject } from '../../api/meta/object.ts';
import type { AdmissionPlugin } from '../../server/admission/plugin.ts';
import type { PolicyBinding, PolicyRole } from '../../server/auth/bootstrap-policy.ts';
import type { AggregatedApi } from '../../server/endpoints/aggregated-api.ts';
import type { PolicyRuleData } from './components.ts';

export function createVirtApi(_o: unknown) {
  return {
    admission: [] as AdmissionPlugin[],
    subresources: {
      group: 'subresources.kubevirt.io',
      versions: ['v1'],
      discovery: [],
      handle: async () => ({ status: 404, headers: {} }),
    } as AggregatedApi,
    objects: [] as UnstructuredObject[],
    start: async (_s: AbortSignal) => {},
    stop: () => {},
  };
}
export const virtPolicy = () => ({
  roles: [] as PolicyRole[],
  bindings: [] as PolicyBinding[],
  rules: [] as PolicyRuleData[],
});
