/**
 * What belongs to which owner, of the kinds that go with a virtual machine: an index over what is stored, kept by watches.
 * Bounds: one entry for each stored object of these kinds that has owners (docs/flow.md).
 */
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { ObjectStore } from '@coracle/apiserver/cache/object-store';
import { indexStored } from './stored-index.ts';

export interface OwnedObjects {
  /** Objects that name this UID as an owner, as they are stored. */
  ownedBy(uid: string): readonly Readonly<UnstructuredObject>[];
  stop(): void;
}

/** Begins to keep the index of these prefixes (`group/resource`). */
export function indexOwnedObjects(
  store: Pick<ObjectStore, 'get' | 'list' | 'watch' | 'revision'>,
  prefixes: readonly string[],
): OwnedObjects {
  const index = indexStored(store, prefixes, ({ prefix, namespace, name, metadata }) => ({
    keys: metadata.ownerReferences?.map(({ uid }) => uid) ?? [],
    value: { prefix, namespace, name },
  }));
  return {
    ownedBy: (uid) => [...index.get(uid)].flatMap((key) => store.get(key)?.object ?? []),
    stop: index.stop,
  };
}
