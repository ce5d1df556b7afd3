/** The metadata of objects of any kind as they are stored, and writes that count only for the state that was read. */
import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, KubeObject, ObjectKey, OwnerReference } from '@coracle/apimachinery/meta/object';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { removeFinalizer } from '@coracle/client/finalizer/finalizer';
import type { GraphNode } from './owner-graph.ts';

const keyOfNode = ({ namespace, name }: GraphNode): ObjectKey => ({ namespace, name });

export class StoredMetadata {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** The stored metadata of this very object; undefined when it is gone or another has its name. */
  async read(node: GraphNode, signal: AbortSignal): Promise<KubeObject | undefined> {
    const stored = await orAbsent(this.#client.get(node.type, keyOfNode(node), { metadataOnly: true, signal }));
    return stored?.metadata.uid === node.uid ? stored : undefined;
  }

  /** Replaces whole lists of metadata (empty ones go), provided nobody wrote since `stored` was read. */
  patch(
    node: GraphNode,
    stored: KubeObject,
    change: {
      readonly ownerReferences?: readonly DeepReadonly<OwnerReference>[];
      readonly finalizers?: readonly string[];
    },
    signal: AbortSignal,
  ): Promise<KubeObject> {
    const { uid, resourceVersion } = stored.metadata;
    const lists = Object.entries(change).map(([field, list]) => [field, list.length > 0 ? list : null]);
    return this.#client.patch(
      node.type as ResourceType<KubeObject>,
      keyOfNode(node),
      { type: 'merge', body: { metadata: { uid, resourceVersion, ...Object.fromEntries(lists) } } },
      { metadataOnly: true, signal },
    );
  }

  async dropFinalizer(node: GraphNode, finalizer: string, signal: AbortSignal): Promise<void> {
    const stored = await this.read(node, signal);
    if (!stored) return;
    const changed = removeFinalizer(stored, finalizer);
    if (changed !== stored) await this.patch(node, stored, { finalizers: changed.metadata.finalizers ?? [] }, signal);
  }
}
