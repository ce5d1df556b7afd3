/** The Pods of the cluster as packets are carried by, with what NetworkPolicies let pass to and from each. */
import { numberOf } from '../ipv4-frame.ts';
import { type PacketRuleSet, ruleSet } from './packet-policy.ts';
import type { NetworkChange, NetworkPod, NetworkRule } from './switch-state.ts';

export interface PodEntry {
  readonly nodes: readonly string[];
  readonly ingress: PacketRuleSet | undefined;
  readonly egress: PacketRuleSet | undefined;
  /** What its filter is to know of `egress`. */
  readonly egressText: string;
}

export interface PodTable {
  /** The addresses of Pods that are new, different or gone. */
  change(change: NetworkChange): Set<number>;
  get(address: number): PodEntry | undefined;
}

/** Makes an empty one. */
export function createPodTable(): PodTable {
  const pods = new Map<string, NetworkPod>();
  const entries = new Map<number, PodEntry>();
  const rules = new Map<string, NetworkRule>();
  /** Prepared, by the ids of their rules; emptied when a rule changes. */
  const sets = new Map<string, PacketRuleSet>();
  const rulesOf = (ids: readonly string[]): NetworkRule[] => ids.flatMap((id) => rules.get(id) ?? []);
  const setOf = (ids: readonly string[] | undefined): PacketRuleSet | undefined => {
    if (!ids) return undefined;
    const key = JSON.stringify(ids);
    const found = sets.get(key) ?? ruleSet(rulesOf(ids));
    sets.set(key, found);
    return found;
  };
  // Addresses of Pods say nothing about the world.
  const worldOf = (ids: readonly string[]): string =>
    JSON.stringify(
      rulesOf(ids).flatMap(({ blocks = [], anybody = false, ports }) =>
        blocks.length > 0 || anybody ? [{ blocks, anybody, ...(ports && { ports }) }] : [],
      ),
    );
  const changeRules = ({ whole, rules: news = {} }: NetworkChange): boolean => {
    const { set = [], remove = [] } = news;
    if (whole) rules.clear();
    for (const id of remove) rules.delete(id);
    for (const rule of set) rules.set(rule.id, rule);
    return whole === true || set.length + remove.length > 0;
  };
  return {
    change(change) {
      const { whole, pods: news = {} } = change;
      const touched = new Set<string>(whole ? pods.keys() : []);
      if (whole) pods.clear();
      for (const address of news.remove ?? []) {
        pods.delete(address);
        touched.add(address);
      }
      for (const pod of news.set ?? []) {
        pods.set(pod.address, pod);
        touched.add(pod.address);
      }
      if (changeRules(change)) {
        sets.clear();
        for (const { address, ingress, egress } of pods.values()) if (ingress || egress) touched.add(address);
      }
      for (const address of touched) {
        const pod = pods.get(address);
        if (!pod) {
          entries.delete(numberOf(address));
          continue;
        }
        const { nodes, ingress, egress } = pod;
        entries.set(numberOf(address), {
          nodes,
          ingress: setOf(ingress),
          egress: setOf(egress),
          egressText: egress ? worldOf(egress) : '',
        });
      }
      return new Set([...touched].map(numberOf));
    },
    get: (address) => entries.get(address),
  };
}
