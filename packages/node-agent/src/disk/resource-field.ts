/** Amounts of a container for the downward API. */

import { parseQuantity } from '@coracle/apimachinery/quantity/quantity';
import type { ReadonlyPod } from '@coracle/apimachinery/types/types';

/** `resourceFieldRef`, as it stands in a volume's field. */
export interface ResourceFieldRef {
  readonly resource?: unknown;
  readonly containerName?: unknown;
  readonly divisor?: unknown;
}

const RESOURCE = /^(limits|requests)\.([a-z0-9.-]+)$/;

/**
 * `requests.memory`, `limits.cpu`, ... of a container in units of the divisor, rounded up, as the kubelet writes it; a
 * request that is not made is 0. Undefined when there is no such amount. Throws QuantityError on a bad divisor.
 */
export function resourceField(pod: ReadonlyPod, ref: ResourceFieldRef): string | undefined {
  const [, kind, resource = ''] = RESOURCE.exec(String(ref.resource)) ?? [];
  const container = pod.spec.containers.find(({ name }) => name === ref.containerName);
  if (!container || (kind !== 'limits' && kind !== 'requests')) return undefined;
  const amounts: Readonly<Record<string, unknown>> = container.resources?.[kind] ?? {};
  const amount = Object.hasOwn(amounts, resource) ? String(amounts[resource]) : kind === 'requests' ? '0' : undefined;
  if (amount === undefined) return undefined;
  const divisor = parseQuantity(String(ref.divisor ?? '1')).nano || parseQuantity('1').nano;
  const { nano } = parseQuantity(amount);
  return String((nano + divisor - 1n) / divisor);
}
