/**
 * Which objects the Pods of a node refer to (plugin/pkg/auth/authorizer/node/graph.go). Kept by counting references as
 * Pods are bound and go, so that a question costs a look-up; volumes behind claims are followed when asked.
 */

import { parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { holdingOf } from '@coracle/apimachinery/types/volume-claims';
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

interface ClaimRef {
  namespace?: string;
  name?: string;
  uid?: string;
}

interface VolumeSpec extends Record<string, unknown> {
  claimRef?: ClaimRef;
}

/** Bound to the claim, or kept for one of its name; not merely named by it. */
const isFor = (spec: VolumeSpec, claim: Readonly<UnstructuredObject>): boolean => {
  const holding = holdingOf({ spec }, claim);
  return holding === 'bound' || holding === 'reserved';
};

type References = Map<string, number>;

/** Starts a graph on the store's Pods. */
export function createNodeGraph(store: Pick<ObjectStore, 'get' | 'list' | 'watch' | 'revision'>): NodeGraph {
  /** By node: how many of its Pods refer to `resource\nnamespace/name`. */
  const nodes = new Map<string, References>();
  const revision = store.revision();
  /** What was counted for each Pod, so that nobody has to look at what a Pod was: that may have to be parsed anew. */
  const counted = new Map<string, Counted>();
  const count = ({ node, keys }: Counted, by: 1 | -1): void => {
    const held = nodes.get(node) ?? new Map<string, number>();
    nodes.set(node, held);
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

  const direct = (node: string, resource: ReferredResource, key: string): boolean =>
    nodes.get(node)?.has(`${resource}\n${key}`) ?? false;
  const volumeOf = (name: string): VolumeSpec | undefined =>
    store.get({ prefix: VOLUMES, namespace: '', name })?.object['spec'] as VolumeSpec | undefined;

  return {
    refers: (node, resource, namespace, name) => direct(node, resource, `${namespace}/${name}`),
    controls: (node, { group, kind, namespace, name }) =>
      nodes.get(node)?.has(`controller ${group}/${kind}\n${namespace}/${name}`) ?? false,
    runsPod(node, namespace, name) {
      const pod = store.get({ prefix: PODS, namespace, name });
      return pod !== undefined && nodeNameOf(pod.object) === node;
    },
    usesVolume(node, name) {
      const spec = volumeOf(name);
      const { namespace = '', name: claimName = '' } = spec?.claimRef ?? {};
      if (!spec || !direct(node, 'persistentvolumeclaims', `${namespace}/${claimName}`)) return false;
      const claim = store.get({ prefix: CLAIMS, namespace, name: claimName });
      return claim !== undefined && isFor(spec, claim.object);
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
