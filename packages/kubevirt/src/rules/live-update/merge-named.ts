import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';

/**
 * The list `before` with those members as `after` has them whose difference does not count (`isFree`). Where others have
 * come, gone, or changed their order it stays as it is.
 */
export function mergeNamed<T extends { readonly name: string }>(
  before: readonly T[],
  after: readonly T[],
  isFree: (name: string) => boolean,
): T[] {
  const rest = before.filter(({ name }) => !isFree(name));
  const kept = after.filter(({ name }) => !isFree(name));
  const names = (list: readonly T[]): string[] => list.map(({ name }) => name);
  if (!deepEqual(names(rest), names(kept))) return [...before];
  return after.map((one) => (isFree(one.name) ? one : (rest.find(({ name }) => name === one.name) ?? one)));
}
