/** What a VirtualMachinePool does next with its machines (pkg/virt-controller/watch/pool): pure. */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { parseGoDuration } from '@coracle/apimachinery/meta/go-duration';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { conditionOf, isConditionTrue, isDeleting } from '@coracle/apimachinery/meta/object-state';
import { fromLabelSelectorObject, matchesLabels } from '@coracle/apimachinery/selector/label-selector';
import type { PoolSpec, ReadonlyPool, ReadonlyVm, ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { memberIndex, POOL_REVISION_LABEL } from './pool-member.ts';
import { BURST, isReady } from './replica-set-plan.ts';

type Template = DeepReadonly<PoolSpec['virtualMachineTemplate']>;
type Policy = NonNullable<NonNullable<DeepReadonly<PoolSpec>['scaleInStrategy']>['proactive']>['selectionPolicy'];

export interface PoolFacts {
  readonly pool: ReadonlyPool;
  /** The machines that the pool controls. */
  readonly machines: readonly ReadonlyVm[];
  readonly instanceOf: (vm: ReadonlyVm) => ReadonlyVmi | undefined;
  /** The template that a revision holds; undefined where there is no such revision. */
  readonly templateOf: (revision: string) => Template | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** 0 to 1. */
  readonly random: () => number;
}

export interface PoolPlan {
  /** How many machines to make. */
  readonly create: number;
  /** Machines to delete: too many, or to be made anew. */
  readonly remove: readonly ReadonlyVm[];
  /** Machines that get the pool's template. */
  readonly update: readonly ReadonlyVm[];
  /** Instances to delete, so that their machines start them anew. */
  readonly restart: readonly ReadonlyVmi[];
  /** Instances that are as the template says, and carry the name of an older revision. */
  readonly relabel: readonly { readonly vmi: ReadonlyVmi; readonly revision: string }[];
  /** When it is looked again; undefined when only changes count. */
  readonly waitMs: number | undefined;
}

const NOTHING: PoolPlan = { create: 0, remove: [], update: [], restart: [], relabel: [], waitMs: undefined };
const HEAL_AFTER_MS = 300_000;
const HEAL_AFTER_FAILURES = 3;
/** As upstream, while too many are not ready for another one to go. */
const WAITING_MS = 3000;

/** Machines there are, and those that are ready. */
export const poolCounts = (
  machines: readonly ReadonlyVm[],
): { readonly replicas: number; readonly readyReplicas: number } => {
  const there = machines.filter((vm) => !isDeleting(vm));
  return {
    replicas: there.length,
    readyReplicas: there.filter((vm) => isConditionTrue(vm, 'Ready')).length,
  };
};

export function poolPlan(facts: PoolFacts): PoolPlan {
  const { pool, machines } = facts;
  if (pool.spec.paused === true || isDeleting(pool)) return NOTHING;
  const surplus = machines.length - (pool.spec.replicas ?? 1);
  if (surplus < 0) return { ...NOTHING, create: Math.min(BURST, -surplus) };
  if (surplus > 0) return { ...NOTHING, remove: surplusOf(facts, surplus) };
  const healed = unhealthy(facts);
  if (healed.remove.length > 0) return healed;
  const updates = updatesOf(facts);
  const waits = [healed.waitMs, updates.waitMs].filter((ms) => ms !== undefined);
  return { ...updates, waitMs: waits.length > 0 ? Math.min(...waits) : undefined };
}

function surplusOf({ pool, machines, random }: PoolFacts, surplus: number): readonly ReadonlyVm[] {
  const { scaleInStrategy } = pool.spec;
  // Then somebody else deletes them.
  if (scaleInStrategy?.unmanaged || scaleInStrategy?.opportunistic) return [];
  const going = machines.filter(isDeleting).length;
  const there = machines.filter((vm) => !isDeleting(vm));
  const wanted = Math.max(0, Math.min(BURST, surplus - going));
  return selected(there, scaleInStrategy?.proactive?.selectionPolicy, random).slice(0, wanted);
}

/** The machines that the policy lets through, in its order. */
function selected(machines: readonly ReadonlyVm[], policy: Policy, random: () => number): readonly ReadonlyVm[] {
  const { labelSelector, nodeSelectorRequirementMatcher } = policy?.selectors ?? {};
  const labels = labelSelector && fromLabelSelectorObject(labelSelector);
  const nodes =
    nodeSelectorRequirementMatcher &&
    fromLabelSelectorObject({
      matchExpressions: nodeSelectorRequirementMatcher.map(({ key, operator, values }) => ({
        key,
        operator,
        ...(values && { values }),
      })),
    });
  const fits = machines.filter(({ spec: { template } }) => {
    const nodeSelector = template.spec?.nodeSelector as Record<string, string> | undefined;
    return (
      (!labels || matchesLabels(labels, template.metadata?.labels)) && (!nodes || matchesLabels(nodes, nodeSelector))
    );
  });
  const createdAt = ({ metadata }: ReadonlyVm): number => Date.parse(metadata.creationTimestamp ?? '') || 0;
  switch (policy?.sortPolicy ?? 'Random') {
    case 'AscendingOrder':
      return fits.sort((a, b) => memberIndex(a) - memberIndex(b));
    case 'DescendingOrder':
      return fits.sort((a, b) => memberIndex(b) - memberIndex(a));
    case 'Newest':
      return fits.sort((a, b) => createdAt(b) - createdAt(a));
    case 'Oldest':
      return fits.sort((a, b) => createdAt(a) - createdAt(b));
    default:
      return fits
        .map((vm) => ({ vm, at: random() }))
        .sort((a, b) => a.at - b.at)
        .map(({ vm }) => vm);
  }
}

/** Machines whose starts failed too often for too long: they are deleted, and others take their places. */
function unhealthy({ pool, machines, now }: PoolFacts): PoolPlan {
  const { autohealing } = pool.spec;
  if (!autohealing) return NOTHING;
  const { startUpFailureThreshold = HEAL_AFTER_FAILURES, minFailingToStartDuration } = autohealing;
  const after = parseGoDuration(minFailingToStartDuration ?? '') ?? HEAL_AFTER_MS;
  const failing = machines.flatMap((vm) => {
    if (isDeleting(vm) || (vm.status?.startFailure?.consecutiveFailCount ?? 0) < startUpFailureThreshold) return [];
    const ready = conditionOf(vm, 'Ready');
    if (ready?.status === 'True') return [];
    const since = Date.parse(ready?.lastTransitionTime ?? '') || now;
    return [{ vm, ms: Math.max(0, since + after - now) }];
  });
  const waits = failing.filter(({ ms }) => ms > 0).map(({ ms }) => ms);
  return {
    ...NOTHING,
    remove: failing.filter(({ ms }) => ms === 0).map(({ vm }) => vm),
    waitMs: waits.length > 0 ? Math.min(...waits) : undefined,
  };
}

/** Machines that may be not ready at a time. Shares are rounded down. */
function mostUnavailable({ maxUnavailable = '100%', replicas = 1 }: DeepReadonly<PoolSpec>): number {
  const most =
    typeof maxUnavailable === 'number'
      ? maxUnavailable
      : Math.floor((replicas * Number.parseInt(maxUnavailable, 10)) / 100);
  return Math.max(1, most || 0);
}

type Change = 'none' | 'restart' | 'relabel' | 'recreate';

/** What an instance lacks of its machine, by the revisions of the pool that they were made from. */
function changeOf(vm: ReadonlyVm, vmi: ReadonlyVmi, templateOf: PoolFacts['templateOf']): Change {
  const wanted = vm.metadata.labels?.[POOL_REVISION_LABEL];
  const has = vmi.metadata.labels?.[POOL_REVISION_LABEL];
  if (wanted === undefined || wanted === has) return 'none';
  const then = has === undefined ? undefined : templateOf(has);
  const now = templateOf(wanted);
  if (now === undefined) return 'none';
  if (then === undefined) return 'restart';
  if (!deepEqual(then.spec?.dataVolumeTemplates ?? [], now.spec?.dataVolumeTemplates ?? [])) return 'recreate';
  return deepEqual(then.spec?.template, now.spec?.template) ? 'relabel' : 'restart';
}

function updatesOf({ pool, machines, instanceOf, templateOf, random }: PoolFacts): PoolPlan {
  const { updateStrategy, virtualMachineTemplate } = pool.spec;
  if (updateStrategy?.unmanaged) return NOTHING;
  const policy = updateStrategy?.proactive?.selectionPolicy;
  const candidates = selected(
    machines.filter((vm) => !isDeleting(vm)),
    policy,
    random,
  );
  const isOutdated = (vm: ReadonlyVm): boolean => {
    const known = templateOf(vm.metadata.labels?.[POOL_REVISION_LABEL] ?? '');
    return known === undefined || !deepEqual(known, virtualMachineTemplate);
  };
  const update = candidates.filter(isOutdated).slice(0, BURST);
  if (updateStrategy?.opportunistic) return { ...NOTHING, update };
  const rest = candidates.filter((vm) => !isOutdated(vm));
  const isUp = (vmi: ReadonlyVmi | undefined): boolean =>
    vmi !== undefined && !isDeleting(vmi) && vmi.status?.phase === 'Running' && isReady(vmi);
  const remove: ReadonlyVm[] = [];
  const restart: ReadonlyVmi[] = [];
  const relabel: { vmi: ReadonlyVmi; revision: string }[] = [];
  let free = mostUnavailable(pool.spec) - machines.filter((vm) => !isUp(instanceOf(vm))).length;
  let isWaiting = false;
  for (const vm of rest) {
    const vmi = instanceOf(vm);
    if (!vmi || isDeleting(vmi)) continue;
    const change = changeOf(vm, vmi, templateOf);
    if (change === 'none') continue;
    if (change === 'relabel') {
      relabel.push({ vmi, revision: vm.metadata.labels?.[POOL_REVISION_LABEL] ?? '' });
      continue;
    }
    // One that is not ready costs nothing, and may be waiting for just this.
    if (isUp(vmi) && free-- <= 0) {
      isWaiting = true;
      continue;
    }
    if (change === 'recreate') remove.push(vm);
    else restart.push(vmi);
  }
  return { ...NOTHING, update, remove, restart, relabel, waitMs: isWaiting ? WAITING_MS : undefined };
}
