/** When metadata.generation moves on an update. */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { UpdateStrategy } from '@coracle/apimachinery/types/strategy';

const OUTSIDE = new Set(['metadata', 'status', 'apiVersion', 'kind']);

interface Update {
  readonly object: Readonly<UnstructuredObject>;
  readonly old: Readonly<UnstructuredObject>;
  /** The kind has no `/status`. */
  readonly statusIsData: boolean;
}

/** True when the change is one that controllers must act on. */
export function movesGeneration(
  { generation, generationFollows }: Pick<UpdateStrategy, 'generation' | 'generationFollows'>,
  { object, old, statusIsData }: Update,
): boolean {
  const followed = (): boolean =>
    generationFollows !== undefined &&
    !deepEqual(object.metadata[generationFollows] ?? {}, old.metadata[generationFollows] ?? {});
  switch (generation) {
    case 'none':
    case 'one':
      return false;
    case 'spec':
      return !deepEqual(object['spec'], old['spec']) || followed();
    case 'except-status': {
      if (followed()) return true;
      for (const field of new Set([...Object.keys(object), ...Object.keys(old)])) {
        if (OUTSIDE.has(field) && !(statusIsData && field === 'status')) continue;
        if (!deepEqual(object[field], old[field])) return true;
      }
      return false;
    }
    default:
      return generation satisfies never;
  }
}
