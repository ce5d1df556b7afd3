/**
 * Who leaves a node, and how: pure (pkg/virt-controller/watch/drain/evacuation). Beyond upstream: a mark that a drain left
 * is taken back when the node takes guests again.
 */

import { hasEnded, isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyNode } from '@coracle/apimachinery/types/types';
import type { EvictionStrategy, ReadonlyMigration, ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { evictionStrategyOf, isMigratable } from '../../rules/eviction/eviction-decision.ts';
import { EVACUATION_ANNOTATION, EVICTION_SOURCE_ANNOTATION } from '../../rules/launcher/launcher-labels.ts';

/** On an instance: the node whose drain marked it. Only such marks go when the node is uncordoned. */
export const DRAIN_ANNOTATION = 'coracle.dev/drained-from';

export interface EvacuationFacts {
  readonly node: ReadonlyNode;
  /** Instances whose `status.nodeName` it is. */
  readonly instances: readonly ReadonlyVmi[];
  /** Migrations that have not ended, of all nodes. */
  readonly unfinished: readonly ReadonlyMigration[];
  readonly drainTaintKey: string;
  /** Strategy of instances that name none. */
  readonly clusterStrategy: EvictionStrategy;
  /** Launcher Pods of an instance that have not ended. */
  readonly livePods: (vmi: ReadonlyVmi) => number;
  /** The Pod was marked for deletion while the node was silent, and the node is back: the guest cannot stay under it. */
  readonly isCondemned?: (vmi: ReadonlyVmi) => boolean;
}

export interface EvacuationPlan {
  /** A migration each. */
  readonly migrate: readonly ReadonlyVmi[];
  /** They should leave and cannot. */
  readonly stuck: readonly ReadonlyVmi[];
  /** Somebody else has to move or end them. */
  readonly external: readonly ReadonlyVmi[];
  /** Marked by a drain of this node, and not written down as such yet. */
  readonly notice: readonly ReadonlyVmi[];
  /** The drain is over: the mark goes. */
  readonly release: readonly ReadonlyVmi[];
  /** Migrations for that drain which have not begun to move a guest. */
  readonly cancel: readonly ReadonlyMigration[];
  /** Instances for which something is still to be waited: they could not be acted on now. */
  readonly waiting: number;
}

const isTainted = ({ spec }: ReadonlyNode, key: string): boolean =>
  spec?.taints?.some((taint) => taint.key === key && taint.effect === 'NoSchedule') ?? false;
const keyOf = (namespace: string | undefined, name: string | undefined): string => `${namespace}/${name}`;
/** Phases in which no guest moves yet. */
const UNBEGUN = new Set(['', 'Pending', 'Scheduling', 'Scheduled', 'PreparingTarget', 'TargetReady']);

/** Upstream's priorities: the descheduler tidies up, everyone else needs the node. */
export const priorityFor = (vmi: ReadonlyVmi): 'system-critical' | 'system-maintenance' =>
  vmi.metadata.annotations?.[EVICTION_SOURCE_ANNOTATION] === 'descheduler' ? 'system-maintenance' : 'system-critical';

/** What to do about the instances of a node. */
export function planEvacuation(facts: EvacuationFacts): EvacuationPlan {
  const { node, instances, unfinished, drainTaintKey, clusterStrategy, livePods, isCondemned = () => false } = facts;
  const name = node.metadata.name ?? '';
  const tainted = isTainted(node, drainTaintKey);
  const isClosed = node.spec?.unschedulable === true || tainted;
  const migrating = new Set(unfinished.map(({ metadata, spec }) => keyOf(metadata.namespace, spec.vmiName)));
  const alive = instances.filter((vmi) => !isDeleting(vmi) && !hasEnded(vmi));
  const isMarked = ({ status }: ReadonlyVmi): boolean => status?.evacuationNodeName === name;
  const drained = ({ metadata }: ReadonlyVmi): boolean => metadata.annotations?.[DRAIN_ANNOTATION] === name;
  const release = isClosed ? [] : alive.filter((vmi) => isMarked(vmi) && drained(vmi));
  const released = new Set(release);

  const plan = { migrate: [] as ReadonlyVmi[], stuck: [] as ReadonlyVmi[], external: [] as ReadonlyVmi[] };
  let waiting = 0;
  for (const vmi of alive) {
    const condemned = isCondemned(vmi);
    if ((released.has(vmi) || !(tainted || isMarked(vmi))) && !condemned) continue;
    const strategy = evictionStrategyOf(vmi, { evictionStrategy: clusterStrategy });
    if (strategy === 'External') {
      if (isMarked(vmi)) plan.external.push(vmi);
      continue;
    }
    if (strategy === 'None' || (strategy === 'LiveMigrateIfPossible' && !isMigratable(vmi))) continue;
    if (!isMigratable(vmi)) {
      // Nobody asked for it to leave: its agent keeps it, and says so.
      if (tainted || isMarked(vmi)) plan.stuck.push(vmi);
    } else if (migrating.has(keyOf(vmi.metadata.namespace, vmi.metadata.name)) || isMigrating(vmi)) continue;
    // The Pods of an earlier migration: with more than one the budget would let one go.
    else if (livePods(vmi) > 1) waiting++;
    else plan.migrate.push(vmi);
  }
  return {
    ...plan,
    waiting,
    notice: isClosed ? alive.filter((vmi) => isMarked(vmi) && !drained(vmi) && isDrainMark(vmi)) : [],
    release,
    cancel: isClosed
      ? []
      : unfinished.filter(
          ({ metadata, spec, status }) =>
            metadata.annotations?.[EVACUATION_ANNOTATION] === name &&
            metadata.deletionTimestamp === undefined &&
            UNBEGUN.has(status?.phase ?? '') &&
            // Without a mark nobody wants it any more; a mark of somebody else's (the descheduler's) keeps it.
            alive.some(
              (vmi) =>
                keyOf(vmi.metadata.namespace, vmi.metadata.name) === keyOf(metadata.namespace, spec.vmiName) &&
                (released.has(vmi) || !vmi.status?.evacuationNodeName) &&
                !isCondemned(vmi),
            ),
        ),
  };
}

/** The descheduler evicts from nodes that stay in use: cordoning has nothing to do with it. */
const isDrainMark = ({ metadata }: ReadonlyVmi): boolean =>
  metadata.annotations?.[EVICTION_SOURCE_ANNOTATION] !== 'descheduler';

function isMigrating({ status }: ReadonlyVmi): boolean {
  const state = status?.migrationState;
  return state?.startTimestamp != null && state.endTimestamp == null;
}
