/** Pods (pkg/registry/core/pod): with a grace period, and endpoints for what an update may not change. */

import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { isFinal } from '@coracle/apimachinery/meta/object-state';
import type { JsonObject } from '@coracle/apimachinery/types/read-value';
import { setPodDefaults } from '../defaults/core.ts';
import { keepAllButEphemeral, keepAllButSize } from '../preparations/pod-subresources.ts';
import { keepObserved, prepareNewPod } from '../preparations/pods.ts';
import { validatePod } from '../validation/pod.ts';
import { podAddressWarnings } from '../warnings/network.ts';
import type { BuiltinKind } from './builtin-kind.ts';

/** These change what an update may not: the result is validated, not the difference. */
const validateResult = (pod: JsonObject) => validatePod(pod);

export const POD: BuiltinKind = {
  setDefaults: setPodDefaults,
  prepareForCreate: prepareNewPod,
  validate: validatePod,
  subresources: {
    status: { prepareForUpdate: keepObserved, warningsOnUpdate: podAddressWarnings },
    // Writes the node and the condition of it past the strategy of Pods, which would count the spec (pod/storage/storage.go).
    binding: { generation: 'one', keepUnwritten: (object) => object, validate: validateResult },
    ephemeralcontainers: { keepUnwritten: keepAllButEphemeral, validate: validateResult },
    resize: { keepUnwritten: keepAllButSize, validate: validateResult },
  },
  gracePeriod,
};

/** What was asked for, else the spec's; nothing when no node runs it or it has ended. */
function gracePeriod(pod: Readonly<UnstructuredObject>, asked: number | undefined): number {
  const spec = (pod['spec'] ?? {}) as { nodeName?: string; terminationGracePeriodSeconds?: number };
  const phase = (pod['status'] as { phase?: string } | undefined)?.phase;
  if (!spec.nodeName || isFinal(phase)) return 0;
  return asked ?? spec.terminationGracePeriodSeconds ?? 0;
}
