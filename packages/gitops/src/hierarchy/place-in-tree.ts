/**
 * Objects of a source of format hierarchy in their namespaces: a directory that holds a Namespace is that namespace, and
 * what lies in the directories above it is inherited. All is checked before anything is left out for the cluster, so that
 * a directory is not at fault because its namespaces are meant for other clusters.
 */
import { parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import { type LabelSelector, matchesLabels } from '@coracle/apimachinery/selector/label-selector';
import type { KindLookup } from '../plan/declare.ts';
import type { ParsedObject, ParsedSource } from '../render/parse-manifests.ts';
import { DEPTH_SUFFIX, HNC_MANAGED_BY, MANAGED_BY, NAMESPACE_SELECTOR } from '../status/metadata-keys.ts';
import {
  annotationOf,
  checkCount,
  configKindOf,
  isNamespace,
  labelsOf,
  refuseDuplicates,
  refused,
  selectorOf,
} from './config-kinds.ts';
import { locationProblem, partsOf } from './locate.ts';
import { selectForCluster } from './select-cluster.ts';
import { inNamespace, modeOf } from './select-namespaces.ts';
import { checkRepo, clusterKindsOf, type Inheritance, inheritanceOf } from './system-objects.ts';

export interface TreeOptions {
  /** From the root of the source; '' = its root. */
  readonly dir: string;
  readonly lookup: KindLookup;
  /** '' = the cluster has none. */
  readonly clusterName: string;
}

/** A directory below `namespaces/`, or that itself. */
interface Directory {
  /** From the directory that is synced. */
  readonly path: string;
  readonly parent: Directory | undefined;
  readonly children: Directory[];
  readonly objects: ParsedObject[];
  isNamespace: boolean;
  /** A Namespace is here that is refused: what else lies here may be right. */
  isBroken: boolean;
}

/** Where a NamespaceSelector is good, and for what. */
interface TreeSelector {
  readonly directory: string;
  /** Undefined: it is refused itself. */
  readonly selector: LabelSelector | undefined;
}

/**
 * The source with every object where it is to be, or refused.
 * @throws SyncFailure without one Repo as it should be, and KNV2009 for more objects than are taken
 */
export function placeInTree(source: ParsedSource, { dir, lookup, clusterName }: TreeOptions): ParsedSource {
  checkRepo(source.objects, dir);
  const located = refuseDuplicates(source.objects, 'NamespaceSelector').map((one) => {
    const problem = one.problem ?? locationProblem(one, dir, lookup);
    return problem ? refused(one, problem.code, problem.text) : one;
  });
  const inheritance = inheritanceOf(located, clusterKindsOf(located, lookup));
  const outside = located.filter(({ path }) => partsOf(path, dir)[0] !== 'namespaces');
  const inside = located.filter(({ path }) => partsOf(path, dir)[0] === 'namespaces');
  const directories = directoriesOf(inside, dir);
  const selectors = new Map<string, TreeSelector>();
  const fine: ParsedObject[] = [];
  const wrong: ParsedObject[] = [...inheritance.refused];
  for (const directory of directories.values()) readSelectors(directory, selectors, wrong);
  const placeOf = new Map<ParsedObject, Directory>();
  for (const directory of directories.values())
    for (const one of directory.objects) {
      if (configKindOf(one.object) === 'NamespaceSelector') continue;
      const checked = checkInDirectory(one, directory, inheritance, selectors);
      if (checked.problem) wrong.push(checked);
      else {
        placeOf.set(checked, directory);
        fine.push(checked);
      }
    }
  const system = new Set(['Repo', 'HierarchyConfig']);
  const others = outside.filter((one) => one.problem || !system.has(configKindOf(one.object) ?? ''));
  const selected = selectForCluster([...others, ...fine], clusterName);
  const inPlace = new Map<Directory, ParsedObject[]>();
  const placed: ParsedObject[] = [...wrong];
  for (const one of selected) {
    const directory = placeOf.get(one);
    if (directory) inPlace.set(directory, [...(inPlace.get(directory) ?? []), one]);
    else placed.push(clusterObject(one));
  }
  for (const [directory, objects] of inPlace) {
    if (!directory.isNamespace) continue;
    for (const one of namespaceContent(directory, objects, inPlace, selectors)) placed.push(one);
    checkCount(placed.length);
  }
  return { ...source, objects: placed };
}

/** What lies in a namespace selects none. */
function clusterObject(one: ParsedObject): ParsedObject {
  if (one.problem || annotationOf(one.object, NAMESPACE_SELECTOR) === undefined) return one;
  return refused(one, 1004, `it is in no namespace: take annotation ${NAMESPACE_SELECTOR} off`, false);
}

function directoriesOf(objects: readonly ParsedObject[], dir: string): Map<string, Directory> {
  const directories = new Map<string, Directory>();
  const at = (path: string): Directory => {
    const known = directories.get(path);
    if (known) return known;
    const parent = path.includes('/') ? at(path.slice(0, path.lastIndexOf('/'))) : undefined;
    const made: Directory = { path, parent, children: [], objects: [], isNamespace: false, isBroken: false };
    parent?.children.push(made);
    directories.set(path, made);
    return made;
  };
  for (const one of objects) at(partsOf(one.path, dir).slice(0, -1).join('/')).objects.push(one);
  for (const directory of directories.values()) {
    const namespaces = directory.objects.filter(({ object }) => isNamespace(object));
    directory.isNamespace = namespaces.some(({ problem }) => !problem);
    directory.isBroken = namespaces.length > 0 && !directory.isNamespace;
  }
  return directories;
}

/** NamespaceSelectors of a directory above namespaces; in the directory of one they are KNV1038. */
function readSelectors(directory: Directory, selectors: Map<string, TreeSelector>, wrong: ParsedObject[]): void {
  for (const one of directory.objects) {
    if (configKindOf(one.object) !== 'NamespaceSelector') continue;
    const selector = selectorOf(one.object);
    const mode = modeOf(one.object);
    const problem =
      one.problem ??
      (directory.isNamespace
        ? { code: 1038, text: 'it is in the directory of a Namespace: move it to one above' }
        : 'code' in selector
          ? selector
          : typeof mode === 'object'
            ? mode
            : mode === 'dynamic'
              ? { code: 1014, text: 'spec.mode dynamic is only for sourceFormat unstructured: remove it' }
              : undefined);
    if (problem) wrong.push(refused(one, problem.code, problem.text));
    const usable = problem ? undefined : (selector as LabelSelector);
    selectors.set(one.object.metadata.name ?? '', { directory: directory.path, selector: usable });
  }
}

const namespaceAbove = (directory: Directory): Directory | undefined =>
  directory.parent && (directory.parent.isNamespace ? directory.parent : namespaceAbove(directory.parent));

const holdsNamespace = (directory: Directory): boolean =>
  directory.isNamespace || directory.isBroken || directory.children.some(holdsNamespace);

/** The object with its namespace, where it has one here already; KNV1003, KNV1007, KNV1013, KNV1044, KNV1053, KNV2012. */
function checkInDirectory(
  one: ParsedObject,
  directory: Directory,
  inheritance: Inheritance,
  selectors: ReadonlyMap<string, TreeSelector>,
): ParsedObject {
  if (one.problem) return one;
  const above = namespaceAbove(directory);
  if (above)
    return refused(one, 1003, `${directory.path} is in ${above.path}, which is a namespace: move one of the two`);
  const selector = annotationOf(one.object, NAMESPACE_SELECTOR);
  if (isNamespace(one.object)) {
    const count = directory.objects.filter(({ object, problem }) => isNamespace(object) && !problem).length;
    if (selector !== undefined)
      return refused(one, 1004, `a Namespace is in none: take annotation ${NAMESPACE_SELECTOR} off`);
    // The same Namespace may be declared for several clusters: what is left of them is counted by name.
    return count > 1 && !isSelected(directory)
      ? refused(one, 2012, `${directory.path} holds ${count} Namespaces`)
      : one;
  }
  if (directory.isNamespace) {
    if (selector !== undefined)
      return refused(one, 1053, `it is in a namespace and has annotation ${NAMESPACE_SELECTOR}: remove that`);
    return inNamespace(one, directory.path.slice(directory.path.lastIndexOf('/') + 1));
  }
  const { group } = parseApiVersion(one.object.apiVersion);
  if (inheritance.isOwn(group, one.object.kind))
    return refused(
      one,
      1007,
      `${directory.path} is not a namespace, and a HierarchyConfig says that its kind is not inherited`,
    );
  if (!holdsNamespace(directory))
    return refused(one, 1044, `${directory.path} is not a namespace, and there is none below it: add a Namespace`);
  if (selector === undefined) return one;
  const known = selectors.get(selector);
  if (!known) return refused(one, 1013, `there is no NamespaceSelector ${JSON.stringify(selector)}`);
  return `${directory.path}/`.startsWith(`${known.directory}/`)
    ? one
    : refused(one, 1013, `NamespaceSelector ${selector} is in ${known.directory}, which is not above it`);
}

const isSelected = (directory: Directory): boolean =>
  directory.objects
    .filter(({ object }) => isNamespace(object))
    .every(({ object }) =>
      Object.keys(object.metadata.annotations ?? {}).some((key) => /cluster-(name-)?selector$/.test(key)),
    );

/** A namespace with what lies in it and what it inherits, from far to near. */
function namespaceContent(
  directory: Directory,
  objects: readonly ParsedObject[],
  inPlace: ReadonlyMap<Directory, readonly ParsedObject[]>,
  selectors: ReadonlyMap<string, TreeSelector>,
): ParsedObject[] {
  const content = objects.map((one) => (isNamespace(one.object) ? withDepth(one, directory.path) : one));
  const namespace = content.find(({ object }) => isNamespace(object));
  // Its Namespace is meant for other clusters, or is refused.
  if (!namespace) return [];
  const labels = labelsOf(namespace.object);
  for (let above = directory.parent; above; above = above.parent)
    for (const one of inPlace.get(above) ?? []) {
      const name = annotationOf(one.object, NAMESPACE_SELECTOR);
      const selector = name === undefined ? undefined : selectors.get(name)?.selector;
      if (name !== undefined && !(selector && matchesLabels(selector, labels))) continue;
      content.push(inNamespace(one, namespace.object.metadata.name ?? ''));
    }
  return content;
}

/** The labels that tell how far above a namespace each directory lies, as hierarchical namespaces have them. */
function withDepth(one: ParsedObject, path: string): ParsedObject {
  const names = path.split('/').slice(1);
  const depths = Object.fromEntries(names.map((name, at) => [`${name}${DEPTH_SUFFIX}`, String(names.length - 1 - at)]));
  const { metadata } = one.object;
  // What is no map is refused later, for what it is.
  if (![metadata.labels ?? {}, metadata.annotations ?? {}].every((map) => typeof map === 'object')) return one;
  return {
    ...one,
    origin: one.origin ?? one.object,
    object: {
      ...one.object,
      metadata: {
        ...metadata,
        labels: { ...metadata.labels, ...depths },
        annotations: { ...metadata.annotations, [HNC_MANAGED_BY]: MANAGED_BY.value },
      },
    },
  };
}
