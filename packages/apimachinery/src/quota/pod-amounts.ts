/** Requests and limits of a whole Pod (component-helpers/resource): containers, init containers, sidecars, overhead. */
import type { DeepReadonly } from '../meta/object.ts';
import type { Container, PodSpec } from '../types/types.ts';
import { type Amounts, larger, plus, toAmounts } from './amounts.ts';

export type ContainerParts = DeepReadonly<Pick<Container, 'name' | 'restartPolicy' | 'resources'>>;

/** A Pod's spec, whatever of it is there. */
export type PodSpecParts = DeepReadonly<Partial<PodSpec>>;

/** Resources that a Pod may name for all its containers together. */
const POD_LEVEL = /^(?:cpu$|memory$|hugepages-)/;

/**
 * The sum a Pod asks for. An init container counts while it runs, beside the sidecars started before it; what the Pod
 * itself names takes the place of its containers' sum.
 */
export function podAmounts(
  spec: PodSpecParts,
  side: 'requests' | 'limits',
  { overhead = true }: { readonly overhead?: boolean } = {},
): Amounts {
  let sum: Amounts = new Map();
  for (const { resources } of spec.containers ?? []) sum = plus(sum, toAmounts(resources?.[side]));
  let sidecars: Amounts = new Map();
  let peak: Amounts = new Map();
  for (const { resources, restartPolicy } of spec.initContainers ?? []) {
    const own = toAmounts(resources?.[side]);
    if (restartPolicy === 'Always') {
      sum = plus(sum, own);
      sidecars = plus(sidecars, own);
      peak = larger(peak, sidecars);
    } else {
      peak = larger(peak, plus(own, sidecars));
    }
  }
  sum = larger(sum, peak);
  const podLevel = new Map([...toAmounts(spec.resources?.[side])].filter(([name]) => POD_LEVEL.test(name)));
  if (podLevel.size > 0) sum = new Map([...sum, ...podLevel]);
  if (!overhead) return sum;
  // A limit is raised by the overhead only where there is one.
  const extra = toAmounts(spec.overhead);
  return plus(sum, side === 'requests' ? extra : new Map([...extra].filter(([name]) => sum.has(name))));
}
