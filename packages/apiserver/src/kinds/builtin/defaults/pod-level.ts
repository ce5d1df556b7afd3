/** What a Pod names for all its containers together, where they name more than it (defaultPodRequests in core/v1). */

import {
  addQuantity,
  compareQuantity,
  formatQuantity,
  type Quantity,
  readQuantity,
} from '@coracle/apimachinery/quantity/quantity';
import { textAt } from '@coracle/apimachinery/types/read-value';
import { ensureObject, type MutableObject, member, members } from './preset.ts';

const HUGE_PAGES = 'hugepages-';
const isHuge = (name: string): boolean => name.startsWith(HUGE_PAGES);
const isOfPods = (name: string): boolean => name === 'cpu' || name === 'memory' || isHuge(name);

/** Completes `spec.resources`: huge pages that containers may use, then requests, those of containers before limits. */
export function setPodLevelDefaults(spec: MutableObject): void {
  const resources = member(spec, 'resources');
  if (resources === undefined) return;
  const given = (side: Side): MutableObject => member(resources, side) ?? {};
  const hasLimits = Object.keys(given('limits')).length > 0;
  if (!hasLimits && Object.keys(given('requests')).length === 0) return;
  const pages = containerSum(spec, { side: 'limits', counts: isHuge });
  const set = (side: Side, name: string, text: unknown): void => {
    if (given(side)[name] != null) return;
    const list = ensureObject(resources, side);
    if (list !== undefined) list[name] = text;
  };
  for (const name of pages.keys()) {
    if (given('requests')[name] == null) set('limits', name, formatQuantity(pages.get(name)!));
  }
  if (Object.keys(given('limits')).length === 0) return;
  const asked = containerSum(spec, {
    side: 'requests',
    counts: (name) => isOfPods(name) && !isHuge(name),
  });
  for (const [name, amount] of asked) set('requests', name, formatQuantity(amount));
  for (const name of Object.keys(given('limits'))) {
    if (isOfPods(name)) set('requests', name, given('limits')[name]);
  }
}

type Side = 'requests' | 'limits';
type Amounts = Map<string, Quantity>;

/**
 * The sum over containers, or what one init container needs beside the sidecars before it where that is more. Of names
 * that it does not say itself that is never more: sidecars are in the sum.
 */
function containerSum(
  spec: MutableObject,
  { side, counts }: { readonly side: Side; readonly counts: (name: string) => boolean },
): Amounts {
  const [sum, sidecars, peak]: [Amounts, Amounts, Amounts] = [new Map(), new Map(), new Map()];
  const each = (container: MutableObject, visit: (name: string, amount: Quantity) => void): void => {
    const list = member(member(container, 'resources'), side) ?? {};
    for (const name of Object.keys(list)) {
      const amount = counts(name) ? readQuantity(list[name]) : undefined;
      if (amount !== undefined) visit(name, amount);
    }
  };
  const add = (to: Amounts, name: string, amount: Quantity): void => {
    const known = to.get(name);
    to.set(name, known === undefined ? amount : addQuantity(known, amount));
  };
  const raise = (to: Amounts, name: string, amount: Quantity): void => {
    const known = to.get(name);
    if (known === undefined || compareQuantity(amount, known) > 0) to.set(name, amount);
  };
  for (const container of members(spec, 'containers')) each(container, (name, amount) => add(sum, name, amount));
  for (const container of members(spec, 'initContainers')) {
    const isSidecar = textAt(container, 'restartPolicy') === 'Always';
    each(container, (name, amount) => {
      if (isSidecar) {
        add(sum, name, amount);
        add(sidecars, name, amount);
      } else {
        const beside = sidecars.get(name);
        raise(peak, name, beside === undefined ? amount : addQuantity(amount, beside));
      }
    });
  }
  for (const [name, amount] of peak) raise(sum, name, amount);
  return sum;
}
