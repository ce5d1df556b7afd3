/**
 * Networks beside that of Pods, as Multus has them: which an instance is on, and how its launcher Pod and its node speak of
 * them (Kubernetes Network Custom Resource Definition De-facto Standard, version 1.3, sections 4 and 6).
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { Interface, Network, NetworkAttachmentDefinition } from '../../kinds/kinds.ts';
import type { ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { sha256 } from '../identity/sha256.ts';

const encoder = new TextEncoder();

/** Annotation of a Pod: the networks that it is to be on. */
export const NETWORKS_ANNOTATION = 'k8s.v1.cni.cncf.io/networks';
/** Annotation of a Pod: those that it is on. */
export const NETWORK_STATUS_ANNOTATION = 'k8s.v1.cni.cncf.io/network-status';
/** The Pod's end of the network of Pods. */
export const POD_INTERFACE = 'eth0';
/** CNI plug-ins whose networks are a segment of the second layer, which a node here can make. */
const SERVED_PLUGINS: readonly string[] = ['bridge', 'cnv-bridge'];

/** A card's place on a network beside that of Pods. */
export interface Segment {
  /** The NetworkAttachmentDefinition, `NAMESPACE/NAME`: who names the same one is on the same segment. */
  readonly definition: string;
  /** The Pod's end, as upstream names it. */
  readonly podInterface: string;
}

/** Upstream's hashed scheme (pkg/network/namescheme): of the network's name in the instance, 14 characters. */
export const podInterfaceName = (network: string): string => `pod${sha256(encoder.encode(network)).slice(0, 11)}`;

/** The segment that a card is on; undefined for one of the network of Pods, and for what is not served. */
export function segmentOf(
  nic: DeepReadonly<Interface>,
  network: DeepReadonly<Network> | undefined,
  namespace: string,
): Segment | undefined {
  const { multus } = network ?? {};
  if (!multus || multus.default || !nic.bridge) return undefined;
  const { networkName } = multus;
  const definition = networkName.includes('/') ? networkName : `${namespace}/${networkName}`;
  return { definition, podInterface: podInterfaceName(nic.name) };
}

/** The cards that an instance is to have on networks beside that of Pods. */
export function segmentCards({ metadata, spec }: ReadonlyVmi): SegmentCard[] {
  const networks = new Map((spec.networks ?? []).map((network) => [network.name, network]));
  return (spec.domain?.devices?.interfaces ?? []).flatMap((nic) => {
    const segment =
      nic.state === 'absent' ? undefined : segmentOf(nic, networks.get(nic.name), metadata.namespace ?? '');
    return segment ? [{ nic, segment }] : [];
  });
}

interface SegmentCard {
  readonly nic: DeepReadonly<Interface>;
  readonly segment: Segment;
}

/** The annotation of the launcher Pod; undefined where the instance has no such network. */
export function networksAnnotation(vmi: ReadonlyVmi): string | undefined {
  const elements = segmentCards(vmi).map(({ nic, segment }) => {
    const [namespace = '', name = ''] = segment.definition.split('/');
    return { name, namespace, ...(nic.macAddress && { mac: nic.macAddress }), interface: segment.podInterface };
  });
  return elements.length === 0 ? undefined : JSON.stringify(elements);
}

/** The definitions that a Pod's annotation names, as `NAMESPACE/NAME`; of one that cannot be read, none. */
export function definitionsOf(annotations: Readonly<Record<string, string>> | undefined): string[] {
  try {
    const read: unknown = JSON.parse(annotations?.[NETWORKS_ANNOTATION] ?? '[]');
    const names = (Array.isArray(read) ? read : [])
      .filter(isJsonObject)
      .map(({ namespace, name }) => `${namespace}/${name}`);
    return [...new Set(names)];
  } catch {
    return [];
  }
}

/** What a Pod on no network beside that of Pods says of it: nothing. */
export const NO_NETWORK_STATUS = '[]';

/** The annotation that says what a Pod is on: the network of Pods, whose `address` it has, and those beside it. */
export function networkStatusText(
  cards: readonly { readonly mac: string; readonly segment?: Segment }[],
  address: string | undefined,
): string {
  if (!cards.some(({ segment }) => segment)) return NO_NETWORK_STATUS;
  const status = cards.map(({ mac, segment }) =>
    segment
      ? { name: segment.definition, interface: segment.podInterface, mac, dns: {} }
      : { name: 'coracle', interface: POD_INTERFACE, ...(address && { ips: [address] }), mac, default: true, dns: {} },
  );
  return JSON.stringify(status, undefined, 4);
}

/** What a definition says of the cards on its network: why none can be on it here, or what they share. */
export function readDefinition({
  spec,
}: DeepReadonly<NetworkAttachmentDefinition>): { readonly problem: string } | { readonly checksAddress?: true } {
  const text = spec?.config ?? '';
  const served = `networks of type ${SERVED_PLUGINS.join(' and ')} are served`;
  if (text === '') return { problem: `it has no spec.config; ${served}` };
  let config: unknown;
  try {
    config = JSON.parse(text);
  } catch {
    return { problem: 'its spec.config is not JSON' };
  }
  const one = isJsonObject(config) ? config : {};
  // In a list the first makes the network; those behind it set it up.
  const first: unknown = Array.isArray(one['plugins']) ? one['plugins'][0] : one;
  const { type, macspoofchk } = isJsonObject(first) ? first : {};
  if (typeof type !== 'string') return { problem: `its spec.config names no type; ${served}` };
  if (!SERVED_PLUGINS.includes(type)) return { problem: `type ${JSON.stringify(type.slice(0, 63))}: only ${served}` };
  return macspoofchk === true ? { checksAddress: true } : {};
}
