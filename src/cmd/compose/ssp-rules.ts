/** SSP objects as ssp-operator's webhook takes them: one at most, and what it finds wrong with one is refused in its words. */
import { SSP_GROUP, type Ssp } from '../../api/kinds/ssp/kinds.ts';
import type { DeepReadonly } from '../../api/meta/object.ts';
import { otherSsp, SSP_WEBHOOK, sspProblem } from '../../domain/protection/ssp-rules.ts';
import type { AdmissionPlugin } from '../../server/admission/plugin.ts';
import { denial } from '../../server/admission/webhook/webhook-failure.ts';
import type { ObjectStore } from '../../server/cache/object-store.ts';

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
    if (!ssp || ssp.metadata.deletionTimestamp !== undefined) return;
    const existing = operation === 'CREATE' ? store.list(`${SSP_GROUP}/ssps`).items.map((item) => item.object) : [];
    const message = otherSsp(existing) ?? sspProblem(ssp);
    if (message !== undefined) throw denial(SSP_WEBHOOK, { code: 403, reason: 'Forbidden', message });
  },
});
