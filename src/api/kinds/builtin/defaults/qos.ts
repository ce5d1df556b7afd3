/** The quality-of-service class of a Pod, from the CPU and memory of its containers. */
import { compareQuantity, parseQuantity, QuantityError } from '../../../quantity/quantity.ts';
import { type JsonObject, objectAt, objectsAt } from '../read-value.ts';

const COMPUTE = ['cpu', 'memory'] as const;

/** Guaranteed: every container limits both and requests the same; BestEffort: none says anything; else Burstable. */
export function qosClassOf(pod: JsonObject): 'Guaranteed' | 'Burstable' | 'BestEffort' {
  const containers = [...objectsAt(pod, 'spec', 'containers'), ...objectsAt(pod, 'spec', 'initContainers')];
  let any = false;
  let guaranteed = true;
  for (const container of containers) {
    for (const resource of COMPUTE) {
      const request = amount(objectAt(container, 'resources', 'requests')[resource]);
      const limit = amount(objectAt(container, 'resources', 'limits')[resource]);
      if (request !== undefined || limit !== undefined) any = true;
      if (limit === undefined || (request !== undefined && compareQuantity(request, limit) !== 0)) guaranteed = false;
    }
  }
  return !any ? 'BestEffort' : guaranteed ? 'Guaranteed' : 'Burstable';
}

/** Zero and unreadable amounts count as absent. */
function amount(value: unknown): ReturnType<typeof parseQuantity> | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined;
  try {
    const quantity = parseQuantity(String(value));
    return quantity.nano === 0n ? undefined : quantity;
  } catch (error) {
    if (error instanceof QuantityError) return undefined;
    throw error;
  }
}
