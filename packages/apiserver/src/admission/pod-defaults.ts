/** Priority, DefaultTolerationSeconds and PodTopologyLabels: what a Pod gets from the cluster. */

import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { forbidden } from '@coracle/apimachinery/meta/status';
import type * as types from '@coracle/apimachinery/types/types';
import type { ObjectStore } from '../cache/object-store.ts';
import type { AdmissionPlugin } from './plugin.ts';

const CLASSES_PREFIX = 'scheduling.k8s.io/priorityclasses';
const PODS = { group: '', resource: 'pods' };
const TOLERATION_SECONDS = 300;
const UNREACHABLE_TAINTS = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];

type PodSpec = Partial<types.PodSpec>;

type PriorityClass = Partial<types.PriorityClass>;

const isPodWrite: AdmissionPlugin['matches'] = (operation, info, subresource) =>
  (operation === 'CREATE' || operation === 'UPDATE') &&
  info.resource === 'pods' &&
  info.group === '' &&
  subresource === '';

/** Priority: resolves the class of a Pod to its number (plugin/pkg/admission/priority). */
export function priority(store: Pick<ObjectStore, 'peek' | 'list'>): AdmissionPlugin {
  /** Two of them may exist for a moment: the lower one counts. */
  const defaultClass = () =>
    store
      .list(CLASSES_PREFIX)
      .items.map(({ name, object }) => ({ name, found: object as PriorityClass }))
      .filter(({ found }) => found.globalDefault)
      .sort((a, b) => (a.found.value ?? 0) - (b.found.value ?? 0))[0];
  return {
    name: 'Priority',
    matches: isPodWrite,
    mutate({ object, oldObject, name }) {
      if (!isJsonObject(object!['spec'])) return;
      const spec = object!['spec'] as PodSpec;
      if (oldObject) return keepResolved(spec, oldObject['spec'] as Readonly<PodSpec>);
      let found: PriorityClass = {};
      if (spec.priorityClassName) {
        const stored = store.peek({ prefix: CLASSES_PREFIX, namespace: '', name: spec.priorityClassName });
        if (!stored) throw forbidden(PODS, name, `no PriorityClass with name ${spec.priorityClassName} was found`);
        found = stored.object as PriorityClass;
      } else {
        const fallback = defaultClass();
        if (fallback) {
          spec.priorityClassName = fallback.name;
          found = fallback.found;
        }
      }
      const value = found.value ?? 0;
      const policy = found.preemptionPolicy ?? 'PreemptLowerPriority';
      const check = (what: string, given: unknown, computed: unknown): void => {
        if (given === undefined || given === computed) return;
        const why = `the ${what} (${given}) must not be provided in pod spec; priority admission controller computed ${computed} from the given PriorityClass name`;
        throw forbidden(PODS, name, why);
      };
      check('integer value of priority', spec.priority, value);
      check('string value of PreemptionPolicy', spec.preemptionPolicy, policy);
      spec.priority = value;
      spec.preemptionPolicy = policy;
    },
  };
}

/** A manifest that is put again does not name what a create resolved. */
function keepResolved(spec: PodSpec, old: Readonly<PodSpec>): void {
  if (spec.priority === undefined && old.priority !== undefined) spec.priority = old.priority;
  if (spec.preemptionPolicy === undefined && old.preemptionPolicy !== undefined) {
    spec.preemptionPolicy = old.preemptionPolicy;
  }
}

/** DefaultTolerationSeconds: a Pod outlives its node's silence by five minutes, no more. */
export const defaultTolerationSeconds: AdmissionPlugin = {
  name: 'DefaultTolerationSeconds',
  matches: isPodWrite,
  mutate({ object }) {
    if (!isJsonObject(object!['spec'])) return;
    const spec = object!['spec'] as PodSpec;
    const tolerations = spec.tolerations ?? [];
    const missing = UNREACHABLE_TAINTS.filter(
      (taint) => !tolerations.some(({ key, effect }) => (key === taint || !key) && (effect === 'NoExecute' || !effect)),
    );
    if (missing.length === 0) return;
    spec.tolerations = [
      ...tolerations,
      ...missing.map((key) => ({
        key,
        operator: 'Exists' as const,
        effect: 'NoExecute' as const,
        tolerationSeconds: TOLERATION_SECONDS,
      })),
    ];
  },
};

const NODES_PREFIX = '/nodes';
const TOPOLOGY_LABELS = ['topology.kubernetes.io/zone', 'topology.kubernetes.io/region'];

/** PodTopologyLabels: zone and region of its node, on a Binding, which hands them to its Pod, and on a Pod that is created on a node. */
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
