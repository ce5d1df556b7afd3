/** namespaceSelector and objectSelector of webhooks and policies (admission/plugin/webhook/predicates). */
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { notFound } from '@coracle/apimachinery/meta/status';
import {
  EVERYTHING,
  fromLabelSelectorObject,
  type LabelSelector,
  type LabelSelectorObject,
  matchesLabels,
} from '@coracle/apimachinery/selector/label-selector';
import type { ObjectStore, StoredObject } from '../../cache/object-store.ts';
import type { AdmissionAttributes } from '../plugin.ts';

/** Compiled once with its webhook or policy. */
export interface Selectors {
  readonly namespaces: LabelSelector;
  readonly objects: LabelSelector;
  /** Why one of them is none: said to the writes it would have to decide about, not to all. */
  readonly problem?: unknown;
}

/** An absent selector selects everything. */
export function compileSelectors(from: {
  readonly namespaceSelector?: LabelSelectorObject;
  readonly objectSelector?: LabelSelectorObject;
}): Selectors {
  const { namespaceSelector, objectSelector } = from;
  try {
    return {
      namespaces: namespaceSelector ? fromLabelSelectorObject(namespaceSelector) : EVERYTHING,
      objects: objectSelector ? fromLabelSelectorObject(objectSelector) : EVERYTHING,
    };
  } catch (problem) {
    return { namespaces: EVERYTHING, objects: EVERYTHING, problem };
  }
}

export const isNamespaceResource = ({ info }: Pick<AdmissionAttributes, 'info'>): boolean =>
  info.group === '' && info.resource === 'namespaces';

/** As upstream has it: of a Namespace the namespace is its own name. */
export const namespaceOf = (attributes: AdmissionAttributes): string =>
  isNamespaceResource(attributes) ? attributes.name : attributes.info.namespaced ? attributes.namespace : '';

/**
 * Whether both selectors select the write. Throws ApiError: 404 when the namespace whose labels decide does not exist,
 * 400 when a selector is none. Call it for writes that the rules are about.
 */
export function matchesSelectors(
  { namespaces, objects, problem }: Selectors,
  attributes: AdmissionAttributes,
  store: Pick<ObjectStore, 'peek'>,
): boolean {
  if (problem !== undefined) throw problem;
  if (objects !== EVERYTHING) {
    // Either side: taking the label off in an update does not escape.
    const { object, oldObject } = attributes;
    if (!selectsObject(objects, object) && !selectsObject(objects, oldObject)) return false;
  }
  if (namespaces === EVERYTHING || namespaces.requirements.length === 0) return true;
  const namespace = namespaceOf(attributes);
  if (namespace === '' && !isNamespaceResource(attributes)) return true;
  return matchesLabels(namespaces, namespaceLabels(attributes, namespace, store));
}

const selectsObject = (selector: LabelSelector, object: Readonly<UnstructuredObject> | undefined): boolean =>
  object?.metadata !== undefined && matchesLabels(selector, object.metadata.labels);

function namespaceLabels(
  attributes: AdmissionAttributes,
  namespace: string,
  store: Pick<ObjectStore, 'peek'>,
): Readonly<Record<string, string>> | undefined {
  const { operation, object } = attributes;
  const isWritten = isNamespaceResource(attributes) && attributes.subresource === '' && operation !== 'DELETE';
  const shown = (isWritten && object) || storedNamespace(store, namespace).object;
  return shown.metadata.labels;
}

/** The namespace in the newest decided state. Throws ApiError 404. */
export function storedNamespace(store: Pick<ObjectStore, 'peek'>, name: string): StoredObject {
  const found = store.peek({ prefix: '/namespaces', namespace: '', name });
  if (!found) throw notFound({ group: '', resource: 'namespaces' }, name);
  return found;
}
