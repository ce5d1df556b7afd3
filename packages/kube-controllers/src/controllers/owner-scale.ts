/** How many Pods the controllers of some Pods want: what a PodDisruptionBudget counts against (pkg/controller/disruption). */

import { controllerOf } from '@coracle/apimachinery/meta/controller-reference';
import { parseApiVersion, qualifiedResource, type ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, KubeObject, OwnerReference } from '@coracle/apimachinery/meta/object';
import { REPLICA_SETS } from '@coracle/apimachinery/types/resource-types';
import type { Pod } from '@coracle/apimachinery/types/types';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { findKind } from '@coracle/client/discovery/discover';
import type { DiscoveryCache } from './discovery-cache.ts';

type Owner = DeepReadonly<OwnerReference>;

interface ExpectedPods {
  readonly count: number;
  /** Names of Pods that no controller keeps: they do not count. */
  readonly unmanaged: readonly string[];
}

/** The count is not known; the message says why. */
export class UnknownScale extends Error {}

interface Scaled extends KubeObject {
  spec?: { replicas?: number };
}

/** Sums what each controller of the Pods wants, each once. Throws UnknownScale when one cannot say it. */
export async function expectedPods(
  pods: readonly DeepReadonly<Pod>[],
  { client, discovery, signal }: { client: Client; discovery: DiscoveryCache; signal: AbortSignal },
): Promise<ExpectedPods> {
  const scales = new Map<string, number>();
  const unmanaged: string[] = [];
  for (const pod of pods) {
    const owner = controllerOf(pod);
    if (!owner) {
      unmanaged.push(pod.metadata.name ?? '');
      continue;
    }
    if (scales.has(owner.uid)) continue;
    const found = await scaleOf(owner, pod.metadata.namespace ?? '');
    if (!found) throw new UnknownScale(`found no controllers for pod ${JSON.stringify(pod.metadata.name)}`);
    scales.set(found.uid, found.replicas);
    scales.set(owner.uid, scales.get(owner.uid) ?? 0);
  }
  return { count: [...scales.values()].reduce((sum, one) => sum + one, 0), unmanaged };

  async function scaleOf(owner: Owner, namespace: string): Promise<{ uid: string; replicas: number } | undefined> {
    const { group } = parseApiVersion(owner.apiVersion);
    if (owner.kind === 'ReplicaSet' && (group === 'apps' || group === 'extensions')) {
      const set = await read<Scaled>(REPLICA_SETS as ResourceType<Scaled>, owner, namespace);
      if (!set) return undefined;
      // A Deployment keeps more than one set while it rolls: it knows the sum.
      const deployment = controllerOf(set);
      return deployment ? scaleOf(deployment, namespace) : { uid: owner.uid, replicas: set.spec?.replicas ?? 0 };
    }
    const type = findKind(await discovery.read(signal), owner.apiVersion, owner.kind);
    if (!type)
      throw new UnknownScale(`no matches for kind ${JSON.stringify(owner.kind)} in group ${JSON.stringify(group)}`);
    const scale = await read<Scaled>(type as ResourceType<Scaled>, owner, namespace, 'scale');
    if (scale) return { uid: owner.uid, replicas: scale.spec?.replicas ?? 0 };
    if (await read(type, owner, namespace)) {
      throw new UnknownScale(`${qualifiedResource(type)} does not implement the scale subresource`);
    }
    return undefined;
  }

  /** The owner itself; undefined when it is gone, or another has its name. */
  async function read<T extends KubeObject>(
    type: ResourceType<T>,
    owner: Owner,
    namespace: string,
    subresource?: string,
  ): Promise<T | undefined> {
    const options = { signal, ...(subresource !== undefined && { subresource }) };
    const object = await orAbsent(client.get(type, { namespace, name: owner.name }, options));
    return (object?.metadata.uid ?? owner.uid) === owner.uid ? object : undefined;
  }
}
