/** What may be stored of an update: what its endpoint does not write stays, what the server keeps is put back, changes are counted. */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { type UpdateStrategy, updateStrategyOf } from '@coracle/apimachinery/types/strategy';
import { keepSystemMetadata, systemMetadataErrors } from './object-metadata.ts';

/** Returns what may be stored of `object` when written through `subresource` over `old`. May reuse `object`. */
export function prepareUpdate(
  { strategy }: ResourceInfo,
  change: {
    readonly subresource: string;
    readonly object: UnstructuredObject;
    readonly old: Readonly<UnstructuredObject>;
    /** Takes what the metadata says that it may not. */
    readonly errors: FieldError[];
  },
): UnstructuredObject {
  const { object, old, errors } = change;
  const endpoint = updateStrategyOf(strategy, change.subresource);
  const next = endpoint.keepUnwritten(object, old);
  errors.push(...systemMetadataErrors(next.metadata, old.metadata));
  keepSystemMetadata(next.metadata, old.metadata);
  // A client that leaves the version out (or patches it away) means the one it was read at.
  if (old.metadata.resourceVersion !== undefined) next.metadata.resourceVersion = old.metadata.resourceVersion;
  if (movesGeneration(endpoint, { object: next, old, statusIsData: !strategy.statusSubresource })) {
    next.metadata.generation = (old.metadata.generation ?? 0) + 1;
  }
  return next;
}

const OUTSIDE = new Set(['metadata', 'status', 'apiVersion', 'kind']);

interface Update {
  readonly object: Readonly<UnstructuredObject>;
  readonly old: Readonly<UnstructuredObject>;
  /** The kind has no `/status`. */
  readonly statusIsData: boolean;
}

/** True when the change is one that controllers must act on. */
function movesGeneration(
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
