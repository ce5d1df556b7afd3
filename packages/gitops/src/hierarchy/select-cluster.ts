/** What of a source is meant for one cluster: by its name, or by the labels that the registry gives it. */
import { type LabelSelector, matchesLabels } from '@coracle/apimachinery/selector/label-selector';
import type { ParsedObject } from '../render/parse-manifests.ts';
import { CLUSTER_NAME_SELECTOR, CLUSTER_SELECTOR } from '../status/metadata-keys.ts';
import {
  annotationOf,
  configKindOf,
  isNamespace,
  labelsOf,
  refuseDuplicates,
  refused,
  selectorOf,
} from './config-kinds.ts';

/** These are never selected themselves. */
const UNSELECTABLE: ReadonlySet<string | undefined> = new Set(['Cluster', 'ClusterSelector', 'NamespaceSelector']);

type Selection = 'in' | 'out' | { readonly code: number; readonly text: string };

/**
 * Leaves out what is not meant for the cluster, and what lies in a Namespace that is not; Clusters and ClusterSelectors
 * have done their work and go too. `clusterName` is '' for a cluster without one. What cannot be decided is refused:
 * KNV1004, KNV1013, KNV1014, KNV1029, KNV1066.
 */
export function selectForCluster(source: readonly ParsedObject[], clusterName: string): ParsedObject[] {
  const objects = refuseDuplicates(source.map(unselectable), 'ClusterSelector');
  const cluster = objects.find(
    ({ object }) => configKindOf(object) === 'Cluster' && clusterName !== '' && object.metadata.name === clusterName,
  );
  const labels = cluster ? labelsOf(cluster.object) : {};
  const kept: ParsedObject[] = [];
  const selectors = new Map<string, Selection>();
  for (const one of objects) {
    if (configKindOf(one.object) !== 'ClusterSelector') continue;
    const selector = selectorOf(one.object);
    const problem = one.problem ?? ('code' in selector ? selector : undefined);
    if (problem) kept.push(refused(one, problem.code, problem.text));
    const isActive = !problem && matchesLabels(selector as LabelSelector, labels);
    // Of a selector that is not valid nobody knows whom it means.
    const selection = problem
      ? { code: 1013, text: `ClusterSelector ${one.object.metadata.name} is not valid` }
      : undefined;
    selectors.set(one.object.metadata.name ?? '', selection ?? (isActive ? 'in' : 'out'));
  }
  const rest = objects.filter(({ object }) => !['Cluster', 'ClusterSelector'].includes(configKindOf(object) ?? ''));
  kept.push(...objects.filter(({ object, problem }) => problem && configKindOf(object) === 'Cluster'));
  const selections = new Map(rest.map((one) => [one, selectionOf(one, clusterName, selectors)]));
  const namespaces = namespaceSelections(rest, selections);
  for (const [one, selection] of selections) {
    if (!isNamespace(one.object) && namespaces.get(one.object.metadata.namespace ?? '') === 'out') continue;
    if (one.problem) kept.push(one);
    else if (typeof selection === 'object') kept.push(refused(one, selection.code, selection.text));
    else if (selection === 'in') kept.push(one);
  }
  return kept;
}

/** A Namespace that is declared for several clusters is in when one of its declarations is. */
function namespaceSelections(
  objects: readonly ParsedObject[],
  selections: ReadonlyMap<ParsedObject, Selection>,
): Map<string, 'in' | 'out'> {
  const namespaces = new Map<string, 'in' | 'out'>();
  for (const one of objects) {
    if (!isNamespace(one.object)) continue;
    const name = one.object.metadata.name ?? '';
    if (selections.get(one) !== 'out') namespaces.set(name, 'in');
    else if (!namespaces.has(name)) namespaces.set(name, 'out');
  }
  return namespaces;
}

function unselectable(one: ParsedObject): ParsedObject {
  const kind = configKindOf(one.object);
  if (!UNSELECTABLE.has(kind) || one.problem) return one;
  const used = [CLUSTER_SELECTOR, CLUSTER_NAME_SELECTOR].find((key) => annotationOf(one.object, key) !== undefined);
  return used === undefined ? one : refused(one, 1004, `a ${kind} is for all clusters: remove annotation ${used}`);
}

function selectionOf(
  { object }: ParsedObject,
  clusterName: string,
  selectors: ReadonlyMap<string, Selection>,
): Selection {
  const byName = annotationOf(object, CLUSTER_NAME_SELECTOR);
  const bySelector = annotationOf(object, CLUSTER_SELECTOR);
  if (byName !== undefined && bySelector !== undefined)
    return { code: 1066, text: `it has annotations ${CLUSTER_NAME_SELECTOR} and ${CLUSTER_SELECTOR}: leave one` };
  if (byName !== undefined)
    return clusterName !== '' && namesOf(byName).some((name) => name.toLowerCase() === clusterName.toLowerCase())
      ? 'in'
      : 'out';
  if (bySelector === undefined) return 'in';
  return selectors.get(bySelector) ?? { code: 1013, text: `there is no ClusterSelector ${JSON.stringify(bySelector)}` };
}

const namesOf = (list: string): string[] =>
  list
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

/** Every cluster that a source names: in its registry, and in annotations. Sorted. */
export function clusterNamesOf(objects: readonly ParsedObject[]): string[] {
  const names = objects.flatMap(({ object }) =>
    configKindOf(object) === 'Cluster'
      ? [object.metadata.name ?? '']
      : namesOf(annotationOf(object, CLUSTER_NAME_SELECTOR) ?? ''),
  );
  return [...new Set(names)].filter((name) => name !== '').sort();
}
