/** Where objects may lie in a source of format hierarchy, by their kind: each object by itself. */
import type { Problem } from '../plan/check-object.ts';
import type { KindLookup } from '../plan/declare.ts';
import type { ParsedObject } from '../render/parse-manifests.ts';
import { DEPTH_SUFFIX } from '../status/metadata-keys.ts';
import { configKindOf, isNamespace, labelsOf } from './config-kinds.ts';

export type TopDirectory = 'system' | 'cluster' | 'clusterregistry' | 'namespaces';

const TOPS: ReadonlySet<string> = new Set<TopDirectory>(['system', 'cluster', 'clusterregistry', 'namespaces']);
const DIRECTORY = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** A path from the directory that is synced, in its parts: the last is the file. */
export const partsOf = (path: string, dir: string): string[] =>
  (dir === '' ? path : path.slice(dir.length + 1)).split('/');

/** True for files in one of the four directories, which alone are read. */
export function isInHierarchy(path: string, dir: string): boolean {
  const [top = '', ...rest] = partsOf(path, dir);
  return rest.length > 0 && TOPS.has(top);
}

/** What is wrong with where an object lies: KNV1009, KNV1019, KNV1020, KNV1028, KNV1039, KNV1057. */
export function locationProblem({ object, path }: ParsedObject, dir: string, lookup: KindLookup): Problem | undefined {
  const [top = '', ...rest] = partsOf(path, dir);
  const directories = rest.slice(0, -1);
  const base = directories.at(-1);
  const wanted = topOf(object, lookup);
  if (wanted !== undefined && top !== wanted)
    return { code: 1039, text: `it is in ${top}/; a ${object.kind} belongs in ${wanted}/` };
  if (wanted === undefined && (top === 'system' || top === 'clusterregistry'))
    return { code: 1039, text: `it is in ${top}/, which is not synced` };
  if (top !== 'namespaces') return undefined;
  const odd = directories.find((name) => !DIRECTORY.test(name));
  if (odd !== undefined)
    return { code: 1028, text: `directory ${JSON.stringify(odd)} has a name that no namespace may have` };
  if (isNamespace(object)) {
    if (base === undefined)
      return { code: 1019, text: `it is in namespaces/ itself: move it to namespaces/${object.metadata.name}/` };
    if (object.metadata.name !== base)
      return { code: 1020, text: `it is in directory ${base}: the directory of a Namespace has its name` };
    const label = Object.keys(labelsOf(object)).find((key) => key.endsWith(DEPTH_SUFFIX));
    return label === undefined ? undefined : { code: 1057, text: `label ${label} is made from the directories` };
  }
  const { namespace } = object.metadata;
  if (namespace && configKindOf(object) === undefined && namespace !== (base ?? 'namespaces'))
    return {
      code: 1009,
      text: `metadata.namespace is ${JSON.stringify(namespace)} and its directory is ${base ?? 'namespaces'}: leave the field out`,
    };
  return undefined;
}

/** The directory that a kind belongs in; undefined when the kind is not known. */
function topOf(object: ParsedObject['object'], lookup: KindLookup): TopDirectory | undefined {
  const config = configKindOf(object);
  switch (config) {
    case 'Repo':
    case 'HierarchyConfig':
      return 'system';
    case 'Cluster':
    case 'ClusterSelector':
      return 'clusterregistry';
    case 'NamespaceSelector':
      return 'namespaces';
    case undefined: {
      if (isNamespace(object)) return 'namespaces';
      const type = lookup(object.apiVersion, object.kind);
      return type && (type.namespaced ? 'namespaces' : 'cluster');
    }
    default:
      return config satisfies never;
  }
}
