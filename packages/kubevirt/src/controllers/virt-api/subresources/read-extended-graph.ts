/**
 * Reads what an extended object graph is made of, with the rights of the caller alone: through the server's own store with
 * its authorizer, or through the API as a command does.
 */

import { qualifiedResource, type ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, KubeObject, ObjectKey, ReadonlyObject } from '@coracle/apimachinery/meta/object';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import {
  type ReadonlyVm,
  type ReadonlyVmi,
  VIRTUAL_MACHINE_BACKUP_TRACKERS,
  VIRTUAL_MACHINE_BACKUPS,
  VIRTUAL_MACHINE_CLONES,
  VIRTUAL_MACHINE_EXPORTS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
} from '../../../kinds/kubevirt.ts';
import {
  allNodes,
  extendInstanceGraph,
  extendMachineGraph,
  type GraphLists,
  keyOfNode,
} from '../../../rules/object-graph/extend-graph.ts';
import type { GraphKind, ObjectGraphNode } from '../../../rules/object-graph/graph-node.ts';
import { GRAPH_RESOURCES, IPAM_CLAIMS } from '../../../rules/object-graph/graph-resources.ts';
import {
  type ExtendedGraphNode,
  type Looked,
  markGraph,
  usersOfObjects,
  volumesBelowClaims,
} from '../../../rules/object-graph/mark-graph.ts';

/** Reads on behalf of a caller. */
export interface GraphReader {
  get(type: ResourceType<KubeObject>, key: ObjectKey): Promise<Looked>;
  /** Empty for a kind that is not served; `forbidden` also where there are too many to look at. */
  list<T extends KubeObject>(
    type: ResourceType<T>,
    namespace: string,
  ): Promise<readonly DeepReadonly<T>[] | 'forbidden'>;
}

/** Objects that are read at the same time. */
const CONCURRENCY = 16;

/** The extended graph of a machine, of which `graph` is upstream's. */
export async function extendedMachineGraph(
  reader: GraphReader,
  vm: ReadonlyVm,
  graph: ObjectGraphNode,
): Promise<ExtendedGraphNode> {
  const listed = await readLists(reader, vm.metadata.namespace ?? '');
  return finished(reader, vm, extendMachineGraph(graph, vm, listed.lists), listed);
}

/** The extended graph of an instance, of which `graph` is upstream's. */
export async function extendedInstanceGraph(
  reader: GraphReader,
  vmi: ReadonlyVmi,
  graph: ObjectGraphNode,
): Promise<ExtendedGraphNode> {
  const listed = await readLists(reader, vmi.metadata.namespace ?? '');
  return finished(reader, vmi, extendInstanceGraph(graph, listed.lists), listed);
}

interface Listed {
  readonly lists: GraphLists;
  /** Resources that could not be listed. */
  readonly notListed: readonly string[];
}

async function readLists(reader: GraphReader, namespace: string): Promise<Listed> {
  const notListed: string[] = [];
  const list = async <T extends KubeObject>(type: ResourceType<T>): Promise<readonly DeepReadonly<T>[] | undefined> => {
    const items = await reader.list(type, namespace);
    if (items !== 'forbidden') return items;
    notListed.push(qualifiedResource(type));
    return undefined;
  };
  const [machines, instances, snapshots, contents, restores, backups, trackers, exports, ipamClaims, clones] =
    await Promise.all([
      list(VIRTUAL_MACHINES),
      list(VIRTUAL_MACHINE_INSTANCES),
      list(VIRTUAL_MACHINE_SNAPSHOTS),
      list(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS),
      list(VIRTUAL_MACHINE_RESTORES),
      list(VIRTUAL_MACHINE_BACKUPS),
      list(VIRTUAL_MACHINE_BACKUP_TRACKERS),
      list(VIRTUAL_MACHINE_EXPORTS),
      list(IPAM_CLAIMS),
      list(VIRTUAL_MACHINE_CLONES),
    ]);
  return {
    lists: { machines, instances, snapshots, contents, restores, backups, trackers, exports, ipamClaims, clones },
    notListed: notListed.sort(),
  };
}

/** With every object looked up, volumes below their claims and all marks. */
async function finished(
  reader: GraphReader,
  root: ReadonlyObject,
  tree: ObjectGraphNode,
  { lists, notListed }: Listed,
): Promise<ExtendedGraphNode> {
  const looked = new Map<string, Looked>();
  const look = async (nodes: readonly ObjectGraphNode[]): Promise<void> => {
    const waiting = new Map(
      nodes.map((node) => [keyOfNode(node), node]).filter(([key]) => !looked.has(key as string)) as [
        string,
        ObjectGraphNode,
      ][],
    );
    const entries = waiting.entries();
    const worker = async (): Promise<void> => {
      for (const [key, { objectReference }] of entries) {
        const { kind, namespace, name } = objectReference;
        looked.set(key, await reader.get(GRAPH_RESOURCES[kind as GraphKind], { namespace, name }));
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  };
  await look(allNodes(tree.children ?? []));
  const whole = volumesBelowClaims(tree, looked);
  await look(allNodes(whole.children ?? []));
  const users = await usersOfObjects(whole, lists, nextTurn);
  return markGraph(whole, { rootUid: root.metadata.uid, looked, users, notListed });
}
