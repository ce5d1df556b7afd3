/** Kinds that say how a source is read, and are never written to a cluster. */
import { parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import {
  EVERYTHING,
  fromLabelSelectorObject,
  type LabelSelector,
  type LabelSelectorObject,
} from '@coracle/apimachinery/selector/label-selector';
import type { Problem } from '../plan/check-object.ts';
import { MAX_OBJECTS, type ParsedObject } from '../render/parse-manifests.ts';
import { SyncFailure, syncError } from '../status/sync-error.ts';

export type ConfigKind = 'Repo' | 'HierarchyConfig' | 'NamespaceSelector' | 'ClusterSelector' | 'Cluster';

const GROUPS: Readonly<Record<ConfigKind, string>> = {
  Repo: 'configmanagement.gke.io',
  HierarchyConfig: 'configmanagement.gke.io',
  NamespaceSelector: 'configmanagement.gke.io',
  ClusterSelector: 'configmanagement.gke.io',
  Cluster: 'clusterregistry.k8s.io',
};

/** Which of them an object is; undefined for all others. */
export function configKindOf({ apiVersion, kind }: UnstructuredObject): ConfigKind | undefined {
  const group = Object.hasOwn(GROUPS, kind) ? GROUPS[kind as ConfigKind] : undefined;
  return group !== undefined && group === parseApiVersion(apiVersion).group ? (kind as ConfigKind) : undefined;
}

export const isNamespace = ({ apiVersion, kind }: UnstructuredObject): boolean =>
  apiVersion === 'v1' && kind === 'Namespace';

/** The value of an annotation; undefined when there is none, or one that is no text. */
export function annotationOf({ metadata }: UnstructuredObject, key: string): string | undefined {
  const annotations: unknown = metadata.annotations;
  if (typeof annotations !== 'object' || annotations === null || !Object.hasOwn(annotations, key)) return undefined;
  const value = (annotations as Record<string, unknown>)[key];
  return typeof value === 'string' ? value : undefined;
}

/** Labels that are text. */
export function labelsOf({ metadata }: UnstructuredObject): Record<string, string> {
  const labels: unknown = metadata.labels;
  if (typeof labels !== 'object' || labels === null) return {};
  return Object.fromEntries(Object.entries(labels).filter(([, value]) => typeof value === 'string'));
}

/** The same object, refused; where it would be is not known when `isPlaceless`. */
export const refused = (one: ParsedObject, code: number, text: string, isPlaceless = true): ParsedObject => ({
  ...one,
  problem: { code, text, ...(isPlaceless && { isPlaceless }) },
});

/**
 * Bounds what is made of a source.
 * @throws SyncFailure KNV2009 beyond `MAX_OBJECTS`
 */
export function checkCount(count: number): void {
  if (count <= MAX_OBJECTS) return;
  throw new SyncFailure([
    syncError(2009, `inheritance and selectors make more than ${MAX_OBJECTS} objects of the source: split it`),
  ]);
}

/** `spec.selector` of a NamespaceSelector or ClusterSelector, or KNV1014. */
export function selectorOf(object: UnstructuredObject): LabelSelector | Problem {
  const spec = (object['spec'] ?? {}) as { selector?: LabelSelectorObject } | null;
  try {
    const selector = fromLabelSelectorObject(spec?.selector ?? {});
    if (selector === EVERYTHING) return { code: 1014, text: 'spec.selector is empty: name labels in it' };
    return selector;
  } catch (error) {
    return {
      code: 1014,
      text: `spec.selector is not valid: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
}

/** Marks each of several that have one name with KNV1029; `others` keep their places. */
export function refuseDuplicates(objects: readonly ParsedObject[], kind: ConfigKind): ParsedObject[] {
  const counts = new Map<string, number>();
  const nameOf = (one: ParsedObject): string | undefined =>
    configKindOf(one.object) === kind && !one.problem ? (one.object.metadata.name ?? '') : undefined;
  for (const one of objects) {
    const name = nameOf(one);
    if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return objects.map((one) => {
    const count = counts.get(nameOf(one) ?? '') ?? 0;
    return nameOf(one) !== undefined && count > 1
      ? refused(one, 1029, `${count} of its kind have this name: leave one`)
      : one;
  });
}
