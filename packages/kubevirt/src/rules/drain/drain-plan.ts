/**
 * A drain before it happens: each Pod of a node with the strategy of its machine, the decision on its eviction, the budget
 * that covers it, where it would go, how long it may take, and what holds it. Places are taken one after another, so that
 * two machines are not both promised the last one.
 */

import { controllerOf } from '@coracle/apimachinery/meta/controller-reference';
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { conditionOf, hasEnded, isDeleting } from '@coracle/apimachinery/meta/object-state';
import { quantityValue, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import { fromLabelSelectorObject, matchesLabels } from '@coracle/apimachinery/selector/label-selector';
import type { Pod, PodDisruptionBudget, ReadonlyNode, ReadonlyPod } from '@coracle/apimachinery/types/types';
import { nodeUsage } from '@coracle/cluster-rules/placement/node-usage';
import { placePod } from '@coracle/cluster-rules/placement/place-pod';
import type { NamespaceLabels } from '@coracle/cluster-rules/placement/pod-affinity';
import type { MigrationPolicy } from '../../kinds/kinds.ts';
import type { EvictionStrategy, ReadonlyVm, ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { evictedPodOf, evictionDecision, evictionStrategyOf } from '../eviction/eviction-decision.ts';
import { CREATED_BY_LABEL, MIGRATION_JOB_LABEL, MIGRATION_JOB_NAME_ANNOTATION } from '../launcher/launcher-labels.ts';
import { apartFrom } from '../launcher/target-pod.ts';
import { matchPolicy } from '../migration-policy/match-policy.ts';
import type { MigrationSettings } from '../migration-policy/migration-settings.ts';
import { effectiveRunStrategy } from '../run-strategy/run-strategy.ts';

/** What will become of a Pod. */
export type DrainOutcome =
  /** The guest moves while it runs. */
  | 'migrates'
  /** The guest is shut down; its run strategy starts it elsewhere. */
  | 'restarts'
  /** The guest is shut down, and nothing starts it again by itself. */
  | 'stops'
  /** An outside controller is asked to take it away. */
  | 'waits'
  /** It is leaving already, by an earlier eviction or deletion. */
  | 'leaves'
  /** Nothing will move it. */
  | 'blocked'
  /** No machine of ours: evicted as any Pod. */
  | 'evicted'
  /** Of a DaemonSet, or a mirror Pod: a drain lets it be. */
  | 'ignored';

export interface DrainRow {
  readonly namespace: string;
  readonly pod: string;
  /** Name of the instance; undefined for other Pods. */
  readonly instance: string | undefined;
  readonly strategy: EvictionStrategy | undefined;
  readonly outcome: DrainOutcome;
  /** `NAME (allows N)` of each budget that covers the Pod. */
  readonly budgets: readonly string[];
  /** The node that would be chosen now. */
  readonly target: string | undefined;
  /** Seconds until it has left, counted from the start of the drain; an upper bound for a shutdown, an estimate for a migration. */
  readonly seconds: number | undefined;
  /** Why it will not leave, or will not come back elsewhere; undefined when nothing is in the way. */
  readonly blocker: string | undefined;
}

export interface DrainInput {
  readonly nodeName: string;
  readonly nodes: readonly ReadonlyNode[];
  /** Of all nodes. */
  readonly pods: readonly ReadonlyPod[];
  readonly instances: readonly ReadonlyVmi[];
  readonly machines: readonly ReadonlyVm[];
  readonly budgets: readonly DeepReadonly<PodDisruptionBudget>[];
  readonly clusterStrategy: EvictionStrategy;
  readonly migrations: MigrationSettings;
  /** What limits the migrations of some machines. */
  readonly policies?: readonly DeepReadonly<MigrationPolicy>[];
  readonly namespaceLabels: NamespaceLabels;
  /** `developerConfiguration.nodeSelectors` of the cluster. */
  readonly nodeSelectors?: Readonly<Record<string, string>>;
}

/** Bytes a second that a migration without a limit is taken to move: a slow network, not the best one. */
const ASSUMED_BANDWIDTH = 128 * 1024 * 1024;
/** Seconds a migration takes beside its memory: Pod, target, hand-over. */
const MIGRATION_OVERHEAD = 3;
const MIRROR = 'kubernetes.io/config.mirror';
/** Budgets the control plane keeps for protected instances: the decision speaks for them. */
const OWN_BUDGET = 'kubevirt-disruption-budget-';

/** Rows in the order of namespace and name. */
export function drainPlan(input: DrainInput): DrainRow[] {
  const placed: { pod: ReadonlyPod; nodeName: string }[] = [];
  const endOf = migrationSlots(Math.max(1, input.migrations.parallelOutboundMigrationsPerNode));
  /** Where the Pod would be put, with what was promised before. */
  const place = (pod: ReadonlyPod): { target?: string; why?: string } => {
    const vmi = instanceOf(pod, input);
    const wanted = asNewPod(pod, { ...input.nodeSelectors, ...vmi?.spec.nodeSelector });
    const usages = input.nodes.map((node) => {
      const name = node.metadata.name ?? '';
      const there = input.pods.filter((one) => one.spec.nodeName === name);
      const coming = placed.filter((one) => one.nodeName === name).map((one) => one.pod);
      const drained = name === input.nodeName ? { ...node, spec: { ...node.spec, unschedulable: true } } : node;
      return nodeUsage(drained, [...there, ...coming]);
    });
    const placement = placePod(wanted, usages, { namespaceLabels: input.namespaceLabels });
    if (placement.type === 'unschedulable') return { why: placement.message };
    placed.push({ pod: wanted, nodeName: placement.name });
    return { target: placement.name };
  };
  return input.pods
    .filter((pod) => pod.spec.nodeName === input.nodeName && !hasEnded(pod))
    .sort(
      (a, b) =>
        (a.metadata.namespace ?? '').localeCompare(b.metadata.namespace ?? '') ||
        (a.metadata.name ?? '').localeCompare(b.metadata.name ?? ''),
    )
    .map((pod) => rowOf(pod, { input, place, endOf }));
}

interface DrainFacts {
  readonly input: DrainInput;
  readonly place: (pod: ReadonlyPod) => { target?: string; why?: string };
  readonly endOf: (seconds: number) => number;
}

function rowOf(pod: ReadonlyPod, { input, place, endOf }: DrainFacts): DrainRow {
  const budgets = budgetsOf(pod, input.budgets);
  const row = {
    namespace: pod.metadata.namespace ?? '',
    pod: pod.metadata.name ?? '',
    instance: undefined as string | undefined,
    strategy: undefined as EvictionStrategy | undefined,
    budgets: budgets.map((one) => `${one.metadata.name} (allows ${one.status?.disruptionsAllowed ?? 0})`),
    target: undefined as string | undefined,
    seconds: undefined as number | undefined,
    blocker: undefined as string | undefined,
  };
  const grace = pod.spec.terminationGracePeriodSeconds ?? 30;
  if (isIgnored(pod)) return { ...row, outcome: 'ignored' };
  const evicted = evictedPodOf(pod);
  if (evicted.type !== 'launcher') {
    if (isDeleting(pod)) return { ...row, outcome: 'leaves', seconds: grace };
    return { ...row, outcome: 'evicted', seconds: grace, blocker: budgetBlocker(budgets) };
  }
  row.instance = evicted.instance;
  const vmi = instanceOf(pod, input);
  if (!vmi) return { ...row, outcome: 'blocked', blocker: 'its VirtualMachineInstance cannot be read' };
  row.strategy = evictionStrategyOf(vmi, { evictionStrategy: input.clusterStrategy });
  if (isDeleting(pod) || isDeleting(vmi)) return { ...row, outcome: 'leaves', seconds: grace };
  const decision = evictionDecision({ vmi, strategy: row.strategy, nodeName: input.nodeName });
  const blocked = (blocker: string): DrainRow => ({ ...row, outcome: 'blocked', blocker });
  // Whoever has to end the guest, or to send it, is its agent; an outside controller may know of another way.
  if (isSilent(input) && row.strategy !== 'External')
    return blocked(
      `node ${input.nodeName} does not answer: its guests can neither be moved nor ended until its agent is back`,
    );
  if (decision.type === 'allow') {
    const held = budgetBlocker(budgets);
    if (held !== undefined) return blocked(held);
    if (!isRestarted(vmi, input.machines)) return { ...row, outcome: 'stops', seconds: grace };
    const { target, why } = place(pod);
    const blocker = why === undefined ? undefined : `leaves, but will not start again yet: ${why}`;
    return { ...row, outcome: 'restarts', seconds: grace, target, blocker };
  }
  if (row.strategy === 'External') {
    const blocker = vmi.status?.evacuationNodeName
      ? 'waits for the outside controller to delete or move it'
      : 'an outside controller must delete or move it once it is marked (status.evacuationNodeName)';
    return { ...row, outcome: 'waits', blocker };
  }
  if ((vmi.status?.nodeName ?? '') !== input.nodeName) {
    const { completed, failed, sourcePod } = vmi.status?.migrationState ?? {};
    const hasMoved = sourcePod === row.pod && completed === true && failed !== true;
    if (hasMoved) return { ...row, outcome: 'leaves', seconds: grace };
    return blocked('it is the target of a migration that is not done');
  }
  if (decision.type === 'refuse' && !vmi.status?.evacuationNodeName) {
    const condition = conditionOf(vmi, 'LiveMigratable');
    const because = condition?.message ?? condition?.reason;
    return blocked(because ? `${decision.message}: ${because}` : decision.message);
  }
  // Where it is on its way already, nobody chooses again: its own target Pod would keep the next one away.
  const coming = targetPodOf(pod, input);
  const { target, why } = coming ? { target: coming.spec.nodeName, why: unschedulable(coming) } : place(pod);
  if (why !== undefined) {
    const job = coming?.metadata.annotations?.[MIGRATION_JOB_NAME_ANNOTATION];
    return blocked(`no node can take the target Pod${job ? ` of migration ${job}` : ''}: ${why}`);
  }
  return { ...row, outcome: 'migrates', target, seconds: endOf(migrationSeconds(vmi, input)) };
}

/** The Pod that a migration has made for the guest of `pod`: not older than it, and on no or another node. */
function targetPodOf(pod: ReadonlyPod, { pods, nodeName }: DrainInput): ReadonlyPod | undefined {
  const uid = pod.metadata.labels?.[CREATED_BY_LABEL];
  return pods.find(
    (other) =>
      uid !== undefined &&
      other.metadata.labels?.[CREATED_BY_LABEL] === uid &&
      other.metadata.labels[MIGRATION_JOB_LABEL] !== undefined &&
      other.metadata.namespace === pod.metadata.namespace &&
      !isDeleting(other) &&
      (other.metadata.creationTimestamp ?? '') >= (pod.metadata.creationTimestamp ?? '') &&
      other.spec.nodeName !== nodeName &&
      !hasEnded(other),
  );
}

/** What the scheduler says of a Pod that it cannot place. */
function unschedulable(pod: ReadonlyPod): string | undefined {
  const said = conditionOf(pod, 'PodScheduled');
  return pod.spec.nodeName || said?.reason !== 'Unschedulable' ? undefined : said.message;
}

/** Tells when each migration of a node ends, in seconds, when only so many run at once. */
function migrationSlots(count: number): (seconds: number) => number {
  const ends = Array.from({ length: count }, () => 0);
  return (seconds) => {
    const free = ends.indexOf(Math.min(...ends));
    ends[free]! += seconds;
    return Math.ceil(ends[free]!);
  };
}

function migrationSeconds(vmi: ReadonlyVmi, input: DrainInput): number {
  const memory =
    bytesOf(vmi.status?.memory?.guestCurrent) ||
    bytesOf(vmi.spec.domain?.memory?.guest) ||
    bytesOf(vmi.spec.domain?.resources?.requests?.['memory']);
  const policy = matchPolicy(input.policies ?? [], {
    instanceLabels: vmi.metadata.labels ?? {},
    namespaceLabels: input.namespaceLabels(vmi.metadata.namespace ?? '') ?? {},
  });
  const limit = bytesOf(policy?.spec.bandwidthPerMigration ?? input.migrations.options.bandwidthPerMigration);
  return MIGRATION_OVERHEAD + memory / (limit > 0 ? limit : ASSUMED_BANDWIDTH);
}

function bytesOf(text: string | number | undefined): number {
  const quantity = readQuantity(text);
  return quantity === undefined ? 0 : quantityValue(quantity);
}

/** The node's agent has stopped reporting: node-lifecycle-controller has set its conditions to Unknown. */
function isSilent({ nodes, nodeName }: DrainInput): boolean {
  const node = nodes.find(({ metadata }) => metadata.name === nodeName);
  return conditionOf(node, 'Ready')?.status === 'Unknown';
}

function instanceOf(pod: ReadonlyPod, { instances }: DrainInput): ReadonlyVmi | undefined {
  const evicted = evictedPodOf(pod);
  if (evicted.type !== 'launcher') return undefined;
  return instances.find(
    ({ metadata }) => metadata.namespace === pod.metadata.namespace && metadata.name === evicted.instance,
  );
}

/**
 * The Pod as if it were made anew: without a node or a past, and not beside its own source. What the migration that
 * brought it here asked of this node (`addedNodeSelector`) the next one does not ask for.
 */
function asNewPod(pod: ReadonlyPod, asked: Readonly<Record<string, string>>): Pod {
  const { nodeName: _node, ...spec } = cloneJson<Pod>(pod).spec;
  if (pod.metadata.labels?.[MIGRATION_JOB_LABEL] !== undefined && spec.nodeSelector)
    spec.nodeSelector = Object.fromEntries(
      Object.entries(spec.nodeSelector).filter(
        ([key]) => Object.hasOwn(asked, key) || key === 'kubernetes.io/arch' || /(^|\.)kubevirt\.io\//.test(key),
      ),
    );
  const uid = pod.metadata.labels?.[CREATED_BY_LABEL];
  if (uid) spec.affinity = apartFrom(uid, spec.affinity);
  const { name = '', namespace = '', labels } = pod.metadata;
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace, labels: { ...labels } }, spec };
}

/** A guest that was shut down is started again where the strategy wants it to run; RerunOnFailure takes a shutdown for success. */
function isRestarted(vmi: ReadonlyVmi, machines: readonly ReadonlyVm[]): boolean {
  const owner = controllerOf(vmi, 'VirtualMachine');
  const { namespace } = vmi.metadata;
  const machine = machines.find(({ metadata }) => metadata.uid === owner?.uid && metadata.namespace === namespace);
  return owner !== undefined && machine !== undefined && effectiveRunStrategy(machine.spec) === 'Always';
}

function budgetsOf(pod: ReadonlyPod, budgets: DrainInput['budgets']): DrainInput['budgets'] {
  return budgets.filter((budget) => {
    if (budget.metadata.namespace !== pod.metadata.namespace || !budget.spec?.selector) return false;
    try {
      return matchesLabels(fromLabelSelectorObject(budget.spec.selector), pod.metadata.labels);
    } catch {
      return false;
    }
  });
}

/** What the eviction API would say of the budgets. */
function budgetBlocker(all: DrainInput['budgets']): string | undefined {
  const budgets = all.filter(({ metadata }) => !metadata.name?.startsWith(OWN_BUDGET));
  if (all.length > 1)
    return `more than one budget covers it (${all.map(({ metadata }) => metadata.name).join(', ')}): the eviction API refuses that`;
  const [budget] = budgets;
  if (!budget || (budget.status?.disruptionsAllowed ?? 0) > 0) return undefined;
  const { desiredHealthy = 0, currentHealthy = 0 } = budget.status ?? {};
  return `the disruption budget ${budget.metadata.name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`;
}

const isIgnored = (pod: ReadonlyPod): boolean =>
  pod.metadata.annotations?.[MIRROR] !== undefined || controllerOf(pod, 'DaemonSet') !== undefined;
