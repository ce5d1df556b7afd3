/**
 * Which objects the Pods of a node refer to (plugin/pkg/auth/authorizer/node/graph.go). Kept by counting references as
 * Pods are bound and go, so that a question costs a look-up; volumes behind claims are followed when asked.
 */

import { parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { PersistentVolume } from '@coracle/apimachinery/types/types';
import { holdingOf } from '@coracle/apimachinery/types/volume-claims';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import type { ObjectStore, StoredObject } from '../cache/object-store.ts';
import { nodeNameOf, podReferences } from '../kinds/builtin/pod-references.ts';

const REFERRED = ['secrets', 'configmaps', 'persistentvolumeclaims', 'serviceaccounts'] as const;
export type ReferredResource = (typeof REFERRED)[number];

export interface NodeGraph {
  /** Whether a Pod bound to the node refers to the object. */
  refers(node: string, resource: ReferredResource, namespace: string, name: string): boolean;
  /** Whether a Pod bound to the node, in that namespace, says that such an object controls it. */
  controls(node: string, owner: { group: string; kind: string; namespace: string; name: string }): boolean;
  runsPod(node: string, namespace: string, name: string): boolean;
  /** Whether the volume is bound to a claim that a Pod of the node uses. */
  usesVolume(node: string, name: string): boolean;
  stop(): void;
}

const PODS = '/pods';
const CLAIMS = '/persistentvolumeclaims';
const VOLUMES = '/persistentvolumes';

/** Starts a graph on the store's Pods. */
export function createNodeGraph(store: Pick<ObjectStore, 'get' | 'list' | 'watch' | 'revision'>): NodeGraph {
  /** By node: how many of its Pods refer to `resource\nnamespace/name`. */
  const nodes = new Map<string, Map<string, number>>();
  const revision = store.revision();
  /** What was counted for each Pod, so that nobody has to look at what a Pod was: that may have to be parsed anew. */
  const counted = new Map<string, Counted>();
  const count = ({ node, keys }: Counted, by: 1 | -1): void => {
    const held = getOrInsert(nodes, node, () => new Map());
    for (const key of keys) {
      const next = (held.get(key) ?? 0) + by;
      if (next > 0) held.set(key, next);
      else held.delete(key);
    }
    if (held.size === 0) nodes.delete(node);
  };
  const change = ({ namespace, name }: StoredObject, pod: Readonly<UnstructuredObject> | undefined): void => {
    const place = `${namespace}/${name}`;
    const before = counted.get(place);
    if (before) count(before, -1);
    const now = pod && countedOf(pod);
    if (now) {
      counted.set(place, now);
      count(now, 1);
    } else counted.delete(place);
  };
  for (const stored of store.list(PODS, { revision }).items) change(stored, stored.object);
  const watch = store.watch(PODS, revision, (changes) => {
    for (const { type, current } of changes) change(current, type === 'DELETED' ? undefined : current.object);
  });

  const counts = (node: string, key: string): boolean => nodes.get(node)?.has(key) ?? false;
  return {
    refers: (node, resource, namespace, name) => counts(node, `${resource}\n${namespace}/${name}`),
    controls: (node, { group, kind, namespace, name }) =>
      counts(node, `controller ${group}/${kind}\n${namespace}/${name}`),
    runsPod(node, namespace, name) {
      const pod = store.get({ prefix: PODS, namespace, name });
      return pod !== undefined && nodeNameOf(pod.object) === node;
    },
    usesVolume(node, name) {
      const volume = store.get({ prefix: VOLUMES, namespace: '', name })?.object as PersistentVolume | undefined;
      const { namespace = '', name: claimName = '' } = volume?.spec?.claimRef ?? {};
      if (!volume || !counts(node, `persistentvolumeclaims\n${namespace}/${claimName}`)) return false;
      const claim = store.get({ prefix: CLAIMS, namespace, name: claimName });
      const holding = claim && holdingOf(volume, claim.object);
      // Bound to the claim, or kept for one of its name; not merely named by it.
      return holding === 'bound' || holding === 'reserved';
    },
    stop: () => watch.stop(),
  };
}

/** What one Pod counts for: its node, and `resource\nnamespace/name` of each reference. */
interface Counted {
  readonly node: string;
  readonly keys: readonly string[];
}

function countedOf(pod: Readonly<UnstructuredObject>): Counted | undefined {
  const node = nodeNameOf(pod);
  if (node === '') return undefined;
  const refs = podReferences(pod);
  const keys = REFERRED.flatMap((resource) =>
    [...refs[resource]].map((name) => `${resource}\n${pod.metadata.namespace}/${name}`),
  );
  for (const { controller, apiVersion, kind, name } of pod.metadata.ownerReferences ?? [])
    if (controller === true)
      keys.push(`controller ${parseApiVersion(apiVersion).group}/${kind}\n${pod.metadata.namespace}/${name}`);
  return { node, keys };
}
