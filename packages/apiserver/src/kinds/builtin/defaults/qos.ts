/** The quality-of-service class of a Pod, from the CPU and memory that it, or else its containers, name (qos.go). */
import { addQuantity, compareQuantity, type Quantity, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import { isObject, type JsonObject, objectAt, objectsAt, valueAt } from '@coracle/apimachinery/types/read-value';

const COMPUTE = ['cpu', 'memory'] as const;

/** Guaranteed: everything is limited, and asks for as much; BestEffort: nothing is said; else Burstable. */
export function qosClassOf(pod: JsonObject): 'Guaranteed' | 'Burstable' | 'BestEffort' {
  const whole = valueAt(pod, 'spec', 'resources');
  const parts = isObject(whole)
    ? [whole]
    : ['containers', 'initContainers'].flatMap((list) =>
        objectsAt(pod, 'spec', list).map((container) => objectAt(container, 'resources')),
      );
  const requests = new Map<string, Quantity>();
  const limits = new Map<string, Quantity>();
  let allLimited = true;
  for (const resources of parts) {
    add(requests, objectAt(resources, 'requests'));
    if (add(limits, objectAt(resources, 'limits')) < COMPUTE.length) allLimited = false;
  }
  if (requests.size === 0 && limits.size === 0) return 'BestEffort';
  const isSame = (name: string): boolean => {
    const [request, limit] = [requests.get(name), limits.get(name)];
    return request !== undefined && limit !== undefined && compareQuantity(request, limit) === 0;
  };
  return allLimited && COMPUTE.every(isSame) ? 'Guaranteed' : 'Burstable';
}

/** Adds what counts of a list to the sum, and tells how many amounts that were. */
function add(sum: Map<string, Quantity>, list: JsonObject): number {
  let count = 0;
  for (const name of COMPUTE) {
    const amount = amountOf(list[name]);
    if (amount === undefined) continue;
    const known = sum.get(name);
    sum.set(name, known === undefined ? amount : addQuantity(known, amount));
    count++;
  }
  return count;
}

/** Nothing, less than nothing and unreadable amounts count as absent. */
function amountOf(value: unknown): Quantity | undefined {
  const quantity = readQuantity(value);
  return quantity === undefined || quantity.nano <= 0n ? undefined : quantity;
}
