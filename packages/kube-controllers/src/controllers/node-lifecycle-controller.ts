/**
 * Notices nodes that have gone silent and marks nodes by their conditions. The agent owns its node's conditions as long
 * as it renews its Lease; a Lease that has not moved for 50 s (by this process's clock: clocks of nodes are not trusted)
 * hands them over, and they become Unknown. Taints follow the conditions and `spec.unschedulable`; Pods of a node that
 * is not ready are not ready either. When no node at all is ready, the trouble is ours rather than theirs: then nothing
 * is marked to leave (kube-controller-manager's master disruption mode).
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { formatTime } from '@coracle/apimachinery/meta/object';
import { conditionOf, isConditionTrue } from '@coracle/apimachinery/meta/object-state';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { LEASES, NODES, PODS } from '@coracle/apimachinery/types/resource-types';
import type { Node, NodeCondition, Taint } from '@coracle/apimachinery/types/types';
import { isNotFound, orGone } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { createController, ownKeys, requeueAfter, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { patchPodStatus, podsByNode } from '../pod-disruption.ts';

export const nodeLifecycleRules = policyRules(
  'list watch patch : core : nodes',
  'patch : core : nodes/status',
  'list watch : coordination.k8s.io : leases',
  'list watch : core : pods',
  'patch : core : pods/status',
  'create patch : core : events',
);

const LEASE_NAMESPACE = 'kube-node-lease';
/** kube-controller-manager's node-monitor-period and node-monitor-grace-period. */
const PERIOD_MS = 5_000;
const GRACE_MS = 50_000;

/** Conditions that become Unknown when the node is silent. */
const WATCHED = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'] as const;

/** Reason of events, and of the Ready condition of Pods whose node is silent. */
const NODE_NOT_READY = 'NodeNotReady';
const NOT_READY = 'node.kubernetes.io/not-ready';
const UNREACHABLE = 'node.kubernetes.io/unreachable';

/** Conditions that are bad when True, and their taint. */
const PRESSURE: Readonly<Record<string, string>> = {
  MemoryPressure: 'node.kubernetes.io/memory-pressure',
  DiskPressure: 'node.kubernetes.io/disk-pressure',
  PIDPressure: 'node.kubernetes.io/pid-pressure',
  NetworkUnavailable: 'node.kubernetes.io/network-unavailable',
};
const UNSCHEDULABLE = 'node.kubernetes.io/unschedulable';
const MANAGED = new Set([NOT_READY, UNREACHABLE, UNSCHEDULABLE, ...Object.values(PRESSURE)]);

const statusOf = (node: DeepReadonly<Node>, type: string): string | undefined => conditionOf(node, type)?.status;

/**
 * The taints a node should have: those of others as they are, ours by its conditions. `now` stamps new NoExecute taints;
 * there are none while `isDisrupted`.
 */
export function wantedTaints(
  node: DeepReadonly<Node>,
  now: number,
  { isDisrupted = false }: { readonly isDisrupted?: boolean } = {},
): Taint[] {
  const held = node.spec?.taints ?? [];
  const wanted: Taint[] = [];
  const want = (key: string, effect: Taint['effect']): void => {
    const known = held.find((one) => one.key === key && one.effect === effect);
    if (known) wanted.push(cloneJson<Taint>(known));
    else wanted.push({ key, effect, ...(effect === 'NoExecute' && { timeAdded: formatTime(now) }) });
  };
  const ready = statusOf(node, 'Ready');
  if (node.spec?.unschedulable) want(UNSCHEDULABLE, 'NoSchedule');
  for (const [condition, key] of Object.entries(PRESSURE)) {
    if (statusOf(node, condition) === 'True') want(key, 'NoSchedule');
  }
  if (ready === 'Unknown') {
    want(UNREACHABLE, 'NoSchedule');
    if (!isDisrupted) want(UNREACHABLE, 'NoExecute');
  } else if (ready !== 'True') {
    want(NOT_READY, 'NoSchedule');
    // A node that has not reported yet is not ready, but nothing on it needs to leave.
    if (ready === 'False' && !isDisrupted) want(NOT_READY, 'NoExecute');
  }
  return [...held.filter((one) => !MANAGED.has(one.key)).map((one) => cloneJson<Taint>(one)), ...wanted];
}

/** The conditions of a node that is silent. */
export function silentConditions(node: DeepReadonly<Node>, now: number): NodeCondition[] {
  const conditions = cloneJson<NodeCondition[]>(node.status?.conditions ?? []);
  const unknown = { status: 'Unknown', lastTransitionTime: formatTime(now) } as const;
  for (const type of WATCHED) {
    const known = conditions.find((one) => one.type === type);
    if (!known) {
      const message = 'Kubelet never posted node status.';
      conditions.push({ type, ...unknown, reason: 'NodeStatusNeverUpdated', message });
    } else if (known.status !== 'Unknown') {
      const message = 'Kubelet stopped posting node status.';
      Object.assign(known, { ...unknown, reason: 'NodeStatusUnknown', message });
    }
  }
  return conditions;
}

/** Makes the controller; its keys are nodes. */
export function createNodeLifecycleController(environment: ControllerEnvironment) {
  const { client, informers, clock, log } = environment;
  const nodes = informers.of(NODES);
  const leases = informers.of(LEASES);
  const pods = informers.of(PODS);
  const podsOf = podsByNode(pods);
  const recorder = createEventRecorder(client, { component: 'node-controller', clock, log });
  /** Node -> the last sign of life, and when this process saw it. */
  const seen = new Map<string, { sign: string; at: number }>();

  const signOfLife = (node: DeepReadonly<Node>): string => {
    const name = node.metadata.name ?? '';
    const renewed = leases.get({ namespace: LEASE_NAMESPACE, name })?.spec?.renewTime ?? '';
    const ready = conditionOf(node, 'Ready');
    return `${node.metadata.uid}|${renewed}|${ready?.status === 'Unknown' ? '' : (ready?.lastHeartbeatTime ?? '')}`;
  };

  /** Nobody can say any more whether these Pods are ready. Their agent will, when it is back. */
  const markPodsNotReady = async (nodeName: string, signal: AbortSignal): Promise<void> => {
    for (const pod of podsOf(nodeName)) {
      if (!isConditionTrue(pod, 'Ready')) continue;
      const message = 'Node is not ready';
      const lastTransitionTime = formatTime(clock.now());
      const condition = { type: 'Ready', status: 'False', reason: NODE_NOT_READY, message, lastTransitionTime };
      const written = await orGone(patchPodStatus(client, pod, { conditions: [condition] }, signal));
      if (written) recorder.event(pod, 'Warning', NODE_NOT_READY, message);
    }
  };

  const isDisrupted = (): boolean => nodes.list().every((node) => statusOf(node, 'Ready') !== 'True');

  return createController({
    ...environment,
    name: 'node-lifecycle-controller',
    sources: [
      ownKeys(nodes),
      // Pods are read when their node is; a change of one is no reason for a pass.
      source(pods, () => []),
      source(leases, ({ metadata }) =>
        metadata.namespace === LEASE_NAMESPACE ? [{ namespace: '', name: metadata.name ?? '' }] : [],
      ),
    ],
    async reconcile(key, { signal, log: passLog }) {
      const node = nodes.get(key);
      if (!node) {
        if (seen.delete(key.name))
          recorder.event(goneNode(key.name), 'Normal', 'RemovingNode', nodeEvent(key.name, 'Removing', 'from'));
        return;
      }
      const now = clock.monotonic();
      const sign = signOfLife(node);
      let last = seen.get(key.name);
      if (!last) recorder.event(node, 'Normal', 'RegisteredNode', nodeEvent(key.name, 'Registered', 'in'));
      // Our own write of Unknown changes the sign too, from a heartbeat to none: that is no life.
      if (!last || (last.sign !== sign && !isOnlySilence(last.sign, sign))) last = { sign, at: now };
      seen.set(key.name, { sign, at: last.at });

      try {
        if (now - last.at >= GRACE_MS && WATCHED.some((type) => statusOf(node, type) !== 'Unknown')) {
          const after = cloneJson<Node>(node);
          after.status = { ...after.status, conditions: silentConditions(node, clock.now()) };
          await commit(client, NODES, { before: node, after, signal });
          passLog.warn('node is silent', { silentMs: Math.round(now - last.at) });
          recorder.event(node, 'Normal', NODE_NOT_READY, `Node ${key.name} status is now: NodeNotReady`);
          return requeueAfter(PERIOD_MS);
        }
        const ready = statusOf(node, 'Ready');
        if (ready === 'Unknown' || ready === 'False') await markPodsNotReady(key.name, signal);
        const taints = wantedTaints(node, clock.now(), { isDisrupted: isDisrupted() });
        if (!deepEqual(taints, node.spec?.taints ?? [])) {
          const after = cloneJson<Node>(node);
          const { taints: _old, ...spec } = after.spec ?? {};
          after.spec = taints.length === 0 ? spec : { ...spec, taints };
          await commit(client, NODES, { before: node, after, signal });
        }
      } catch (error) {
        if (!isNotFound(error)) throw error;
        return;
      }
      return requeueAfter(PERIOD_MS);
    },
  });
}

const nodeEvent = (name: string, what: string, where: string): string =>
  `Node ${name} event: ${what} Node ${name} ${where} Controller`;
/** What an event about a node that is no more can still name. */
const goneNode = (name: string) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name } });

const isOnlySilence = (before: string, after: string): boolean =>
  after === before.slice(0, before.lastIndexOf('|') + 1);
