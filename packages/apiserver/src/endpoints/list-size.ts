/** How large a list is, as far as that has to be known. */
import type { StoredObject } from '../cache/object-store.ts';

const storedSize = ({ size }: StoredObject): number => size;

/** True when the objects have `bytes` together; no more of them are looked at than it takes. */
export function haveBytes(items: readonly StoredObject[], bytes: number, sizeOf = storedSize): boolean {
  let found = 0;
  return items.some((item) => {
    found += sizeOf(item);
    return found >= bytes;
  });
}
