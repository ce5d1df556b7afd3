/** Finalizers as pure functions: they return a changed copy, or the object itself when nothing changes. */

import type { KubeObject, ReadonlyObject } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';

/** True when the object carries the finalizer. */
export const hasFinalizer = (object: ReadonlyObject, finalizer: string): boolean =>
  (object.metadata.finalizers ?? []).includes(finalizer);

/** With the finalizer at the end of the list. The server refuses new ones on a deleting object: then it is left as it is. */
export function addFinalizer<T extends KubeObject>(object: T, finalizer: string): T {
  if (hasFinalizer(object, finalizer) || isDeleting(object)) return object;
  return withFinalizers(object, [...(object.metadata.finalizers ?? []), finalizer]);
}

/** Without the finalizer. On a deleting object the removal of the last one deletes it. */
export function removeFinalizer<T extends KubeObject>(object: T, finalizer: string): T {
  if (!hasFinalizer(object, finalizer)) return object;
  return withFinalizers(
    object,
    (object.metadata.finalizers ?? []).filter((one) => one !== finalizer),
  );
}

function withFinalizers<T extends KubeObject>(object: T, finalizers: string[]): T {
  const { finalizers: _replaced, ...metadata } = object.metadata;
  return { ...object, metadata: finalizers.length === 0 ? metadata : { ...metadata, finalizers } };
}
