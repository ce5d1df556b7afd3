/** SSP objects as ssp-operator's webhook takes them: one at most, and what it finds wrong with one is refused in its words. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { AdmissionPlugin } from '@coracle/apiserver/admission/plugin';
import { denial } from '@coracle/apiserver/admission/webhook/webhook-failure';
import type { ObjectStore } from '@coracle/apiserver/cache/object-store';
import { SSP_GROUP, type Ssp } from '@coracle/kubevirt/kinds/kinds';
import { otherSsp, SSP_WEBHOOK, sspProblem } from '@coracle/kubevirt/rules/protection/ssp-rules';

/** Makes the plug-in. */
export const sspRules = (store: Pick<ObjectStore, 'list'>): AdmissionPlugin => ({
  name: 'SspRules',
  matches: (operation, { group, resource }, subresource) =>
    (operation === 'CREATE' || operation === 'UPDATE') &&
    subresource === '' &&
    group === SSP_GROUP &&
    resource === 'ssps',
  validate({ operation, object }) {
    const ssp = object as unknown as DeepReadonly<Ssp> | undefined;
    // What is being deleted must be let go whatever it says.
    if (!ssp || isDeleting(ssp)) return;
    const existing = operation === 'CREATE' ? store.list(`${SSP_GROUP}/ssps`).items.map((item) => item.object) : [];
    const message = otherSsp(existing) ?? sspProblem(ssp);
    if (message !== undefined) throw denial(SSP_WEBHOOK, { code: 403, reason: 'Forbidden', message });
  },
});
