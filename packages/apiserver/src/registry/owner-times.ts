/** The times of owners after an apply that leaves the object as it was. */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { ManagedFieldsEntry, UnstructuredObject } from '@coracle/apimachinery/meta/object';

/**
 * Takes, in place, the owners of `old` where nothing but their times is new: who applies `paused: false` again changes
 * nothing, because the object does not keep it (upstream's IgnoreManagedFieldsTimestampsTransformer).
 */
export function keepOwnerTimes(object: UnstructuredObject, old: Readonly<UnstructuredObject>): void {
  const { managedFields } = object.metadata;
  const before = old.metadata.managedFields;
  if (managedFields === undefined || managedFields.length !== before?.length) return;
  for (const [i, entry] of managedFields.entries()) {
    if (!deepEqual(timeless(entry), timeless(before[i]!))) return;
  }
  object.metadata.managedFields = before;
  if (!deepEqual(object, old)) object.metadata.managedFields = managedFields;
}

const timeless = (entry: Readonly<ManagedFieldsEntry>): unknown => ({ ...entry, time: undefined });
