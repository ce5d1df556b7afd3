/**
 * May this Pod go on this node? Filters in kube-scheduler's order; the first that refuses tells the reason, in
 * upstream's words: people and tests look for them in the PodScheduled condition.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { Pod } from '@coracle/apimachinery/types/types';
import { matchesNodeAffinity } from './node-affinity.ts';
import { TPM_LABEL } from './node-labels.ts';
import type { NodeUsage } from './node-usage.ts';
import { type NamespaceLabels, type PodAffinityRules, podAffinityRules } from './pod-affinity.ts';
import { podRequests } from './pod-requests.ts';
import type { PodVolumes } from './pod-volumes.ts';
import { final, forNow, type Refusal } from './refusal.ts';
import { tolerates, untoleratedTaint } from './taints.ts';
import { type SpreadRules, spreadRules } from './topology-spread.ts';

/** What depends on all nodes together; made once for a Pod. */
export interface ClusterRules {
  readonly volumes?: PodVolumes | undefined;
  readonly affinity: PodAffinityRules;
  readonly spread: SpreadRules;
}

/** Reads what the Pod and the Pods already placed ask of their neighbours. */
export const clusterRules = (
  pod: DeepReadonly<Pod>,
  nodes: readonly NodeUsage[],
  {
    namespaceLabels,
    volumes,
  }: { readonly namespaceLabels: NamespaceLabels; readonly volumes?: PodVolumes | undefined },
): ClusterRules => ({
  affinity: podAffinityRules(pod, nodes, namespaceLabels),
  spread: spreadRules(pod, nodes),
  volumes,
});

/** Undefined when the Pod fits. */
export const filterNode: Filter = (pod, usage, rules) => {
  for (const filter of FILTERS) {
    const refusal = filter(pod, usage, rules);
    if (refusal) return refusal;
  }
  return undefined;
};

type Filter = (pod: DeepReadonly<Pod>, usage: NodeUsage, rules: ClusterRules) => Refusal | undefined;

const UNSCHEDULABLE = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' } as const;

const unschedulable: Filter = (pod, { node }) => {
  if (!node.spec?.unschedulable) return undefined;
  const tolerated = (pod.spec.tolerations ?? []).some((one) => tolerates(one, UNSCHEDULABLE));
  return tolerated ? undefined : final('node(s) were unschedulable');
};

const taints: Filter = (pod, { node }) => {
  const taint = untoleratedTaint(pod, node, ['NoSchedule', 'NoExecute']);
  // 1.36 names no taint: a Pod's owner may not be one who may read nodes.
  return taint ? final('node(s) had untolerated taint(s)') : undefined;
};

const nodeAffinity: Filter = (pod, { node }) => {
  const needsTpm = pod.spec.nodeSelector?.[TPM_LABEL] !== undefined;
  // A label of ours: what to do about it must not be a riddle.
  if (needsTpm && node.metadata.labels?.[TPM_LABEL] === undefined) return final('node(s) had no TPM emulator (swtpm)');
  return matchesNodeAffinity(pod, node) ? undefined : final("node(s) didn't match Pod's node affinity/selector");
};

/** host ports of a Pod as `protocol/ip/port`. */
const hostPorts = (pod: DeepReadonly<Pod>): { protocol: string; ip: string; port: number }[] =>
  [...pod.spec.containers, ...(pod.spec.initContainers ?? []).filter((one) => one.restartPolicy === 'Always')].flatMap(
    (container) =>
      (container.ports ?? []).flatMap(({ hostPort = 0, protocol = 'TCP', hostIP = '' }) =>
        hostPort > 0 ? [{ protocol, ip: hostIP === '' ? '0.0.0.0' : hostIP, port: hostPort }] : [],
      ),
  );

const ports: Filter = (pod, usage) => {
  const wanted = hostPorts(pod);
  if (wanted.length === 0) return undefined;
  const taken = usage.pods.flatMap(hostPorts);
  const clash = wanted.some((a) =>
    taken.some(
      (b) =>
        a.port === b.port && a.protocol === b.protocol && (a.ip === b.ip || a.ip === '0.0.0.0' || b.ip === '0.0.0.0'),
    ),
  );
  return clash ? forNow("node(s) didn't have free ports for the requested pod ports") : undefined;
};

const resources: Filter = (pod, { allocatable, requested, pods }) => {
  const reasons: string[] = [];
  let mayChange = true;
  const room = allocatable.get('pods');
  if (room !== undefined && pods.length + 1 > room) reasons.push('Too many pods');
  for (const [resource, amount] of podRequests(pod)) {
    if (amount === 0 || resource === 'pods') continue;
    const offered = allocatable.get(resource) ?? 0;
    if (amount <= offered - (requested.get(resource) ?? 0)) continue;
    reasons.push(`Insufficient ${resource}`);
    // More than the whole node has: emptying it would not help.
    if (amount > offered) mayChange = false;
  }
  return reasons.length === 0 ? undefined : { reasons, mayChange };
};

const volumes: Filter = (_pod, { node }, rules) => {
  const reason = rules.volumes?.refusal ?? rules.volumes?.refusalOf(node);
  return reason === undefined ? undefined : final(reason);
};

const FILTERS: readonly Filter[] = [
  unschedulable,
  taints,
  nodeAffinity,
  ports,
  resources,
  volumes,
  (_pod, usage, rules) => rules.spread.check(usage),
  (_pod, usage, rules) => rules.affinity.check(usage),
];
