/**
 * What the garbage collector deletes once an object is gone: its dependents, theirs, and so on. Pure; rule: the attempt of
 * kube-controller-manager's garbage collector, in which one owner that stays keeps an object.
 */

import { parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, ObjectMeta } from '@coracle/apimachinery/meta/object';

/** An object as far as its owners are concerned. */
export interface Dependent {
  readonly group: string;
  readonly kind: string;
  readonly metadata: DeepReadonly<ObjectMeta>;
}

export interface Collected<T> {
  /** In the order of `objects`. */
  readonly collected: readonly T[];
  /** Those that would go if nobody held them. What depends on them stays as well. */
  readonly held: readonly T[];
}

/**
 * `objects` are all there are of their kinds in the namespace. An owner that is not among them is gone when its kind is,
 * else it is taken to be there. `isHeld` says of an object that would go whether its deletion is refused.
 */
export function collectedWith<T extends Dependent>(
  rootUid: string,
  objects: readonly T[],
  isHeld: (object: T) => boolean = () => false,
): Collected<T> {
  const present = new Set(objects.map(({ metadata }) => metadata.uid));
  const kinds = new Set(objects.map(kindKey));
  const going = new Set([rootUid]);
  const held = new Set<T>();
  const goes = ({ metadata: { ownerReferences = [] } }: T): boolean =>
    ownerReferences.some(({ uid }) => going.has(uid)) &&
    ownerReferences.every(({ uid, apiVersion, kind }) => {
      if (going.has(uid)) return true;
      return !present.has(uid) && kinds.has(kindKey({ group: parseApiVersion(apiVersion).group, kind }));
    });
  for (let before = 0; before !== going.size; ) {
    before = going.size;
    for (const object of objects) {
      const { uid } = object.metadata;
      if (uid === undefined || going.has(uid) || held.has(object) || !goes(object)) continue;
      if (isHeld(object)) held.add(object);
      else going.add(uid);
    }
  }
  going.delete(rootUid);
  return {
    collected: objects.filter(({ metadata }) => going.has(metadata.uid ?? '')),
    held: objects.filter((object) => held.has(object)),
  };
}

const kindKey = ({ group, kind }: { readonly group: string; readonly kind: string }): string => `${group}/${kind}`;
