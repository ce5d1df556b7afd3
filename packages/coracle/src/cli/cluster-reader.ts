/** Reads a cluster for commands that explain: what the caller may not read, or the cluster does not have, is no failure. */

import { namespacedType, qualifiedResource, type ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, KubeObject, ObjectKey } from '@coracle/apimachinery/meta/object';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { PERSISTENT_VOLUME_CLAIMS, PODS } from '@coracle/apimachinery/types/resource-types';
import { isNotFound } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { discover, preferredWith } from '@coracle/client/discovery/discover';
import {
  extendedMachineGraph,
  type GraphReader,
} from '@coracle/kubevirt/controllers/virt-api/subresources/read-extended-graph';
import { KUBEVIRTS, type ReadonlyVm } from '@coracle/kubevirt/kinds/kinds';
import { STATE_LABEL } from '@coracle/kubevirt/rules/backend-storage/backend-storage';
import type { NamespaceObject } from '@coracle/kubevirt/rules/deletion-preview/deletion-preview';
import { LAUNCHER_LABEL, LAUNCHER_VALUE } from '@coracle/kubevirt/rules/launcher/launcher-labels';
import { buildMachineGraph, hasStateClaim } from '@coracle/kubevirt/rules/object-graph/build-graph';
import type { ExtendedGraphNode, Looked } from '@coracle/kubevirt/rules/object-graph/mark-graph';
import { type ProtectionSettings, protectionSettingsOf } from '@coracle/kubevirt/rules/protection/protection-settings';

/** Lists that run at the same time. */
const CONCURRENCY = 8;

export interface ClusterReader extends GraphReader {
  readonly client: Client;
  /** Resources that the caller may not list, as `resource.group`; grows as they are met. */
  readonly notListed: Set<string>;
  /** As `list`, of all namespaces when there is none; empty where it is forbidden, which is noted. */
  some<T extends KubeObject>(
    type: ResourceType<T>,
    options: { readonly namespace?: string; readonly labelSelector?: string; readonly metadataOnly?: boolean },
  ): Promise<readonly DeepReadonly<T>[]>;
}

/** A reader with the rights of the kubeconfig's user. */
export function clusterReader(client: Client, signal: AbortSignal): ClusterReader {
  const notListed = new Set<string>();
  const some = async <T extends KubeObject>(
    type: ResourceType<T>,
    options: Parameters<ClusterReader['some']>[1],
  ): Promise<readonly DeepReadonly<T>[]> => {
    try {
      return (await client.list(type, { ...options, signal })).items as DeepReadonly<T>[];
    } catch (error) {
      if (isNotFound(error)) return [];
      if (!isForbidden(error)) throw error;
      notListed.add(qualifiedResource(type));
      return [];
    }
  };
  return {
    client,
    notListed,
    some,
    async list(type, namespace) {
      const items = await some(type, { namespace });
      return notListed.has(qualifiedResource(type)) ? 'forbidden' : items;
    },
    get: (type, key) => look(client, type, key, signal),
  };
}

/** Whole where more than metadata is asked about; never the contents of a Secret. */
const NEEDS_SPEC: ReadonlySet<string> = new Set(['PersistentVolumeClaim', 'PersistentVolume']);

async function look(
  client: Client,
  type: ResourceType<KubeObject>,
  key: ObjectKey,
  signal: AbortSignal,
): Promise<Looked> {
  try {
    return await client.get(type, key, { metadataOnly: !NEEDS_SPEC.has(type.kind), signal });
  } catch (error) {
    if (isNotFound(error)) return 'missing';
    if (isForbidden(error)) return 'forbidden';
    throw error;
  }
}

const isForbidden = (error: unknown): error is ApiError => error instanceof ApiError && error.code === 403;

/** The extended graph of a machine: the server's where it has one, else put together from what the caller may read. */
export async function graphOfMachine(
  reader: ClusterReader,
  vm: ReadonlyVm,
  signal: AbortSignal,
): Promise<ExtendedGraphNode> {
  const { namespace = '', name = '' } = vm.metadata;
  const at = `namespaces/${encodeURIComponent(namespace)}/virtualmachines/${encodeURIComponent(name)}/objectgraph`;
  try {
    const path = `/apis/subresources.kubevirt.io/v1/${at}`;
    const graph = (await reader.client.raw('GET', path, { query: 'extended=true', signal })) as ExtendedGraphNode;
    // Upstream answers without looking at the query.
    if (graph.exists === true) return graph;
  } catch (error) {
    // No such API, its gate is off, no right to it, or it has failed.
    if (!(error instanceof ApiError)) throw error;
  }
  const [launchers, stateClaims] = await Promise.all([
    vm.status?.created ? reader.some(PODS, { namespace, labelSelector: `${LAUNCHER_LABEL}=${LAUNCHER_VALUE}` }) : [],
    hasStateClaim(vm)
      ? reader.some(PERSISTENT_VOLUME_CLAIMS, { namespace, labelSelector: `${STATE_LABEL}=${name}` })
      : [],
  ]);
  return extendedMachineGraph(reader, vm, buildMachineGraph(vm, { launchers, stateClaims }));
}

/** Kinds that come and go by themselves: nobody misses them. */
const PASSING: ReadonlySet<string> = new Set(['events', 'leases', 'endpointslices', 'endpoints']);

/** The metadata of every object of a namespace, of the kinds that the caller may list. */
export async function objectsOfNamespace(
  reader: ClusterReader,
  namespace: string,
  signal: AbortSignal,
): Promise<NamespaceObject[]> {
  const served = await discover(reader.client, signal);
  for (const { groupVersion } of served.failures) reader.notListed.add(groupVersion);
  const types = preferredWith(served, ['list', 'delete']).filter(
    ({ namespaced, resource }) => namespaced && !PASSING.has(resource),
  );
  const found: NamespaceObject[][] = types.map(() => []);
  const entries = types.entries();
  const worker = async (): Promise<void> => {
    for (const [index, type] of entries) {
      const { group, resource, kind } = type;
      const items = await reader.some(type, { namespace, metadataOnly: true });
      found[index] = items.map((object) => ({ group, resource, kind, metadata: object.metadata, object }));
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  return found.flat();
}

const SSPS = namespacedType<KubeObject>('ssp.kubevirt.io/v1beta3', 'ssps', 'SSP');

/** What the administrator asks for beyond upstream's label; what cannot be read asks for nothing. */
export async function settingsOf(reader: ClusterReader): Promise<ProtectionSettings> {
  return protectionSettingsOf((await Promise.all([reader.some(KUBEVIRTS, {}), reader.some(SSPS, {})])).flat());
}
