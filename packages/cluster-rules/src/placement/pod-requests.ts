/** How much of a node a Pod takes: the sums the scheduler works with. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { milliValue, quantityValue, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import type { Container, Pod, ResourceList } from '@coracle/apimachinery/types/types';

/** Amounts by resource name: cpu in thousandths, everything else in whole units (memory in bytes). */
export type Amounts = ReadonlyMap<string, number>;

/** What a Pod without a request counts as when nodes are compared (never when they are filtered). */
const DEFAULT_MILLI_CPU = 100;
const DEFAULT_MEMORY = 200 * 1024 * 1024;

/** One amount in the unit of its resource; what is no quantity counts as 0, the API server has validated it. */
export function amountOf(resource: string, text: string): number {
  const quantity = readQuantity(text);
  if (quantity === undefined) return 0;
  return resource === 'cpu' ? milliValue(quantity) : quantityValue(quantity);
}

/** A resource list as amounts. */
export function amountsOf(list: DeepReadonly<ResourceList> | undefined): Map<string, number> {
  return new Map(Object.entries(list ?? {}).map(([resource, text]) => [resource, amountOf(resource, text)]));
}

/** Adds `more` to `sum`. */
export function addAmounts(sum: Map<string, number>, more: Amounts): void {
  for (const [resource, amount] of more) sum.set(resource, (sum.get(resource) ?? 0) + amount);
}

function raiseTo(sum: Map<string, number>, floor: Amounts): void {
  for (const [resource, amount] of floor) sum.set(resource, Math.max(sum.get(resource) ?? 0, amount));
}

const requestsOf = (container: DeepReadonly<Container>): Map<string, number> => {
  const amounts = amountsOf(container.resources?.limits);
  // An extended resource may be given as a limit only: request = limit. For cpu and memory the API server has copied it.
  for (const [resource, amount] of amountsOf(container.resources?.requests)) amounts.set(resource, amount);
  return amounts;
};

/** Frozen Pods are counted once, however many placements look at them. */
const counted = new WeakMap<object, Map<string, number>>();

/**
 * The requests of a Pod: the sum of its containers, or what the init containers need if that is more, and the overhead.
 * An init container that restarts always is a sidecar: it goes on beside the later ones.
 */
export function podRequests(pod: DeepReadonly<Pod>): Amounts {
  const known = counted.get(pod);
  if (known) return known;
  const sum = new Map<string, number>();
  for (const container of pod.spec.containers) addAmounts(sum, requestsOf(container));
  const sidecars = new Map<string, number>();
  const peak = new Map<string, number>();
  for (const container of pod.spec.initContainers ?? []) {
    if (container.restartPolicy === 'Always') {
      addAmounts(sidecars, requestsOf(container));
      raiseTo(peak, sidecars);
    } else {
      const during = requestsOf(container);
      addAmounts(during, sidecars);
      raiseTo(peak, during);
    }
  }
  addAmounts(sum, sidecars);
  raiseTo(sum, peak);
  addAmounts(sum, amountsOf(pod.spec.overhead));
  if (Object.isFrozen(pod)) counted.set(pod, sum);
  return sum;
}

/** cpu and memory of a Pod for comparing nodes: with defaults for what it does not say. */
export function scoringRequests(pod: DeepReadonly<Pod>): { readonly cpu: number; readonly memory: number } {
  const requests = podRequests(pod);
  return {
    cpu: requests.get('cpu') || DEFAULT_MILLI_CPU,
    memory: requests.get('memory') || DEFAULT_MEMORY,
  };
}
