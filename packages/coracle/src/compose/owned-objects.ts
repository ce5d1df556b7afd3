/**
 * What belongs to which owner, of the kinds that go with a virtual machine: an index over what is stored, kept by watches.
 * Bounds: one entry for each stored object of these kinds that has owners (docs/flow.md).
 */
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { ObjectStore, StoredObject } from '@coracle/apiserver/cache/object-store';

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
  /** Owner's UID > `prefix namespace/name`. */
  const byOwner = new Map<string, Map<string, Pick<StoredObject, 'prefix' | 'namespace' | 'name'>>>();
  const textOf = ({ prefix, namespace, name }: StoredObject): string => `${prefix} ${namespace}/${name}`;
  const put = (item: StoredObject): void => {
    for (const { uid } of item.metadata.ownerReferences ?? []) {
      const { prefix, namespace, name } = item;
      const owned = byOwner.get(uid) ?? new Map<string, Pick<StoredObject, 'prefix' | 'namespace' | 'name'>>();
      byOwner.set(uid, owned.set(textOf(item), { prefix, namespace, name }));
    }
  };
  const drop = (item: StoredObject): void => {
    for (const { uid } of item.metadata.ownerReferences ?? []) {
      const owned = byOwner.get(uid);
      owned?.delete(textOf(item));
      if (owned?.size === 0) byOwner.delete(uid);
    }
  };
  const watches = prefixes.map((prefix) => {
    for (const item of store.list(prefix).items) put(item);
    return store.watch(prefix, store.revision(), (changes) => {
      for (const { type, previous, current } of changes) {
        if (previous) drop(previous);
        if (type !== 'DELETED') put(current);
      }
    });
  });
  return {
    ownedBy: (uid) => [...(byOwner.get(uid)?.values() ?? [])].flatMap((key) => store.get(key)?.object ?? []),
    stop() {
      for (const watch of watches) watch.stop();
    },
  };
}
