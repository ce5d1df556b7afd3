/** Families of metrics from rows, and labels of objects as labels of samples, within bounds. */
import type { Labels, ValueFamily } from '@coracle/runtime/metrics/metric-family';

/** Objects of a kind that `/metrics` tells of one by one; of further ones it says nothing. */
export const MAX_OBJECTS = 10_000;
/** Labels of one object that become labels of samples. */
const MAX_LABELS = 32;

/** A gauge with the given samples. */
export const gauge = (name: string, help: string, samples: ValueFamily['samples']): ValueFamily => ({
  name,
  help,
  type: 'gauge',
  samples,
});

/** Labels of an object under names that Prometheus takes; the first of two that become the same counts. At most 32. */
export function objectLabels(prefix: string, labels: Readonly<Record<string, string>> | undefined): Labels {
  const found: Record<string, string> = {};
  for (const [name, value] of Object.entries(labels ?? {})
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .slice(0, MAX_LABELS))
    found[`${prefix}${name.replace(/\W/g, '_')}`] ??= value;
  return found;
}

/** Label values as upstream writes what is not there. */
export const NONE = '<none>';

/** `os`, `workload` and `flavor`, which annotations say. */
export const systemLabels = (annotations: Readonly<Record<string, string>> | undefined): Labels => ({
  os: annotations?.['vm.kubevirt.io/os'] ?? NONE,
  workload: annotations?.['vm.kubevirt.io/workload'] ?? NONE,
  flavor: annotations?.['vm.kubevirt.io/flavor'] ?? NONE,
});

/** Vendors whose instance types and preferences are named; those of others may be as many as there are machines. */
const VENDORS: ReadonlySet<string | undefined> = new Set(['kubevirt.io', 'redhat.com']);
const VENDOR_LABEL = 'instancetype.kubevirt.io/vendor';

/** What a label says of an instance type or preference: its name where a known vendor made it. */
export const sourceName = (
  source:
    | { readonly metadata: { readonly name?: string; readonly labels?: Readonly<Record<string, string>> } }
    | undefined,
): string => (VENDORS.has(source?.metadata.labels?.[VENDOR_LABEL]) ? (source?.metadata.name ?? '<other>') : '<other>');

/** How a card is joined to its network, and the name of a registered binding. */
export function bindingOf(card: Readonly<Record<string, unknown>>): { readonly type: string; readonly name: string } {
  const named = card['binding'] as { readonly name?: string } | undefined;
  if (named) return { type: 'plugin', name: named.name ?? NONE };
  const core = ['masquerade', 'bridge', 'sriov', 'passtBinding', 'slirp', 'macvtap'].find(
    (type) => card[type] !== undefined,
  );
  return core === undefined ? { type: NONE, name: NONE } : { type: 'core', name: core };
}

/** What a network is called in labels: `pod networking`, or the NetworkAttachmentDefinition. */
export const networkLabel = (network: {
  readonly pod?: unknown;
  readonly multus?: { readonly networkName?: string };
}): string => network.multus?.networkName ?? (network.pod !== undefined ? 'pod networking' : NONE);
