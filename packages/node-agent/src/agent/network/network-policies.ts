/**
 * NetworkPolicies as rules for packets: pure. A Pod that a policy selects is closed but for what the rules of all policies
 * on it let pass (networking.k8s.io/v1). What this node sends to its guests is let pass, as from every node.
 */
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import {
  fromLabelSelectorObject,
  type LabelSelectorObject,
  matchesLabels,
} from '@coracle/apimachinery/selector/label-selector';
import type {
  Namespace,
  NetworkPolicy,
  NetworkPolicyPeer,
  NetworkPolicyPort,
  Pod,
} from '@coracle/apimachinery/types/types';
import type { NetworkRule, PassRule } from '../../network/switch/switch-state.ts';

type ReadonlyPod = DeepReadonly<Pod>;
type RulePorts = NonNullable<PassRule['ports']>;

export interface PolicyObjects {
  /** That have an address on the network of Pods. */
  readonly pods: readonly ReadonlyPod[];
  readonly namespaces: readonly DeepReadonly<Namespace>[];
  readonly policies: readonly DeepReadonly<NetworkPolicy>[];
}

export interface PolicyRules {
  readonly rules: readonly NetworkRule[];
  /** By Pod address: ids of `rules`; a direction that no policy closes is absent. */
  readonly of: ReadonlyMap<string, { readonly ingress?: readonly string[]; readonly egress?: readonly string[] }>;
}

const addressOf = ({ status }: ReadonlyPod): string => status?.podIP ?? '';
const protocolOf = (name = 'TCP'): 'tcp' | 'udp' | 'sctp' => name.toLowerCase() as 'tcp' | 'udp' | 'sctp';

const selects = (
  selector: DeepReadonly<LabelSelectorObject> | undefined,
  labels: Readonly<Record<string, string>> = {},
): boolean => matchesLabels(fromLabelSelectorObject(selector as LabelSelectorObject), labels);

/** Makes rules of all policies. */
export function policyRules({ pods, namespaces, policies }: PolicyObjects): PolicyRules {
  const labelsOf = new Map(namespaces.map(({ metadata }) => [metadata.name, metadata.labels]));
  const rules = new Map<string, NetworkRule>();
  /** `id` says where the rule stands; a port by name is another number at each Pod, and so another rule. */
  const idOf = (id: string, rule: PassRule): string => {
    rules.set(id, { id, ...rule });
    return id;
  };
  const found = new Map<string, { ingress?: string[]; egress?: string[] }>();

  const peersOf = (namespace: string, peers: readonly DeepReadonly<NetworkPolicyPeer>[]): ReadonlyPod[] =>
    pods.filter((pod) =>
      peers.some(({ podSelector, namespaceSelector, ipBlock }) => {
        if (ipBlock) return false;
        const own = pod.metadata.namespace ?? '';
        const isThere = namespaceSelector ? selects(namespaceSelector, labelsOf.get(own)) : own === namespace;
        return isThere && (!podSelector || selects(podSelector, pod.metadata.labels));
      }),
    );
  const otherEnd = (
    namespace: string,
    peers: readonly DeepReadonly<NetworkPolicyPeer>[] | undefined,
  ): PassRule & { pods: ReadonlyPod[] } => {
    if (!peers || peers.length === 0) return { anybody: true, pods: [...pods] };
    const blocks = peers.flatMap(({ ipBlock }) =>
      ipBlock ? [{ cidr: ipBlock.cidr, except: ipBlock.except ?? [] }] : [],
    );
    const named = peersOf(namespace, peers);
    return { addresses: [...new Set(named.map(addressOf))].sort(), ...(blocks.length > 0 && { blocks }), pods: named };
  };

  for (const { metadata, spec = {} } of policies) {
    const namespace = metadata.namespace ?? '';
    const types = spec.policyTypes ?? ['Ingress', ...(spec.egress ? ['Egress'] : [])];
    const selected = pods.filter(
      (pod) => pod.metadata.namespace === namespace && selects(spec.podSelector ?? {}, pod.metadata.labels),
    );
    const at = `${namespace}/${metadata.name}`;
    const ingress = (spec.ingress ?? []).map(({ from, ports }, place) => ({
      end: otherEnd(namespace, from),
      ports,
      id: `${at} in ${place}`,
    }));
    const egress = (spec.egress ?? []).flatMap(({ to, ports }, place) =>
      egressRules(otherEnd(namespace, to), ports).map(({ variant, rule }) =>
        idOf(`${at} out ${place}${variant}`, rule),
      ),
    );
    for (const pod of selected) {
      const entry = found.get(addressOf(pod)) ?? {};
      found.set(addressOf(pod), entry);
      if (types.includes('Ingress')) {
        entry.ingress ??= [];
        for (const { end, ports, id } of ingress) {
          const { pods: _, ...rule } = end;
          const resolved = portsOf(ports, pod);
          const variant = ports?.some(({ port }) => typeof port === 'string') ? ` ${JSON.stringify(resolved)}` : '';
          entry.ingress.push(idOf(`${id}${variant}`, resolved ? { ...rule, ports: resolved } : rule));
        }
      }
      if (types.includes('Egress')) entry.egress = [...(entry.egress ?? []), ...egress];
    }
  }
  return { rules: [...rules.values()], of: found };
}

/** A port by name is another number at each Pod that is spoken to: a rule for each number. */
function egressRules(
  { pods, ...end }: PassRule & { readonly pods: readonly ReadonlyPod[] },
  ports: readonly DeepReadonly<NetworkPolicyPort>[] | undefined,
): { readonly variant: string; readonly rule: PassRule }[] {
  if (!ports || ports.length === 0) return [{ variant: '', rule: end }];
  const numbered = ports.filter(({ port }) => typeof port !== 'string');
  const named = ports.filter(({ port }) => typeof port === 'string');
  const rules: { variant: string; rule: PassRule }[] =
    numbered.length > 0
      ? [{ variant: '', rule: { ...end, ports: numbered.flatMap((port) => rangeOf(port, undefined)) } }]
      : [];
  for (const port of named) {
    const groups = Map.groupBy(pods, (pod) => JSON.stringify(rangeOf(port, pod)));
    for (const [text, same] of groups) {
      const range = JSON.parse(text) as RulePorts;
      if (range.length === 0) continue;
      rules.push({ variant: ` ${port.port} ${text}`, rule: { addresses: same.map(addressOf).sort(), ports: range } });
    }
  }
  return rules;
}

/** Undefined: all ports. */
function portsOf(
  ports: readonly DeepReadonly<NetworkPolicyPort>[] | undefined,
  pod: ReadonlyPod,
): RulePorts | undefined {
  return ports && ports.length > 0 ? ports.flatMap((port) => rangeOf(port, pod)) : undefined;
}

function rangeOf(
  { protocol, port, endPort }: DeepReadonly<NetworkPolicyPort>,
  pod: ReadonlyPod | undefined,
): RulePorts {
  const name = protocolOf(protocol);
  if (port === undefined) return [{ protocol: name, from: 0, to: 65_535 }];
  if (typeof port === 'number') return [{ protocol: name, from: port, to: endPort ?? port }];
  const found = pod?.spec.containers
    .flatMap(({ ports: declared }) => declared ?? [])
    .find((one) => one.name === port && protocolOf(one.protocol) === name);
  return found ? [{ protocol: name, from: found.containerPort, to: found.containerPort }] : [];
}
