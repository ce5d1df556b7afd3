/** Whose an object is, by what is written on it. */

import type { ReadonlyObject } from '@coracle/apimachinery/meta/object';
import type { ObjectRef } from '../kinds/kinds.ts';
import { applySetId } from '../status/apply-set.ts';
import {
  DECLARED_VERSION,
  DELETION,
  isOwnAnnotation,
  MANAGED,
  MANAGED_BY,
  MANAGER,
  ON_REMOVE,
  OWNING_INVENTORY,
  PART_OF,
  RESOURCE_ID,
  SPECIAL_NAMESPACES,
} from '../status/metadata-keys.ts';
import { inventoryId, managerName, type SyncIdentity } from '../status/sync-identity.ts';
import { resourceId } from './object-ref.ts';

type Live = ReadonlyObject;

/** `ours`, nobody's, or the manager that is named there. */
export type Ownership =
  | { readonly by: 'us' }
  | { readonly by: 'nobody' }
  | { readonly by: 'other'; readonly manager: string };

/**
 * Who manages a live object. Copied annotations do not count: a controller that hands them down to what it makes would
 * otherwise have that deleted.
 */
export function ownershipOf(live: Live, ref: ObjectRef, sync: SyncIdentity): Ownership {
  const annotations = live.metadata.annotations ?? {};
  const id = annotations[RESOURCE_ID];
  if (id !== undefined && id !== resourceId(ref)) return { by: 'nobody' };
  if (annotations[MANAGED] === 'enabled' && id !== undefined) {
    const manager = annotations[MANAGER] ?? '';
    if (manager === managerName(sync)) return { by: 'us' };
    if (manager !== '') return { by: 'other', manager };
  }
  const inventory = annotations[OWNING_INVENTORY] ?? '';
  return inventory === '' || inventory === inventoryId(sync) ? { by: 'nobody' } : { by: 'other', manager: inventory };
}

/** True for an object that is let go where it would be deleted: it says so itself, or everything stands on it. */
export function isDetached(live: Live, ref: ObjectRef): boolean {
  const annotations = live.metadata.annotations ?? {};
  return (
    annotations[DELETION] === 'detach' ||
    annotations[ON_REMOVE] === 'keep' ||
    (ref.group === '' && ref.kind === 'Namespace' && SPECIAL_NAMESPACES.has(ref.name))
  );
}

/** The merge patch that takes a sync's metadata off an object; undefined when there is none on it. */
export function releasePatch(live: Live, sync: SyncIdentity): object | undefined {
  const annotations = Object.keys(live.metadata.annotations ?? {}).filter(isOwnAnnotation);
  const labels = Object.entries(live.metadata.labels ?? {})
    .filter(
      ([key, value]) =>
        (key === PART_OF && value === applySetId(sync)) ||
        (key === MANAGED_BY.key && value === MANAGED_BY.value) ||
        key === DECLARED_VERSION,
    )
    .map(([key]) => key);
  if (annotations.length === 0 && labels.length === 0) return undefined;
  const nulls = (keys: readonly string[]) => Object.fromEntries(keys.map((key) => [key, null]));
  const { uid } = live.metadata;
  return {
    metadata: {
      ...(uid !== undefined && { uid }),
      ...(annotations.length > 0 && { annotations: nulls(annotations) }),
      ...(labels.length > 0 && { labels: nulls(labels) }),
    },
  };
}
