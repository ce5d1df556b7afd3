/** PodTopologyLabels: a Pod that gets a node carries the zone and the region of it as labels. */
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { ObjectStore } from '../cache/object-store.ts';
import type { AdmissionPlugin } from './plugin.ts';

const NODES_PREFIX = '/nodes';
const TOPOLOGY_LABELS = ['topology.kubernetes.io/zone', 'topology.kubernetes.io/region'];

/** Labels go on a Binding, which hands them to its Pod, and on a Pod that is created on a node. */
export function podTopologyLabels(store: Pick<ObjectStore, 'peek'>): AdmissionPlugin {
  return {
    name: 'PodTopologyLabels',
    matches: (operation, { group, resource }, subresource) =>
      operation === 'CREATE' &&
      resource === 'pods' &&
      group === '' &&
      (subresource === '' || subresource === 'binding'),
    mutate({ object, subresource }) {
      const node = nodeOf(object!, subresource);
      if (node === undefined) return;
      const { metadata } = object!;
      const labels = store.peek({ prefix: NODES_PREFIX, namespace: '', name: node })?.object.metadata.labels ?? {};
      // Those of the node win over what was there.
      for (const key of TOPOLOGY_LABELS) {
        if (labels[key] !== undefined) metadata.labels = { ...metadata.labels, [key]: labels[key] };
      }
    },
  };
}

/** The node that is named, if one is; a Binding of no kind is left alone, as upstream leaves it. */
function nodeOf(object: Readonly<Record<string, unknown>>, subresource: string): string | undefined {
  const part = object[subresource === 'binding' ? 'target' : 'spec'];
  if (!isJsonObject(part) || (subresource === 'binding' && part['kind'] !== 'Node')) return undefined;
  const name = part[subresource === 'binding' ? 'name' : 'nodeName'];
  return typeof name === 'string' && name !== '' ? name : undefined;
}
