/** What may be stored of an update: what its endpoint does not write stays, what the server keeps is put back, changes are counted. */

import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { updateStrategyOf } from '@coracle/apimachinery/types/strategy';
import { movesGeneration } from './generation.ts';
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
