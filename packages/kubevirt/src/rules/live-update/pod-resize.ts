/** The size of a launcher Pod that grows where it is: what it should have, and whether its node can give it. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { hasEnded } from '@coracle/apimachinery/meta/object-state';
import { compareQuantity, parseQuantity, type Quantity, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import type { Container, ReadonlyPod } from '@coracle/apimachinery/types/types';
import { type Amounts, addAmounts, amountsOf, podRequests } from '@coracle/cluster-rules/placement/pod-requests';
import type { ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { launcherResources, type NamespaceLimits } from '../launcher/launcher-resources.ts';
import { namespaceLimitsOf } from '../launcher/namespace-limits.ts';
import type { PodSizing } from '../machine-defaults/cluster-config.ts';

type Resources = { readonly requests: Record<string, string>; readonly limits: Record<string, string> };

/** What a live update changes of a Pod; everything else it was made with stays. */
const RESIZED = ['cpu', 'memory'] as const;
export const COMPUTE = 'compute';

const computeOf = (pod: ReadonlyPod): DeepReadonly<Container> | undefined =>
  pod.spec.containers.find(({ name }) => name === COMPUTE);

/** cpu and memory the compute container needs for what the spec of the instance says. */
function neededBy({ spec }: ReadonlyVmi, sizing: PodSizing, given: NamespaceLimits): Resources {
  const { requests, limits } = launcherResources(spec, { ...sizing, ...given, useEmulation: true });
  const pick = (list: Record<string, string>): Record<string, string> =>
    Object.fromEntries(RESIZED.flatMap((name) => (list[name] === undefined ? [] : [[name, list[name]]])));
  return { requests: pick(requests), limits: pick(limits) };
}

const quantityOf = (list: DeepReadonly<Record<string, unknown>> | undefined, name: string): Quantity | undefined =>
  list?.[name] === undefined ? undefined : parseQuantity(String(list[name]));

/**
 * The resources the compute container should be resized to for a change that waits; undefined when it has them. Memory
 * is taken away only after the guest has given it back.
 */
export function resizeOf(vmi: ReadonlyVmi, pod: ReadonlyPod, sizing: PodSizing): Resources | undefined {
  const have = computeOf(pod)?.resources;
  // Limits that its namespace gave it grow with the guest.
  const needed = neededBy(vmi, sizing, namespaceLimitsOf(pod));
  const guest = readQuantity(vmi.spec.domain?.memory?.guest);
  const current = readQuantity(vmi.status?.memory?.guestCurrent);
  const mayShrink = guest === undefined || current === undefined || compareQuantity(current, guest) <= 0;
  let differs = false;
  const sized = (list: 'requests' | 'limits'): Record<string, string> => {
    const entries = Object.entries(needed[list]).map(([name, text]) => {
      const now = quantityOf(have?.[list], name);
      const order = now === undefined ? 1 : compareQuantity(parseQuantity(text), now);
      const stays = order === 0 || (order < 0 && name === 'memory' && !mayShrink);
      differs ||= !stays;
      return [name, stays ? String(have?.[list]?.[name]) : text];
    });
    return Object.fromEntries(entries);
  };
  const resources = { requests: sized('requests'), limits: sized('limits') };
  return differs ? resources : undefined;
}

/** The same for an instance without a change that waits: memory its guest has given back, and nothing else. */
export function shrinkOf(vmi: ReadonlyVmi, pod: ReadonlyPod, sizing: PodSizing): Resources | undefined {
  const have = computeOf(pod)?.resources;
  const wanted = resizeOf(vmi, pod, sizing);
  const [now, next] = [quantityOf(have?.requests, 'memory'), quantityOf(wanted?.requests, 'memory')];
  if (!wanted || !now || !next || compareQuantity(next, now) >= 0) return undefined;
  const memoryOf = ({ memory }: Record<string, string>) => (memory === undefined ? {} : { memory });
  return { requests: memoryOf(wanted.requests), limits: memoryOf(wanted.limits) };
}

/** What the node has given the compute container: less than the Pod's spec says while a resize waits. */
const allocatedTo = (pod: ReadonlyPod): DeepReadonly<Record<string, unknown>> | undefined =>
  pod.status?.containerStatuses?.find(({ name }) => name === COMPUTE)?.allocatedResources ??
  computeOf(pod)?.resources?.requests;

/** True when the node has given the Pod all that the spec of its instance needs. */
export function coversInstance(pod: ReadonlyPod, vmi: ReadonlyVmi, sizing: PodSizing): boolean {
  const { requests } = neededBy(vmi, sizing, {});
  const have = allocatedTo(pod);
  return Object.entries(requests).every(([name, text]) => {
    const amount = quantityOf(have, name);
    return amount !== undefined && compareQuantity(amount, parseQuantity(text)) >= 0;
  });
}

/** True when the spec of a Pod asks for something else than its node has given it. */
export function isResizing(pod: ReadonlyPod): boolean {
  const wanted = computeOf(pod)?.resources?.requests;
  const have = allocatedTo(pod);
  return RESIZED.some((name) => {
    const [a, b] = [quantityOf(wanted, name), quantityOf(have, name)];
    return a === undefined || b === undefined ? a !== b : compareQuantity(a, b) !== 0;
  });
}

/** A kubelet's answer to a resize. */
export type PodResizeDecision =
  | { readonly type: 'fits' }
  | { readonly type: 'wait'; readonly reason: 'Deferred' | 'Infeasible'; readonly message: string };

/** Decides on a resize by what the node offers and the Pods on it have been given. `pods` may contain `pod` itself. */
export function podResizeDecision(
  pod: ReadonlyPod,
  node: { readonly allocatable: Amounts; readonly pods: readonly ReadonlyPod[] },
): PodResizeDecision {
  const wanted = podRequests(pod);
  const others = new Map<string, number>();
  for (const other of node.pods)
    if (other.metadata.uid !== pod.metadata.uid && !hasEnded(other)) addAmounts(others, givenTo(other));
  const before = givenTo(pod);
  for (const name of RESIZED) {
    const amount = wanted.get(name) ?? 0;
    if (amount <= (before.get(name) ?? 0)) continue;
    const all = node.allocatable.get(name) ?? 0;
    const unit = (value: number): string => (name === 'cpu' ? `${value}m` : `${value}`);
    const report = (reason: 'Deferred' | 'Infeasible', free: number): PodResizeDecision => ({
      type: 'wait',
      reason,
      message: `Node didn't have enough ${name}: the pod asks for ${unit(amount)}, ${unit(Math.max(0, free))} of ${unit(all)} can be had`,
    });
    if (amount > all) return report('Infeasible', all);
    const free = all - (others.get(name) ?? 0);
    if (amount > free) return report('Deferred', free);
  }
  return { type: 'fits' };
}

/** The requests of a Pod, with what its compute container has in place of what it asks for. */
function givenTo(pod: ReadonlyPod): Amounts {
  const sum = new Map(podRequests(pod));
  const asked = amountsOf(computeOf(pod)?.resources?.requests);
  const given = amountsOf(allocatedTo(pod) as DeepReadonly<Record<string, string>> | undefined);
  for (const name of RESIZED) sum.set(name, (sum.get(name) ?? 0) - (asked.get(name) ?? 0) + (given.get(name) ?? 0));
  return sum;
}

const RESIZE_CONDITIONS: ReadonlySet<string> = new Set(['PodResizePending', 'PodResizeInProgress']);

/** What a Pod says about a resize that has not come through, as one sentence. */
export function resizeProblem(pod: ReadonlyPod): string | undefined {
  const condition = pod.status?.conditions?.find(
    ({ type, status, message }) => RESIZE_CONDITIONS.has(type) && status === 'True' && message,
  );
  return condition && `${condition.reason ?? condition.type}: ${condition.message}`;
}
