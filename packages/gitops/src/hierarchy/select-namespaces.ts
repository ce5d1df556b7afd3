/** Copies of objects for the Namespaces that their NamespaceSelector means, in format unstructured. */
import type { ReadonlyObject } from '@coracle/apimachinery/meta/object';
import { type LabelSelector, matchesLabels } from '@coracle/apimachinery/selector/label-selector';
import type { Problem } from '../plan/check-object.ts';
import type { KindLookup } from '../plan/declare.ts';
import type { ParsedObject } from '../render/parse-manifests.ts';
import { NAMESPACE_SELECTOR } from '../status/metadata-keys.ts';
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

/** A namespace that is there and not on its way out. */
export interface LiveNamespace {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** Of a Namespace as the API has it; undefined for one on its way out, which takes nothing new. */
export const liveNamespaceOf = ({ metadata }: ReadonlyObject): LiveNamespace | undefined =>
  metadata.deletionTimestamp === undefined ? { name: metadata.name ?? '', labels: metadata.labels ?? {} } : undefined;

export interface Selected {
  readonly objects: readonly ParsedObject[];
  /** Selectors of mode dynamic: what they mean changes with the namespaces of the cluster. */
  readonly dynamic: readonly LabelSelector[];
}

/** Mode of a NamespaceSelector, or KNV1014. */
export function modeOf(object: ParsedObject['object']): 'static' | 'dynamic' | Problem {
  const { mode = 'static' } = (object['spec'] ?? {}) as { mode?: unknown };
  if (mode === 'dynamic' || mode === 'static') return mode;
  if (mode === '') return 'static';
  return { code: 1014, text: `spec.mode is ${JSON.stringify(mode)}; it is static or dynamic` };
}

/**
 * Makes the copies; NamespaceSelectors have done their work and go. KNV1004 for objects of the cluster, KNV1013, KNV1014,
 * KNV1029, and KNV1053 for an object that names a namespace as well.
 */
export function selectNamespaces(
  source: readonly ParsedObject[],
  lookup: KindLookup,
  live: () => readonly LiveNamespace[],
): Selected {
  const objects = refuseDuplicates(source, 'NamespaceSelector');
  const declared = objects.filter(({ object, problem }) => isNamespace(object) && !problem);
  const placed: ParsedObject[] = [];
  const dynamic: LabelSelector[] = [];
  /** Undefined: the selector is refused itself, and nobody knows whom it means. */
  const selected = new Map<string, ReadonlyMap<string, boolean> | undefined>();
  for (const one of objects) {
    if (configKindOf(one.object) !== 'NamespaceSelector') continue;
    const selector = selectorOf(one.object);
    const mode = modeOf(one.object);
    const problem =
      one.problem ?? [selector, mode].find((part): part is Problem => typeof part === 'object' && 'code' in part);
    const name = one.object.metadata.name ?? '';
    selected.set(name, undefined);
    if (problem) {
      placed.push(refused(one, problem.code, problem.text));
      continue;
    }
    const matches = (labels: Readonly<Record<string, string>>) => matchesLabels(selector as LabelSelector, labels);
    if (mode === 'dynamic') dynamic.push(selector as LabelSelector);
    const names = new Map<string, boolean>();
    for (const { name, labels } of mode === 'dynamic' ? live() : []) if (matches(labels)) names.set(name, true);
    for (const { object } of declared) if (matches(labelsOf(object))) names.set(object.metadata.name ?? '', false);
    selected.set(name, names);
  }
  for (const one of objects) {
    if (configKindOf(one.object) === 'NamespaceSelector') continue;
    const name = annotationOf(one.object, NAMESPACE_SELECTOR);
    const type = lookup(one.object.apiVersion, one.object.kind);
    if (name === undefined || one.problem || !type) placed.push(one);
    else if (!type.namespaced)
      placed.push(refused(one, 1004, `it is in no namespace: take annotation ${NAMESPACE_SELECTOR} off`, false));
    else if (one.object.metadata.namespace)
      placed.push(
        refused(one, 1053, `it has metadata.namespace and annotation ${NAMESPACE_SELECTOR}: leave one`, false),
      );
    else if (!selected.has(name))
      placed.push(refused(one, 1013, `there is no NamespaceSelector ${JSON.stringify(name)}`));
    else for (const [namespace, isLive] of selected.get(name) ?? []) placed.push(inNamespace(one, namespace, isLive));
    checkCount(placed.length);
  }
  return { objects: placed, dynamic };
}

/** A copy of an object in a namespace. `isLive`: it is there because the namespace is, which is not to be made for it. */
export const inNamespace = (one: ParsedObject, namespace: string, isLive = false): ParsedObject => ({
  ...one,
  object: { ...one.object, metadata: { ...one.object.metadata, namespace } },
  origin: one.origin ?? one.object,
  ...(isLive && { needsNoNamespace: true }),
});

/** Which of the live namespaces dynamic selectors mean: equal texts mean the same ones. */
export const selectionText = (dynamic: readonly LabelSelector[], live: readonly LiveNamespace[]): string =>
  dynamic
    .map((selector) =>
      live
        .filter(({ labels }) => matchesLabels(selector, labels))
        .map(({ name }) => name)
        .sort()
        .join(),
    )
    .join(';');
