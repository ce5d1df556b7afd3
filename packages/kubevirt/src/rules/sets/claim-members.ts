/** Which objects a set has: those it controls and selects, and those without a controller that it selects. Pure. */

import { controllerOf } from '@coracle/apimachinery/meta/controller-reference';
import type { ReadonlyObject } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import {
  fromLabelSelectorObject,
  type LabelSelector,
  type LabelSelectorObject,
  matchesLabels,
  NOTHING,
} from '@coracle/apimachinery/selector/label-selector';

export interface Members<T> {
  /** Controlled by the set and selected by it. */
  readonly own: readonly T[];
  /** Selected, and nobody controls them. */
  readonly adopt: readonly T[];
  /** Controlled by the set, and no longer selected. */
  readonly release: readonly T[];
}

/** The selector of a set; one that cannot be read, which an older server may have let in, selects nothing. */
export function selectorOf({ spec }: { readonly spec: { readonly selector?: LabelSelectorObject } }): LabelSelector {
  try {
    return fromLabelSelectorObject(spec.selector);
  } catch {
    return NOTHING;
  }
}

/**
 * Sorts the objects of a namespace (k8s.io/kubernetes pkg/controller ControllerRefManager). An object on its way out is
 * neither adopted nor released; a set on its way out adopts nothing. An empty selector selects nothing here.
 */
export function claimMembers<T extends ReadonlyObject>(
  set: ReadonlyObject,
  selector: LabelSelector,
  objects: readonly T[],
): Members<T> {
  const own: T[] = [];
  const adopt: T[] = [];
  const release: T[] = [];
  for (const object of objects) {
    const controller = controllerOf(object)?.uid;
    const isSelected = selector.requirements.length > 0 && matchesLabels(selector, object.metadata.labels);
    const isLeaving = isDeleting(object);
    if (controller === set.metadata.uid) (isSelected || isLeaving ? own : release).push(object);
    else if (controller === undefined && isSelected && !isLeaving && !isDeleting(set)) adopt.push(object);
  }
  return { own, adopt, release };
}
