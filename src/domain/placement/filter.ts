/**
 * May this Pod go on this node? Filters in kube-scheduler's order; the first that refuses tells the reason, in
 * upstream's words: people and tests look for them in the PodScheduled condition.
 */
import type { Pod } from '../../api/kinds/builtin/types.ts';
import type { DeepReadonly } from '../../api/meta/object.ts';
import { matchesNodeAffinity } from './node-affinity.ts';
import type { NodeUsage } from './node-usage.ts';
import type { PodAffinityRules } from './pod-affinity.ts';
import { podRequests } from './pod-requests.ts';
import { tolerates, untoleratedTaint } from './taints.ts';

/** Why not; empty when the Pod fits. Only resources give more than one reason. */
export function filterNode(pod: DeepReadonly<Pod>, usage: NodeUsage, affinity: PodAffinityRules): string[] {
  for (const filter of FILTERS) {
    const reasons = filter(pod, usage, affinity);
    if (reasons.length > 0) return reasons;
  }
  return [];
}

type Filter = (pod: DeepReadonly<Pod>, usage: NodeUsage, affinity: PodAffinityRules) => string[];

const UNSCHEDULABLE = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' } as const;

const unschedulable: Filter = (pod, { node }) => {
  if (!node.spec?.unschedulable) return [];
  const tolerated = (pod.spec.tolerations ?? []).some((one) => tolerates(one, UNSCHEDULABLE));
  return tolerated ? [] : ['node(s) were unschedulable'];
};

const taints: Filter = (pod, { node }) => {
  const taint = untoleratedTaint(pod, node, ['NoSchedule', 'NoExecute']);
  return taint ? [`node(s) had untolerated taint {${taint.key}: ${taint.value ?? ''}}`] : [];
};

const nodeAffinity: Filter = (pod, { node }) =>
  matchesNodeAffinity(pod, node) ? [] : ["node(s) didn't match Pod's node affinity/selector"];

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
  if (wanted.length === 0) return [];
  const taken = usage.pods.flatMap(hostPorts);
  const clash = wanted.some((a) =>
    taken.some(
      (b) =>
        a.port === b.port && a.protocol === b.protocol && (a.ip === b.ip || a.ip === '0.0.0.0' || b.ip === '0.0.0.0'),
    ),
  );
  return clash ? ["node(s) didn't have free ports for the requested pod ports"] : [];
};

const resources: Filter = (pod, { allocatable, requested, pods }) => {
  const reasons: string[] = [];
  const room = allocatable.get('pods');
  if (room !== undefined && pods.length + 1 > room) reasons.push('Too many pods');
  for (const [resource, amount] of podRequests(pod)) {
    if (amount === 0 || resource === 'pods') continue;
    if (amount > (allocatable.get(resource) ?? 0) - (requested.get(resource) ?? 0)) {
      reasons.push(`Insufficient ${resource}`);
    }
  }
  return reasons;
};

const podAffinity: Filter = (_pod, usage, affinity) => {
  const verdict = affinity.check(usage);
  switch (verdict) {
    case 'fits':
      return [];
    case 'affinity':
      return ["node(s) didn't match pod affinity rules"];
    case 'anti-affinity':
      return ["node(s) didn't match pod anti-affinity rules"];
    case 'existing-anti-affinity':
      return ["node(s) didn't satisfy existing pods anti-affinity rules"];
  }
};

const FILTERS: readonly Filter[] = [unschedulable, taints, nodeAffinity, ports, resources, podAffinity];
