/**
 * Who must leave so that a Pod of higher priority finds a place: kube-scheduler's default preemption, as a pure
 * function. A node's victims are the fewest and least important Pods whose going makes the Pod fit, and those without
 * a budget before those with one; of the nodes the one is taken that hurts least.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { conditionOf, isDeleting } from '@coracle/apimachinery/meta/object-state';
import { matchesLabels, readableSelector } from '@coracle/apimachinery/selector/label-selector';
import type { Pod, PodDisruptionBudget } from '@coracle/apimachinery/types/types';
import { clusterRules, filterNode } from './filter.ts';
import { type NodeUsage, nodeUsage } from './node-usage.ts';
import { refusalMessage } from './place-pod.ts';
import type { NamespaceLabels } from './pod-affinity.ts';
import type { PodVolumes } from './pod-volumes.ts';
import type { Refusal } from './refusal.ts';

export type Preemption =
  | { readonly type: 'victims'; readonly nodeName: string; readonly victims: readonly DeepReadonly<Pod>[] }
  | {
      readonly type: 'none';
      /** What the PodScheduled condition adds to why the Pod found no place. */
      readonly message: string;
      /** The node it was nominated for is of no use to it any more. */
      readonly endsNomination: boolean;
    };

export interface PreemptionInput {
  readonly pod: DeepReadonly<Pod>;
  readonly nodes: readonly NodeUsage[];
  /** Why each node refused the Pod. */
  readonly refusals: ReadonlyMap<string, Refusal>;
  readonly budgets: readonly DeepReadonly<PodDisruptionBudget>[];
  readonly namespaceLabels: NamespaceLabels;
  /** What the claims of the Pod say; nothing when absent. */
  readonly volumes?: PodVolumes | undefined;
}

/** Reason of the DisruptionTarget condition on a victim. */
export const PREEMPTED = 'PreemptionByScheduler';

/** Also says that no device claim could be given back, as 1.36 does in one breath. */
const unavailing = (why: string, endsNomination = false): Preemption => ({
  type: 'none',
  message: `no new claims to deallocate, preemption: ${why}`,
  endsNomination,
});

const NO_VICTIMS = 'No preemption victims found for incoming pod';
const NOT_HELPFUL = 'Preemption is not helpful for scheduling';

/** Chooses a node and its victims, or says why nobody is asked to leave. */
export function findVictims(input: PreemptionInput): Preemption {
  const { pod, nodes, refusals } = input;
  if (pod.spec.preemptionPolicy === 'Never') return unavailing('not eligible due to preemptionPolicy=Never.');
  if (isRoomBeingMade(input)) return unavailing('not eligible due to a terminating pod on the nominated node.');
  const offers: Offer[] = [];
  const reasons: string[] = [];
  for (const usage of nodes) {
    if (refusals.get(usage.name)?.mayChange !== true) {
      reasons.push(NOT_HELPFUL);
      continue;
    }
    const offer = offerOf(usage, input);
    if ('reasons' in offer) reasons.push(...offer.reasons);
    else offers.push(offer);
  }
  const [best] = offers.sort(byHarm);
  if (!best) return unavailing(refusalMessage(nodes.length, reasons), true);
  return { type: 'victims', nodeName: best.usage.name, victims: best.victims };
}

/** True while Pods that were preempted for this one are still leaving its node: more need not be asked. */
function isRoomBeingMade({ pod, nodes, refusals }: PreemptionInput): boolean {
  const nominated = pod.status?.nominatedNodeName ?? '';
  if (nominated === '' || refusals.get(nominated)?.mayChange === false) return false;
  const there = nodes.find(({ name }) => name === nominated)?.pods ?? [];
  return there.some(
    (one) =>
      isDeleting(one) &&
      priorityOf(one) < priorityOf(pod) &&
      conditionOf(one, 'DisruptionTarget')?.reason === PREEMPTED,
  );
}

/** The priority of a Pod; admission has written it. */
export const priorityOf = (pod: DeepReadonly<Pod>): number => pod.spec.priority ?? 0;

interface Offer {
  readonly usage: NodeUsage;
  /** Most important first. */
  readonly victims: readonly DeepReadonly<Pod>[];
  readonly violations: number;
}

function offerOf(
  usage: NodeUsage,
  { pod, nodes, budgets, namespaceLabels, volumes }: PreemptionInput,
): Offer | { readonly reasons: readonly string[] } {
  const lower = usage.pods.filter((one) => priorityOf(one) < priorityOf(pod)).sort(byImportance);
  if (lower.length === 0) return { reasons: [NO_VICTIMS] };
  const refusalWithout = (gone: ReadonlySet<DeepReadonly<Pod>>): Refusal | undefined => {
    const staying = usage.pods.filter((one) => !gone.has(one));
    const after = nodeUsage(usage.node, staying);
    const all = nodes.map((one) => (one === usage ? after : one));
    return filterNode(pod, after, clusterRules(pod, all, { namespaceLabels, volumes }));
  };
  const gone = new Set(lower);
  const refusal = refusalWithout(gone);
  if (refusal) return { reasons: refusal.reasons };
  const violating = new Set(beyondBudget(lower, budgets));
  let violations = 0;
  // Those whose budget would be broken get the first chance to stay, then the important ones.
  for (const one of [...lower.filter((p) => violating.has(p)), ...lower.filter((p) => !violating.has(p))]) {
    gone.delete(one);
    if (!refusalWithout(gone)) continue;
    gone.add(one);
    if (violating.has(one)) violations++;
  }
  return { usage, victims: lower.filter((one) => gone.has(one)), violations };
}

/** The Pods whose going, one after another, some budget does not allow. */
function beyondBudget(
  pods: readonly DeepReadonly<Pod>[],
  budgets: readonly DeepReadonly<PodDisruptionBudget>[],
): DeepReadonly<Pod>[] {
  const counted = budgets.map((budget) => ({
    budget,
    selector: readableSelector(budget.spec?.selector),
    left: budget.status?.disruptionsAllowed ?? 0,
  }));
  return pods.filter((pod) => {
    let violates = false;
    for (const one of counted) {
      if (one.budget.metadata.namespace !== pod.metadata.namespace) continue;
      if (!matchesLabels(one.selector, pod.metadata.labels)) continue;
      // It was let go already, and its budget has paid for it.
      if (one.budget.status?.disruptedPods?.[pod.metadata.name ?? ''] !== undefined) continue;
      one.left--;
      if (one.left < 0) violates = true;
    }
    return violates;
  });
}

const startOf = (pod: DeepReadonly<Pod>): string => pod.status?.startTime ?? pod.metadata.creationTimestamp ?? '';

/** Most important first: by priority, then the one that runs longest. */
const byImportance = (a: DeepReadonly<Pod>, b: DeepReadonly<Pod>): number =>
  priorityOf(b) - priorityOf(a) || compare(startOf(a), startOf(b));

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Priorities may be negative: lifted, so that more victims never sum to less. */
const LIFT = 2 ** 31;

function byHarm(a: Offer, b: Offer): number {
  const sum = (offer: Offer): number => offer.victims.reduce((total, one) => total + priorityOf(one) + LIFT, 0);
  const top = (offer: Offer): number => priorityOf(offer.victims[0]!);
  const eldest = (offer: Offer): string => startOf(offer.victims[0]!);
  return (
    a.violations - b.violations ||
    top(a) - top(b) ||
    sum(a) - sum(b) ||
    a.victims.length - b.victims.length ||
    // The later the most important victims began, the less is lost.
    compare(eldest(b), eldest(a)) ||
    compare(a.usage.name, b.usage.name)
  );
}
